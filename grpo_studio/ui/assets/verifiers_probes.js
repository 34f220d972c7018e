// Exploit probes: what each verifier pays for texts that solve nothing. One that pays is red, with the text.

import { h, say } from "./dom.js";
import { grouped, number } from "./format.js";

export function probesResult({ results, row }, context) {
  const phrases = context.words.probes;
  const probes = [...new Set(results.map((one) => one.probe))].map((name) => results.filter((one) => one.probe === name));
  const paying = probes.filter((cells) => cells.some((one) => one.pays));
  const others = probes.filter((cells) => !paying.includes(cells));
  return [
    h("p", { class: `v-verdict ${paying.length ? "v-verdict-bad" : "v-verdict-good"}` },
      paying.length === 0 ? say(phrases.none_pay, { count: probes.length }) : say(paying.length === 1 ? phrases.one_pays : phrases.some_pay, { count: paying.length, all: probes.length })),
    h("p", { class: "muted small v-row-used" }, say(phrases.on_row, row)),
    paying.length ? table(paying, phrases) : null,
    others.length ? h("details", { class: "v-more" }, h("summary", {}, say(phrases.others, { count: others.length })), table(others, phrases)) : null,
  ];
}

function table(probes, phrases) {
  const labels = probes[0].map((one) => (one.label === phrases.whole_label ? phrases.whole : one.label));
  return h("div", { class: "v-scroll" }, h("table", { class: "v-table v-probes" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, phrases.probe), labels.map((label) => h("th", { scope: "col" }, label)))),
    h("tbody", {}, probes.map((cells) => rowOf(cells, phrases)))));
}

function rowOf(cells, phrases) {
  const [first] = cells;
  const pays = cells.some((one) => one.pays);
  const notes = [...new Set(cells.filter((one) => one.note).map((one) => one.note))];
  const text = h("details", { open: pays || null }, h("summary", {}, say(phrases.text, { count: grouped(first.length) })),
    h("pre", { class: "v-text" }, first.text === "" ? phrases.empty : first.length > first.text.length ? `${first.text}…` : first.text));
  return h("tr", { class: pays ? "v-pays" : "" },
    h("th", { scope: "row" }, h("b", {}, first.probe), h("div", { class: "muted small" }, first.what), notes.map((note) => h("div", { class: "small" }, note)), text),
    cells.map((one) => h("td", { class: "number", data: { label: one.label }, title: one.score.reason }, h("span", { class: one.pays ? "v-pay" : "" },
      one.score.value === null ? phrases.abstains : number(one.score.value), one.pays ? h("span", { class: "v-pay-word" }, ` ${phrases.pays}`) : null))));
}
