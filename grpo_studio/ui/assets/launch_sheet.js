// On a narrow page the right panel is a sheet, opened by a bar that always shows the problems and Start.

import { h } from "./dom.js";

const NARROW = matchMedia("(max-width: 899px)");

/** @returns {root, status(text, wrong)} */
export function makeSheet({ panel, startButton, words }) {
  const text = h("span", { class: "launch-bar-text" }, words.checking);
  const toggle = h("button", { type: "button", class: "launch-bar-toggle", "aria-expanded": "false", "aria-controls": panel.id },
    text, h("span", { class: "launch-bar-more" }, words.before));
  const shade = h("div", { class: "launch-shade", hidden: true });
  const root = h("div", { class: "launch-bar" }, toggle, startButton);
  let open = false;
  const draw = () => {
    panel.classList.toggle("launch-open", open);
    panel.inert = NARROW.matches && !open;
    shade.hidden = !(open && NARROW.matches);
    toggle.setAttribute("aria-expanded", String(open));
  };
  const set = (wanted) => {
    open = wanted;
    draw();
  };
  toggle.addEventListener("click", () => set(!open));
  shade.addEventListener("click", () => set(false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !open) return;
    set(false);
    toggle.focus();
  });
  NARROW.addEventListener("change", draw);
  draw();
  return {
    nodes: [shade, root],
    close: () => set(false),
    status(line, wrong) {
      text.textContent = line;
      toggle.classList.toggle("launch-bar-wrong", wrong);
    },
  };
}
