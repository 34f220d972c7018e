import { h } from "./dom.js";

/** A row of tabs by the pattern of the ARIA guide: the arrow keys move between them, one is in the tab order. */
export function makeTabs({ label, names, panels, chosen }) {
  const keys = Object.keys(panels);
  const tabs = keys.map((key) => h("button", {
    type: "button", class: "v-tab", role: "tab", id: `v-tab-${key}`, "aria-controls": `v-panel-${key}`,
    onclick: () => { show(key); chosen(key); },
  }, names[key]));
  const bar = h("div", { class: "v-tabs", role: "tablist", "aria-label": label, onkeydown: move }, tabs);
  const boxes = keys.map((key) => h("div", { class: "v-panel", role: "tabpanel", id: `v-panel-${key}`, "aria-labelledby": `v-tab-${key}` }, panels[key].root));
  const root = h("div", {}, bar, boxes);

  function show(key) {
    keys.forEach((other, place) => {
      tabs[place].setAttribute("aria-selected", String(other === key));
      tabs[place].tabIndex = other === key ? 0 : -1;
      boxes[place].hidden = other !== key;
    });
  }

  function move(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = tabs.indexOf(document.activeElement);
    if (!by || at < 0) return;
    event.preventDefault();
    const next = tabs[(at + by + tabs.length) % tabs.length];
    next.focus();
    next.click();
  }

  return { root, show };
}
