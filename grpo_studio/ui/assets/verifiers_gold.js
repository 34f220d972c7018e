// The gold check: can each verifier read the golds, and does the gold itself get the top score?

import { h, say } from "./dom.js";
import { grouped, percent } from "./format.js";

export function goldResult({ reports }, context) {
  return reports.map((report) => one(report, context.words.gold));
}

function one(report, phrases) {
  if (!report.reads_gold) return h("div", { class: "v-gold" }, h("h3", {}, report.label), h("p", { class: "muted" }, phrases.reads_none));
  const unread = report.rows - report.readable;
  const wrong = report.ideal_checked - report.ideal_right;
  return h("div", { class: "v-gold" },
    h("h3", {}, report.label),
    h("div", { class: "v-big-row" },
      big(report.readable, report.rows, phrases.readable, unread > 0),
      report.ideal_checked ? big(report.ideal_right, report.ideal_checked, phrases.ideal, wrong > 0) : h("p", { class: "muted small" }, report.readable ? phrases.no_ideal : "")),
    table(phrases.unreadable, unread, report.unreadable, phrases),
    table(phrases.ideal_wrong, wrong, report.ideal_wrong, phrases));
}

function big(found, of, what, bad) {
  const share = of ? found / of : null;
  const text = bad && share > 0.995 ? nearly(share) : percent(share);
  return h("div", { class: "v-big" }, h("b", { class: bad ? "v-warn" : "v-good" }, text), h("span", {}, say(what, { found: grouped(found), of: grouped(of) })));
}

/** What is not all is not called 100 %. */
function nearly(share) {
  return `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
}

function table(title, count, rows, phrases) {
  if (count === 0) return null;
  const more = count - rows.length;
  return h("div", { class: "v-scroll" }, h("h4", {}, say(title, { count: grouped(count) })),
    h("table", { class: "v-table" },
      h("thead", {}, h("tr", {}, [phrases.row, phrases.gold, phrases.reason].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("td", { class: "number" }, grouped(row.row)), h("td", {}, h("code", {}, row.gold || phrases.empty)), h("td", {}, row.reason))))),
    more > 0 ? h("p", { class: "muted small" }, say(phrases.more, { count: grouped(more) })) : null);
}
