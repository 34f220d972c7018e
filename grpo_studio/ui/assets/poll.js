/** One question every `every` ms while the page is visible. A lost connection shows one thin line, and goes by itself. */
export function poll(ask, { every = 2000, line = null, lost = "" } = {}) {
  let timer = null;
  let busy = false;
  let again = false; // asked for while a question was on its way
  let stopped = false;

  async function tick() {
    if (stopped || document.hidden) return;
    if (busy) { again = true; return; }
    busy = true;
    try {
      await ask();
      if (line) line.hidden = true;
    } catch (error) {
      if (line) { setLine(line, lost); line.hidden = false; }
      console.warn("tick failed", error);
    } finally {
      busy = false;
      clearTimeout(timer);
      if (!document.hidden && !stopped) timer = setTimeout(tick, again ? 0 : every);
      again = false;
    }
  }

  document.addEventListener("visibilitychange", () => { clearTimeout(timer); tick(); });
  tick();
  return { now: tick, stop: () => { stopped = true; clearTimeout(timer); } };
}

/** Only a change is put in: a live region is read out again with every change. */
function setLine(line, text) {
  if (line.textContent !== text) line.textContent = text;
}

/** A server call that has not answered in `ms` counts as lost: a hung tick must not end the polling. */
export function within(promise, ms = 15000) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("no answer in time")), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The server's functions; a call without an answer throws. Gradio's client swallows network errors into `undefined`. */
export function answering(server) {
  return new Proxy({}, {
    get: (_, name) => async (request) => {
      const answer = await server[name](request);
      if (answer === undefined || answer === null) throw new Error(`no answer from ${String(name)}`);
      return answer;
    },
  });
}
