// What came of checking a verifier's text: its problems, and each of its own examples with what it was given.

import { h, replace, say } from "./dom.js";
import { number } from "./format.js";
import { shown } from "./launch_text.js";

export function reportBox(words) {
  const root = h("div", { class: "v-report", role: "status" });

  function show(report) {
    const examples = report.examples ?? [];
    replace(root,
      report.problems.length
        ? h("ul", { class: "v-problems" }, report.problems.map((problem) => h("li", {}, problem)))
        : h("p", { class: "v-good" }, say(words.examples_passed, { count: examples.length })),
      examples.length ? table(report, examples) : null);
  }

  function table(report, examples) {
    const seen = {};
    const rows = examples.map((one) => {
      const at = (seen[one.verifier] = (seen[one.verifier] ?? -1) + 1);
      const example = report.verifiers.find((spec) => spec.name === one.verifier)?.examples[at];
      const given = { ...example?.columns, ...example?.params };
      return h("tr", { class: one.passed ? "" : "v-pays" },
        h("td", {}, h("code", {}, one.verifier)),
        h("td", {}, h("pre", { class: "v-text" }, example?.completion || words.empty_value), h("div", { class: "muted small" }, Object.entries(given).map(([name, value]) => `${name}: ${shown(value) || words.empty_value}`).join(" · "))),
        h("td", { class: "number" }, example?.expected === null ? words.abstains : number(example?.expected)),
        h("td", { class: "number" }, one.score.value === null ? words.outcomes[one.score.outcome] ?? one.score.outcome : number(one.score.value)),
        h("td", {}, one.score.reason));
    });
    const heads = [words.verifier, words.example_text, words.expected, words.got, words.reason];
    return h("div", { class: "v-scroll" }, h("table", { class: "v-table" }, h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)));
  }

  return { root, show, clear: () => replace(root), fail: (text) => replace(root, h("p", { class: "v-fault" }, text)) };
}
