// Ready prompt templates as chips: one fills the template, and the system prompt when it has one. Both stay free text.

import { h } from "./dom.js";

const TEMPLATE = "dataset.prompt_template";
const SYSTEM = "dataset.system_prompt";
const COUNTDOWN = "countdown"; // this template asks for an equation, which only that task wants

/** @returns {root, sync()} */
export function makeTemplates({ draft, words, described, setField }) {
  const ready = described.templates.map((item) => ({ ...item, template: plain(item.template) }));
  const systems = new Set(ready.map((item) => item.system_prompt).filter(Boolean));
  const buttons = ready.map((item) =>
    h("button", { type: "button", class: "launch-chip", title: [item.template, item.system_prompt].filter(Boolean).join("\n\n"), onclick: () => use(item) }, item.title));
  const use = (item) => {
    setField(TEMPLATE, item.template);
    // A system prompt of a person's own stays; one of another ready template goes with it.
    if (item.system_prompt) setField(SYSTEM, item.system_prompt);
    else if (systems.has(draft.get(SYSTEM))) setField(SYSTEM, null);
  };
  const sync = () => {
    const [template, system] = [plain(draft.get(TEMPLATE)), draft.get(SYSTEM) || null];
    ready.forEach((item, at) => {
      const same = item.template === template && (item.system_prompt ? item.system_prompt === system : !systems.has(system));
      buttons[at].setAttribute("aria-pressed", String(same));
      buttons[at].hidden = item.name === COUNTDOWN && !same && !String(draft.get("dataset.source")).includes(COUNTDOWN);
    });
  };
  sync();
  const label = h("span", { class: "launch-label" }, words.ready_templates);
  return { root: h("div", { class: "launch-chips launch-ready launch-span", role: "group", "aria-label": words.ready_templates }, label, buttons), sync };
}

/** The question alone is no template at all. */
function plain(template) {
  return template === null || template === undefined || template.trim() === "{prompt}" ? null : template;
}
