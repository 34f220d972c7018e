import { faultBanner } from "./banner.js";
import { h, replace, say, setText } from "./dom.js";
import { fixed } from "./format.js";
import { lostLine } from "./frame.js";
import { poll, within } from "./poll.js";
import { turnView } from "./play_turn.js";

const SIDES = ["a", "b"];

/** The Play page: two sides of a run answer the same message, each in its own chat. */
export async function start({ main, server, words, frame }) {
  const asked = new URLSearchParams(location.search);
  const run = asked.get("run");
  const key = `${Date.now().toString(36)}-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  const view = { about: null, state: "closed", opening: false, asked: 0, now: null, chats: [[], []] };
  const trouble = faultBanner();
  document.title = `${words.title} · ${frame.name}`;
  replace(main, trouble.node, h("p", { class: "muted", role: "status" }, words.reading));
  if (!run) { trouble.show(words.no_run, h("a", { href: "./runs" }, words.to_runs)); return; }
  const about = await within(server.play_about({ run })).catch(() => ({ error: frame.lost }));
  if (about.error) { trouble.show(about.error, h("a", { href: "./runs" }, words.to_runs)); return; }
  view.about = about;

  const pickers = SIDES.map((side, place) => h("select", { class: "field", "aria-label": words[`side_${side}`], onchange: closeChat }, options(place)));
  const load = h("button", { class: "button primary", type: "button", onclick: openChat }, words.load);
  const free = h("button", { class: "button", type: "button", onclick: closeChat, hidden: true }, words.free);
  const status = h("span", { class: "muted small", role: "status" }, words.closed);
  const log = h("div", { class: "play-log", "aria-live": "off" });
  const empty = h("p", { class: "play-empty muted" }, words.empty);
  const input = h("textarea", { class: "field play-input", rows: "3", placeholder: words.placeholder, "aria-label": words.placeholder, onkeydown: onKey, oninput: enable });
  const send = h("button", { class: "button primary", type: "button", disabled: true, onclick: ask }, words.send);
  const stop = h("button", { class: "button", type: "button", hidden: true, onclick: () => call("play_stop", {}) }, words.stop);
  const anew = h("button", { class: "button", type: "button", onclick: beginAnew }, words.anew);
  const temperature = field("number", { min: "0", max: "5", step: "0.1", value: "0" });
  const tokens = field("number", { min: "1", max: "8192", step: "1", value: String(about.max_tokens) });
  const seed = field("number", { min: "0", step: "1", value: "0" });
  const template = h("input", { type: "checkbox", role: "switch", class: "launch-toggle", checked: Boolean(about.template), disabled: !about.template });
  const questions = h("select", { class: "field", "aria-label": words.question, onchange: takeQuestion },
    h("option", { value: "" }, about.questions.length ? words.question : words.no_question),
    about.questions.map((text, place) => h("option", { value: String(place) }, text.length > 80 ? `${text.slice(0, 79)}…` : text)));
  questions.disabled = about.questions.length === 0;

  replace(main, trouble.node,
    h("section", { class: "card play" },
      h("div", { class: "play-head" },
        h("h1", {}, words.title),
        h("a", { href: `./live?run=${encodeURIComponent(about.run)}` }, about.name),
        h("span", { class: "muted small play-model" }, about.model), status),
      h("div", { class: "play-sides" },
        pickers.map((picker, place) => h("label", { class: "play-side" }, h("span", { class: `play-mark side-${SIDES[place]}` }, words[`side_${SIDES[place]}`]), picker)),
        h("div", { class: "play-buttons" }, load, free)),
      log,
      h("div", { class: "play-ask" }, input,
        h("div", { class: "play-row" }, send, stop, anew, questions,
          label(words.temperature, temperature, words.temperature_note), label(words.tokens, tokens), label(words.seed, seed),
          h("label", { class: "play-check", title: about.template || words.no_template }, template, words.template)))));
  replace(log, empty);

  const polling = poll(tick, { every: 700, line: lostLine(), lost: frame.lost });
  addEventListener("pagehide", leave);

  function options(place) {
    const wanted = asked.get(SIDES[place]) || (place === 0 ? "base" : about.sides.at(-1).name);
    return about.sides.map((side) => h("option", { value: side.name, selected: side.name === wanted },
      side.name === "base" ? words.base : [side.name === "final" ? words.final : say(words.step, { step: side.step }), side.score === null ? "" : say(words.score, { score: fixed(side.score) }), side.best ? words.best : ""].filter(Boolean).join(" · ")));
  }

  async function call(name, request) {
    const answer = await within(server[name]({ key, ...request })).catch(() => ({ error: frame.lost }));
    trouble.show(answer.error || "");
    return answer.error ? null : answer;
  }

  async function openChat() {
    load.disabled = view.opening = true;
    const [a, b] = pickers.map((picker) => picker.value);
    const answer = await call("play_open", { run: about.run, a, b });
    load.disabled = view.opening = false;
    if (answer) { beginAnew(); show(answer); polling.now(); }
  }

  async function closeChat() {
    if (view.state === "closed") return;
    show({ state: "ended" });
    await call("play_close", {});
  }

  /** The page goes: its memory is freed at once. A request of a page that is gone is dropped unless it is kept alive. */
  function leave() {
    if (view.state === "closed" && !view.opening) return;
    const usual = window.fetch;
    window.fetch = (to, how) => usual(to, { ...how, keepalive: true });
    try { server.play_close({ key }).catch(() => {}); } finally { window.fetch = usual; }
  }

  async function tick() {
    if (view.state === "closed") return;
    const turn = view.now;
    const answer = await within(server.play_state({ key, turn: turn?.id ?? null }));
    if (answer.error) { trouble.show(answer.error); return; }
    if (view.state === "closed") return; // freed while the question was on its way
    show(answer);
    if (turn && turn === view.now && answer.replies?.length) hear(answer.replies);
  }

  function show({ state, message }) {
    view.state = state === "ended" ? "closed" : state;
    setText(status, { loading: message ? say(words.loading, { what: message }) : words.loading_first, ready: words.ready, failed: "", closed: words.closed }[view.state] ?? "");
    if (view.state === "failed") { trouble.show(message); view.state = "closed"; setText(status, words.closed); }
    load.hidden = view.state !== "closed";
    free.hidden = view.state === "closed";
    if (view.state === "closed" && view.now) { view.now.end(words.was_closed); view.now = null; }
    enable();
  }

  function enable() {
    send.disabled = view.state !== "ready" || view.now !== null || !input.value.trim();
    send.title = view.state === "ready" ? "" : words.load_first;
    stop.hidden = view.now === null;
  }

  async function ask() {
    if (send.disabled) return;
    const text = input.value.trim();
    const id = String(view.asked++); // never the same twice: a new chat must not hear the one before
    const chats = view.chats.map((chat) => [...chat, { role: "user", content: text }]);
    const sampling = { temperature: Number(temperature.value), max_tokens: Math.round(Number(tokens.value)), seed: Math.round(Number(seed.value)) };
    send.disabled = true;
    if (!(await call("play_say", { turn: id, chats, sampling, template: template.checked }))) { enable(); return; }
    view.now = turnView(id, text, words);
    view.chats = chats;
    empty.remove();
    log.append(view.now.node);
    input.value = "";
    view.now.node.scrollIntoView({ block: "nearest" });
    enable();
  }

  function hear(replies) {
    const near = log.scrollHeight - log.scrollTop - log.clientHeight < 80; // somebody who reads further up stays there
    view.now.show(replies);
    if (near) log.scrollTop = log.scrollHeight;
    if (!replies.every((reply) => reply.done)) return;
    replies.forEach((reply, place) => view.chats[place].push({ role: "assistant", content: reply.text }));
    view.now = null;
    enable();
    input.focus({ preventScroll: true });
  }

  function beginAnew() {
    if (view.now) server.play_stop({ key }).catch(() => {});
    Object.assign(view, { now: null, chats: [[], []] });
    replace(log, empty);
    enable();
  }

  function takeQuestion() {
    const text = about.questions[Number(questions.value)];
    if (questions.value === "" || text === undefined) return;
    input.value = text;
    template.checked = false; // a held-out question was recorded with the template around it
    questions.value = "";
    enable();
    input.focus();
  }

  function onKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); ask(); }
  }

  function field(type, more) {
    return h("input", { class: "field play-number", type, ...more });
  }

  function label(text, node, note) {
    return h("label", { class: "play-field", title: note }, h("span", { class: "small muted" }, text), node);
  }
}
