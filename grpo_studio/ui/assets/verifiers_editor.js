// The editor: a person's own verifier files. Saving one puts it in use, once its own examples have been checked.

import { h, replace, say } from "./dom.js";
import { within } from "./poll.js";
import { makeCode } from "./verifiers_code.js";
import { columnFields, paramFields, readColumns } from "./verifiers_fields.js";
import { reportBox } from "./verifiers_report.js";
import { scoreBox } from "./verifiers_score.js";
import { columnsOf } from "./verifiers_try.js";

const LONGEST_WAIT_MS = 120000;

export function makeEditor(context) {
  const { words, memory, server } = context;
  const state = { file: null, opened: null, seen: null, code: "", saved: "", ...memory.get("editor") };
  const off = h("p", { class: "v-off", hidden: true });
  const files = h("div", { class: "v-files", role: "group", "aria-label": words.files });
  const name = h("input", { class: "field", type: "text", placeholder: words.new_name, "aria-label": words.new_name, spellcheck: "false", onkeydown: (event) => { if (event.key === "Enter") create(); } });
  const newButton = h("button", { type: "button", class: "button", onclick: create }, words.new_file);
  const line = h("span", { class: "small muted", role: "status" });
  const question = h("div", { class: "v-question", role: "alertdialog", "aria-label": words.question, hidden: true });
  const code = makeCode({ id: "v-code", label: words.code, hint: words.code_hint, changed: () => { state.code = code.get(); keep(); drawFiles(); } });
  const report = reportBox(words);
  const trial = h("div", { class: "v-trial" });
  const buttons = {
    save: h("button", { type: "button", class: "button primary", onclick: () => save({}) }, words.save),
    check: h("button", { type: "button", class: "button", onclick: check }, words.check),
    draft: h("button", { type: "button", class: "button", onclick: () => save({ draft: true }) }, words.save_draft),
    remove: h("button", { type: "button", class: "button danger", onclick: remove }, words.delete),
  };
  const title = h("h3", { class: "v-file-title" });
  const work = h("div", { hidden: true }, title, code.root, h("div", { class: "v-actions" }, Object.values(buttons), line), question, report.root, trial);
  const root = h("section", { class: "card v-editor" },
    h("div", { class: "card-head" }, h("h2", {}, words.write_title), h("span", { class: "sub" }, words.write_sub)),
    off, h("div", { class: "v-file-bar" }, files, h("span", { class: "v-new" }, name, newButton)), work);
  if (state.file) place(state);

  function keep() {
    memory.set("editor", { ...state });
  }

  function dirty() {
    return state.file !== null && state.code !== state.saved;
  }

  function place(next) {
    Object.assign(state, next);
    work.hidden = state.file === null;
    code.set(state.code);
    replace(title, state.file ?? "");
    report.clear();
    replace(trial);
    closeQuestion();
    tell("");
    keep();
    drawFiles();
  }

  function drawFiles() {
    const { editor } = context.catalogue;
    off.hidden = !editor.off;
    replace(off, editor.off || "");
    for (const node of [name, newButton, ...Object.values(buttons)]) node.disabled = Boolean(editor.off);
    buttons.remove.disabled = Boolean(editor.off) || state.opened === null;
    const held = document.activeElement?.closest?.(".v-files") ? document.activeElement.dataset.file : null;
    replace(files, editor.files.length ? editor.files.map((file) => h("button", {
      type: "button", class: "v-chip", data: { file }, disabled: Boolean(editor.off), "aria-pressed": String(file === state.opened), onclick: () => open(file),
    }, file.replace(/^_/, ""), file.startsWith("_") ? h("span", { class: "muted" }, ` ${words.draft}`) : null, file === state.opened && dirty() ? h("span", { class: "v-dirty", title: words.unsaved }, " •") : null)) : h("span", { class: "muted small" }, words.no_files));
    if (held) [...files.children].find((node) => node.dataset.file === held)?.focus();
  }

  function tell(text, fault = false) {
    replace(line, text);
    line.classList.toggle("v-fault", fault);
    line.classList.toggle("muted", !fault);
  }

  /** One question to the server with the buttons off; what is wrong is told, and then the answer is null. */
  async function ask(doing, call) {
    for (const button of Object.values(buttons)) button.disabled = true;
    tell(doing);
    try {
      const answer = await within(call(), LONGEST_WAIT_MS);
      tell(answer.error || "", Boolean(answer.error));
      return answer.error ? null : answer;
    } catch (error) {
      console.warn("no answer", error);
      tell(context.frame.lost, true);
      return null;
    } finally {
      drawFiles();
    }
  }

  /** Ask a person before something is lost. */
  function confirm(text, choices) {
    replace(question, h("span", {}, text), choices.map(([label, act]) => h("button", { type: "button", class: "button", onclick: () => { closeQuestion(); act?.(); } }, label)));
    question.hidden = false;
    work.hidden = false;
    question.querySelector("button").focus();
  }

  function closeQuestion() {
    question.hidden = true;
    replace(question);
  }

  function unlessDirty(act) {
    if (!dirty()) return act();
    return confirm(say(words.throw_away, { file: state.file }), [[words.yes_throw, act], [words.keep_editing, null]]);
  }

  function create() {
    unlessDirty(async () => {
      const answer = await ask("", () => server.verifiers_new({ name: name.value }));
      if (!answer) { work.hidden = false; return; }
      name.value = "";
      place({ ...answer, opened: null, seen: null, saved: "" });
      code.area.focus();
    });
  }

  function open(file) {
    unlessDirty(async () => {
      const answer = await ask("", () => server.verifiers_open({ file }));
      if (answer) place({ ...answer, opened: file, saved: answer.code });
      else work.hidden = false;
    });
  }

  async function check() {
    report.clear();
    const answer = await ask(words.checking, () => server.verifiers_check({ file: state.file, code: state.code }));
    if (answer) showReport(answer);
  }

  async function save(more) {
    const sent = state.code;
    report.clear();
    const answer = await ask(words.checking, () => server.verifiers_save({ file: state.file, code: sent, opened: state.opened, seen: state.seen, ...more }));
    if (!answer) return;
    if (answer.report) showReport(answer.report);
    if (answer.conflict) {
      confirm(say(words.conflict, { conflict: answer.conflict }), [[words.keep_editing, null], [words.overwrite, () => save({ ...more, replace: true })]]);
      return;
    }
    if (!answer.saved) { tell(words.not_saved, true); return; }
    Object.assign(state, { file: answer.saved, opened: answer.saved, seen: answer.seen, saved: sent });
    replace(title, state.file);
    keep();
    tell(answer.draft ? words.saved_draft : words.saved);
    context.refresh();
  }

  function remove() {
    const file = state.opened;
    confirm(say(words.delete_ask, { file }), [[words.keep_file, null], [words.delete_yes, async () => {
      const answer = await ask("", () => server.verifiers_delete({ file, seen: state.seen }));
      if (!answer) return;
      if (answer.conflict) { tell(answer.conflict, true); return; }
      place({ file: null, opened: null, seen: null, code: "", saved: "" });
      context.refresh();
    }]]);
  }

  function showReport(answer) {
    report.show(answer);
    code.mark(answer.line ?? null);
    if (answer.verifiers.length) drawTrial(answer.verifiers[0]);
  }

  /** Another text than the examples', judged by the code as it stands in the editor. */
  function drawTrial(spec) {
    const example = spec.examples[0];
    const text = h("textarea", { class: "field v-input", id: "v-trial", rows: 3, spellcheck: "false" });
    text.value = example.completion;
    const columns = columnFields(columnsOf(spec, example.columns, words), example.columns, () => {}, words);
    let params = example.params;
    const fields = paramFields(spec, params, (next) => { params = next; }, words);
    const score = scoreBox(words);
    const run = h("button", { type: "button", class: "button", onclick: judge }, words.judge_code);

    async function judge() {
      const values = readColumns(columns, score, words);
      if (!values) return;
      score.wait();
      const answer = await ask("", () => server.verifiers_try_code({ file: state.file, code: state.code, verifier: spec.name, completion: text.value, columns: values, params }));
      if (!answer) score.fail(words.no_score);
      else if (answer.problems.length) score.fail(answer.problems.join(" · "));
      else score.show(answer.score);
    }

    replace(trial, h("h3", {}, say(words.trial, { name: spec.name })), h("div", { class: "v-box-grid" },
      h("div", { class: "v-fields" }, h("div", { class: "v-field v-wide" }, h("label", { class: "v-label", for: "v-trial" }, words.completion), text), columns.roots, fields.map((field) => field.root), h("div", { class: "v-actions v-wide" }, run)), score.root));
  }

  return { root, catalogueChanged: drawFiles };
}
