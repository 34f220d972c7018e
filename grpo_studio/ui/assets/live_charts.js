import { Chart } from "./chart.js";
import { h, replace, say, term } from "./dom.js";
import { fixed, grouped, number } from "./format.js";
import { buildMemory } from "./live_memory.js";

/** The reward chart with the facts beside it, and the small multiples. Every panel has its final height from the start. */

/** The metric whose recorded reason for not being there speaks for a whole panel. */
const OF_PANEL = { kl: "policy/kl", clip: "policy/clip_high", sampler: "policy/sampler_difference" };
const SMALL = ["mix", "advantage", "length", "kl", "loss", "clip", "sampler", "time"];

function panel(title, note, sub, { tall = false, onstep = null } = {}) {
  const plot = h("div", { class: tall ? "plot tall" : "plot" });
  const legend = h("div", { class: "legend" });
  const small = h("span", { class: "sub" }, sub);
  const node = h("section", { class: "card panel" }, h("div", { class: "card-head" }, h("h2", {}, term(title, note)), small), plot, legend);
  return { node, sub: small, chart: new Chart({ node: plot, legend, onstep, label: title }) };
}

export function buildCharts({ words, onstep }) {
  const reward = panel(words.reward, words.reward_note, "", { tall: true, onstep });
  const small = Object.fromEntries(SMALL.map((key) => [key, panel(...words.panels[key], words.units[key], { onstep })]));
  const memory = buildMemory(words);
  const facts = h("aside", { class: "card facts" });
  const all = { reward, ...small, memory };

  function about(run) {
    replace(reward.sub, say(words.reward_sub, { count: run.prompts_per_step * run.group_size }));
    small.sampler.node.hidden = !run.vllm;
    Object.entries(all).forEach(([key, one]) => one.chart.empty(words.will[key]));
    drawFacts(facts, run, { held_out: [], verifiers: run.verifiers, completions: 0, groups: 0 }, words);
  }

  function update(figures, run, ended) {
    for (const [key, figure] of Object.entries(figures)) {
      if (!all[key].chart.show(figure, asides(key, figure, run, words))) all[key].chart.empty(nothing(key, run, ended, words));
    }
  }
  return {
    top: h("div", { class: "two" }, reward.node, facts),
    multiples: h("section", { class: "panels" }, SMALL.map((key) => small[key].node), memory.node),
    about, update,
    facts: (run, data) => drawFacts(facts, run, data, words),
    memoryFacts: memory.facts,
  };
}

/** What a panel lacks, said in its legend: never silently. */
function asides(key, figure, run, words) {
  const without = [];
  if (["kl", "clip"].includes(key) && run.updated && run.updated.kept !== null && run.updated.kept < run.updated.of) without.push(say(words.kept_aside, run.updated));
  const names = figure.data.map((trace) => trace.name);
  const low = run.absent["policy/clip_low"];
  if (key === "clip" && low && !names.includes(words.traces.clip_low)) without.push(low);
  if (key !== "kl") return without;
  if (!names.includes(words.traces.kl)) without.push(say(words.kl_aside, { why: run.absent["policy/kl"] ?? words.absent }));
  if (!names.includes(words.traces.entropy)) without.push(words.no_entropy);
  return without;
}

function nothing(key, run, ended, words) {
  if (run.seen) return run.absent[OF_PANEL[key]] ?? words.absent;
  return ended ? words.absent : words.will[key];
}

function drawFacts(node, run, data, words) {
  const key = JSON.stringify([run.id, data]);
  if (node.dataset.key === key) return; // equal facts are left alone: a selection or the focus in them stays
  node.dataset.key = key;
  const main = data.held_out.find((row) => row.name === "reward");
  const others = data.held_out.filter((row) => row !== main);
  replace(node,
    h("div", {},
      h("div", { class: "card-head" }, h("h2", {}, term(words.facts, words.facts_note)), main && !main.only ? h("span", { class: "sub" }, words.facts_sub) : null),
      main ? heldOut(main, words) : [h("div", { class: "big" }, "–"), h("p", { class: "muted small" }, words.facts_none)],
      data.verifiers.map((row) => heldOutRow(row, others.find((one) => one.name === row.name)))),
    h("div", {},
      h("div", { class: "card-head" }, h("h2", {}, term(words.contributes, words.contributes_note)), h("span", { class: "sub" }, words.contributes_sub)),
      data.verifiers.map((row) => verifierRow(row, words))),
    h("div", {},
      h("div", { class: "card-head" }, h("h2", {}, words.settings)),
      h("dl", { class: "setting", style: { margin: "0" } }, Object.entries(run.facts).flatMap(([name, value]) => [h("dt", {}, words.setting_names[name]), h("dd", { title: String(value) }, typeof value === "number" ? number(value) : value)])),
      h("p", { class: "muted small" }, say(words.facts_count, { completions: grouped(data.completions), groups: grouped(data.groups) }))));
}

function heldOut(row, words) {
  if (row.only) return [h("div", { class: "big" }, fixed(row.now)), h("p", { class: "muted small" }, say(words.facts_once, { step: row.at_step }))];
  return [
    h("div", { class: "big" }, fixed(row.before), h("span", { class: "arrow" }, "→"), fixed(row.now)),
    h("p", { class: "muted small" }, say(words.facts_at, { from: row.from_step, to: row.at_step })),
  ];
}

function heldOutRow(verifier, row) {
  const value = !row ? "–" : row.only ? fixed(row.now) : `${fixed(row.before)} → ${fixed(row.now)}`;
  return h("div", { class: "fact-row small" }, h("span", { class: "swatch", style: { background: verifier.colour } }), h("span", { class: "name", title: verifier.name }, verifier.name), h("span", { class: "muted" }, value));
}

function verifierRow(row, words) {
  const adds = row.adds === undefined || row.adds === null ? "–" : say(words.adds, { mean: fixed(row.mean), weight: number(row.weight), adds: fixed(row.adds) });
  const abstained = row.abstained === undefined || row.abstained === null ? "" : row.abstained > 0 ? say(words.abstained, { count: grouped(row.abstained) }) : words.abstained_none;
  const troubles = Object.entries(row.troubles || {}).map(([kind, count]) => say(words.troubles[kind], { count: grouped(count) }));
  return h("div", { class: "fact-row" }, h("span", { class: "swatch", style: { background: row.colour } }), h("span", { class: "name", title: row.name }, row.name), h("span", {}, adds),
    h("span", { class: "under" }, [abstained || "–", ...troubles].join(" · ")));
}
