// A list of suggestions under a free-text input: any text is allowed, the list only helps (ARIA combobox).
// Rows that are known stand first; those of a source that has to be asked are put below them when they come, so that
// nothing moves under the pointer.

import { h } from "./dom.js";

const PAUSE_MS = 300;
const MOST_FOUND = 60;

let serial = 0;

/**
 * @param input the text input
 * @param holder its positioned parent
 * @param rows [{value, note}]
 * @param label what the list is of, for screen readers
 * @returns {from(source)} `source(text)` is null when it has nothing to say about the text, else
 *   {waiting: line, answer: async () => ({rows: [{value, note, further}], line, starts: [text], startsLabel})}; a row
 *   that is `further` leads on: picking it asks again.
 */
export function attachSuggestions(input, holder, rows, label) {
  const id = `launch-suggest-${++serial}`;
  const list = h("ul", { class: "launch-suggest-list", id, role: "listbox", "aria-label": label });
  const line = h("p", { class: "launch-suggest-line", role: "status", hidden: true });
  const starts = h("p", { class: "launch-suggest-starts", hidden: true });
  const popup = h("div", { class: "launch-suggest", hidden: true }, list, line, starts);
  let source = null;
  let active = -1;
  let visible = [];
  let found = [];
  let asked = 0;
  let timer = null;
  holder.classList.add("launch-has-suggest");
  holder.append(popup);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": id, "aria-expanded": "false" })) {
    input.setAttribute(name, value);
  }

  const show = (open) => {
    popup.hidden = !open;
    input.setAttribute("aria-expanded", String(open));
  };
  const close = () => {
    asked += 1;
    clearTimeout(timer);
    show(false);
    mark(-1);
  };
  const mark = (index) => {
    active = index;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
    if (index < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[index].id);
    list.children[index].scrollIntoView({ block: "nearest" });
  };
  const write = (text, on) => {
    input.value = text;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    if (on) open(false);
    else close();
  };
  const pick = (row) => write(row.value, row.further);
  const say = (text) => {
    if (line.textContent !== text) line.textContent = text;
    line.hidden = text === "";
  };
  const anything = () => visible.length > 0 || !line.hidden || !starts.hidden;
  const append = (more) => {
    list.append(...more.map((row, at) => option(row, `${id}-${visible.length + at}`, pick)));
    visible.push(...more);
  };

  const open = (all) => {
    const text = all ? "" : input.value.trim();
    const holds = (row) => row.value.toLowerCase().includes(text.toLowerCase());
    found = all ? [] : found.filter((row) => holds(row) && !(row.further && row.value === text));
    visible = [];
    list.replaceChildren();
    mark(-1);
    append(without(rows.filter(holds), []));
    append(without(found, visible));
    ask(text);
    show(anything());
  };
  const ask = (text) => {
    clearTimeout(timer);
    const ticket = ++asked;
    const question = source?.(text) ?? null;
    say(question?.waiting ?? "");
    starts.hidden = true;
    if (question?.answer) timer = setTimeout(() => hear(ticket, question), text === "" ? 0 : PAUSE_MS);
  };
  const hear = async (ticket, question) => {
    const answer = await question.answer();
    if (ticket !== asked || document.activeElement !== input) return;
    const more = without(answer.rows ?? [], visible).slice(0, MOST_FOUND);
    found.push(...more);
    append(more);
    say(answer.line ?? "");
    const beginnings = answer.starts ?? [];
    starts.replaceChildren(answer.startsLabel ?? "", ...beginnings.map((text) => start(text, write)));
    starts.hidden = beginnings.length === 0;
    show(anything());
  };

  // The input keeps the cursor while the list is clicked or scrolled: losing it closes the list.
  popup.addEventListener("mousedown", (event) => event.preventDefault());
  input.addEventListener("click", () => popup.hidden && open(true));
  input.addEventListener("input", (event) => event.isTrusted && open(false));
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (popup.hidden) return open(true);
      if (visible.length === 0) return;
      const step = event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1;
      mark((active + step + visible.length) % visible.length);
    } else if (event.key === "Enter" && !popup.hidden && active >= 0) {
      event.preventDefault();
      pick(visible[active]);
    } else if (event.key === "Escape" && !popup.hidden) {
      event.stopPropagation();
      close();
    }
  });
  return { from: (wanted) => (source = wanted) };
}

function without(rows, known) {
  const values = new Set(known.map((row) => row.value));
  return rows.filter((row) => !values.has(row.value) && values.add(row.value));
}

function option(row, id, pick) {
  const item = h("li", { id, role: "option", "aria-selected": "false", onclick: () => pick(row) },
    h("span", { class: "launch-suggest-value" }, row.value));
  if (row.note) item.append(h("span", { class: "launch-suggest-note" }, row.note));
  return item;
}

/** The beginning of a path, for the mouse; a person at the keyboard types it. */
function start(text, write) {
  return h("span", { class: "launch-suggest-start", "aria-hidden": "true", onclick: () => write(text, true) }, text);
}
