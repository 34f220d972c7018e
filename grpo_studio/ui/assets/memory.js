import { faultBanner } from "./banner.js";
import { h, replace } from "./dom.js";
import { lostLine } from "./frame.js";
import { address, fromAddress, requestOf } from "./memory_address.js";
import { buildForecast } from "./memory_forecast.js";
import { buildCards, buildPairs } from "./memory_more.js";
import { buildProbe } from "./memory_probe.js";
import { buildSource } from "./memory_source.js";
import { poll, within } from "./poll.js";

const EVERY_MS = 4000;
const COLD_MS = 60000; // a first forecast of a large model, on a machine that also trains

/** The Memory page: what it looks at stands in its address; forecast, probe, pairs and the cards below. */
export async function start({ main, server, words, forecast: says, frame }) {
  const view = { ...fromAddress(), version: null, turn: 0, look: null };
  const page = Math.random().toString(36).slice(2);
  const trouble = faultBanner();
  document.title = `${words.title} · ${frame.name}`;
  replace(main, trouble.node, h("p", { class: "muted", role: "status" }, words.reading));
  const about = await within(server.memory_about({})).catch(() => ({ error: frame.lost }));
  if (about.error) { trouble.show(about.error); return; }

  const source = buildSource({ words, about, view, onchange: changed });
  const forecast = buildForecast({ words, says, about, onapply: apply });
  const probe = buildProbe({ words, server, frame, about, request: () => requestOf(view), onchoose: choose, onmade: made });
  const pairs = buildPairs(words, frame.states);
  replace(main, trouble.node, source.node, forecast.node, probe.node, pairs.node, buildCards(words, about));
  const polling = poll(tick, { every: EVERY_MS, line: lostLine(), lost: frame.lost });
  look();

  /** Something else is looked at: the address names it, and what is known of the one before is paler until it comes. */
  function changed(change) {
    Object.assign(view, change);
    address(view);
    look();
    if ("run" in change) { view.version = null; polling.now(); }
  }

  /** A change that the forecast suggests. */
  function apply(settings) {
    for (const [field, value] of Object.entries(settings)) view.set.set(field, value === null ? "" : String(value));
    changed({});
  }

  async function look() {
    const turn = ++view.turn;
    const ask = async (name, ms) => {
      const answer = await within(server[name]({ ...requestOf(view), page, ticket: turn }), ms).catch(() => ({ error: frame.lost }));
      return turn === view.turn && !answer.superseded ? answer : null;
    };
    forecast.wait();
    const found = await ask("memory_look");
    if (!found) return;
    view.look = found.error ? null : found;
    trouble.show(found.error || "", h("a", { href: "./memory" }, words.start_over));
    source.show(found);
    probe.about(view.look);
    if (found.error || found.problems.length) { forecast.fail(found.error ? words.no_source : words.mend_first); return; }
    const answer = await ask("memory_forecast", COLD_MS);
    if (!answer) return;
    forecast.show(answer, view);
    if (answer.error) return;
    const lines = await ask("memory_lines", COLD_MS);
    if (lines) forecast.lines(lines, answer.card);
  }

  async function tick() {
    const answer = await within(server.memory_tick({ run: view.run, probe: view.probe, version: view.version }));
    if (answer.error) { if (view.look) trouble.show(answer.error); return; }
    if (!answer.probes) return;
    view.version = answer.version;
    probe.show(answer);
    pairs.show(answer.pairs);
    forecast.measured(answer.measured);
  }

  function choose(id) {
    Object.assign(view, { probe: id, version: null });
    address(view);
    polling.now();
  }

  /** A probe of this page is done: it is what is shown. */
  function made(id) {
    choose(id);
  }
}
