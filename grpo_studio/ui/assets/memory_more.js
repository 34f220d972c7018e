import { h, replace, say } from "./dom.js";
import { bytes } from "./format.js";

/** Pairs of runs that differ in one setting. */
export function buildPairs(words, states) {
  const list = h("div", { class: "memory-pairs" });
  const node = h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, words.pairs), h("span", { class: "sub" }, words.pairs_sub)), list);
  let drawn = "";
  const how = () => h("p", { class: "muted small" }, words.pairs_how, " ", h("a", { href: "./launch" }, words.pairs_launch));
  replace(list, how());

  function show(pairs) {
    const key = JSON.stringify(pairs);
    if (key === drawn) return;
    drawn = key;
    replace(list, pairs.map((pair) => row(pair)), how());
  }

  function row(pair) {
    return h("a", { class: "memory-pair", href: `./pair?pair=${encodeURIComponent(pair.id)}` },
      h("span", { class: "memory-pair-what" }, h("span", { class: "mono" }, pair.field), h("span", {}, say(words.versus, { a: pair.values[0], b: pair.values[1] }))),
      h("span", { class: "memory-pair-told" }, pair.told || pair.sides.map((side, place) => h("span", { class: `memory-side side-${"ab"[place]}` }, sideText(side, place, pair)))));
  }

  function sideText(side, place, pair) {
    const peak = side.measured ? say(words.side_peak, { peak: bytes(side.measured.peak), phase: side.measured.phase }) : (states[side.state] ?? words.gone);
    return say(words.side, { side: "AB"[place], value: pair.values[place], what: peak });
  }
  return { node, show };
}

/** The published hand figures, and PPO, DPO and GRPO: they never change, and are folded. */
export function buildCards(words, about) {
  const hand = h("table", { class: "memory-wide" },
    h("thead", {}, h("tr", {}, [words.hand_what, words.hand_figure, words.hand_worked, words.hand_differs].map((label) => h("th", { scope: "col" }, label)))),
    h("tbody", {}, about.hand.map((one) => h("tr", {}, h("th", { scope: "row" }, one.title), h("td", { class: "memory-figure" }, one.text), h("td", {}, one.worked), h("td", { class: "muted" }, one.differs)))));
  const methods = h("table", { class: "memory-wide" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }), about.methods.map((one) => h("th", { scope: "col" }, h("b", {}, one.title), " ", h("span", { class: "muted" }, one.source))))),
    h("tbody", {}, about.rows.map((row) => h("tr", {}, h("th", { scope: "row" }, words.method_rows[row.name] ?? row.name), row.cells.map((text) => h("td", {}, text))))));
  return [folded(words.hand, words.hand_sub, hand), folded(words.methods, words.methods_sub, methods)];
}

function folded(title, sub, content) {
  return h("details", { class: "card memory-folded" },
    h("summary", {}, h("h2", {}, title), h("span", { class: "sub muted small" }, sub)),
    h("div", { class: "memory-scroll", tabindex: "0", role: "region", "aria-label": title }, content));
}
