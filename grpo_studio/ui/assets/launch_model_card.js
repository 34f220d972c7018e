// The model's facts: asked for after a pause in typing, the newest answer counts, older ones are paler meanwhile.

import { h, replace, term } from "./dom.js";
import { bytes, grouped } from "./format.js";
import { short } from "./launch_text.js";
import { within } from "./poll.js";

const PAUSE_MS = 350;
const AGAIN_MS = 3000;
const KEPT = 30;
const ASKED_BY = ["id", "revision", "dtype", "attn_implementation", "chat_template"];
const NONE = "–";

/**
 * @param onNews called when something else is known
 * @returns {root, notes, refresh(), tell(problems at the field), known()} `known` is the card of the model that the draft names, or null
 */
export function makeFacts({ server, draft, words }, onNews) {
  let told = []; // the problems that stand at the model's field: what is said there is not said again here
  const root = h("section", { class: "launch-facts", "aria-label": words.card.title, "aria-busy": "false" });
  const notes = h("ul", { class: "launch-fact-notes" });
  const kept = new Map();
  let asking = null; // what the newest question is about
  let shown = { id: null, card: null };
  let timer = null;

  const show = (id, card, error = null) => {
    shown = { id, card };
    root.classList.remove("launch-stale");
    root.setAttribute("aria-busy", "false");
    replace(root, error === null ? null : h("p", { class: "launch-facts-error", role: "status" }, visible(error)), factList(card ?? {}, words));
    hideTold();
    replace(notes, (card?.notes ?? []).map((note) => h("li", {}, visible(note))));
    onNews();
  };

  const hideTold = () => {
    notes.hidden = told.length > 0;
    const line = root.querySelector(".launch-facts-error");
    if (line) line.hidden = told.some(({ message }) => line.textContent.includes(message));
  };

  const ask = async (key, model) => {
    try {
      const answer = await within(server.model_card({ model }), 60000);
      if (key !== asking) return;
      if (answer.error) {
        asking = null; // the next change asks again, whatever it is
        return show(model.id, null, answer.error);
      }
      if (kept.size >= KEPT) kept.delete(kept.keys().next().value);
      kept.set(key, answer.card);
      show(model.id, answer.card);
    } catch (error) {
      if (key !== asking) return;
      console.warn("no answer about the model", error);
      show(model.id, null, words.lost);
      timer = setTimeout(() => ask(key, model), AGAIN_MS);
    }
  };

  const refresh = () => {
    const model = Object.fromEntries(ASKED_BY.map((name) => [name, draft.get(`model.${name}`) ?? null]));
    const key = JSON.stringify(model);
    if (key === asking) return;
    clearTimeout(timer);
    const first = asking === null && shown.id === null;
    asking = key;
    if (kept.has(key)) return show(model.id, kept.get(key));
    root.classList.add("launch-stale");
    root.setAttribute("aria-busy", "true");
    timer = setTimeout(() => ask(key, model), first ? 0 : PAUSE_MS);
  };

  replace(root, factList({}, words));
  const tell = (problems) => {
    told = problems;
    hideTold();
  };
  return { root, notes, refresh, tell, known: () => (shown.id === draft.get("model.id") ? shown.card : null) };
}

function factList(card, words) {
  const { labels } = words.card;
  const facts = {
    architecture: card.architecture && visible(card.architecture),
    parameters: card.parameters && short(card.parameters),
    context: card.context_length && grouped(card.context_length),
    vocabulary: card.vocabulary && grouped(card.vocabulary),
    dtype: card.dtype && term(card.dtype, [card.dtype_note, words.card.dtype_note].filter(Boolean).join(". ")),
    download: card.download_bytes === 0 ? words.card.no_download : card.download_bytes && bytes(card.download_bytes),
    access: accessOf(card, words),
    licence: card.licence && visible(card.licence),
    template: card.chat_template && (words.card.templates[card.chat_template] ?? card.chat_template),
    pad: card.pad_token && token(card.pad_token),
    end: card.end_tokens?.length ? card.end_tokens.map((text, at) => [at ? " " : "", token(text)]) : null,
  };
  return h("dl", { class: "launch-fact-list" }, Object.entries(facts).map(([name, value]) => fact(labels[name], value, name)));
}

function fact(label, value, name) {
  const shownValue = value || h("span", { class: "launch-fact-none" }, NONE);
  const hover = typeof value === "string" ? value : null;
  return h("div", { class: `launch-fact launch-fact-${name}` }, h("dt", {}, label), h("dd", { title: hover }, shownValue));
}

function accessOf({ kind, gated, readable }, words) {
  const { access } = words.card;
  if (kind && kind !== "hub") return kind === "builtin" ? access.builtin : access.local;
  if (gated === true) return readable ? term(access.granted, access.granted_note) : term(access.closed, access.closed_note);
  return gated === false ? access.open : null;
}

/** A special token as code; what cannot be seen in it is written out. */
function token(text) {
  return h("code", { class: "launch-token", title: visible(text) }, visible(text));
}

/** Control, format and private characters, and blanks other than the plain one, as \u escapes. */
export function visible(text) {
  return String(text).replace(/\n/g, "\\n").replace(/\t/g, "\\t")
    .replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}
