// The columns that were found: what is in them, which is the prompt and which the gold; one click changes either.

import { h, replace, say } from "./dom.js";

const ROLES = { prompt: "dataset.columns.prompt", answer: "dataset.columns.answer" };
const NO_GOLD = "-";
const ASKED_AT_MOST = 12;

/**
 * @param openCard opens the card around it
 * @param parts {reveal()} opens the fold with the two fields as text
 * @returns {root, wait(), again(), show(answer), hide()}
 */
export function makeMapping({ words, index, setField }, openCard, parts) {
  const own = words.mapping;
  const form = h("span", { class: "launch-mapping-form" });
  const question = h("div", { class: "launch-ask", role: "group", "aria-live": "polite" });
  const list = h("div", { class: "launch-columns", role: "group", "aria-label": own.title });
  const notes = h("ul", { class: "launch-mapping-notes" });
  const problem = h("p", { class: "launch-problem", hidden: true });
  const root = h("div", { class: "launch-mapping launch-span", hidden: true },
    h("div", { class: "launch-field-head" }, h("span", { class: "launch-label" }, own.title), form), question, list, notes, problem);
  let found = null;

  const guesses = {};

  /** A choice that is the guess is written as no choice, so that the draft says no more than it must. */
  const choose = (role, name) => {
    setField(ROLES[role], name !== null && guesses[role] === name ? null : name ?? NO_GOLD);
    found.mapping[role] = name;
    if (found.ask?.field === ROLES[role]) found.ask = null;
    draw();
    root.querySelector(`[data-role="${role}"][aria-pressed="true"]`)?.focus();
  };

  function draw() {
    const { mapping, ask } = found;
    replace(form, mapping.answer && mapping.gold_form === "gsm8k" ? h("span", {}, own.gsm8k) : null, noGold(mapping));
    replace(question, ask && questionOf(ask, mapping));
    question.hidden = !ask;
    replace(list, mapping.columns.map((column) => row(column, mapping)));
    replace(notes, (found.notes ?? []).map((text) => h("li", {}, text)));
    showProblems();
  }

  const row = ({ name, title, kind, sample }, mapping) =>
    h("div", { class: "launch-column", data: { used: mapping.prompt === name ? "prompt" : mapping.answer === name ? "answer" : "" } },
      h("span", { class: "launch-column-name", title: name }, title ?? name),
      h("span", { class: "launch-column-kind" }, own.kinds[kind] ?? kind),
      h("span", { class: "launch-column-sample", title: sample || null }, sample || "–"),
      h("span", { class: "launch-column-roles" }, Object.keys(ROLES).map((role) => roleButton(role, name, mapping))));

  const roleButton = (role, name, mapping) =>
    h("button", { type: "button", class: "launch-chip", data: { role }, "aria-pressed": String(mapping[role] === name),
      "aria-label": say(own.use[role], { column: name }), onclick: () => choose(role, name) }, own.roles[role]);

  const noGold = (mapping) =>
    h("button", { type: "button", class: "launch-chip launch-no-gold", data: { role: "answer" }, title: own.no_gold_note,
      "aria-pressed": String(mapping.answer === null && found.ask?.field !== ROLES.answer), onclick: () => choose("answer", null) }, own.no_gold);

  function questionOf(ask, mapping) {
    const role = ask.field === ROLES.answer ? "answer" : "prompt";
    const likely = mapping[`${role}_candidates`] ?? [];
    const names = likely.length ? likely : mapping.columns.slice(0, ASKED_AT_MOST).map((column) => column.name);
    const text = say(likely.length > 1 ? own.ask_which[role] : own.ask[role], { columns: names.join(", ") });
    return [
      h("p", { title: ask.message }, text),
      h("div", { class: "launch-chips" },
        names.map((name) => h("button", { type: "button", class: "launch-chip", onclick: () => choose(role, name) }, name)),
        role === "answer" && h("button", { type: "button", class: "launch-chip", onclick: () => choose(role, null) }, own.no_gold)),
    ];
  }

  const told = { prompt: [], answer: [] };
  function showProblems() {
    // What the question asks need not be said as a fault as well.
    const loose = Object.keys(ROLES).filter((role) => found === null || found.ask?.field !== ROLES[role]).flatMap((role) => told[role]);
    problem.hidden = loose.length === 0;
    problem.textContent = loose.map((item) => `${item.message}: ${item.fix}`).join(" · ");
  }

  for (const role of Object.keys(ROLES)) {
    const { control } = index.entries.get(ROLES[role]);
    index.register(ROLES[role], {
      ...control,
      root: control.root,
      sync: control.sync,
      focus() {
        if (root.hidden) return control.focus();
        return (question.querySelector("button") ?? list.querySelector(`[data-role="${role}"]`) ?? control.input).focus();
      },
      showProblems(problems) {
        control.showProblems(problems);
        told[role] = problems;
        showProblems();
      },
    }, () => (root.hidden ? parts.reveal() : openCard()));
  }

  const settle = () => root.classList.remove("launch-stale");
  return {
    root,
    wait: () => root.classList.add("launch-stale"),
    again: settle,
    show(answer) {
      found = answer;
      for (const role of Object.keys(ROLES)) guesses[role] = answer.mapping.guessed[role] ? answer.mapping[role] : guesses[role];
      settle();
      root.hidden = false;
      draw();
    },
    hide() {
      settle();
      found = null;
      guesses.prompt = guesses.answer = null;
      root.hidden = true;
    },
  };
}
