// The right side, "Before you start": prompts, what the settings come to, problems, notes, and the buttons.

import { h, replace, say } from "./dom.js";
import { number } from "./format.js";
import { makePrompts } from "./launch_prompts.js";
import { short } from "./launch_text.js";

/**
 * @param context {words, draft, setField(name, value), goTo(field), titleOf(field)}
 * @param forecast {root} the memory that the run will need
 * @param scan {root} what is known of the whole data set
 * @param actions {root} the buttons below
 * @returns {root, status, checking(), report(report), lost(), prompts}
 */
export function makePanel({ words, draft, setField, goTo, titleOf }, forecast, scan, actions) {
  const prompts = makePrompts(words);
  const status = h("span", { class: "launch-status" }, words.checking);
  const tiles = makeTiles(words);
  const problems = h("ul", { class: "launch-problems" });
  const problemArea = h("div", { "aria-live": "polite" }, problems);
  const notes = h("ul", { class: "launch-notes" });
  let told = "";
  prompts.say(words.prompt_waits);
  const root = h("aside", { class: "card launch-panel", id: "launch-panel", "aria-label": words.before },
    h("div", { class: "launch-panel-head" }, h("h2", {}, words.before), status),
    h("div", { class: "launch-panel-scroll" }, prompts.root, tiles.root, forecast.root, problemArea, scan.root, notes),
    actions.root);
  return {
    root,
    prompts,
    checking() {
      status.textContent = words.checking;
      root.classList.add("launch-checking");
    },
    report(report) {
      root.classList.remove("launch-checking");
      status.textContent = report.ok ? words.ready : countText(report.problems.length, words);
      status.classList.toggle("launch-status-wrong", !report.ok);
      tiles.show(report.derived ?? {}, draft);
      // Only a change is put in, as only a change should be read out.
      const found = JSON.stringify(report.problems);
      if (found !== told) replace(problems, report.problems.map((problem) => problemItem(problem, { goTo, titleOf, setField, words })));
      told = found;
      replace(notes, notesOf(report).map((note) => h("li", {}, note)));
    },
    lost() {
      status.textContent = words.lost;
    },
  };
}

/** Notes but for those that stand among the findings of the scan. */
function notesOf({ notes = [], scan }) {
  const found = (scan?.findings ?? []).map((finding) => finding.message);
  return notes.filter((note) => !found.some((message) => note.startsWith(message)));
}

export function countText(count, words) {
  return say(count === 1 ? words.one_problem : words.many_problems, { count });
}

/** Rows that stop a run can be left out at a click. */
function problemItem(problem, { goTo, titleOf, setField, words }) {
  const leave = words.leave_out[problem.field];
  const link = h("a", { href: "#page", class: "launch-problem-link", onclick: (event) => {
    event.preventDefault();
    goTo(problem.field);
  } }, h("span", { class: "launch-problem-field", title: problem.field }, titleOf(problem.field)), ` ${problem.message}`);
  return h("li", {}, link, h("span", { class: "launch-problem-fix" }, problem.fix),
    leave && h("button", { type: "button", class: "launch-chip", onclick: () => setField(problem.field, "leave_out") }, leave));
}

/** Six numbers that follow from the settings; a number that cannot be known yet is a dash, in its place. */
function makeTiles(words) {
  const names = ["completions", "tokens", "epochs", "rows", "epoch_steps", "micro_batch"];
  const values = Object.fromEntries(names.map((name) => [name, h("div", { class: "launch-tile-value" }, "–")]));
  const root = h("dl", { class: "launch-tiles" }, names.map((name) =>
    h("div", { class: "launch-tile" }, h("dd", {}, values[name]), h("dt", {}, words.tiles[name]))));
  return {
    root,
    show(derived, draft) {
      for (const [name, text] of Object.entries(tileTexts(derived, draft))) values[name].textContent = text;
    },
  };
}

function tileTexts(derived, draft) {
  const value = (name) => Number(draft.get(`algorithm.${name}`));
  const completions = derived.completions_per_step ?? value("prompts_per_step") * value("group_size");
  const trainRows = derived.train_rows ?? null;
  const epochSteps = derived.steps_per_epoch ?? (trainRows === null ? null : trainRows / value("prompts_per_step"));
  const samples = (value("steps") / value("num_iterations")) * value("prompts_per_step");
  const epochs = trainRows > 0 ? samples / trainRows : derived.epochs ?? null;
  const micro = derived.micro_batch;
  return {
    completions: short(completions),
    tokens: short(derived.largest_tokens_per_step ?? completions * value("max_completion_length")),
    epochs: number(epochs),
    rows: short(derived.dataset_rows),
    epoch_steps: epochSteps === null ? "–" : short(Math.ceil(epochSteps)),
    micro_batch: micro && completions ? `${Math.round(completions / micro)} × ${micro}` : "–",
  };
}
