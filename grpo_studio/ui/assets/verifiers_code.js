// A plain editor for code: a text area with line numbers, tabs and a marked line. What is in it is never run here.

import { h, replace } from "./dom.js";

const INDENT = "    ";

export function makeCode({ id, label, hint, changed }) {
  const gutter = h("div", { class: "v-gutter", "aria-hidden": "true" });
  const area = h("textarea", { id, class: "v-code-text", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", rows: 24, "aria-label": label, "aria-describedby": `${id}-hint`, onkeydown: key });
  const root = h("div", {}, h("div", { class: "v-code" }, gutter, area), h("p", { class: "v-help", id: `${id}-hint` }, hint));
  let leaving = false; // Escape was pressed: the next Tab leaves the field
  let marked = null;
  let drawn = 0;

  area.addEventListener("input", () => { mark(null); number(); changed(); });
  area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; });
  area.addEventListener("blur", () => { leaving = false; });

  function key(event) {
    if (event.key === "Escape") { leaving = true; return; }
    if (event.key === "Tab" && !leaving) {
      event.preventDefault();
      if (event.shiftKey) outdent();
      else insert(INDENT);
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.isComposing) {
      event.preventDefault();
      insert(`\n${indentHere()}`);
    }
    if (event.key !== "Shift") leaving = false;
  }

  /** execCommand keeps the browser's own undo; it is still the only way to do so. */
  function insert(text) {
    if (!document.execCommand("insertText", false, text)) {
      area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
      area.dispatchEvent(new Event("input"));
    }
  }

  function lineStart() {
    return area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
  }

  function indentHere() {
    const line = area.value.slice(lineStart(), area.selectionStart);
    return /^[ \t]*/.exec(line)[0] + (/:\s*$/.test(line) ? INDENT : "");
  }

  function outdent() {
    const start = lineStart();
    const spaces = /^ {1,4}/.exec(area.value.slice(start))?.[0].length ?? 0;
    if (!spaces) return;
    const at = area.selectionStart;
    area.setSelectionRange(start, start + spaces);
    if (!document.execCommand("delete")) area.setRangeText("");
    area.setSelectionRange(Math.max(start, at - spaces), Math.max(start, at - spaces));
    area.dispatchEvent(new Event("input"));
  }

  function number() {
    const count = area.value.split("\n").length;
    if (count !== drawn || marked !== null) {
      replace(gutter, Array.from({ length: count }, (_, at) => h("div", { class: at + 1 === marked ? "v-line-wrong" : "" }, String(at + 1))));
    }
    drawn = count;
  }

  /** Mark a line in the margin and bring it into view; null takes the mark away. */
  function mark(line) {
    if (line === marked) return;
    marked = line;
    drawn = 0;
    number();
    if (line !== null) area.scrollTop = Math.max(0, (line - 5) * (area.scrollHeight / area.value.split("\n").length));
  }

  number();
  return { root, area, get: () => area.value, set: (text) => { area.value = text; marked = null; drawn = 0; number(); }, mark };
}
