// The forecast as bars: one a phase of the step, stacked by what it is made of, against the card's size.

import { h, replace, say, setText } from "./dom.js";
import { bytes, grouped } from "./format.js";

const WAITING_PHASES = ["rollout", "loss", "optimizer"]; // of every run: their rows are there before the first answer

/**
 * @param words the section "forecast" of the strings
 * @param options {apply(settings) called with a suggested change's values by dotted name; without it there is no button,
 *   titleOf(field) the name of a setting}
 * @returns {root, show(forecast, {backend} of the run), wait(text), fail(text)}; `forecast` is Forecast.as_dict().
 *   What was shown stays, paler, while an answer is waited for, so nothing jumps.
 */
export function makeForecastBars(words, { apply = null, titleOf = (field) => field } = {}) {
  const phases = h("ul", { class: "forecast-phases" });
  const parts = makeParts(words);
  const line = h("p", { class: "forecast-line", role: "status" });
  const change = makeChange(words, apply, titleOf);
  const largest = h("p", { class: "forecast-largest" });
  const made = h("p", { class: "forecast-made" });
  const notes = makeNotes(words);
  const root = h("div", { class: "forecast" }, phases, parts.root, line, change.root, largest, made, notes.root);
  let shown = null;

  const tell = (text, state) => {
    setText(line, text);
    root.dataset.state = state;
  };
  const empty = () => {
    shown = null;
    replace(phases, WAITING_PHASES.map((phase) => emptyRow(words.phases[phase])));
    parts.clear();
    change.show(null);
    replace(largest);
    replace(made);
    notes.show([]);
  };
  empty();
  tell(words.waits, "waiting");

  return {
    root,
    show(forecast, { backend = null } = {}) {
      const told = JSON.stringify([forecast, backend]);
      if (told !== shown) {
        drawPhases(phases, forecast, words, parts);
        replace(largest, largestText(forecast, backend, words));
        replace(made, madeText(forecast, words));
        change.show(forecast.changes?.[0] ?? null);
        notes.show(forecast.notes ?? []);
      }
      shown = told;
      tell(verdict(forecast, words), forecast.fits === false ? "over" : "shown");
    },
    /** An answer is on its way. */
    wait(text = null) {
      if (shown === null) return tell(text ?? words.waits, "waiting");
      return tell(text ?? line.textContent, "stale");
    },
    /** There is no forecast, for the reason given in one line. */
    fail(text) {
      empty();
      tell(text, "failed");
    },
  };
}

function emptyRow(name) {
  return h("li", { class: "forecast-phase" },
    h("span", { class: "forecast-name" }, name), h("span", { class: "forecast-track" }), h("span", { class: "forecast-bytes" }, "–"));
}

/** Rows are kept where the phases are the same, so that a bar grows or shrinks before a person's eyes. */
function drawPhases(list, forecast, words, parts) {
  const names = Object.keys(forecast.parts_by_phase);
  const known = [...list.children].map((row) => row.dataset.phase);
  if (JSON.stringify(names) !== JSON.stringify(known)) replace(list, names.map((name) => phaseRow(name, words)));
  const card = forecast.card?.bytes ?? null;
  const end = Math.max(card ?? 0, forecast.total_bytes, 1);
  const peak = () => parts.show(forecast, forecast.peak_phase);
  [...list.children].forEach((row, at) => drawRow(row, names[at], forecast, { card, end, words, show: () => parts.show(forecast, names[at]), peak }));
  peak();
}

function phaseRow(phase, words) {
  const bar = h("span", { class: "forecast-bar" });
  const track = h("span", { class: "forecast-track forecast-drawn", role: "img", tabindex: "0" }, bar, h("span", { class: "forecast-past" }), h("span", { class: "forecast-end" }));
  return h("li", { class: "forecast-phase", data: { phase } },
    h("span", { class: "forecast-name" }, words.phases[phase] ?? phase), track, h("span", { class: "forecast-bytes" }));
}

function drawRow(row, phase, forecast, { card, end, words, show, peak }) {
  const total = forecast.by_phase[phase];
  const [, track, value] = row.children;
  const [bar, past, mark] = track.children;
  const share = (size) => `${(100 * size) / end}%`;
  const found = partsOf(forecast, phase, words);
  const drawn = new Map([...bar.children].map((node) => [node.dataset.part, node]));
  replace(bar, found.map(([part, size]) => {
    const node = drawn.get(part) ?? h("span", { class: "forecast-part", data: { part } });
    node.style.width = `${(100 * size) / Math.max(total, 1)}%`;
    node.title = `${words.parts[part] ?? part}: ${bytes(size)}`;
    return node;
  }));
  bar.style.width = share(total);
  track.style.setProperty("--forecast-card", share(card ?? end));
  mark.hidden = card === null;
  past.hidden = card === null || total <= card;
  past.style.left = share(card ?? end);
  past.style.width = share(Math.max(total - (card ?? end), 0));
  setText(value, bytes(total));
  row.classList.toggle("forecast-over", !past.hidden);
  row.classList.toggle("forecast-peak", phase === forecast.peak_phase);
  const made = found.map(([part, size]) => `${words.parts[part] ?? part} ${bytes(size)}`).join(", ");
  const whole = card === null ? bytes(total) : say(words.of_card, { bytes: bytes(total), card: bytes(card) });
  track.setAttribute("aria-label", `${words.phases[phase] ?? phase}: ${whole}: ${made}`);
  row.onpointerenter = show;
  row.onpointerleave = peak;
  track.onfocus = show;
  track.onblur = peak;
}

