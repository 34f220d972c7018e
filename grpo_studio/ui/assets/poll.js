/** One question every `every` ms while the page is visible. A lost connection shows one thin line, and goes by itself. */
export function poll(ask, { every = 2000, line = null, lost = "" } = {}) {
  let timer = null;
  let busy = false;
  let stopped = false;

  async function tick() {
    if (busy || stopped || document.hidden) return;
    busy = true;
    try {
      await ask();
      if (line) line.hidden = true;
    } catch (error) {
      if (line) { line.textContent = lost; line.hidden = false; }
      console.warn("tick failed", error);
    } finally {
      busy = false;
      if (!document.hidden && !stopped) { clearTimeout(timer); timer = setTimeout(tick, every); }
    }
  }

  document.addEventListener("visibilitychange", () => { clearTimeout(timer); tick(); });
  tick();
  return { now: tick, stop: () => { stopped = true; clearTimeout(timer); } };
}

/** A server call that has not answered in `ms` counts as lost: a hung tick must not end the polling. */
export function within(promise, ms = 15000) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("no answer in time")), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
