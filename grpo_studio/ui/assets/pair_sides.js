import { h, replace, say, setText, term } from "./dom.js";
import { bytes, duration, fixed, number } from "./format.js";

const LETTERS = ["a", "b"];

/** Both halves in the head of the page: value, state, progress, and the way to Live. */
export function buildSides({ words, states }) {
  const parts = LETTERS.map((letter) => side(letter, words, states));
  return {
    node: h("div", { class: "pair-sides" }, parts.map((part) => part.node)),
    update: (both) => both.forEach((one, place) => parts[place].update(one)),
  };
}

function side(letter, words, states) {
  const chip = h("span", { class: `pair-chip chip-${letter}` }, letter.toUpperCase());
  const value = h("b", { class: "pair-value" });
  const pill = h("span", { class: "pill", role: "status" });
  const link = h("a", { class: "small" }, words.live);
  const filled = h("span", { class: `fill-${letter}` });
  const bar = h("div", { class: "progress", role: "progressbar", "aria-valuemin": "0", "aria-label": say(words.progress, { side: letter.toUpperCase() }) }, filled);
  const text = h("span", { class: "small muted pair-step" });
  const reason = h("p", { class: "small muted pair-reason" });
  function update(one) {
    setText(value, one.value);
    value.title = one.value;
    pill.dataset.state = one.here ? one.state : "";
    setText(pill, one.here ? states[one.state] ?? one.state : words.not_here);
    link.hidden = !one.here;
    link.href = liveAddress(one.run);
    link.title = one.run;
    const steps = one.steps || 1;
    bar.setAttribute("aria-valuemax", steps);
    bar.setAttribute("aria-valuenow", one.step);
    filled.style.width = `${Math.min(100, (100 * one.step) / steps)}%`;
    setText(text, one.steps ? say(words.step_of, one) : "");
    const calm = ["running", "finished", "preparing"].includes(one.state);
    const told = !one.here ? say(words.half_gone, one) : one.state === "queued" && one.waits ? words.waits : calm ? "" : one.reason;
    setText(reason, told);
    reason.hidden = !told;
  }
  return { node: h("div", { class: `pair-side side-${letter}` }, h("div", { class: "pair-side-head" }, chip, value, pill, link, text), bar, reason), update };
}

const TILES = {
  peak_bytes: { shown: bytes, more: (side) => side.peak_phase },
  seconds: { shown: (value) => (value === null || value >= 10 ? duration(value) : `${number(value)} s`) },
  tokens_per_s: { shown: number },
  reward: { shown: (value) => fixed(value, 3) },
};

/** One tile a measure: both values, and how they differ. */
export function buildTiles(words) {
  const parts = Object.keys(TILES).map((key) => tile(key, words));
  return {
    node: h("section", { class: "pair-tiles" }, parts.map((part) => part.node)),
    update: (measured) => parts.forEach((part) => part.update(measured)),
  };
}

function tile(key, words) {
  const rows = LETTERS.map((letter) => ({ value: h("b"), more: h("span", { class: "small muted" }), letter }));
  const change = h("p", { class: "small muted pair-change" }, "\u00a0");
  const node = h("div", { class: "card pair-tile" }, h("div", { class: "label" }, term(words.tiles[key][0], words.tiles[key][1])),
    rows.map((row) => h("div", { class: "pair-tile-row" }, h("span", { class: `pair-chip chip-${row.letter}` }, row.letter.toUpperCase()), row.value, row.more)), change);
  function update(measured) {
    const sides = measured?.sides ?? [null, null];
    rows.forEach((row, place) => {
      const told = sides[place];
      setText(row.value, told ? TILES[key].shown(told[key]) : "–");
      setText(row.more, told && TILES[key].more ? TILES[key].more(told) ?? "" : "");
    });
    setText(change, changeOf(key, measured, words));
  }
  return { node, update };
}

function changeOf(key, measured, words) {
  const [a, b] = (measured?.sides ?? []).map((side) => side[key]);
  if (a === null || b === null || a === undefined || b === undefined) return measured && measured.steps ? words.not_both : words.not_yet;
  if (key === "reward") return measured.reward_gap === 0 ? words.rewards_equal : say(words.rewards_gap, { gap: number(measured.reward_gap, 2) });
  const share = a / b - 1;
  if (!Number.isFinite(share) || Math.abs(share) < 0.005) return words.equal;
  return say(share > 0 ? words.a_more : words.a_less, { share: `${number(Math.abs(share) * 100, 2)} %` });
}

/** Live at a step and, where it is known, at a group. */
export function liveAddress(run, step = null, group = null) {
  const asked = new URLSearchParams({ run });
  if (step !== null) asked.set("step", step);
  if (group !== null) asked.set("group", group);
  return `./live?${asked}`;
}

/** A chip of the side's colour before something that belongs to it. */
export function chip(letter) {
  return h("span", { class: `pair-chip chip-${letter.toLowerCase()}` }, letter);
}

/** Replace only when what is told has changed, so that a selection stays. */
export function replaceOnce(node, key, make) {
  const told = JSON.stringify(key);
  if (node.dataset.key === told) return;
  node.dataset.key = told;
  replace(node, make());
}