/** In the order of the legend. */
function partsOf(forecast, phase, words) {
  const order = Object.keys(words.parts);
  const place = ([part]) => (order.includes(part) ? order.indexOf(part) : order.length);
  return Object.entries(forecast.parts_by_phase[phase]).filter(([, size]) => size > 0).sort((one, other) => place(one) - place(other));
}

/** The legend, with the bytes of each part: of the greatest phase, or of the one that is pointed at. */
function makeParts(words) {
  const title = h("p", { class: "forecast-parts-title" });
  const list = h("ul", { class: "forecast-parts" });
  const clear = () => {
    setText(title, "");
    replace(list);
  };
  return {
    root: h("div", { class: "forecast-legend" }, title, list),
    clear,
    show(forecast, phase) {
      const found = new Set(Object.keys(forecast.parts_by_phase).flatMap((name) => partsOf(forecast, name, words).map(([part]) => part)));
      const names = [...Object.keys(words.parts).filter((part) => found.delete(part)), ...found];
      const sizes = forecast.parts_by_phase[phase];
      setText(title, say(words.made_of, { phase: words.phases[phase] ?? phase, bytes: bytes(forecast.by_phase[phase]) }));
      replace(list, names.map((part) => h("li", { class: sizes[part] ? null : "forecast-none" },
        h("span", { class: "forecast-swatch", data: { part } }), h("span", { class: "forecast-part-name" }, words.parts[part] ?? part),
        h("span", { class: "forecast-part-bytes" }, sizes[part] ? bytes(sizes[part]) : "–"))));
    },
  };
}

function verdict({ card, fits, total_bytes: total, peak_phase: phase }, words) {
  if (!card) return words.no_card;
  const values = { card: card.name, size: bytes(card.bytes), bytes: bytes(total), phase: words.phases[phase] ?? phase, left: bytes(Math.abs(card.bytes - total)) };
  return say(fits ? words.fits : words.over, values);
}

function largestText({ largest_micro_batch: largest = {} }, backend, words) {
  const found = ["full", "trl", "liger"].filter((name) => name in largest);
  if (found.length === 0) return [];
  const best = backend ?? found.reduce((one, other) => (largest[other] > largest[one] ? other : one));
  const texts = found.map((name) => {
    const text = `${words.backends[name]} ${largest[name] ? grouped(largest[name]) : words.none_fits}`;
    return name === best ? h("strong", {}, text) : text;
  });
  return [`${words.largest} `, texts.flatMap((text, at) => (at ? [" · ", text] : [text]))];
}

function madeText(forecast, words) {
  const values = { micro_batch: grouped(forecast.micro_batch), prompt: grouped(forecast.prompt_tokens), completion: grouped(forecast.completion_tokens) };
  const closed = forecast.method === "closed form" && h("span", { class: "forecast-tag", title: words.closed_form_note }, words.closed_form);
  return [closed, closed && " ", say(words.made_for, values)];
}

/** The first change that would make it fit: a button when the page can apply it. */
function makeChange(words, apply, titleOf) {
  const root = h("div", { class: "forecast-change", hidden: true });
  return {
    root,
    show(change) {
      root.hidden = change === null;
      if (change === null) return replace(root);
      const settings = Object.entries(change.set).map(([field, value]) => say(words.change_one, { field: titleOf(field), value: valueText(value, words) })).join(", ");
      const text = say(change.fits === false ? words.change_less : words.change, { settings, bytes: bytes(change.total_bytes) });
      const kept = h("span", { class: "forecast-kept" }, change.keeps_update ? words.keeps_update : words.changes_update);
      const what = apply ? h("button", { type: "button", class: "button forecast-apply", onclick: () => apply(change.set) }, text) : h("span", {}, text);
      return replace(root, what, kept);
    },
  };
}

function valueText(value, words) {
  if (typeof value === "boolean") return value ? words.on : words.off;
  return value === null ? words.derived : words.values[value] ?? String(value);
}

/** Folded; open stays open. */
function makeNotes(words) {
  const list = h("ul", {});
  const title = h("summary", {});
  const root = h("details", { class: "forecast-notes", hidden: true }, title, list);
  return {
    root,
    show(notes) {
      root.hidden = notes.length === 0;
      setText(title, say(notes.length === 1 ? words.one_note : words.many_notes, { count: notes.length }));
      replace(list, notes.map((note) => h("li", {}, note)));
    },
  };
}
