// The fields of the bench for the data set, the model and the number of samples.

import { h } from "./dom.js";
import { sourceKind } from "./launch_data.js";
import { makeField } from "./verifiers_fields.js";

const RARE = ["dataset.prompt_template", "dataset.system_prompt"];

function at(draft, name) {
  return name.split(".").reduce((value, key) => value?.[key], draft);
}

function put(draft, name, value) {
  const keys = name.split(".");
  const last = keys.pop();
  keys.reduce((place, key) => (place[key] ??= {}), draft)[last] = value;
}

function fieldsOf(described, draft, changed, words) {
  return described.map((field) => makeField(field, {
    value: at(draft, field.name),
    changed: (value) => { put(draft, field.name, value); changed(); },
    placeholder: field.nullable ? words.empty : "",
    wide: RARE.includes(field.name),
  }, words));
}

/** What is asked for follows from the kind of source, as on the Launch page. */
export function dataFields(form, draft, changed, words) {
  const fields = fieldsOf(form.data_fields, draft, () => { refresh(); changed(); }, words);
  const named = (name) => fields.find((field) => field.field.name === name).root;
  const rare = fields.filter((field) => RARE.includes(field.field.name));
  const refresh = () => {
    const kind = sourceKind(draft.dataset?.source);
    named("dataset.config").hidden = kind === "file";
    named("dataset.split").hidden = kind !== "hub";
    for (const name of ["dataset.columns.prompt", "dataset.columns.answer"]) named(name).hidden = kind === "builtin";
  };
  refresh();
  return [
    h("div", { class: "v-fields" }, fields.filter((field) => !rare.includes(field)).map((field) => field.root)),
    h("details", { class: "v-more" }, h("summary", {}, words.more_data), h("div", { class: "v-fields" }, rare.map((field) => field.root))),
  ];
}

export function modelFields(form, draft, size, changed, words) {
  const counts = Object.keys(form.most).map((name) => makeField(
    { name, title: words.sizes[name], help: "", kind: "int", nullable: false },
    { value: size[name], changed: (value) => { size[name] = value; changed(); } }, words));
  return h("div", { class: "v-fields v-four" }, [...fieldsOf(form.model_fields, draft, changed, words), ...counts].map((field) => field.root));
}
