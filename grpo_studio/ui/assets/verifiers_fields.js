// Labelled inputs for settings that the server describes (form.py), and for the params of a verifier.

import { h, say } from "./dom.js";
import { parsed, shown } from "./launch_text.js";

let serial = 0;

/**
 * One setting as a labelled input.
 *
 * @param field {name, title, help, kind, nullable, default, choices?} from the server
 * @param options {value, changed(value), placeholder, wide}
 * @returns {root, input, field, sync(value)}
 */
export function makeField(field, { value, changed, placeholder = "", wide = false }, words) {
  const id = `v-field-${++serial}`;
  const input = inputOf(field, id, placeholder, words);
  write(input, value);
  input.addEventListener(input.tagName === "SELECT" || input.type === "checkbox" ? "change" : "input", () => changed(read(input, field)));
  const label = h("label", { class: "v-label", for: id }, field.title);
  const help = (field.help || "").replaceAll("`", "");
  if (help) input.setAttribute("aria-describedby", `${id}-help`);
  const below = help && h("p", { class: "v-help", id: `${id}-help` }, help);
  const root = h("div", { class: `v-field${wide ? " v-wide" : ""}`, data: { field: field.name } },
    input.type === "checkbox" ? h("div", { class: "v-check" }, input, label) : [label, input], below);
  return { root, input, field, sync: (next) => write(input, next) };
}

function inputOf(field, id, placeholder, words) {
  const common = { id, class: "field v-input", spellcheck: "false", autocomplete: "off" };
  if (field.kind === "choice" || (field.kind === "bool" && field.nullable)) {
    const choices = field.kind === "bool" ? [true, false] : field.choices;
    return h("select", common, field.nullable ? h("option", { value: "" }, words.derived) : null,
      choices.map((choice) => h("option", { value: JSON.stringify(choice) }, String(choice))));
  }
  if (field.kind === "bool") return h("input", { id, type: "checkbox" });
  if (field.kind === "textarea" || field.kind === "map") return h("textarea", { ...common, rows: 1, placeholder });
  const numeric = field.kind === "int" ? "numeric" : field.kind === "number" ? "decimal" : "text";
  return h("input", { ...common, type: "text", inputmode: numeric, placeholder });
}

function write(input, value) {
  if (input.type === "checkbox") input.checked = value === true;
  else if (input.tagName === "SELECT") input.value = value === null || value === undefined ? "" : JSON.stringify(value);
  else input.value = shown(value);
}

function read(input, field) {
  if (input.type === "checkbox") return input.checked;
  if (input.tagName === "SELECT") return input.value === "" ? null : JSON.parse(input.value);
  return parsed(input.value, field);
}

/** The params of a verifier as fields; `params` holds only what is not as the verifier declares it. */
export function paramFields(spec, params, changed, words) {
  return spec.params.map((param) => {
    const set = (value) => {
      const next = { ...params };
      const asDeclared = !param.required && JSON.stringify(value) === JSON.stringify(param.default);
      if (asDeclared || (param.required && value === "")) delete next[param.name];
      else next[param.name] = value;
      params = next;
      changed(next);
    };
    const placeholder = param.required ? words.required : param.nullable ? words.empty : "";
    return makeField(param, { value: params[param.name] ?? param.default, changed: set, placeholder }, words);
  });
}

/** Columns as fields: text as it stands, or JSON for lists, numbers and mappings. `read` throws with the column's name. */
export function columnFields(columns, values, changed, words) {
  const fields = columns.map(({ name, note, optional, rest }) => {
    const id = `v-field-${++serial}`;
    const value = values[name];
    const text = h("textarea", { id, class: "field v-input", rows: 1, spellcheck: "false", placeholder: optional ? words.left_out : "" });
    const kind = h("select", { class: "field v-kind", "aria-label": `${name}: ${words.kind}` },
      h("option", { value: "text" }, words.as_text), h("option", { value: "json" }, words.as_json));
    kind.value = !rest && (value === undefined || typeof value === "string") ? "text" : "json";
    kind.hidden = Boolean(rest);
    text.value = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
    for (const node of [text, kind]) node.addEventListener("input", changed);
    const root = h("div", { class: "v-field v-wide", data: { column: name } },
      h("label", { class: "v-label", for: id }, name, note ? h("span", { class: "muted" }, ` ${note}`) : null),
      h("div", { class: "v-column" }, text, kind));
    const read = () => {
      if (text.value === "" && (optional || kind.value === "json")) return undefined;
      return kind.value === "text" ? text.value : JSON.parse(text.value);
    };
    return { name, root, read, rest };
  });
  const read = () => {
    const found = {};
    for (const { name, read: one, rest } of fields) {
      try {
        const value = one();
        if (rest) Object.assign(found, value);
        else if (value !== undefined) found[name] = value;
      } catch (error) {
        throw new Error(name, { cause: error });
      }
    }
    return found;
  };
  return { roots: fields.map((field) => field.root), read };
}

/** What is in the columns, or null: then the box of the score says which one is no JSON. */
export function readColumns(columns, score, words) {
  try {
    return columns.read();
  } catch (error) {
    score.fail(say(words.not_json, { name: error.message }));
    return null;
  }
}
