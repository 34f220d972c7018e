// Cards and folds: parts of the form that open and close, and stay as they were left over a reload.

import { h } from "./dom.js";

/** A numbered card with a one-line summary in its head. Returns {root, body, summary, open()}. */
export function makeCard(number, name, title, draft) {
  const id = `launch-card-${name}`;
  const summary = h("span", { class: "launch-summary" });
  const body = h("div", { class: "launch-body", id });
  const button = h(
    "button",
    { type: "button", class: "launch-card-head", "aria-controls": id },
    h("span", { class: "launch-number-badge", "aria-hidden": "true" }, String(number)),
    h("span", { class: "launch-card-title" }, title),
    summary,
    h("span", { class: "launch-chevron", "aria-hidden": "true" }),
  );
  const root = h("section", { class: "card launch-card", "aria-label": title }, h("h2", { class: "launch-card-heading" }, button), body);
  const fold = bindFold(button, body, draft, `card.${name}`, true);
  return { root, body, summary, open: fold.open };
}

/** A row of small disclosure buttons, each with a panel below the row, as in "▸ Algorithm ▸ Memory". */
export function makeFoldRow(label, draft) {
  const row = h("div", { class: "launch-folds", role: "group", "aria-label": label });
  const panels = h("div", { class: "launch-fold-panels" });
  const root = h("div", {}, row, panels);
  return {
    root,
    add(name, title, content) {
      const id = `launch-fold-${name}`;
      const mark = h("span", { class: "launch-fold-mark" });
      const button = h("button", { type: "button", class: "launch-fold", "aria-controls": id }, title, mark);
      const panel = h("section", { class: "launch-fold-panel", id, "aria-label": title }, h("h3", { class: "launch-fold-title" }, title), content);
      row.append(button);
      panels.append(panel);
      const fold = bindFold(button, panel, draft, `fold.${name}`, false);
      return { button, mark, open: fold.open };
    },
  };
}

export function bindFold(button, body, draft, key, openAtFirst) {
  const show = (open) => {
    button.setAttribute("aria-expanded", String(open));
    body.hidden = !open;
  };
  const set = (open) => {
    show(open);
    draft.folds[key] = open;
    draft.save();
  };
  button.addEventListener("click", () => set(body.hidden));
  show(draft.folds[key] ?? openAtFirst);
  return { open: () => body.hidden && set(true) };
}
