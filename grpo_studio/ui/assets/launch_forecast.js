// "Memory: forecast, peak by phase" on the Launch page: asked for beside the check, after the same pause; neither waits
// for the other, and Start waits for neither bar.

import { h, replace, say } from "./dom.js";
import { makeForecastBars } from "./forecast_bars.js";
import { bytes } from "./format.js";
import { PAGE } from "./launch_check.js";
import { memoryAddress } from "./launch_memory_link.js";
import { within } from "./poll.js";

const PAUSE_MS = 400;
const AGAIN_MS = 5000;
const CARD = "grpo-studio.forecast.card";
const NO_CARD = "none"; // as in memory_forecast.py: a run on the machine's processor

/**
 * @param context {server, draft, words, forecastWords, titleOf, setField(name, value)}
 * @returns {root, soon(), now(), consider(report)} `consider` is told of each check: a scan knows how long prompts are
 */
export function makeForecast({ server, draft, words, forecastWords, titleOf, setField }) {
  const own = words.memory;
  const apply = (settings) => Object.entries(settings).forEach(([field, value]) => setField(field, value));
  const bars = makeForecastBars(forecastWords, { apply, titleOf });
  const card = makeCardPicker(server, own, () => now());
  const more = h("a", { class: "small", href: "./memory" }, own.open);
  const root = h("section", { class: "launch-forecast", "aria-label": own.title },
    h("div", { class: "launch-forecast-head" }, h("h3", {}, own.title), h("span", { class: "launch-forecast-sub" }, own.sub), card.root),
    bars.root, more);
  let newest = 0;
  let timer = null;
  let due = false; // there is a question that was not put yet
  let asking = false; // one is on its way; the next waits for its answer, so that typing piles up nothing
  let prompt = null; // tokens of the longest prompt, once a scan has counted them

  const put = () => {
    due = true;
    ask();
  };
  const soon = (pause = PAUSE_MS) => {
    clearTimeout(timer);
    newest += 1;
    bars.wait();
    timer = setTimeout(put, pause);
  };
  const now = () => soon(0);

  async function ask() {
    if (asking || !due) return;
    [asking, due] = [true, false];
    more.href = memoryAddress(draft, card.chosen(), prompt);
    const ticket = newest;
    const answer = await answerTo({ data: structuredClone(draft.data), card: card.chosen(), page: PAGE, ticket });
    asking = false;
    if (ticket === newest && !due) show(answer);
    ask();
  }

  async function answerTo(question) {
    try {
      return await within(server.launch_forecast(question), 120000);
    } catch (error) {
      console.warn("no answer to the forecast", error);
      return { lost: true };
    }
  }

  function show(answer) {
    if (answer.lost) {
      bars.fail(own.lost);
      timer = setTimeout(put, AGAIN_MS);
    } else if (answer.error) bars.fail(answer.error);
    else if (answer.unsound) bars.wait(own.unsound);
    else if (answer.forecast) bars.show(answer.forecast, { backend: answer.backend });
  }

  return {
    root,
    soon,
    now,
    consider(report) {
      const longest = report.scan?.lengths?.longest ?? null;
      if (longest === prompt) return;
      prompt = longest;
      now();
    },
  };
}

/** What the bars are held against: this machine's card, or one of the table; the choice is kept in the browser. */
function makeCardPicker(server, own, changed) {
  const select = h("select", { class: "launch-input", "aria-label": own.against });
  const root = h("div", { class: "launch-forecast-card" }, select);
  let chosen = kept();
  const option = (value, text) => h("option", { value, selected: value === (chosen ?? "") }, text);
  const fill = ({ own: mine, machine = null, usual, table }) => {
    const known = table.some((row) => row.name === chosen) || (machine && chosen === NO_CARD);
    if (!known) chosen = mine ? null : usual;
    const here = mine ?? machine;
    replace(select,
      here && option(mine ? "" : NO_CARD, say(own.here, { card: here.name, size: bytes(here.bytes, 2) })),
      table.map((row) => option(row.name, say(row.name.includes(`${row.gigabytes}GB`) ? "{name}" : own.of_table, { name: row.name, size: row.gigabytes }))));
    select.value = chosen ?? "";
  };
  select.addEventListener("change", () => {
    chosen = select.value || null;
    keep(chosen);
    changed();
  });
  within(server.forecast_cards({}), 30000).then((answer) => (answer.error ? null : fill(answer))).catch((error) => {
    console.warn("no list of cards", error);
    root.hidden = true; // the server's own choice stays
  });
  return { root, chosen: () => chosen };
}

function kept() {
  try {
    return localStorage.getItem(CARD);
  } catch {
    return null;
  }
}

/** A forbidden storage costs the choice at the next visit, nothing else. */
function keep(name) {
  try {
    if (name === null) localStorage.removeItem(CARD);
    else localStorage.setItem(CARD, name);
  } catch (error) {
    console.warn("no storage", error);
  }
}
