// Card 2: where the questions come from and how they are used. What is asked for follows from the kind of source.

import { h } from "./dom.js";
import { makeUpload } from "./launch_data_upload.js";
import { makeLevels, readLevels } from "./launch_data_levels.js";
import { makeLooker } from "./launch_data_look.js";
import { makeMade } from "./launch_data_made.js";
import { makeTemplates } from "./launch_data_templates.js";
import { makeCard, makeFoldRow } from "./launch_folds.js";
import { makeMapping } from "./launch_mapping.js";
import { fieldsOf } from "./launch_sections.js";

export { readLevels };

const FILE = /\.((jsonl?|ndjson|csv|tsv)(\.gz)?|parquet)$/i;
const OPEN = ["dataset.source", "dataset.prompt_template", "dataset.system_prompt"];
const FROM_HUB = ["dataset.config", "dataset.split", "dataset.streaming"];
const COLUMNS = ["dataset.columns.prompt", "dataset.columns.answer"];
const LEVELED = "builtin:arithmetic";

/** builtin, reasoning_gym, file or hub, by the form of the text alone, as the server reads it. */
export function sourceKind(source) {
  const text = String(source ?? "").trim();
  if (text.startsWith("builtin:")) return "builtin";
  if (text.startsWith("reasoning_gym:")) return "reasoning_gym";
  if (FILE.test(text) || /^[/.~]/.test(text)) return "file";
  return "hub";
}

export function makeDataCard(context, number, section) {
  const { draft, words, described, index, setField } = context;
  const card = makeCard(number, section.name, section.title, draft);
  const parts = makeFields(context, card, section);
  const upload = makeUpload(context, card.root, (path) => setField("dataset.source", path));
  const templates = makeTemplates(context);
  const levels = makeLevels(context);
  const made = makeMade(context);
  const mapping = makeMapping(context, card.open, parts);
  const looker = makeLooker(context, mapping);
  const control = (name) => index.entries.get(name).control;

  const tag = h("span", { class: "launch-tag" });
  const source = control("dataset.source").root;
  source.querySelector(".launch-field-head label").append(tag);
  source.querySelector(".launch-field-head").append(upload.button);
  source.append(upload.line);
  const prompts = OPEN.slice(1).map((name) => control(name).root);
  for (const root of [source, ...prompts]) root.classList.remove("launch-wide");
  const body = h("div", { class: "launch-grid launch-data" },
    source, h("div", { class: "launch-said" }, prompts), templates.root, parts.hub, levels.root, made.root, mapping.root);
  card.body.append(body, parts.more);

  let before = draft.get("dataset.source");
  const refresh = (field = null) => {
    const kind = sourceKind(draft.get("dataset.source"));
    if (field === "dataset.source") forgetSettings(before, draft, setField);
    before = draft.get("dataset.source");
    const leveled = before === LEVELED && Object.keys(described.levels).length > 0;
    tag.textContent = words.kinds[kind];
    levels.root.hidden = !leveled;
    levels.sync();
    templates.sync();
    made.show(!leveled && (kind === "builtin" || kind === "reasoning_gym") ? before : null);
    parts.place(kind, leveled);
    if (field === null || /^dataset\.(source|config|split|params|columns|streaming)/.test(field)) looker.soon(kind);
  };
  refresh();
  return { ...card, name: section.name, refresh };
}

/** What was set for one source would be wrong, or mean something else, for the next one. */
function forgetSettings(before, draft, setField) {
  const now = draft.get("dataset.source");
  if (before === now) return;
  for (const name of COLUMNS) if (draft.get(name) !== null) setField(name, null);
  if (Object.keys(draft.get("dataset.params") ?? {}).length) setField("dataset.params", {});
  // Levels mean nothing to another source; as its configuration they would only be in the way.
  if (before === LEVELED && /^[\d,\s-]+$/.test(draft.get("dataset.config") ?? "")) setField("dataset.config", null);
}

/** All fields of the section as controls: those of the open part, those of a Hub source, and the rest under "More". */
function makeFields(context, card, section) {
  const { draft, words, index } = context;
  const row = makeFoldRow(words.more, draft);
  const content = h("div", { class: "launch-grid" });
  const fold = row.add(`${section.name}-more`, words.more, content);
  const inMore = () => {
    card.open();
    fold.open();
  };
  const options = {
    "dataset.prompt_template": { rows: 1, placeholder: "{prompt}", help: "" },
    "dataset.system_prompt": { rows: 1, placeholder: words.empty, help: "" },
    "dataset.config": { help: words.config_help },
    "dataset.streaming": { help: words.streaming_help },
  };
  const first = (field) => OPEN.includes(field.name);
  fieldsOf(section.fields.filter(first), context, card.open, options);
  const rest = fieldsOf(section.fields.filter((field) => !first(field)), context, inMore, options);
  content.append(...rest.map((control) => control.root));
  const hub = h("div", { class: "launch-grid launch-three launch-span" });
  const root = (name) => index.entries.get(name).control.root;
  return {
    hub,
    more: row.root,
    reveal: inMore,
    place(kind, leveled) {
      const place = kind === "hub" ? hub : content;
      if (root("dataset.split").parentNode !== place) (kind === "hub" ? place.append : place.prepend).apply(place, FROM_HUB.map(root));
      hub.hidden = kind !== "hub";
      root("dataset.config").classList.toggle("launch-only-problems", leveled);
      root("dataset.config").hidden = kind === "file" || (kind !== "hub" && !leveled);
      root("dataset.split").hidden = kind !== "hub";
      root("dataset.streaming").hidden = kind !== "hub" && kind !== "file";
      root("dataset.params").hidden = kind === "hub" || kind === "file" || leveled;
      for (const name of COLUMNS) root(name).hidden = leveled;
    },
  };
}
