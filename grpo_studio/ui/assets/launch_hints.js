// What people set a field to and why, behind a small button at the field, each with its source.

import { h, say } from "./dom.js";

const MARGIN = 12;

/** @returns {button, attach(root of the field)} or null for a field without hints */
export function makeHints(field, id, title, words) {
  const hints = field.hints ?? [];
  if (hints.length === 0) return null;
  const name = say(words.hints_for, { field: title });
  // It lies over what is below, so that nothing moves, and takes the focus, so that its text can be marked.
  const panel = h("div", { class: "launch-hints", id: `${id}-hints`, hidden: true, tabindex: "-1", role: "group", "aria-label": name },
    h("ul", {}, hints.map((hint) => h("li", {}, `${hint.text} `, sourceLink(hint.source, hint.url)))));
  const button = h("button", {
    type: "button", class: "launch-hint", "aria-expanded": "false", "aria-controls": panel.id, "aria-label": name, title: words.hints_note,
    onclick: () => show(panel.hidden),
  }, "?");
  const show = (open) => {
    panel.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (open) place(panel);
  };
  const attach = (root) => {
    root.classList.add("launch-has-hints");
    root.append(panel);
    root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || panel.hidden) return;
      event.stopPropagation();
      show(false);
      button.focus();
    });
    document.addEventListener("pointerdown", ({ target }) => panel.hidden || panel.contains(target) || target === button || show(false));
    root.addEventListener("focusout", ({ relatedTarget }) => relatedTarget && !root.contains(relatedTarget) && show(false));
  };
  return { button, attach };
}

/** Inside the window: one that would run off the right edge is moved to the left. */
function place(panel) {
  panel.style.removeProperty("--hints-left");
  const room = document.documentElement.clientWidth - MARGIN - panel.getBoundingClientRect().right;
  if (room < 0) panel.style.setProperty("--hints-left", `${Math.floor(room)}px`);
}

/** A link to another host, opened by a person only; text alone when its address is none. */
export function sourceLink(text, url) {
  if (!/^https:\/\//.test(url ?? "")) return h("span", { class: "launch-source" }, text);
  return h("a", { class: "launch-source", href: url, target: "_blank", rel: "noopener noreferrer" }, text);
}
