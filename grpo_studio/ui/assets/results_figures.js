import { h, replace, say, svg, term } from "./dom.js";
import { fixed, number, signed } from "./format.js";

const WIDE = 200;
const HIGH = 26;

/** The figures of a comparison: two big ones, then each verifier and pass@k with 95 % intervals before and after. */
export function buildFigures(words) {
  const big = h("div", { class: "results-big" });
  const body = h("tbody");
  const head = h("tr", {}, h("th", { scope: "col" }, words.figure),
    h("th", { scope: "col", class: "number" }, words.side_a), h("th", { scope: "col", class: "number" }, words.side_b),
    h("th", { scope: "col", class: "number" }, term(words.difference, words.difference_note)), h("th", { scope: "col", class: "col-plot" }, term(words.interval, words.interval_note)));
  const table = h("table", { class: "results-table" }, h("thead", {}, head), body);
  const foot = h("p", { class: "muted small" });
  const node = h("div", { class: "results-figures" }, big, h("section", { class: "card" }, table, foot));
  let drawn = "";

  function show(found) {
    const key = JSON.stringify(found);
    if (key === drawn) return;
    drawn = key;
    const rule = say(words.solved_note, { name: found.passed_by, score: number(found.pass_score) });
    replace(big, tile(words.reward, words.reward_note, found.reward), tile(words.solved, rule, found.passed));
    const rest = [...found.verifiers, ...(found.sampled_reward ? [found.sampled_reward] : []), ...found.pass_at];
    const scale = scaleOf([found.reward, found.passed, ...rest]);
    const group = (name, rows) => (rows.length ? [h("tr", { class: "group" }, h("th", { scope: "colgroup", colspan: "5" }, name)), ...rows] : []);
    const greedy = [[words.reward, found.reward], [words.solved, found.passed], ...found.verifiers.map((one) => [one.name, one])];
    const sampled = [...(found.sampled_reward ? [[words.reward, found.sampled_reward]] : []), ...found.pass_at.map((one) => [passAt(one.k), one])];
    replace(body, group(words.greedy, drawnRows(greedy, scale)), group(say(words.sampled, { before: found.samples[0], after: found.samples[1] }), drawnRows(sampled, scale)));
    replace(foot, found.samples[1] === 0 ? words.no_samples : "");
    foot.hidden = found.samples[1] !== 0;
  }

  function tile(name, note, change) {
    const moved = change.difference;
    const sure = moved.low !== null && (moved.low > 0 || moved.high < 0);
    return h("section", { class: "card results-tile" },
      h("div", { class: "small" }, term(name, note)),
      h("div", { class: "results-values" }, h("span", { class: "from" }, fixed(change.before.value)), h("span", { class: "arrow", "aria-hidden": "true" }, "→"), h("b", {}, fixed(change.after.value)),
        h("span", { class: `moved ${sure && moved.value > 0 ? "good" : sure ? "worse" : ""}` }, signed(moved.value))),
      h("div", { class: "muted small" }, moved.low === null ? words.no_interval : say(words.interval_of, { low: signed(moved.low), high: signed(moved.high) }), " · ", say(words.over_rows, { count: moved.rows })),
      left(change));
  }

  /** Abstentions are told: they are in no figure. */
  function left({ before, after }) {
    if (!before.left_out && !after.left_out) return null;
    return h("div", { class: "small warned" }, say(words.left_out, { before: before.left_out, after: after.left_out }));
  }

  /** Abstentions that are those of the row above are not told again. */
  function drawnRows(changes, scale) {
    const lefts = changes.map(([, change]) => `${change.before.left_out}/${change.after.left_out}`);
    return changes.map(([name, change], place) => row(name, change, scale, lefts[place] !== lefts[place - 1]));
  }

  function passAt(k) {
    return term(say(words.pass_at, { k }), say(words.pass_at_note, { k }));
  }

  function row(name, change, scale, telling) {
    return h("tr", {},
      h("th", { scope: "row" }, name, telling ? left(change) : null),
      cell(change.before, fixed), cell(change.after, fixed), cell(change.difference, signed),
      h("td", { class: "col-plot" }, plot(change, scale)));
  }

  function cell({ value, low, high }, show) {
    return h("td", { class: "number" }, h("b", {}, show(value)), h("div", { class: "muted small" }, low === null ? "" : `${show(low)} … ${show(high)}`));
  }

  function plot(change, scale) {
    const at = (value) => 4 + ((value - scale.low) / (scale.high - scale.low)) * (WIDE - 8);
    const part = ({ value, low, high }, y, kind) => (value === null ? [] : [
      low === null ? null : svg("line", { class: kind, x1: at(low), x2: at(high), y1: y, y2: y }),
      svg("circle", { class: kind, cx: at(value), cy: y, r: 4 })]);
    return svg("svg", { class: "results-plot", viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" },
      [0, 1].filter((value) => value >= scale.low && value <= scale.high).map((value) => svg("line", { class: "grid", x1: at(value), x2: at(value), y1: 0, y2: HIGH })),
      part(change.before, 8, "a"), part(change.after, 18, "b"));
  }
  return { node, show };
}

/** One scale for all rows: from 0 to 1, or as far as the values go beyond. */
function scaleOf(changes) {
  const values = changes.flatMap(({ before, after }) => [before, after]).flatMap((one) => [one.value, one.low, one.high]).filter((value) => value !== null && value !== undefined);
  return { low: Math.min(0, ...values), high: Math.max(1, ...values) };
}
