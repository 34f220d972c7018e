import { Chart } from "./chart.js";
import { h, say, term } from "./dom.js";

const WIDE = ["reward", "timeline"];
const SMALL = ["peak", "phases", "seconds"];

/** The charts: rewards and memory within steps large, the rest small. Every panel has its height from the start. */
export function buildFigures({ words, onstep }) {
  const panels = Object.fromEntries([...WIDE, ...SMALL].map((key) => [key, panel(key, words, ["reward", "peak", "seconds"].includes(key) ? onstep : null)]));
  for (const [key, one] of Object.entries(panels)) one.chart.empty(words.will[key]);
  return {
    node: h("div", { class: "pair-figures" },
      h("div", { class: "pair-two" }, WIDE.map((key) => panels[key].node)),
      h("div", { class: "pair-three" }, SMALL.map((key) => panels[key].node))),
    update(figures, about, measured) {
      for (const [key, figure] of Object.entries(figures)) {
        const needsBoth = key === "timeline" || key === "phases";
        if (!panels[key].chart.show(figure, asides(key, measured, words))) panels[key].chart.empty(about.ended ? words.never[needsBoth ? "both" : "any"] : words.will[key]);
      }
    },
  };
}

function asides(key, measured, words) {
  if (key === "timeline") return [words.band_aside];
  if (key === "phases" && measured) return [say(words.phases_aside, measured)];
  return [];
}

function panel(key, words, onstep) {
  const [title, note, sub] = words.panels[key];
  const plot = h("div", { class: WIDE.includes(key) ? "plot pair-plot" : "plot" });
  const legend = h("div", { class: "legend" });
  const node = h("section", { class: "card panel" }, h("div", { class: "card-head" }, h("h2", {}, term(title, note)), h("span", { class: "sub" }, sub)), plot, legend);
  return { node, chart: new Chart({ node: plot, legend, onstep, label: title }) };
}
