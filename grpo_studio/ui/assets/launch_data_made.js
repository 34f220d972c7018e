// The settings of data that is made in place, and the offer of the reward that fits it.

import { h, replace, say } from "./dom.js";
import { makeField } from "./launch_fields.js";
import { within } from "./poll.js";

const PARAMS = "dataset.params";

/** @returns {root, show(source)} `source` is null for data that is not made */
export function makeMade({ server, draft, words, described, index }) {
  const fields = h("div", { class: "launch-grid launch-three" });
  const offer = h("div", { class: "launch-offer" });
  const root = h("div", { class: "launch-made launch-span", hidden: true }, fields, offer);
  const known = new Map();
  const registered = [];
  let shown = null;
  let reward = null;

  async function asked(source) {
    try {
      const answer = await within(server.made_settings({ source, params: draft.get(PARAMS) ?? {} }), 60000);
      return answer.error ? null : answer;
    } catch (error) {
      console.warn("no settings of the data", error);
      return null;
    }
  }

  async function load(source) {
    const answer = await asked(source);
    if (answer) known.set(source, answer);
    if (source === shown) draw(answer ?? { fields: [], reward: null });
  }

  function draw(answer) {
    const controls = answer.fields.map((field) => makeField({ not_yet: null, ...field }, bindingOf(field, draft), words, {}));
    registered.splice(0).forEach((name) => index.forget(name));
    answer.fields.forEach((field, at) => {
      registered.push(`${PARAMS}.${field.name}`);
      index.register(registered.at(-1), controls[at]);
    });
    replace(fields, controls.map((control) => control.root));
    fields.hidden = controls.length === 0;
    reward = answer.reward;
    drawOffer();
  }

  /** Shown until the reward is among those of the draft. */
  function drawOffer() {
    const wanted = reward?.verifier;
    const there = (draft.data.rewards ?? []).some((item) => item.verifier === wanted && sameParams(item.params, reward.params));
    const exists = described.verifiers.some((verifier) => verifier.name === wanted);
    offer.hidden = !wanted || there || !exists;
    root.hidden = shown === null || (fields.hidden && offer.hidden);
    if (offer.hidden) return replace(offer);
    return replace(offer,
      h("span", {}, say(words.offer.text, { verifier: wanted })),
      h("button", { type: "button", class: "launch-chip", onclick: use }, say(words.offer.button, { verifier: wanted })));
  }

  /** The reward may want to know of the settings, which can have changed since it was offered. */
  async function use() {
    const now = (await asked(shown))?.reward ?? reward;
    const defaults = Object.fromEntries(described.form.reward_fields.map((field) => [field.name, structuredClone(field.default)]));
    draft.set("rewards", [{ ...defaults, ...now }]);
  }

  draft.onChange((field) => {
    if (field === null || field === "rewards") drawOffer();
  });
  return {
    root,
    show(source) {
      if (source === shown) return undefined;
      shown = source;
      reward = null;
      replace(fields);
      fields.hidden = true;
      drawOffer();
      if (source === null) return undefined;
      return known.has(source) ? draw(known.get(source)) : load(source);
    },
  };
}

function sameParams(params, wanted) {
  return Object.entries(wanted).every(([name, value]) => JSON.stringify(params?.[name]) === JSON.stringify(value));
}

/** A setting that is as declared is left out of the draft. */
function bindingOf(field, draft) {
  return {
    get: () => draft.get(PARAMS)?.[field.name] ?? field.default,
    set(value) {
      const params = { ...draft.get(PARAMS) };
      if (JSON.stringify(value) === JSON.stringify(field.default) || (value === "" && field.default !== "")) delete params[field.name];
      else params[field.name] = value;
      draft.set(PARAMS, params);
    },
    isPreset: () => draft.get(PARAMS)?.[field.name] === undefined,
  };
}
