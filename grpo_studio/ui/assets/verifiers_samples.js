// What the rewards make of a model's own samples: the verdict, the groups by kind, and the spread of each reward.

import { h, say } from "./dom.js";
import { fixed, grouped, number } from "./format.js";
import { took } from "./verifiers_score.js";

const KINDS = ["mixed", "all_good", "all_bad", "unjudged"];

export function samplesResult({ report, groups }, context) {
  const phrases = context.words.samples;
  return [
    h("p", { class: `v-verdict v-verdict-${report.level}` }, capital(report.verdict)),
    stack(report, phrases),
    h("div", { class: "v-spreads" }, [...report.rewards, report.total].map((spread, place) => card(spread, place === report.rewards.length, context.words))),
    h("details", { class: "v-more" }, h("summary", {}, phrases.look), groups.map((group) => samples(group, phrases))),
  ];
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function stack(report, phrases) {
  const shares = KINDS.map((kind) => [kind, report[kind]]).filter(([, count]) => count > 0);
  const label = shares.map(([kind, count]) => `${phrases.kinds[kind]}: ${count}`).join(", ");
  return h("div", { class: "v-stack-box" },
    h("div", { class: "v-stack", role: "img", "aria-label": label }, shares.map(([kind, count]) => h("span", { class: `v-kind-${kind}`, style: { "flex-grow": count } }))),
    h("div", { class: "v-legend" }, shares.map(([kind, count]) => h("span", {}, h("span", { class: `swatch v-kind-${kind}` }), say(phrases.legend, { kind: phrases.kinds[kind], count, share: Math.round((100 * count) / report.groups) })))));
}

function card(spread, whole, words) {
  const phrases = words.samples;
  const most = Math.max(1, ...spread.histogram.map(([, , count]) => count));
  const bars = spread.histogram.map(([low, high, count]) => h("span", { class: "v-bar", style: { height: `${(100 * count) / most}%` }, title: `${number(low)} – ${number(high)}: ${grouped(count)}` }));
  const trouble = Object.entries(spread.outcomes).filter(([name]) => name !== "ok");
  return h("div", { class: `v-spread${whole ? " v-spread-whole" : ""}` },
    h("div", { class: "v-spread-head" }, h("b", {}, whole ? phrases.whole : spread.label), whole ? null : h("span", { class: "muted small" }, say(phrases.weight, { weight: number(spread.weight) }))),
    spread.histogram.length ? h("div", { class: "v-histogram", role: "img", "aria-label": say(phrases.histogram, { low: number(spread.minimum), high: number(spread.maximum) }) }, bars) : h("p", { class: "muted small" }, phrases.nothing_judged),
    spread.histogram.length ? h("div", { class: "v-axis" }, h("span", {}, number(spread.minimum)), h("span", {}, number(spread.maximum))) : null,
    h("div", { class: "small" }, say(phrases.mean, { mean: fixed(spread.mean), std: fixed(spread.std) })),
    whole ? null : h("div", { class: "muted small" }, say(phrases.latency, { median: took(spread.seconds_median), most: took(spread.seconds_max) })),
    trouble.length ? h("div", { class: "v-fault small" }, trouble.map(([name, count]) => `${words.outcomes[name] ?? name}: ${grouped(count)}`).join(" · ")) : h("div", { class: "muted small" }, phrases.all_judged));
}

function samples(group, phrases) {
  return h("div", { class: "v-group" }, h("pre", { class: "v-text" }, group.question), h("p", { class: "muted small" }, say(phrases.gold, { gold: group.gold })),
    h("ol", {}, group.completions.map((text) => h("li", {}, h("pre", { class: "v-text" }, text || phrases.empty)))));
}
