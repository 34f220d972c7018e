// "Two that differ in…": the setting, its two values, what is wrong with either side, and the start of both.

import { openDialog, workButton } from "./actions_dialog.js";
import { h, replace, say } from "./dom.js";
import { within } from "./poll.js";
import { makeField } from "./launch_fields.js";

const SUGGESTED = "memory.loss_backend";
const SIDES = ["A", "B"];
const AFTER_MS = 300; // a value that is being typed is not checked letter by letter
let serial = 0;

/**
 * The quiet button that opens the dialog.
 *
 * @param context {server, draft, words, described, titleOf}
 * @param begin (call, tell) starts once: `call(key)` is the request, `tell(text, wrong)` hears how far it is
 */
export function makePairButton(context, begin) {
  return h("button", { type: "button", class: "button", onclick: () => openPair(context, begin) }, context.words.pair.button);
}

function openPair(context, begin) {
  const { server, draft, words } = context;
  const page = `pair-${Date.now()}-${++serial}`;
  const fields = h("div", { class: "pair-dialog-fields" });
  const about = h("p", { class: "muted small" });
  const found = h("ul", { class: "pair-found small", "aria-live": "polite" });
  const state = { field: null, values: [null, null], ticket: 0, timer: null };
  const go = workButton(words.pair.start, { work: () => begin((key) => server.start_pair({ key, ...asked(), name: draft.name }), dialog.tell) });
  go.disabled = true;
  const picker = makePicker(settingsOf(context), words, choose);
  const dialog = openDialog({ title: words.pair.title, sub: words.pair.sub, words: words.pair, wide: true, body: [picker.root, about, fields, found], actions: go, onclose: () => clearTimeout(state.timer) });
  picker.choose(SUGGESTED);

  function asked() {
    return { data: draft.data, field: state.field.name, values: state.values };
  }

  /** A setting was picked: A has it as the draft does, B another value. */
  function choose(field) {
    const own = draft.get(field.name) ?? null;
    Object.assign(state, { field, values: [own, another(field, own)] });
    about.textContent = field.help.replaceAll("`", "");
    replace(fields, SIDES.map((side, place) => {
      const binding = {
        get: () => state.values[place],
        set: (value) => { state.values[place] = value; soon(); },
        isPreset: () => true,
      };
      const made = makeField({ ...field, hints: [] }, binding, context.words, { title: say(words.pair.value, { side, title: field.title }), help: "" });
      if (made.input.type !== "checkbox") made.input.classList.add("field");
      return made.root;
    }));
    soon(0);
  }

  function soon(after = AFTER_MS) {
    go.disabled = true;
    clearTimeout(state.timer);
    state.timer = setTimeout(check, after);
  }

  async function check() {
    const ticket = ++state.ticket;
    dialog.tell(words.pair.checking);
    let answer;
    try {
      answer = await within(server.check_pair({ page, ticket, ...asked() }), 60000);
    } catch (error) {
      console.warn("no answer to a check of two", error);
      answer = { error: words.pair.lost };
    }
    if (answer.superseded || ticket !== state.ticket) return;
    go.disabled = !answer.ok;
    dialog.tell(answer.error ?? (answer.ok ? words.pair.sound : ""), Boolean(answer.error));
    replace(found,
      (answer.problems ?? []).map((one) => h("li", { class: "fault" }, say(words.pair.problem, { ...one, side: one.side === "both" ? words.pair.both : one.side }))),
      (answer.notes ?? []).map((note) => h("li", { class: "muted" }, note)));
  }
}

/** All settings by their titles, also those of each reward; the suggested one first. */
function settingsOf({ draft, described, words }) {
  const { sections, reward_fields: ofReward } = described.form;
  const settings = sections.flatMap((section) => section.fields.filter((field) => !field.not_yet).map((field) => ({ ...field, section: section.title })));
  const rewards = draft.data.rewards.flatMap((_, place) => ofReward.map((field) => ({
    ...field, name: `rewards.${place}.${field.name}`, section: say(words.reward_number, { number: place + 1 }),
  })));
  const all = [...settings, ...rewards];
  return [...all.filter((field) => field.name === SUGGESTED), ...all.filter((field) => field.name !== SUGGESTED)];
}

/** A search box over a list of settings. Arrow keys move in the list, Enter takes the first that is found. */
function makePicker(settings, words, onchoose) {
  const id = `pair-setting-${++serial}`;
  const search = h("input", { class: "field", id, type: "search", autocomplete: "off", placeholder: words.pair.search_hint, autofocus: true });
  const list = h("div", { class: "pair-choices", role: "listbox", "aria-label": words.pair.search });
  const rows = settings.map((field) => {
    const row = h("button", { type: "button", class: "pair-choice", role: "option", "aria-selected": "false", onclick: () => choose(field.name) },
      h("span", {}, field.title), h("span", { class: "muted" }, `${field.section} · ${field.name}${field.name === SUGGESTED ? ` · ${words.pair.suggested}` : ""}`));
    return { field, row, text: `${field.title} ${field.section} ${field.name}`.toLowerCase() };
  });
  const none = h("p", { class: "muted small", hidden: true }, words.pair.no_match);
  replace(list, rows.map((one) => one.row), none);
  search.addEventListener("input", () => {
    const parts = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const one of rows) one.row.hidden = !parts.every((part) => one.text.includes(part));
    none.hidden = rows.some((one) => !one.row.hidden);
    list.scrollTop = 0;
  });
  search.addEventListener("keydown", (event) => {
    const shown = visible();
    if (event.key === "ArrowDown" && shown.length) { event.preventDefault(); shown[0].row.focus(); }
    if (event.key === "Enter" && shown.length) { event.preventDefault(); choose(shown[0].field.name); }
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const shown = visible().map((one) => one.row);
    const next = shown[shown.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)];
    (next ?? (event.key === "ArrowUp" ? search : document.activeElement)).focus();
  });
  const visible = () => rows.filter((one) => !one.row.hidden);
  function choose(name) {
    for (const one of rows) one.row.setAttribute("aria-selected", String(one.field.name === name));
    onchoose(rows.find((one) => one.field.name === name).field);
  }
  return { root: h("div", { class: "labelled" }, h("label", { class: "small", for: id }, words.pair.search), search, list), choose };
}

/** A second value to begin with. */
function another(field, value) {
  if (field.kind === "choice") return field.choices.find((choice) => choice !== value) ?? null;
  if (field.kind === "bool") return value !== true;
  if (typeof value === "number" && value !== 0) return field.max !== undefined && 2 * value > field.max ? value / 2 : 2 * value;
  return value;
}
