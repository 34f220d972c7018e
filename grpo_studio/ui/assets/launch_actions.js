// Start, Two that differ in…, Copy as command, Save as preset. A run is started once, however often a button is pressed.

import { h, say } from "./dom.js";
import { makePairButton } from "./launch_pair.js";
import { within } from "./poll.js";

const STARTING = "grpo-studio.launch.starting";

/** @returns {root, bar, allow(ok, reason)} `bar` holds the same Start button for the narrow page. */
export function makeActions(context) {
  const { server, draft, words } = context;
  const buttons = [startButton(words), startButton(words)];
  const reason = h("p", { class: "launch-reason", id: "launch-reason", role: "status" }, words.reason_checking);
  const fillBar = h("div", { class: "launch-progress-fill" });
  const progress = h("div", { class: "launch-progress", hidden: true }, fillBar);
  const name = h("input", {
    type: "text", class: "launch-input", id: "launch-name", maxlength: "100", autocomplete: "off",
    value: draft.name, placeholder: words.name_placeholder,
  });
  name.addEventListener("input", () => {
    draft.name = name.value;
    draft.save();
  });
  let allowed = false;
  let why = words.reason_checking;
  let busy = false;
  let also = null; // hears what is said here, while a dialog lies over it

  const draw = () => {
    for (const button of buttons) {
      button.disabled = busy || !allowed;
      button.textContent = busy ? words.starting : words.start;
    }
    if (!busy) reason.textContent = allowed ? words.reason_ready : why;
  };
  const say_ = (text, wrong = false) => {
    reason.textContent = text;
    reason.classList.toggle("launch-reason-wrong", wrong);
    also?.(text, wrong);
  };

  async function start(key, first) {
    if (busy) return;
    busy = true;
    draw();
    say_(words.starting_note);
    try {
      let answer = await first();
      while (!answer.run && !answer.pair && !answer.error) {
        say_(answer.message || words.starting_note);
        progress.hidden = !answer.fraction;
        fillBar.style.setProperty("width", `${Math.round(100 * (answer.fraction ?? 0))}%`);
        await new Promise((done) => setTimeout(done, 500));
        answer = await within(server.start_progress({ key }), 30000);
      }
      keepKey(null);
      if (answer.run) return location.assign(`./live?run=${encodeURIComponent(answer.run)}`);
      if (answer.pair) return location.assign(`./pair?pair=${encodeURIComponent(answer.pair)}`);
      failed(answer.error);
    } catch (error) {
      console.warn("the start got no answer", error);
      failed(words.start_lost);
    }
  }
  const failed = (line) => {
    busy = false;
    progress.hidden = true;
    draw();
    say_(line, true);
  };
  const begin = (call, tell = null) => {
    if (busy) return null;
    const key = `start-${Date.now()}-${Math.random().toString(36).slice(2)}`;
    keepKey(key);
    also = tell;
    return start(key, () => within(call(key), 60000));
  };
  const press = () => begin((key) => server.start_run({ key, data: draft.data, name: draft.name }));
  for (const button of buttons) button.addEventListener("click", press);
  // Coming back with the browser's Back button, the page is as it was left: in the middle of a start that is over.
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    busy = false;
    draw();
  });
  // A start that was under way when the page was loaded anew is followed to its end.
  const underWay = keptKey();
  if (underWay) start(underWay, () => within(server.start_progress({ key: underWay }), 30000));

  const extra = makeExtras({ server, draft, words }, makePairButton(context, begin));
  const root = h("div", { class: "launch-actions" },
    h("div", { class: "launch-name-row" }, h("label", { class: "launch-label", for: "launch-name" }, words.run_name), name),
    buttons[0], reason, progress, extra);
  return {
    root,
    barButton: buttons[1],
    allow(ok, text) {
      allowed = ok;
      why = text;
      reason.classList.remove("launch-reason-wrong");
      draw();
    },
  };
}

/** The key of a start under way survives a reload; a forbidden storage costs that and nothing else. */
function keepKey(key) {
  try {
    if (key) sessionStorage.setItem(STARTING, key);
    else sessionStorage.removeItem(STARTING);
  } catch (error) {
    console.warn("no storage for this session", error);
  }
}

function keptKey() {
  try {
    return sessionStorage.getItem(STARTING);
  } catch {
    return null;
  }
}

function startButton(words) {
  return h("button", { type: "button", class: "button primary launch-start", disabled: true, "aria-describedby": "launch-reason" }, words.start);
}

/** The quiet buttons; what those of this file have to say or ask appears below them. */
function makeExtras({ server, draft, words }, pairButton) {
  const below = h("div", { class: "launch-below", "aria-live": "polite" });
  const line = (text, wrong = false) => h("p", { class: `launch-reason${wrong ? " launch-reason-wrong" : ""}` }, text);
  const ask = async (call) => {
    try {
      return await within(call, 15000);
    } catch {
      return { error: words.lost };
    }
  };
  const copy = async () => {
    const answer = await ask(server.command_line({ preset: draft.preset, data: draft.data, name: draft.name }));
    if (answer.error) return below.replaceChildren(line(answer.error, true));
    const copied = await copyText(answer.command);
    const text = h("textarea", { class: "launch-input launch-command", readonly: true, rows: "3", "aria-label": words.copy_command }, answer.command);
    below.replaceChildren(text, line(copied ? words.copied : words.copy_by_hand));
    if (!copied) text.select();
  };
  const savePreset = () => {
    const name = h("input", { type: "text", class: "launch-input", id: "launch-preset-name", maxlength: "40", value: draft.name, autocomplete: "off" });
    const answerLine = h("div", { "aria-live": "polite" });
    let replaceIt = false;
    const save = h("button", { type: "submit", class: "button" }, words.save);
    const form = h("form", { class: "launch-save" },
      h("label", { class: "launch-label", for: "launch-preset-name" }, words.preset_name), h("div", { class: "launch-save-row" }, name, save), answerLine);
    name.addEventListener("input", () => {
      replaceIt = false;
      save.textContent = words.save;
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const answer = await ask(server.save_preset({ name: name.value, data: draft.data, replace: replaceIt }));
      if (answer.error) return answerLine.replaceChildren(line(answer.error, true));
      if (answer.exists) {
        replaceIt = true;
        save.textContent = words.replace;
        return answerLine.replaceChildren(line(say(words.preset_exists, { name: answer.exists })));
      }
      draft.addPreset({ name: answer.saved, own: true, settings: answer.settings });
      below.replaceChildren(line(say(words.saved, { name: answer.saved })));
    });
    below.replaceChildren(form);
    name.focus();
  };
  return h("div", {},
    h("div", { class: "launch-extras" },
      pairButton,
      h("button", { type: "button", class: "button", onclick: copy }, words.copy_command),
      h("button", { type: "button", class: "button", onclick: savePreset }, words.save_preset)),
    below);
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
