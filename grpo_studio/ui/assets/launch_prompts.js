// Prompts as the model will see them, one at a time. Text from data and templates goes in as text nodes only.

import { h, replace, say } from "./dom.js";
import { grouped } from "./format.js";

const KINDS = { special: "launch-special", control: "launch-control-char" };

/** @returns {root, show(prompts, asked), again(), stale(), say(text)} `asked`: the gold is not chosen yet */
export function makePrompts(words) {
  const text = h("pre", { class: "launch-prompt", tabindex: "0", "aria-label": words.prompt_label });
  const facts = h("span", { class: "launch-prompt-facts" });
  const where = h("span", { class: "launch-prompt-where" });
  const back = h("button", { type: "button", class: "launch-flip", "aria-label": words.previous_prompt, onclick: () => move(-1) }, "‹");
  const next = h("button", { type: "button", class: "launch-flip", "aria-label": words.next_prompt, onclick: () => move(1) }, "›");
  const bar = h("div", { class: "launch-prompt-bar" }, facts, h("span", { class: "launch-flips" }, back, where, next));
  let prompts = [];
  let at = 0;
  let goldAsked = false;
  const move = (step) => {
    at = (at + step + prompts.length) % prompts.length;
    draw();
  };
  const draw = () => {
    const prompt = prompts[at];
    replace(text, prompt.parts.map(([part, kind]) => (KINDS[kind] ? h("span", { class: KINDS[kind], title: words.part_notes[kind] }, part) : part)));
    text.scrollTop = 0;
    const answer = prompt.gold ?? prompt.answer;
    const gold = goldAsked ? words.gold_asked : answer === null ? words.no_gold : say(words.gold, { answer: cut(answer, 60) });
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
  return {
    root,
    show(found, asked) {
      prompts = found;
      goldAsked = asked;
      at = Math.max(0, Math.min(at, found.length - 1));
      if (found.length) draw();
    },
    again: () => text.classList.remove("launch-stale"),
    /** What is shown may be out of date: keep it, paler. */
    stale: () => text.classList.toggle("launch-stale", prompts.length > 0),
    /** No prompts: say why, or what will appear. */
    say(message) {
      prompts = [];
      at = 0;
      bar.hidden = true;
      text.classList.remove("launch-stale");
      replace(text, h("span", { class: "launch-prompt-empty" }, message));
    },
  };
}

function cut(text, longest) {
  const plain = String(text);
  return plain.length > longest ? `${plain.slice(0, longest)}…` : plain;
}
