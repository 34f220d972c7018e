import { h, replace } from "./dom.js";
import { duration, number } from "./format.js";

/** The word of one verifier on one text: the score large, then what it read, why, how long it took. All of it is text. */
export function scoreBox(words) {
  const root = h("div", { class: "v-score", role: "status" }, h("p", { class: "muted" }, words.no_score));

  function show(score) {
    const fault = score.outcome !== "ok" && score.outcome !== "abstained";
    replace(root,
      h("div", { class: "v-score-top" }, h("b", { class: "v-score-value" }, number(score.value)),
        h("span", { class: "pill", data: { outcome: score.outcome } }, words.outcomes[score.outcome] ?? score.outcome)),
      h("dl", { class: "v-facts" },
        pair(words.extracted, score.extracted === null ? "–" : h("code", {}, score.extracted)),
        pair(words.reason, h("span", { class: fault ? "v-fault" : "" }, score.reason || "–")),
        pair(words.took, took(score.seconds))));
  }

  return { root, show, wait: () => replace(root, h("p", { class: "muted" }, words.judging)), fail: (text) => replace(root, h("p", { class: "v-fault" }, text)) };
}

export function pair(name, value) {
  return [h("dt", {}, name), h("dd", {}, value)];
}

/** Seconds of one item, which may be microseconds. */
export function took(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds >= 1) return duration(seconds);
  return seconds < 0.001 ? `${number(seconds * 1e6, 2)} µs` : `${number(seconds * 1000, 2)} ms`;
}

/** A docstring's words: what stands between backticks is code. */
export function prose(text) {
  return text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
}
