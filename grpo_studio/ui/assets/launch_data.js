// Card 2: where the questions come from. What is asked for follows from the kind of source.

import { h } from "./dom.js";
import { makeCard } from "./launch_folds.js";
import { moreBelow } from "./launch_sections.js";

const FILE = /\.(jsonl?|csv|parquet)$/i;

/** built-in, file or hub, by the form of the text alone, as the server reads it. */
export function sourceKind(source) {
  const text = String(source ?? "").trim();
  if (text.startsWith("builtin:")) return "builtin";
  if (FILE.test(text) || /^[/.~]/.test(text)) return "file";
  return "hub";
}

export function makeDataCard(context, number, section) {
  const { draft, words, described, index } = context;
  const card = makeCard(number, section.name, section.title, draft);
  const options = {
    "dataset.prompt_template": { rows: 1, placeholder: "{prompt}" },
    "dataset.config": { help: words.config_help },
  };
  card.body.append(...moreBelow(context, card, section, section.fields, options));
  const levels = levelPicker(context);
  const control = (name) => index.entries.get(name).control.root;
  control("dataset.source").after(control("dataset.prompt_template"));
  control("dataset.prompt_template").classList.remove("launch-wide");
  control("dataset.config").after(levels.root);
  const tag = h("span", { class: "launch-tag" });
  control("dataset.source").querySelector(".launch-field-head label").append(tag);
  let before = sourceKind(draft.get("dataset.source"));
  const refresh = (field = null) => {
    const kind = sourceKind(draft.get("dataset.source"));
    const left = field === "dataset.source" && before === "builtin" && kind !== "builtin";
    before = kind;
    // Levels mean nothing to another source; as its configuration they would only be in the way.
    if (left && /^[\d,\s-]+$/.test(draft.get("dataset.config") ?? "")) {
      draft.set("dataset.config", null);
      index.entries.get("dataset.config").control.sync();
    }
    const leveled = kind === "builtin" && Object.keys(described.levels).length > 0;
    tag.textContent = words.kinds[kind];
    levels.root.hidden = !leveled;
    levels.sync();
    control("dataset.config").classList.toggle("launch-only-problems", leveled);
    control("dataset.config").hidden = kind === "file";
    control("dataset.split").hidden = kind !== "hub";
    for (const name of ["dataset.columns.prompt", "dataset.columns.answer"]) control(name).hidden = kind === "builtin";
  };
  refresh();
  return { ...card, name: section.name, refresh };
}

/** The levels of the built-in data set as buttons; the setting stays the text that the command line takes. */
function levelPicker({ draft, words, described }) {
  const buttons = Object.entries(described.levels).map(([level, title]) =>
    h(
      "button",
      {
        type: "button",
        class: "launch-chip",
        data: { level },
        "aria-pressed": "false",
        onclick: () => toggle(Number(level)),
      },
      h("b", {}, level),
      ` ${title}`,
    ),
  );
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
  const root = h(
    "div",
    { class: "launch-field launch-span", role: "group", "aria-label": words.levels },
    h("div", { class: "launch-field-head" }, h("span", { class: "launch-label" }, words.levels)),
    h("div", { class: "launch-chips" }, buttons),
  );
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

