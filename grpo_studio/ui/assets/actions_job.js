import { h, replace, say } from "./dom.js";
import { within } from "./poll.js";

const EVERY_MS = 1000;
const STORE = "studio.commands";

/**
 * A command that takes long: how far it is, a button to end it, what came of it. It goes on when the dialog is closed,
 * and is found again by `place`, the name of what it is about.
 */
export function commandJob({ server, words, lost, place, result, onbusy = () => {} }) {
  const line = h("span", { class: "muted small", role: "status" });
  const cancel = h("button", { class: "button", type: "button", onclick: giveUp }, words.end);
  const bar = h("div", { class: "progress", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" }, h("span"));
  const head = h("div", { class: "job-head", hidden: true }, line, cancel);
  const out = h("div", { class: "job-result" });
  const node = h("div", { class: "job" }, head, bar, out);
  bar.hidden = true;
  let timer = null;
  let turn = 0;
  let seen = false; // at work, as this dialog saw itself
  const known = stored()[place];
  if (known) follow(known, ++turn);

  async function begin(request) {
    const key = randomKey();
    const mine = ++turn;
    seen = false;
    store(key);
    replace(out);
    tell(words.doing.waiting);
    await step(mine, key, () => server.run_command({ key, ...request }));
  }

  function follow(key, mine) {
    return step(mine, key, () => server.run_command_progress({ key }));
  }

  async function giveUp() {
    cancel.disabled = true;
    try {
      await within(server.run_command_cancel({ key: stored()[place] }));
    } catch (error) {
      console.warn("not ended", error);
      tell(lost);
    }
    cancel.disabled = false;
  }

  async function step(mine, key, ask) {
    clearTimeout(timer);
    onbusy(true);
    let answer = null;
    try {
      answer = await within(ask(), 30000);
    } catch (error) {
      console.warn("no answer", error);
      if (mine === turn) tell(lost);
    }
    if (mine !== turn) return;
    if (answer?.error) return end(answer.error, true);
    if (answer?.unknown) return end(seen ? words.gone : "", seen);
    if (answer && answer.state !== "running") return finish(answer);
    if (answer) progress(answer);
    timer = setTimeout(() => follow(key, mine), EVERY_MS);
  }

  function progress({ message, done, wanted }) {
    seen = true;
    const doing = words.doing[message] ?? message;
    const share = wanted ? Math.min(100, Math.round((100 * done) / wanted)) : 0;
    tell(wanted ? say(words.so_far, { doing, share }) : doing);
    bar.hidden = !wanted;
    bar.setAttribute("aria-valuenow", share);
    bar.firstChild.style.width = `${share}%`;
  }

  function finish(answer) {
    if (answer.state === "failed") return end(answer.message, true);
    if (answer.state === "cancelled") return end(words.ended, false);
    idle();
    replace(out, result(answer.result));
  }

  function idle() {
    onbusy(false);
    head.hidden = bar.hidden = true;
  }

  /** What failed or was ended is not found again. */
  function end(text, fault) {
    store(null);
    idle();
    replace(out, text ? h("p", { class: fault ? "small fault" : "small muted", role: fault ? "alert" : "status" }, text) : []);
  }

  function tell(text) {
    head.hidden = false;
    if (line.textContent !== text) replace(line, text);
  }

  function store(key) {
    const all = stored();
    if (key) all[place] = key; else delete all[place];
    sessionStorage.setItem(STORE, JSON.stringify(all));
  }
  return { node, begin, stop: () => { turn += 1; clearTimeout(timer); } };
}

function stored() {
  try {
    const all = JSON.parse(sessionStorage.getItem(STORE) || "{}");
    return all && typeof all === "object" ? all : {};
  } catch {
    return {};
  }
}

function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
