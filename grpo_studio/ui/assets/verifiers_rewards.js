// The rewards that the bench judges with: each a verifier, its weight and its params.

import { h, replace, say } from "./dom.js";
import { makeField, paramFields } from "./verifiers_fields.js";
import { prose } from "./verifiers_score.js";

export function makeRewards(context, draft, form, changed) {
  const { words } = context;
  const list = h("div", { class: "v-rewards" });
  const adder = h("select", { class: "field", "aria-label": words.add_reward, onchange: () => { if (adder.value) add(adder.value, {}); adder.value = ""; } });
  const root = h("div", {}, list, adder);
  const weightField = form.reward_fields.find((field) => field.name === "weight");

  function draw() {
    replace(list, draft.rewards.map(row));
    replace(adder, h("option", { value: "" }, words.add_reward), context.catalogue.verifiers.map((one) => h("option", { value: one.name }, one.name)));
  }

  /** A verifier that is there already gets a name of its own, as two rewards may not share one. */
  function add(verifier, params) {
    const taken = new Set(draft.rewards.map((reward) => reward.name || reward.verifier));
    let name = null;
    for (let count = 2; taken.has(name ?? verifier); count += 1) name = `${verifier}_${count}`;
    draft.rewards.push({ verifier, name, weight: 1, params: { ...params } });
    changed();
    draw();
  }

  function row(reward) {
    const spec = context.find(reward.verifier);
    const weight = makeField({ ...weightField, help: "" }, { value: reward.weight, changed: (value) => { reward.weight = value; changed(); } }, words);
    weight.input.setAttribute("aria-label", say(words.weight_of, { name: reward.name || reward.verifier }));
    const params = spec ? paramFields(spec, reward.params ?? {}, (next) => { reward.params = next; changed(); }, words) : [];
    const remove = h("button", { type: "button", class: "button quiet", "aria-label": say(words.remove_named, { name: reward.name || reward.verifier }),
      onclick: () => { draft.rewards.splice(draft.rewards.indexOf(reward), 1); changed(); draw(); } }, words.remove);
    const lacks = spec?.params.some((param) => param.required && !(param.name in (reward.params ?? {})));
    return h("div", { class: "v-reward" },
      h("div", { class: "v-reward-line" },
        h("div", {}, h("b", {}, reward.name || reward.verifier), h("div", { class: spec ? "muted small" : "v-fault small" }, spec ? prose(spec.purpose) : say(words.no_such, { name: reward.verifier }))),
        weight.root, remove),
      params.length ? h("details", { class: "v-more", open: lacks || null }, h("summary", {}, words.params), h("div", { class: "v-fields" }, params.map((field) => field.root))) : null);
  }

  let known = "";
  function catalogueChanged() {
    const now = JSON.stringify(context.catalogue.verifiers);
    if (now !== known) draw();
    known = now;
  }

  draw();
  return { root, add, catalogueChanged };
}
