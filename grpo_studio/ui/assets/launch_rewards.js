// Card 3: the verifiers of the run, each with its weight and the parameters of its own signature.

import { h, replace, say, setText } from "./dom.js";
import { makeField } from "./launch_fields.js";
import { bindFold, makeCard } from "./launch_folds.js";

export function makeRewardsCard(context, number, section) {
  const { draft, words, described, index } = context;
  const card = makeCard(number, section.name, section.title, draft);
  const list = h("div", { class: "launch-rewards" });
  const problem = h("p", { class: "launch-problem", hidden: true });
  const adder = makeAdder(described.verifiers, words, (name) => {
    draft.set("rewards", [...(draft.data.rewards ?? []), newReward(name, described, draft.data.rewards ?? [])]);
  });
  card.body.append(list, problem, adder.root);
  if (described.failures.length) card.body.append(failureList(described.failures, words));

  let built = "";
  let rows = [];
  const rebuild = () => {
    index.forget("rewards");
    index.register("rewards", listControl(adder, problem), card.open);
    rows = (draft.data.rewards ?? []).map((reward, at) => makeRow(context, card, at));
    replace(list, rows.map((row) => row.root));
    list.hidden = rows.length === 0;
    built = shapeOf(draft);
    context.redistribute();
  };
  rebuild();
  // A new preset, or a row more or less, changes the rows; a value in them does not.
  const refresh = () => (built === shapeOf(draft) ? rows.forEach((row) => row.refresh()) : rebuild());
  return { ...card, name: section.name, refresh };
}

function shapeOf(draft) {
  return JSON.stringify([draft.preset, (draft.data.rewards ?? []).map((reward) => reward.verifier)]);
}

function listControl(adder, problem) {
  return {
    focus: () => adder.button.focus(),
    root: adder.root,
    showProblems(problems) {
      problem.hidden = problems.length === 0;
      problem.textContent = problems.map(problemText).join(" · ");
    },
  };
}

/** A verifier that is there already gets a name of its own, as two rewards may not share one. */
function newReward(name, described, others) {
  const defaults = Object.fromEntries(described.form.reward_fields.map((field) => [field.name, structuredClone(field.default)]));
  const taken = new Set(others.map((reward) => reward.name || reward.verifier));
  let label = null;
  for (let count = 2; taken.has(label ?? name); count += 1) label = `${name}_${count}`;
  return { ...defaults, verifier: name, name: label };
}

function makeRow(context, card, at) {
  const { draft, words, described, index } = context;
  const reward = draft.data.rewards[at];
  const spec = described.verifiers.find((verifier) => verifier.name === reward.verifier);
  const path = `rewards.${at}`;
  const fields = Object.fromEntries(described.form.reward_fields.map((field) => [field.name, field]));
  const weight = makeField(fields.weight, bindingOf(draft, at, "weight"), words, { help: "" });
  weight.input.setAttribute("aria-label", say(words.weight_of, { name: reward.verifier }));
  const details = h("div", { class: "launch-grid launch-three launch-reward-details", id: `launch-reward-${at}` });
  const open = h("button", { type: "button", class: "launch-link", "aria-controls": details.id }, words.settings);
  const missing = spec?.params.some((param) => param.required && !(param.name in (reward.params ?? {}))) ?? false;
  const fold = bindFold(open, details, draft, `reward.${at}.${reward.verifier}`, missing);
  const reveal = () => {
    card.open();
    fold.open();
  };
  const remove = h("button", {
    type: "button",
    class: "launch-link",
    "aria-label": say(words.remove_named, { name: reward.verifier }),
    onclick: () => draft.set("rewards", draft.data.rewards.filter((_, other) => other !== at)),
  }, words.remove);
  const params = paramControls(spec, at, draft, words);
  details.append(...params.map((control) => control.root));
  const label = makeField(fields.name, bindingOf(draft, at, "name"), words, { placeholder: reward.verifier });
  index.register(`${path}.name`, label, reveal);
  details.append(label.root);
  index.register(`${path}.weight`, weight, card.open);
  const alias = h("div", { class: "launch-reward-alias" });
  const problem = h("p", { class: "launch-problem", hidden: true });
  const ofParams = h("p", { class: "launch-problem", hidden: true });
  const root = h("div", { class: "launch-reward" },
    h("div", { class: "launch-reward-line" },
      h("div", {}, h("div", { class: "launch-reward-name" }, reward.verifier), alias),
      h("div", { class: "launch-reward-purpose" }, spec ? spec.purpose.replaceAll("`", "") : words.unknown_verifier),
      weight.root,
      h("div", { class: "launch-reward-actions" }, open, remove)),
    problem, ofParams, details);
  index.register(`${path}.params`, paramsControl(params, root, ofParams, weight), reveal);
  index.register(path, rowControl(root, problem, weight), card.open);
  const refresh = () => setText(alias, draft.get(`${path}.name`) ?? "");
  refresh();
  return { root, refresh };
}

