import { describeCheckpoint } from "./actions_carry.js";
import { checkpointList, openDialog, workButton } from "./actions_dialog.js";
import { h, replace, say } from "./dom.js";

const WAIT_MS = 350;

/** The dialog of a branch: a checkpoint, a name, settings to change; the difference is shown before it starts. */
export async function openBranch(context, run) {
  const { words, ask } = context;
  const form = await ask("run_branch_form", { run: run.id });
  if (!form) return;
  const list = checkpointList({ rows: form.checkpoints, words, describe: (row) => describeCheckpoint(row, words), onchange: look });
  const name = h("input", { class: "field", type: "text", maxlength: "40", spellcheck: "false", autocomplete: "off", placeholder: form.name, "aria-label": words.branch_name });
  const rows = settingRows({ form, words, onchange: later });
  const difference = h("div", { class: "difference", role: "status" });
  const go = workButton(words.branch_go, { work: start });
  const dialog = openDialog({
    title: say(words.branch_title, { name: run.name }), sub: words.branch_sub, words, wide: true, actions: go,
    body: [list.node, h("label", { class: "labelled" }, h("span", { class: "small" }, words.branch_name), name), rows.node, difference],
    onclose: () => clearTimeout(timer),
  });
  let timer = null;
  let turn = 0;
  const request = () => ({ run: run.id, checkpoint: list.chosen(), set: rows.values() });
  look();

  function later() {
    go.disabled = true;
    clearTimeout(timer);
    timer = setTimeout(look, WAIT_MS);
  }

  /** What it would change, as the program's own rules see it; Start waits for that. */
  async function look() {
    const mine = ++turn;
    go.disabled = true;
    const found = await ask("run_branch_changes", request(), (text, fault) => { if (mine === turn) dialog.tell(text, fault); });
    if (mine !== turn || !dialog.node.isConnected) return;
    go.disabled = !found;
    replace(difference, found ? differenceTable(found, words) : []);
  }

  async function start() {
    const made = await ask("run_branch", { ...request(), name: name.value.trim() || form.name }, dialog.tell);
    if (made) location.href = `./live?run=${encodeURIComponent(made.run)}`;
  }
}

export function differenceTable({ changes, step }, words) {
  if (!changes.length) return h("p", { class: "muted small" }, say(words.branch_same, { step }));
  return [h("p", { class: "small" }, say(changes.length === 1 ? words.branch_differs_1 : words.branch_differs, { count: changes.length, step })), changesTable(changes, words)];
}

export function changesTable(changes, words) {
  return h("table", { class: "changes" }, h("tbody", {}, changes.map((one) => h("tr", {},
    h("th", { scope: "row", class: "mono" }, one.field), h("td", { class: "mono muted" }, one.before || words.empty), h("td", { "aria-hidden": "true" }, "→"), h("td", { class: "mono" }, one.after || words.empty)))));
}

function settingRows({ form, words, onchange }) {
  const names = h("datalist", { id: `settings-${Date.now()}` }, form.fields.map((field) => h("option", { value: field.name }, field.title)));
  const known = new Map(form.fields.map((field) => [field.name, field]));
  const box = h("div", { class: "setting-rows" });
  const add = h("button", { class: "button quiet", type: "button", onclick: () => addRow().focus() }, words.branch_add);
  const node = h("fieldset", { class: "settings" }, h("legend", { class: "small muted" }, words.branch_settings), box, add, names);
  addRow();

  function addRow() {
    const name = h("input", { class: "field mono", type: "text", list: names.id, spellcheck: "false", autocomplete: "off", placeholder: words.branch_setting, "aria-label": words.branch_setting });
    const value = h("input", { class: "field mono", type: "text", spellcheck: "false", autocomplete: "off", placeholder: words.branch_value, "aria-label": words.branch_value });
    const about = h("span", { class: "about small" });
    const drop = h("button", { class: "icon-button", type: "button", "aria-label": words.branch_drop, title: words.branch_drop, onclick: () => { row.remove(); onchange(); add.focus(); } }, "×");
    const row = h("div", { class: "setting-row" }, name, value, drop, about);
    name.addEventListener("input", () => {
      const field = known.get(name.value.trim());
      value.placeholder = field ? field.value || words.empty : words.branch_value;
      replace(about, field ? `${field.title}. ${field.help}` : "");
      if (field && !value.value) value.value = field.value;
      onchange();
    });
    value.addEventListener("input", onchange);
    box.append(row);
    return name;
  }

  /** The rows that have a name; a row that is still empty is none. */
  const values = () => [...box.children].map((row) => [...row.querySelectorAll("input")].map((input) => input.value)).filter(([name]) => name.trim());
  return { node, values };
}
