import { h, replace } from "./dom.js";

const GAP = 4;

/**
 * A button that opens a menu. `items` is asked each time: [{label, why, href, danger, run}]; what has a `why` cannot be
 * chosen now and says the reason. Escape, Tab and a click elsewhere close it; arrow keys move.
 */
export function menuButton({ label, items, words }) {
  const button = h("button", { class: "icon-button menu-button", type: "button", "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": label, title: label }, "⋯");
  let menu = null;
  button.addEventListener("click", (event) => { event.stopPropagation(); if (menu) shut(); else open(); });
  button.addEventListener("keydown", (event) => { if (event.key === "ArrowDown" && !menu) { event.preventDefault(); open(); } });

  async function open() {
    menu = h("div", { class: "menu", role: "menu", "aria-label": label, popover: "auto" }, h("p", { class: "menu-wait small" }, words.loading));
    const mine = menu;
    mine.addEventListener("toggle", (event) => { if (event.newState === "closed") gone(mine); });
    mine.addEventListener("keydown", onKey);
    mine.addEventListener("click", (event) => event.stopPropagation());
    document.querySelector(".studio").append(mine);
    mine.showPopover();
    button.setAttribute("aria-expanded", "true");
    place(mine);
    const found = await items();
    if (menu !== mine) return;
    replace(mine, found.map((item) => row(item)));
    place(mine);
    mine.querySelector(".menu-item")?.focus();
  }

  function row(item) {
    const off = Boolean(item.why);
    const content = [h("span", {}, item.label), off ? h("span", { class: "small muted" }, item.why) : null];
    const shared = { class: `menu-item${item.danger ? " danger" : ""}`, role: "menuitem", tabindex: "-1", "aria-disabled": off ? "true" : null };
    if (item.href && !off) return h("a", { ...shared, href: item.href }, content);
    return h("button", { ...shared, type: "button", onclick: () => { if (!off) { shut(); item.run(); } } }, content);
  }

  function onKey(event) {
    const rows = [...menu.querySelectorAll(".menu-item")];
    const at = rows.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (event.key === "Tab") shut();
    if (to === undefined || !rows.length) return;
    event.preventDefault();
    rows[(to + rows.length) % rows.length].focus();
  }

  /** Below the button, or above it where there is no room; never off the window. */
  function place(node) {
    const from = button.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = node;
    const { clientWidth, clientHeight } = document.documentElement;
    const below = from.bottom + GAP;
    const top = below + height > clientHeight - GAP ? Math.max(GAP, from.top - GAP - height) : below;
    node.style.left = `${Math.max(GAP, Math.min(from.right - width, clientWidth - width - GAP))}px`;
    node.style.top = `${top}px`;
  }

  function shut() {
    const inside = menu?.contains(document.activeElement);
    menu?.hidePopover();
    if (inside) button.focus({ preventScroll: true });
  }

  function gone(node) {
    const inside = node.contains(document.activeElement);
    node.remove();
    if (menu !== node) return;
    menu = null;
    button.setAttribute("aria-expanded", "false");
    if (inside && button.isConnected) button.focus({ preventScroll: true });
  }
  return button;
}
