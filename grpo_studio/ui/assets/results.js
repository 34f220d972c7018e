import { faultBanner } from "./banner.js";
import { h, replace, say, setText } from "./dom.js";
import { clock } from "./format.js";
import { lostLine } from "./frame.js";
import { poll, within } from "./poll.js";
import { openEvaluate } from "./results_evaluate.js";
import { buildFigures } from "./results_figures.js";
import { buildRows } from "./results_rows.js";

const EVERY_MS = 4000;
const SIDES = ["a", "b"];

/** The page of results: two evaluations of a run, what changed between them, and the rows that flipped. */
export function start({ main, server, words, frame }) {
  const asked = new URLSearchParams(location.search);
  const view = { run: asked.get("run"), a: asked.get("a"), b: asked.get("b"), version: null, about: null, turn: 0 };
  const problem = faultBanner();
  const trouble = faultBanner();
  document.title = `${words.title} · ${frame.name}`;
  if (!view.run) {
    replace(main, problem.node);
    problem.show(words.no_run, h("a", { href: "./runs" }, words.to_runs));
    return;
  }
  const name = h("a", { href: `./live?run=${encodeURIComponent(view.run)}` });
  const pill = h("span", { class: "pill" });
  const pickers = SIDES.map((side) => h("select", { class: "field", "aria-label": words[`side_${side}`], onchange: choose }));
  const begin = h("button", { class: "button primary", type: "button", disabled: true, onclick: () => openEvaluate({ server, words, lost: frame.lost, about: view.about, made }) }, words.evaluate);
  const note = h("p", { class: "muted small", role: "status", hidden: true });
  const figures = buildFigures(words);
  const rows = buildRows({ words, server, trouble, lost: frame.lost, onread: pin, asked: () => ({ run: view.run, a: view.about.a, b: view.about.b }) });
  const nothing = h("section", { class: "card nothing", hidden: true });
  const rest = h("div", { style: { display: "contents" } }, figures.node, rows.node);
  rest.hidden = true;
  replace(main, problem.node, trouble.node,
    h("section", { class: "card results-head" },
      h("div", { class: "results-title" }, h("h1", {}, words.title), name, pill, begin),
      h("div", { class: "results-sides" },
        pickers.map((picker, place) => h("label", { class: `results-side side-${SIDES[place]}` }, h("span", { class: "small" }, words[`side_${SIDES[place]}`]), picker))),
      note),
    nothing, rest);
  const polling = poll(tick, { every: EVERY_MS, line: lostLine(), lost: frame.lost });

  async function tick() {
    const turn = view.turn;
    const answer = await within(server.results_tick({ run: view.run, a: view.a, b: view.b, version: view.version }));
    if (turn !== view.turn) return;
    problem.show(answer.error || "");
    if (answer.error || !answer.run) return;
    Object.assign(view, { version: answer.version, about: answer });
    draw(answer);
  }

  function draw(answer) {
    setText(name, answer.name);
    setText(pill, frame.states[answer.state] ?? answer.state);
    pill.dataset.state = answer.state;
    begin.disabled = answer.held_out === 0;
    SIDES.forEach((side, place) => options(pickers[place], answer.evaluations, answer[side]));
    const found = answer.comparison;
    rest.hidden = !found;
    nothing.hidden = Boolean(found);
    tell(found ? aside(found) : "");
    if (!found) { replace(nothing, waiting(answer)); return; }
    figures.show(found);
    rows.show(found, `${answer.a}/${answer.b}`);
  }

  /** What of the two evaluations is in no figure. */
  function aside(found) {
    const parts = [];
    if (found.only_before || found.only_after) parts.push(say(words.unmatched, { before: found.only_before, after: found.only_after }));
    if (found.not_read) parts.push(say(words.not_read, { count: found.not_read }));
    return parts.join(" ");
  }

  function waiting({ held_out, evaluations, every, ended, steps }) {
    if (held_out === 0) return [h("h2", {}, words.none_title), h("p", { class: "muted" }, words.no_held_out)];
    const next = every ? say(words.next_every, { every }) : say(words.next_end, { steps });
    if (!evaluations.length) return [h("h2", {}, words.none_title), h("p", { class: "muted" }, ended ? words.none_ended : `${words.none_yet} ${next}`)];
    return [h("h2", {}, words.one_title), h("p", { class: "muted" }, ended ? words.one_ended : `${words.one_yet} ${next}`)];
  }

  function tell(text) {
    note.hidden = !text;
    setText(note, text);
  }

  /** The list is built anew only when it changed, so that an open one stays open. */
  function options(select, evaluations, chosen) {
    const key = JSON.stringify(evaluations);
    if (select.dataset.key !== key) {
      replace(select, evaluations.map((one) => h("option", { value: one.key }, label(one))));
      select.dataset.key = key;
    }
    select.value = chosen ?? "";
    select.disabled = evaluations.length < 2;
  }

  function label({ step, checkpoint, at }) {
    if (checkpoint === null) return step === 0 ? words.before_training : say(words.after_step, { step });
    const what = checkpoint === "base" ? words.before_training : checkpoint === "final" ? words.final : say(words.after_step, { step });
    return say(words.later, { what, at: at === null ? "" : `${new Date(at * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${clock(at).slice(0, 5)}` });
  }

  function choose() {
    go({ a: pickers[0].value, b: pickers[1].value });
  }

  /** An evaluation was made: it is what is shown after. */
  function made(key) {
    go({ b: key });
  }

  function go(change) {
    Object.assign(view, change, { version: null, turn: view.turn + 1 });
    address();
    polling.now();
  }

  /** Somebody reads rows: a newer evaluation is then one more choice and takes none of them away. */
  function pin() {
    if (view.a === view.about.a && view.b === view.about.b) return;
    Object.assign(view, { a: view.about.a, b: view.about.b });
    address();
  }

  function address() {
    const named = new URLSearchParams(location.search);
    for (const side of SIDES) if (view[side]) named.set(side, view[side]);
    history.replaceState(history.state, "", `${location.pathname}?${named}`); // Gradio gives the page another base
  }
}

