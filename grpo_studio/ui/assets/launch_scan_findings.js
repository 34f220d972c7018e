// What a scan found: rows by number with what is the matter, what to do with them, and the golds that could be read.

import { h, replace, say } from "./dom.js";
import { grouped } from "./format.js";

const TOO_LONG = "dataset.too_long";
const UNUSABLE = "dataset.unusable";

/** @returns {root, show(report), clear()} */
export function makeFindings({ draft, words, setField }) {
  const own = words.scan;
  const list = h("ul", { class: "launch-findings" });
  const golds = h("ul", { class: "launch-golds" });
  const root = h("div", { class: "launch-scan-found" }, list, golds);
  const choices = [];

  function choice(field, label) {
    const buttons = ["leave_out", "stop"].map((value) =>
      h("button", { type: "button", class: "launch-chip", data: { value }, onclick: () => setField(field, value) }, own.choices[value]));
    const sync = () => buttons.forEach((button) => button.setAttribute("aria-pressed", String(draft.get(field) === button.dataset.value)));
    sync();
    choices.push(sync);
    return h("div", { class: "launch-scan-choice launch-chips", role: "group", "aria-label": label, data: { choice: field } }, buttons);
  }

  const row = (finding, choose) =>
    h("li", { data: { kind: finding.kind } },
      h("p", {}, finding.message),
      finding.rows?.length ? h("p", { class: "launch-finding-rows", title: finding.example ?? "" }, rowsText(finding), finding.example ? ` · ${finding.example}` : null) : null,
      choose);

  const rowsText = ({ rows, count }) => say(count === 1 ? own.row : own.rows, { rows: rows.map(grouped).join(", ") + (count > rows.length ? ", …" : "") });

  const gold = ({ label, rows, readable, unreadable = [] }) => {
    const all = readable === rows;
    return h("li", { data: { all: String(all) } },
      h("span", {}, say(all ? own.golds_all : own.golds_some, { label, rows: grouped(rows), readable: grouped(readable) })),
      unreadable.length ? h("p", { class: "launch-finding-rows" }, say(own.gold_unread, { row: grouped(unreadable[0].row), gold: String(unreadable[0].gold).slice(0, 80), reason: unreadable[0].reason })) : null);
  };

  draft.onChange(() => choices.forEach((sync) => sync()));
  return {
    root,
    clear() {
      choices.length = 0;
      replace(list);
      replace(golds);
    },
    show(report) {
      const focused = list.contains(document.activeElement) ? document.activeElement : null;
      const where = focused && [focused.closest("[data-choice]")?.dataset.choice, focused.dataset.value];
      this.clear();
      const found = report.findings ?? [];
      const lastUnusable = found.findLastIndex((finding) => finding.unusable);
      const rows = found.map((finding, at) => row(finding, at === lastUnusable ? choice(UNUSABLE, own.choose_unusable) : null));
      const { too_long: count = 0, room, too_long_rows: long = [] } = report.lengths ?? {};
      if (count) {
        const message = say(own.too_long, { count: grouped(count), room: grouped(room) });
        rows.unshift(row({ kind: "too_long", count, message, rows: long }, choice(TOO_LONG, own.choose_too_long)));
      }
      replace(list, rows.length ? rows : h("li", { data: { kind: "none" } }, own.nothing_found));
      if (where) list.querySelector(`[data-choice="${where[0]}"] [data-value="${where[1]}"]`)?.focus();
      replace(golds, (report.golds ?? []).map(gold));
    },
  };
}
