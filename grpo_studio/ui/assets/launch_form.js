// The left side: four cards made from the server's description of RunConfig.

import { h, say } from "./dom.js";
import { makeDataCard } from "./launch_data.js";
import { makeCard, makeFoldRow } from "./launch_folds.js";
import { makeModelCard } from "./launch_model.js";
import { makeRewardsCard } from "./launch_rewards.js";
import { fieldsOf } from "./launch_sections.js";
import { searchFrom } from "./launch_search.js";
import { summaryOf } from "./launch_summary.js";

const OWN_CARD = ["model", "dataset", "rewards"];

/** Build the cards. Returns {root, showFacts(report), markProblems(fields)}. */
export function makeForm(context) {
  const { described, words, draft } = context;
  const sections = new Map(described.form.sections.map((section) => [section.name, section]));
  const cards = [
    makeModelCard(context, 1, sections.get("model")),
    makeDataCard(context, 2, sections.get("dataset")),
    makeRewardsCard(context, 3, sections.get("rewards")),
    trainingCard(context, 4, described.form.sections.filter((section) => !OWN_CARD.includes(section.name))),
  ];
  searchFrom(context);
  const showSummaries = (report = null) => {
    for (const card of cards) card.summary.textContent = summaryOf(card.name, draft, described, words, report, context.modelFacts());
  };
  draft.onChange((field) => {
    showSummaries(context.lastReport());
    for (const card of cards) card.refresh?.(field);
  });
  showSummaries();
  return {
    root: h("div", { class: "launch-cards" }, cards.map((card) => card.root)),
    showReport: showSummaries,
    markProblems: (fields) => cards.forEach((card) => card.markProblems?.(fields)),
  };
}

/** Card 4: the main numbers open, every further section of RunConfig as a fold. */
function trainingCard(context, number, sections) {
  const { draft, words } = context;
  const [first, ...others] = sections;
  const card = makeCard(number, first.name, first.title, draft);
  const main = fieldsOf(first.fields.filter((field) => field.main), context, card.open);
  card.body.append(h("div", { class: "launch-grid launch-four" }, main.map((control) => control.root)));
  const row = makeFoldRow(words.folds, draft);
  const folds = [[first.name, words.algorithm, first.fields.filter((field) => !field.main)]];
  folds.push(...others.map((section) => [section.name, section.title, section.fields]));
  const marks = folds.map(([name, title, fields]) => addFold(context, card, row, name, title, fields));
  card.body.append(row.root);
  const refresh = () => marks.forEach((mark) => mark.refresh());
  refresh();
  return { ...card, name: first.name, refresh, markProblems: (found) => marks.forEach((mark) => mark.markProblems(found)) };
}

function addFold(context, card, row, name, title, fields) {
  const { draft, words } = context;
  const content = h("div", { class: "launch-grid launch-three" });
  const fold = row.add(name, title, content);
  const reveal = () => {
    card.open();
    fold.open();
  };
  // What can be set comes before what cannot yet.
  const ordered = [...fields.filter((field) => !field.not_yet), ...fields.filter((field) => field.not_yet)];
  content.append(...fieldsOf(ordered, context, reveal).map((control) => control.root));
  if (fields.every((field) => field.not_yet)) fold.button.classList.add("launch-fold-quiet");
  let wrong = 0;
  const refresh = () => {
    const changed = fields.filter((field) => !field.not_yet && !draft.isPreset(field.name)).length;
    const parts = [];
    if (wrong) parts.push(say(wrong === 1 ? words.one_problem : words.many_problems, { count: wrong }));
    else if (changed) parts.push(say(words.changed_count, { count: changed }));
    fold.mark.textContent = parts.join(" · ");
    fold.button.classList.toggle("launch-fold-wrong", wrong > 0);
  };
  return {
    refresh,
    markProblems(found) {
      wrong = fields.filter((field) => found.includes(field.name)).length;
      refresh();
    },
  };
}
