// The levels of the built-in data set as buttons; the setting stays the text that the command line takes.

import { h } from "./dom.js";

/** @returns {root, sync()} */
export function makeLevels({ draft, words, described }) {
  const buttons = Object.entries(described.levels).map(([level, title]) =>
    h("button", { type: "button", class: "launch-chip", data: { level }, "aria-pressed": "false", onclick: () => toggle(Number(level)) },
      h("b", {}, level), ` ${title}`));
  const toggle = (level) => {
    const chosen = new Set(readLevels(draft.get("dataset.config")));
    if (chosen.has(level)) chosen.delete(level);
    else chosen.add(level);
    // The last one stays: a run needs questions.
    if (chosen.size > 0) draft.set("dataset.config", writeLevels([...chosen]));
  };
  const sync = () => {
    const chosen = readLevels(draft.get("dataset.config"));
    for (const button of buttons) button.setAttribute("aria-pressed", String(chosen.includes(Number(button.dataset.level))));
  };
  const root = h("div", { class: "launch-field launch-span", role: "group", "aria-label": words.levels },
    h("div", { class: "launch-field-head" }, h("span", { class: "launch-label" }, words.levels)),
    h("div", { class: "launch-chips" }, buttons));
  return { root, sync };
}

/** "1,3-4" -> [1, 3, 4]; empty means 1. */
export function readLevels(text) {
  const found = [];
  for (const part of String(text ?? "1").replaceAll(" ", "").split(",")) {
    const match = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(part || "1");
    if (!match) continue;
    for (let level = Number(match[1]); level <= Number(match[2] ?? match[1]); level += 1) found.push(level);
  }
  return found;
}

function writeLevels(levels) {
  const sorted = levels.sort((a, b) => a - b);
  const whole = sorted.length > 1 && sorted.at(-1) - sorted[0] === sorted.length - 1;
  return whole ? `${sorted[0]}-${sorted.at(-1)}` : sorted.join(",");
}
