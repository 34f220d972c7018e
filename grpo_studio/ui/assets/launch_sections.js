// Settings of a section as controls that are bound to the draft and found by the problems.

import { h } from "./dom.js";
import { makeField } from "./launch_fields.js";
import { makeFoldRow } from "./launch_folds.js";

/** Fields of one section as controls, registered so that problems find them. */
export function fieldsOf(fields, context, reveal, options = {}) {
  const { draft, words, described, index } = context;
  return fields.map((field) => {
    const binding = {
      get: () => draft.get(field.name),
      set: (value) => draft.set(field.name, value),
      isPreset: () => draft.isPreset(field.name),
    };
    const suggestions = described.suggestions[field.name];
    const control = makeField(field, binding, words, { suggestions, ...options[field.name] });
    index.register(field.name, control, reveal);
    return control;
  });
}

/** The main settings open, the others under a fold named "More". Returns the nodes. */
export function moreBelow(context, card, section, fields, options = {}) {
  const { draft, words } = context;
  const main = fieldsOf(fields.filter((field) => field.main), context, card.open, options);
  const rest = fields.filter((field) => !field.main);
  const grid = h("div", { class: "launch-grid" }, main.map((control) => control.root));
  if (main.length === 1) main[0].root.classList.add("launch-wide");
  if (rest.length === 0) return [grid];
  const row = makeFoldRow(words.more, draft);
  const content = h("div", { class: "launch-grid" });
  const fold = row.add(`${section.name}-more`, words.more, content);
  const reveal = () => {
    card.open();
    fold.open();
  };
  content.append(...fieldsOf(rest, context, reveal, options).map((control) => control.root));
  return [grid, row.root];
}
