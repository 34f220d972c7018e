// How chat messages become text: the model's own template, plain text, a ready one, or Jinja text of a person's own.

import { h, replace } from "./dom.js";

const FIELD = "model.chat_template";
const PLAIN = "plain";

/**
 * @param control the field of the setting, shown for a template of one's own and when it has a problem
 * @param openCard opens the card around it
 * @returns {root, field, refresh(facts), close()}
 */
export function makeTemplateChoice({ draft, words, index }, control, openCard) {
  const label = h("span", { class: "launch-label", id: "launch-template-label" });
  const chips = h("div", { class: "launch-chips", role: "group", "aria-labelledby": "launch-template-label" });
  const root = h("div", { class: "launch-template" }, label, chips);
  const field = h("div", { class: "launch-template-own" }, control.root);
  let facts = null;
  let templates = [];
  let opened = false; // "your own" was chosen and nothing is written yet
  let wrong = false;
  let written = ""; // a template of one's own outlives a look at another choice

  const isOwn = (choice) => typeof choice === "string" && choice !== PLAIN && !templates.some(({ name }) => name === choice);
  const draw = () => {
    const choice = draft.get(FIELD) ?? null;
    if (isOwn(choice)) written = choice;
    const hasOwn = ownOf(facts, choice);
    label.textContent = hasOwn === false ? words.template.none : words.template.label;
    const writing = isOwn(choice) || (opened && choice === null);
    const buttons = choicesOf(choice, hasOwn, templates, words).map((item) => {
      const pressed = !writing && (item.value === choice || (item.value === null && hasOwn === false && choice === PLAIN));
      return chip(item, pressed, () => choose(item.value));
    });
    const focused = [...chips.children].indexOf(document.activeElement);
    replace(chips, buttons, chip({ label: words.template.write, title: words.template.write_note }, writing, write));
    if (focused >= 0) chips.children[Math.min(focused, buttons.length)].focus();
    field.hidden = !writing && !wrong;
  };
  const choose = (value) => {
    opened = false;
    draft.set(FIELD, value);
    control.sync();
    draw();
  };
  const write = () => {
    opened = true;
    if (written) draft.set(FIELD, written);
    else draft.set(FIELD, null);
    control.sync();
    draw();
    control.focus();
  };
  const reveal = () => {
    openCard();
    field.hidden = false;
  };
  const showProblems = (problems) => {
    wrong = problems.length > 0;
    control.showProblems(problems);
    draw();
  };
  index.register(FIELD, { ...control, showProblems, sync: () => (control.sync(), draw()) }, reveal);
  return {
    root,
    field,
    close: () => (opened = false),
    refresh(known) {
      facts = known;
      templates = known?.templates ?? templates;
      draw();
    },
  };
}

/** Whether the model has a template of its own; null while that is not known. */
function ownOf(facts, choice) {
  if (typeof facts?.has_chat_template === "boolean") return facts.has_chat_template;
  if (choice !== null || !facts) return null;
  return facts.chat_template === "own" ? true : facts.chat_template === "none" ? false : null;
}

function choicesOf(choice, hasOwn, templates, words) {
  const { template } = words;
  const ready = templates.filter(({ name }) => hasOwn === false || name === choice);
  return [
    { value: null, label: hasOwn === false ? template.plain : template.own, title: hasOwn === false ? template.plain_note : template.own_note },
    ...(hasOwn === false ? [] : [{ value: PLAIN, label: template.plain, title: template.plain_note }]),
    ...ready.map(({ name, title }) => ({ value: name, label: name, title })),
  ];
}

function chip({ label, title }, pressed, onclick) {
  return h("button", { type: "button", class: "launch-chip", "aria-pressed": String(pressed), title, onclick }, label);
}