/** The check speaks of params as a whole; a message that quotes one is shown beside that one. */
function paramsControl(controls, root, problem, weight) {
  const quoted = (item) => controls.find((control) => item.message.includes(`'${control.param}'`));
  const row = rowControl(root, problem, weight);
  let first = controls[0] ?? row;
  return {
    root,
    focus: () => first.focus(),
    sync: () => controls.forEach((control) => control.sync()),
    showProblems(problems) {
      for (const control of controls) control.showProblems(problems.filter((item) => quoted(item) === control));
      const loose = problems.filter((item) => !quoted(item));
      row.showProblems(loose);
      first = problems.map(quoted).find(Boolean) ?? controls[0] ?? row;
    },
  };
}

function problemText(item) {
  return [item.message, item.fix].filter(Boolean).join(": ");
}

function rowControl(root, problem, weight) {
  return {
    root,
    focus: () => weight.focus(),
    showProblems(problems) {
      problem.hidden = problems.length === 0;
      problem.textContent = problems.map(problemText).join(" · ");
    },
  };
}

function bindingOf(draft, at, key) {
  const path = `rewards.${at}.${key}`;
  return { get: () => draft.get(path), set: (value) => draft.set(path, value), isPreset: () => asInPreset(draft, at, key) };
}

/** A reward that the preset does not have is new as a whole: then nothing in it counts as changed. */
function asInPreset(draft, at, key) {
  const before = draft.presets.get(draft.preset)?.settings.rewards?.[at];
  const now = draft.data.rewards[at];
  if (!now || before?.verifier !== now.verifier) return true;
  const [top, param] = key.split(".");
  const value = (reward) => JSON.stringify(param ? reward[top]?.[param] : reward[top]);
  return value(before) === value(now);
}

/** Parameters as fields; one that is as the verifier declares it is left out of the settings. */
function paramControls(spec, at, draft, words) {
  return (spec?.params ?? []).map((param) => {
    const place = `rewards.${at}.params`;
    const binding = {
      get: () => draft.get(place)?.[param.name] ?? param.default,
      set(value) {
        const params = { ...draft.get(place) };
        if (!param.required && JSON.stringify(value) === JSON.stringify(param.default)) delete params[param.name];
        else if (param.required && value === "") delete params[param.name];
        else params[param.name] = value;
        draft.set(place, params);
      },
      isPreset: () => asInPreset(draft, at, `params.${param.name}`),
    };
    const options = { placeholder: param.required ? words.required : words.empty };
    return Object.assign(makeField(param, binding, words, options), { param: param.name });
  });
}

/** "+ Add a verifier": a button that opens the list of all that were found. */
function makeAdder(verifiers, words, add) {
  const id = "launch-adder";
  const button = h("button", { type: "button", class: "launch-link launch-add", "aria-expanded": "false", "aria-controls": id }, words.add_verifier);
  const menu = h("div", { class: "launch-menu", id, role: "group", "aria-label": words.add_verifier, hidden: true });
  const show = (open) => {
    menu.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (open) menu.querySelector("button")?.focus();
  };
  menu.append(...verifiers.map((verifier) =>
    h("button", {
      type: "button",
      class: "launch-menu-item",
      onclick: () => {
        show(false);
        add(verifier.name);
        button.focus();
      },
    }, h("b", {}, verifier.name), h("span", {}, verifier.purpose.replaceAll("`", "")))));
  if (verifiers.length === 0) menu.append(h("p", { class: "launch-help" }, words.no_verifiers));
  button.addEventListener("click", () => show(menu.hidden));
  const root = h("div", { class: "launch-adder" }, button, menu);
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || menu.hidden) return;
    event.stopPropagation();
    show(false);
    button.focus();
  });
  return { root, button };
}

function failureList(failures, words) {
  const rows = failures.map((failure) => h("li", {}, h("b", {}, failure.file), ` ${failure.message}`));
  return h("details", { class: "launch-failures" },
    h("summary", {}, say(failures.length === 1 ? words.one_failure : words.many_failures, { count: failures.length })),
    h("ul", {}, rows));
}
