import { checkpointList, openDialog, workButton } from "./actions_dialog.js";
import { commandJob } from "./actions_job.js";
import { h, replace, say } from "./dom.js";
import { age, bytes, fixed } from "./format.js";

const WITH_WEIGHTS = ["weights", "merged"];
const KINDS = [...WITH_WEIGHTS, "script", "archive"];

/** The dialogs whose work is a command: export, push, evaluate, import. Closing one leaves its command at work. */

export function describeCheckpoint(row, words) {
  const parts = [row.final ? words.checkpoint_final : say(words.checkpoint_step, { step: row.step })];
  if (row.score !== null) parts.push(say(words.checkpoint_score, { score: fixed(row.score) }));
  parts.push(bytes(row.bytes));
  if (row.saved_at) parts.push(say(words.checkpoint_age, { age: age(Math.max(0, Date.now() / 1000 - row.saved_at)) }));
  return [h("span", {}, parts.join(" · ")), row.best ? h("span", { class: "pill", data: { state: "finished" } }, words.checkpoint_best) : null];
}

export function openExport(context, run, menu, first = "weights") {
  const { words } = context;
  const can = (kind) => (WITH_WEIGHTS.includes(kind) ? menu.actions.export : { allowed: true, why: "" });
  const chosenFirst = can(first).allowed ? first : KINDS.find((kind) => can(kind).allowed);
  const kinds = KINDS.map((kind) => h("input", { type: "radio", name: "export-kind", value: kind, checked: kind === chosenFirst, disabled: !can(kind).allowed, onchange: show }));
  const list = checkpointList({ rows: menu.checkpoints, words, describe: (row) => describeCheckpoint(row, words) });
  const [whole, wholeRow] = tick(words.export_checkpoints);
  const what = () => kinds.find((input) => input.checked)?.value;
  commandDialog(context, {
    title: say(words.export_title, { name: run.name }), sub: words.export_sub, go: words.export, place: `export ${run.id}`,
    body: [h("fieldset", { class: "kinds" }, h("legend", { class: "small muted" }, words.export_what), kinds.map((input) => kindRow(input, can(input.value), words))), list.node, wholeRow],
    request: () => ({ kind: "export", run: run.id, what: what(), checkpoint: list.chosen(), with_checkpoints: whole.checked }),
    result: (answer) => exported(answer, words),
  });
  show();

  function show() {
    list.node.hidden = !WITH_WEIGHTS.includes(what());
    wholeRow.hidden = what() !== "archive" || !menu.checkpoints.length;
  }
}

export function openPush(context, run, menu) {
  const { words } = context;
  const repository = h("input", { class: "field", type: "text", autofocus: true, spellcheck: "false", autocomplete: "off", placeholder: words.push_placeholder, "aria-label": words.push_repository });
  const list = checkpointList({ rows: menu.checkpoints, words, describe: (row) => describeCheckpoint(row, words) });
  const [merge, mergeRow] = tick(words.push_merge);
  const [open, openRow] = tick(words.push_public);
  commandDialog(context, {
    title: say(words.push_title, { name: run.name }), sub: words.push_sub, go: words.push, place: `push ${run.id}`,
    body: [h("label", { class: "labelled" }, h("span", { class: "small" }, words.push_repository), repository), list.node, h("div", {}, mergeRow, openRow)],
    request: () => ({ kind: "push", run: run.id, repository: repository.value, checkpoint: list.chosen(), merge: merge.checked, public: open.checked }),
    result: (answer) => h("div", { class: "result-box" }, h("p", {}, words.pushed), webLink(answer.url, answer.repo), notes(answer)),
  });
}

function tick(label) {
  const input = h("input", { type: "checkbox", class: "tick" });
  return [input, h("label", { class: "checkpoint" }, input, h("span", {}, label))];
}

/** An address that a command gave: a link only when it is one of the web. */
function webLink(url, label) {
  return /^https:\/\//.test(String(url)) ? h("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, label) : h("span", { class: "mono" }, label);
}

function notes(answer) {
  return Array.isArray(answer.notes) && answer.notes.length ? h("ul", { class: "small muted" }, answer.notes.map((note) => h("li", {}, note))) : null;
}

function kindRow(input, action, words) {
  const [label, note] = words.export_kinds[input.value];
  return h("label", { class: "checkpoint" }, input, h("span", {}, label, h("span", { class: "under small" }, action.allowed ? note : say(words.why[action.why], { what: label }))));
}

function exported(answer, words) {
  return h("div", { class: "result-box" },
    h("p", {}, answer.bytes === undefined ? words.exported_folder : say(words.exported, { size: bytes(answer.bytes) })),
    h("p", { class: "mono" }, answer.to), copyButton(String(answer.to), words), notes(answer));
}

function copyButton(text, words) {
  const button = h("button", { class: "button", type: "button" }, words.copy);
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); replace(button, words.copied); } catch (error) { console.warn("not copied", error); replace(button, words.copy_failed); }
  });
  return button;
}

export function openEvaluate(context, run, menu) {
  const { words } = context;
  const rows = [...menu.checkpoints, { asked: "base", base: true }];
  const list = checkpointList({ rows, words, describe: (row) => (row.base ? words.checkpoint_base : describeCheckpoint(row, words)) });
  const link = h("a", { href: `./results?run=${encodeURIComponent(run.id)}` }, words.items.results);
  return commandDialog(context, {
    title: say(words.evaluate_title, { name: run.name }), sub: words.evaluate_sub, go: words.evaluate, place: `evaluate ${run.id}`,
    body: list.node,
    request: () => ({ kind: "evaluate", run: run.id, checkpoint: list.chosen() }),
    result: () => h("div", { class: "result-box" }, h("p", {}, words.evaluated), link),
  });
}

export function openImport(context) {
  const { words, changed } = context;
  const path = h("input", { class: "field wide", type: "text", autofocus: true, spellcheck: "false", autocomplete: "off", placeholder: words.import_placeholder, "aria-label": words.import_path });
  return commandDialog(context, {
    title: words.import_title, sub: words.import_sub, go: words.import, place: "import",
    body: h("label", { class: "labelled" }, h("span", { class: "small" }, words.import_path), path),
    request: () => ({ kind: "import", path: path.value }),
    result: (answer) => {
      changed();
      return h("div", { class: "result-box" }, h("p", {}, words.imported), answer.run ? h("a", { href: `./live?run=${encodeURIComponent(answer.run)}` }, answer.run) : null, notes(answer));
    },
  });
}

/** A dialog with one button that begins a command, whose progress and result stand below. */
function commandDialog({ server, words, frame }, { title, sub, go, place, body, request, result }) {
  const button = h("button", { class: "button primary", type: "button", onclick: () => job.begin(request()) }, go);
  const job = commandJob({ server, words, lost: frame.lost, place, result, onbusy: (busy) => { button.disabled = busy; } });
  const dialog = openDialog({ title, sub, words, body: [body, job.node], actions: button, onclose: job.stop });
  dialog.node.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.matches("input[type=text]") && !button.disabled) button.click(); });
  return dialog;
}
