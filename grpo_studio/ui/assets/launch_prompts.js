// Prompts as the model will see them, one at a time. Text from data and templates goes in as text nodes only.

import { h, replace, say } from "./dom.js";
import { grouped } from "./format.js";

// <|im_start|>, <s>, </s>, <bos>, <start_of_turn>, <|begin▁of▁sentence|>, [INST], [/INST]
const SPECIAL = /<[|｜][^<>\s]{1,60}[|｜]>|<\/?(?:s|bos|eos|pad|unk|think|start_of_turn|end_of_turn)>|\[\/?INST\]/g;
const LONGEST = 4000;

/** @returns {root, show(prompts), wait(text)} */
export function makePrompts(words) {
  const text = h("pre", { class: "launch-prompt", tabindex: "0", "aria-label": words.prompt_label });
  const facts = h("span", { class: "launch-prompt-facts" });
  const where = h("span", { class: "launch-prompt-where" });
  const back = h("button", { type: "button", class: "launch-flip", "aria-label": words.previous_prompt, onclick: () => move(-1) }, "‹");
  const next = h("button", { type: "button", class: "launch-flip", "aria-label": words.next_prompt, onclick: () => move(1) }, "›");
  const bar = h("div", { class: "launch-prompt-bar" }, facts, h("span", { class: "launch-flips" }, back, where, next));
  let prompts = [];
  let at = 0;
  const move = (step) => {
    at = (at + step + prompts.length) % prompts.length;
    draw();
  };
  const draw = () => {
    const prompt = prompts[at];
    replace(text, coloured(prompt.text));
    const gold = prompt.answer === null ? words.no_gold : say(words.gold, { answer: cut(prompt.answer, 60) });
    facts.textContent = `${gold} · ${say(words.prompt_tokens, { count: grouped(prompt.tokens) })}`;
    facts.title = prompt.answer === null ? "" : cut(prompt.answer, 1000);
    where.textContent = say(words.prompt_of, { number: at + 1, count: prompts.length });
    text.classList.remove("launch-stale");
    bar.hidden = false;
  };
  text.addEventListener("keydown", (event) => {
    if (prompts.length && (event.key === "ArrowLeft" || event.key === "ArrowRight")) move(event.key === "ArrowLeft" ? -1 : 1);
  });
  const root = h("div", { class: "launch-prompts" }, text, bar);
  bar.hidden = true;
  const tell = (message) => {
    prompts = [];
    at = 0;
    bar.hidden = true;
    text.classList.remove("launch-stale");
    replace(text, h("span", { class: "launch-prompt-empty" }, message));
  };
  const stale = () => text.classList.toggle("launch-stale", prompts.length > 0);
  return {
    root,
    show(found) {
      prompts = found;
      at = Math.min(at, found.length - 1);
      draw();
    },
    again: () => (prompts.length ? draw() : null),
    /** What is shown may be out of date: keep it, paler. */
    stale,
    /** No prompts: say why, or what will appear. */
    say: tell,
    /** They cannot be made now: older ones stay, paler. */
    blocked: (message) => (prompts.length ? stale() : tell(message)),
  };
}

function coloured(text) {
  const nodes = [];
  const whole = cut(text, LONGEST);
  let last = 0;
  for (const match of whole.matchAll(SPECIAL)) {
    nodes.push(whole.slice(last, match.index), h("span", { class: "launch-special" }, match[0]));
    last = match.index + match[0].length;
  }
  nodes.push(whole.slice(last));
  return nodes;
}

function cut(text, longest) {
  const plain = String(text);
  return plain.length > longest ? `${plain.slice(0, longest)}…` : plain;
}
