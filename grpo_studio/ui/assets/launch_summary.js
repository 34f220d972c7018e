// One line for the head of each card: what is set there, in the field's terms. No DOM here.

import { grouped, number } from "./format.js";
import { say } from "./dom.js";
import { readLevels, sourceKind } from "./launch_data.js";
import { shown, short } from "./launch_text.js";

/** @param known what is known of the draft's model (its card), or null */
export function summaryOf(card, draft, described, words, report, known = null) {
  const parts = { model, dataset, rewards, algorithm }[card](draft, described, words, card === "model" ? known ?? {} : report ?? {});
  return parts.filter(Boolean).join(" · ");
}

function model(draft, described, words, known) {
  const id = String(draft.get("model.id") ?? "");
  const builtin = described.models[id];
  const parameters = known.parameters ?? builtin?.parameters;
  const template = { none: words.summary.no_chat_template, plain: words.summary.plain_text }[known.chat_template] ?? words.summary.chat_template;
  return [
    builtin?.title ?? lastPart(id),
    parameters ? say(words.summary.parameters, { count: short(parameters) }) : null,
    known.dtype ?? draft.get("model.dtype"),
    known.chat_template ? template : null,
    known.context_length ? say(words.summary.context, { count: grouped(known.context_length) }) : null,
  ];
}

function dataset(draft, described, words, { derived = {} }) {
  const source = String(draft.get("dataset.source") ?? "");
  const levels = readLevels(draft.get("dataset.config"));
  const titles = levels.map((level) => described.levels[level]).filter(Boolean);
  const kind = sourceKind(source);
  const builtin = kind === "builtin";
  const heldOut = derived.held_out_rows ?? draft.get("dataset.held_out");
  return [
    builtin ? source.replace("builtin:", "") : lastPart(source),
    builtin ? (titles.length === 1 ? titles[0] : say(words.summary.levels, { levels: shown(draft.get("dataset.config")) })) : kind === "hub" && draft.get("dataset.config"),
    derived.dataset_rows ? say(words.summary.rows, { count: grouped(derived.dataset_rows) }) : null,
    heldOut ? say(words.summary.held_out, { count: shown(heldOut) }) : words.summary.none_held_out,
    derived.longest_prompt ? say(words.summary.longest_prompt, { count: grouped(derived.longest_prompt) }) : null,
  ];
}

function rewards(draft, described, words) {
  const list = draft.data.rewards ?? [];
  const total = list.reduce((sum, reward) => sum + Math.max(Number(reward.weight) || 0, 0), 0);
  return [
    say(list.length === 1 ? words.summary.one_verifier : words.summary.verifiers, { count: list.length }),
    list.length ? say(words.summary.best_reward, { value: number(total) }) : null,
  ];
}

function algorithm(draft, described, words) {
  const value = (name) => shown(draft.get(`algorithm.${name}`));
  return [
    say(words.summary.groups, { prompts: value("prompts_per_step"), size: value("group_size") }),
    say(words.summary.steps, { count: value("steps") }),
    say(words.summary.learning_rate, { value: value("learning_rate") }),
    words.choices[value("loss_type")] ?? value("loss_type"),
  ];
}

function lastPart(text) {
  const parts = text.replace(/\/+$/, "").split("/");
  return /^[/.~]/.test(text) ? parts.at(-1) : text;
}
