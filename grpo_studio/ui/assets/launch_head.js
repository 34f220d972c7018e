// The head of the form: where it starts from, what that is for, and the way back to it.

import { h, replace } from "./dom.js";
import { sourceLink } from "./launch_hints.js";

export function makeHead({ draft, words }) {
  const picker = h("select", { class: "launch-input", id: "launch-preset" });
  const reset = h("button", { type: "button", class: "button", onclick: () => draft.usePreset(draft.preset) }, words.reset);
  const about = makeAbout(words);
  const fillPicker = () => {
    const groups = [[words.builtin_presets, false], [words.own_presets, true]].map(([label, own]) => {
      const names = [...draft.presets.values()].filter((preset) => preset.own === own).map((preset) => preset.name);
      return names.length ? h("optgroup", { label }, names.map((name) => h("option", { value: name }, name))) : null;
    });
    replace(picker, groups);
    picker.value = draft.preset ?? "";
  };
  const refresh = () => {
    if (picker.options.length !== draft.presets.size || picker.value !== draft.preset) fillPicker();
    about.show(draft.presets.get(draft.preset)?.about ?? null);
    // Space for the button is kept, so that nothing moves with the first change.
    reset.classList.toggle("launch-unused", draft.isUntouched());
  };
  picker.addEventListener("change", () => draft.usePreset(picker.value));
  fillPicker();
  refresh();
  draft.onChange(refresh);
  return h("section", { class: "card launch-head" },
    h("div", { class: "launch-head-text" }, h("h1", {}, words.title), about.line),
    h("div", { class: "launch-head-side" },
      reset,
      h("div", { class: "launch-field" }, h("label", { class: "launch-label", for: "launch-preset" }, words.start_from), picker)),
    about.panel);
}

/** One line that says what a preset is for and what it needs, and the rest behind "more". */
function makeAbout(words) {
  const text = h("span", { class: "launch-about-text" });
  const panel = h("div", { class: "launch-about", id: "launch-about", hidden: true });
  const more = h("button", { type: "button", class: "launch-link launch-about-more", "aria-expanded": "false", "aria-controls": panel.id }, words.about.more);
  const line = h("p", { class: "launch-about-line" }, text, more);
  let shown; // the `about` that is drawn
  const open = (wanted) => {
    panel.hidden = !wanted;
    more.setAttribute("aria-expanded", String(wanted));
    more.textContent = wanted ? words.about.less : words.about.more;
  };
  more.addEventListener("click", () => open(panel.hidden));
  return {
    line,
    panel,
    show(about) {
      if (about === shown) return;
      shown = about;
      // The line keeps its place, so that the form does not move from preset to preset.
      line.classList.toggle("launch-unused", about === null);
      text.textContent = about ? `${about.title} · ${about.hardware}` : "";
      text.title = text.textContent;
      if (about === null) open(false);
      replace(panel, about && details(about, words));
    },
  };
}

function details({ purpose, hardware, sources = [] }, words) {
  const row = (label, content) => (content?.length ? h("div", {}, h("dt", {}, label), h("dd", {}, content)) : null);
  const links = sources.map(({ what, url }) => h("li", {}, sourceLink(what, url)));
  return h("dl", {},
    row(words.about.purpose, purpose), row(words.about.hardware, hardware),
    row(words.about.sources, links.length ? [h("ul", {}, links)] : []));
}
