// Card 1: which model, what is known of it before anything is loaded, and how chats become its text.

import { h } from "./dom.js";
import { makeCard } from "./launch_folds.js";
import { makeFacts } from "./launch_model_card.js";
import { makeTemplateChoice } from "./launch_model_template.js";
import { moreBelow } from "./launch_sections.js";
import { summaryOf } from "./launch_summary.js";

/** @returns {root, body, summary, open, name, refresh(field)}; `context.modelFacts()` tells what is known from now on. */
export function makeModelCard(context, number, section) {
  const { draft, words, described, index } = context;
  const card = makeCard(number, section.name, section.title, draft);
  const options = { "model.chat_template": { rows: 4, placeholder: words.template.placeholder } };
  const [grid, more] = moreBelow(context, card, section, section.fields, options);
  const template = makeTemplateChoice(context, index.entries.get("model.chat_template").control, card.open);
  const tag = h("span", { class: "launch-tag" });
  const { control } = index.entries.get("model.id");
  control.root.querySelector(".launch-field-head label").append(tag);
  const showKnown = () => {
    const known = context.modelFacts();
    tag.textContent = words.kinds[known?.kind ?? kindOf(draft.get("model.id"))];
    template.refresh(known);
    card.summary.textContent = summaryOf(section.name, draft, described, words, null, known);
  };
  const facts = makeFacts(context, showKnown);
  context.modelFacts = facts.known;
  const showProblems = (problems) => {
    control.showProblems(problems);
    facts.tell(problems);
  };
  index.register("model.id", { ...control, showProblems }, card.open);
  // The button "More" stands in one row with the choice of a template, what it opens below them.
  const folds = more.querySelector(".launch-folds");
  card.body.append(
    h("div", { class: "launch-model-top" }, h("div", {}, grid, facts.notes), facts.root),
    h("div", { class: "launch-model-foot" }, template.root, folds), template.field, more);
  const refresh = (field = null) => {
    if (field !== null && !field.startsWith("model.")) return;
    if (field === null || field === "model.id") template.close();
    facts.refresh();
    showKnown();
  };
  refresh();
  return { ...card, name: section.name, refresh };
}

/** What kind of model a text means by its form alone. */
function kindOf(id) {
  const text = String(id ?? "").trim();
  if (text.startsWith("builtin:")) return "builtin";
  if (/\.gguf$/i.test(text)) return "gguf";
  return /^[/.~]/.test(text) ? "local" : "hub";
}
