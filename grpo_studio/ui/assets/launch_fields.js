// One setting as a labelled control with help and a place for its problems. Knows the draft, not the server.

import { h, say } from "./dom.js";
import { makeHints } from "./launch_hints.js";
import { attachSuggestions } from "./launch_suggest.js";
import { parsed, shown } from "./launch_text.js";

let serial = 0;

/**
 * Build the control of one setting.
 *
 * @param field its description from the server (form.py)
 * @param binding {get(), set(value), isPreset()} where its value lives
 * @param words the page's strings
 * @param options {title, suggestions: [{value, note}], placeholder, help}
 * @returns {root, input, suggest, sync(), showProblems(list), focus()} `suggest` only with suggestions
 */
export function makeField(field, binding, words, options = {}) {
  const id = `launch-field-${++serial}`;
  const input = makeInput(field, id, words, options);
  const problem = h("p", { class: "launch-problem", id: `${id}-problem`, hidden: true });
  const whole = helpText(field, words, options);
  const brief = field.kind === "int" || field.kind === "number" ? firstSentence(whole) : whole;
  const help = h("p", { class: "launch-help", id: `${id}-help`, title: brief === whole ? null : whole }, brief);
  const title = h("label", { class: "launch-label", for: id }, options.title ?? field.title);
  if (field.not_yet) title.append(h("span", { class: "launch-tag" }, words.not_yet));
  const changed = h("span", { class: "launch-changed", title: words.changed_note, hidden: true }, words.changed);
  const hints = makeHints(field, id, options.title ?? field.title, words);
  const heading = h("div", { class: "launch-field-head" }, h("span", { class: "launch-field-name" }, title, hints?.button), changed);
  const kind = field.kind === "textarea" || field.kind === "map" ? " launch-wide" : "";
  const root = h("div", { class: `launch-field launch-kind-${field.kind}${kind}` });
  const holder = h("div", { class: "launch-control" }, input);
  root.dataset.field = field.name;
  if (field.kind === "bool" && !field.nullable) root.append(h("div", { class: "launch-switch" }, holder, heading), help, problem);
  else root.append(heading, holder, help, problem);
  if (hints) hints.attach(root);
  help.hidden = help.textContent === "";
  if (help.title) input.title = help.title;
  input.setAttribute("aria-describedby", `${id}-help ${id}-problem`);
  const rows = options.suggestions ?? [];
  const suggest = rows.length ? attachSuggestions(input, holder, rows, options.suggestLabel ?? field.title) : null;

  const sync = () => {
    const value = binding.get();
    // What a person is typing is never rewritten under the cursor.
    if (document.activeElement !== input) writeInput(input, field, value);
    changed.hidden = field.not_yet !== null || binding.isPreset();
  };
  input.addEventListener(field.kind === "choice" || field.kind === "bool" ? "change" : "input", () => {
    binding.set(readInput(input, field));
    changed.hidden = binding.isPreset();
  });
  input.addEventListener("blur", sync);
  sync();
  return {
    root,
    input,
    suggest,
    sync,
    focus: () => input.focus(),
    showProblems: (problems) => showProblems(problems, problem, input),
  };
}

function showProblems(problems, slot, input) {
  slot.hidden = problems.length === 0;
  slot.textContent = problems.map((item) => `${sentence(item.message)}: ${item.fix}`).join(" · ");
  if (problems.length) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** With a capital, unless it begins with a name such as regex_match. */
function sentence(text) {
  return /^[^\s]*[_.'"]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

/** Numbers stand four in a row: under them is one short sentence, the rest is the note of it and of the input. */
function firstSentence(text) {
  return /^.*?[.;!?](?=\s|$)/.exec(text)?.[0].replace(/;$/, ".") ?? text;
}

function helpText(field, words, options) {
  const help = (options.help ?? field.help).replaceAll("`", "").replace(/(\de)-(\d)/g, "$1\u2011$2"); // 1e-6 in one piece
  return field.not_yet ? `${help} ${say(words.waits_for, { what: field.not_yet })}`.trim() : help;
}

function makeInput(field, id, words, options) {
  const off = field.not_yet !== null;
  if (field.kind === "choice" || (field.kind === "bool" && field.nullable)) {
    const select = h("select", { id, disabled: off, class: "launch-input" });
    const choices = field.kind === "bool" ? [true, false] : field.choices;
    if (field.nullable) select.append(h("option", { value: "" }, words.derived_choice));
    for (const choice of choices) select.append(h("option", { value: JSON.stringify(choice) }, choiceText(choice, words)));
    return select;
  }
  if (field.kind === "bool") return h("input", { id, type: "checkbox", role: "switch", disabled: off, class: "launch-toggle" });
  if (field.kind === "textarea" || field.kind === "map") {
    const rows = options.rows ?? 2;
    return h("textarea", { id, rows, disabled: off, class: "launch-input", spellcheck: "false", placeholder: options.placeholder ?? "" });
  }
  const numeric = field.kind === "int" || field.kind === "number";
  return h("input", {
    id,
    type: "text",
    inputmode: field.kind === "int" ? "numeric" : numeric ? "decimal" : "text",
    class: `launch-input${numeric ? " launch-number" : ""}`,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    disabled: off,
    placeholder: options.placeholder ?? (field.nullable ? words.empty : ""),
  });
}

function choiceText(choice, words) {
  return words.choices[String(choice)] ?? String(choice);
}

function writeInput(input, field, value) {
  if (input.type === "checkbox") input.checked = value === true;
  else if (input.tagName === "SELECT") writeSelect(input, value);
  else input.value = shown(value);
}

/** A value that is none of the choices is added, so that the form shows what will be checked. */
function writeSelect(select, value) {
  const wanted = value === null || value === undefined ? "" : JSON.stringify(value);
  const known = [...select.options].some((option) => option.value === wanted);
  if (!known) select.append(h("option", { value: wanted }, shown(value)));
  select.value = wanted;
}

function readInput(input, field) {
  if (input.type === "checkbox") return input.checked;
  if (input.tagName === "SELECT") return input.value === "" ? null : JSON.parse(input.value);
  return parsed(input.value, field);
}
