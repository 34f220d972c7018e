import { h, say } from "./dom.js";
import { grouped } from "./format.js";
import { chip, liveAddress, replaceOnce } from "./pair_sides.js";

/** Where the two runs first differ: the step, and both texts of the same prompt. */
export function buildDifference(words) {
  const body = h("div", { class: "pair-difference" });
  const node = h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, words.first)), body);
  function update(measured, both, about) {
    const found = measured?.first_difference ?? null;
    replaceOnce(body, [found, measured?.rewards_differ, measured?.compared_upto, measured?.steps, both.map((side) => side.run), about.ended], () => (found ? different(found, measured, both) : same(measured, about)));
  }

  function different(found, measured, both) {
    const links = both.filter((side) => side.here).map((side) => h("a", { href: liveAddress(side.run, found.step, found.group) }, say(words.open_in, side)));
    const rewards = measured.rewards_differ === null ? words.rewards_still_equal : say(words.rewards_from, { step: measured.rewards_differ });
    const head = h("p", {}, say(words.first_kinds[found.kind], found), " ", rewards, " ", links.flatMap((link, place) => (place ? [" · ", link] : [link])));
    if (!found.sides) return [head];
    return [head, h("p", { class: "pair-prompt small" }, found.prompt), h("div", { class: "pair-texts" }, found.sides.map((side, place) => text(side, both[place])))];
  }

  function text(excerpt, side) {
    const before = excerpt.text.slice(0, excerpt.at);
    const [mark] = [...excerpt.text.slice(excerpt.at)];
    const rest = excerpt.text.slice(excerpt.at + (mark?.length ?? 0));
    const ends = excerpt.begins + excerpt.text.length < excerpt.length;
    return h("div", { class: "pair-text" },
      h("p", { class: "small muted" }, chip(side.side), " ", side.value, ` · ${say(words.tokens, { count: grouped(excerpt.tokens) })}`),
      h("div", { class: "mono pair-words" }, excerpt.begins ? "…" : "", before, h("mark", {}, mark ?? words.text_ends), rest, ends ? "…" : ""));
  }

  function same(measured, about) {
    if (!measured || measured.steps === 0) return [h("p", { class: "muted" }, about.ended ? words.never_compared : words.first_waits)];
    const all = measured.compared_upto >= measured.steps;
    const told = say(all ? words.first_none : words.first_so_far, { steps: grouped(measured.steps), upto: grouped(measured.compared_upto) });
    return [h("p", {}, told), measured.rewards_differ === null ? null : h("p", {}, say(words.rewards_from, { step: measured.rewards_differ }))];
  }
  return { node, update };
}

/** The settings that differ: one row, and a word of warning when there are more. */
export function buildSettings(words) {
  const body = h("div", {});
  const node = h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, words.settings)), body);
  function update(rows) {
    replaceOnce(body, rows, () => (rows === null ? h("p", { class: "muted" }, words.settings_unknown) : rows.length ? table(rows) : h("p", { class: "muted" }, words.none_differs)));
  }
  function table(rows) {
    return [
      h("table", { class: "pair-settings" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, words.setting), ["A", "B"].map((side) => h("th", { scope: "col" }, chip(side))))),
        h("tbody", {}, rows.map((row) => h("tr", { class: row.meant ? null : "unmeant" }, h("th", { scope: "row" }, row.title, h("span", { class: "mono" }, row.field)), row.values.map((value) => h("td", {}, value)))))),
      rows.some((row) => !row.meant) ? h("p", { class: "small warned" }, words.more_differ) : h("p", { class: "small muted" }, words.one_differs),
    ];
  }
  return { node, update };
}
