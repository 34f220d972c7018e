// The head of the form: where it starts from, and the way back to that.

import { h, replace } from "./dom.js";

export function makeHead({ draft, words }) {
  const picker = h("select", { class: "launch-input", id: "launch-preset" });
  const reset = h("button", { type: "button", class: "button", onclick: () => draft.usePreset(draft.preset) }, words.reset);
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
    // Space for the button is kept, so that nothing moves with the first change.
    reset.classList.toggle("launch-unused", draft.isUntouched());
  };
  picker.addEventListener("change", () => draft.usePreset(picker.value));
  fillPicker();
  refresh();
  draft.onChange(refresh);
  return h("section", { class: "card launch-head" },
    h("h1", {}, words.title),
    h("div", { class: "launch-head-side" },
      reset,
      h("div", { class: "launch-field" }, h("label", { class: "launch-label", for: "launch-preset" }, words.start_from), picker)));
}
