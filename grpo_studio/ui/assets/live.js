import { makeActions } from "./actions_run.js";
import { bannerHelp, buildLineage, buildStripActions } from "./live_actions.js";
import { faultBanner } from "./banner.js";
import { h, replace, say } from "./dom.js";
import { lostLine } from "./frame.js";
import { buildCharts } from "./live_charts.js";
import { buildEvents } from "./live_events.js";
import { buildGroups } from "./live_groups.js";
import { buildInspector } from "./live_inspector.js";
import { buildBanner, buildStrip, buildTiles } from "./live_top.js";
import { poll, within } from "./poll.js";

const LIST_EVERY = 30000;

/** The Live page: asks one question every two seconds, hands each part of the answer to the part of the page it is for. */
export function start({ main, server, words, actions: own, frame }) {
  const asked = new URLSearchParams(location.search);
  const page = {
    run: asked.get("run"), about: null, cursor: null, strip: null, rate: null,
    step: null, strips: null, group: null, last: 0, runs: [],
    following: !asked.get("step"), wantedStep: whole(asked.get("step")), wantedPlace: whole(asked.get("group")), turn: 0,
  };
  const ask = (name, request = {}) => within(server[name]({ run: page.run, ...request }));

  const shown = () => ({ id: page.run, name: page.about.name });
  const actions = makeActions({ server, words: own, frame, report: (text) => trouble.show(text), changed: acted });
  const strip = buildStrip({ words, states: frame.states, onstop: stop, onchoose: choose, actions: buildStripActions({ words, own, actions, run: shown, report: (text) => trouble.show(text) }) });
  const lineage = buildLineage(words, own);
  const banner = buildBanner(words, () => events.openLog(), bannerHelp({ words, actions, run: shown }));
  const problem = faultBanner(); // what the newest answer lacks: goes with the next one
  const damage = faultBanner(); // what of the record is lost
  const trouble = faultBanner(); // what an action did not do: goes with the next action
  const tiles = buildTiles(words);
  const charts = buildCharts({ words, onstep: (step) => pick(step) });
  const inspector = buildInspector({ words, onmove: move, onread: pin, fulltext: fullText });
  const groups = buildGroups({ words, inspector: inspector.node, onstep: (step) => pick(step), ongroup: openGroup, onnewest: follow });
  const events = buildEvents({ words, readLog: () => ask("live_log"), onlost: lost });
  const nothing = h("section", { class: "card nothing", hidden: true }, h("h2", {}, words.empty), h("p", { class: "muted" }, words.empty_text), h("a", { class: "button primary", href: "./launch" }, words.empty_link));
  const rest = h("div", { style: { display: "contents" } }, lineage.node, banner.node, tiles.node, charts.top, groups.node, charts.multiples, events.nodes);
  const body = h("div", { style: { display: "contents" } }, strip.node, rest);
  body.hidden = true;
  replace(main, problem.node, trouble.node, damage.node, nothing, body);
  document.addEventListener("keydown", onKey);
  let listed = 0;
  const polling = poll(tick, { line: lostLine(), lost: frame.lost });

  async function tick() {
    const turn = page.turn;
    const news = await ask("live_tick", { cursor: page.cursor });
    if (turn !== page.turn) return;
    problem.show(news.error ? say(words.load_failed, { error: news.error }) : "", h("a", { href: "./live" }, words.not_found));
    nothing.hidden = !news.empty;
    body.style.display = news.empty ? "none" : "contents";
    if (news.empty || news.error) return;
    if (!page.about && !news.about) { page.cursor = null; return; }
    page.cursor = news.cursor;
    if (news.about) meet(news.about);
    if (news.strip) { page.strip = news.strip; page.rate = news.charts?.tokens_per_s ?? page.rate; strip.update(page.strip, page.rate); banner.update(page.strip); damage.show(page.strip.lost); }
    if (news.charts) {
      page.about.seen = news.strip.step > 0;
      page.about.updated = news.charts.updated;
      tiles.update(news.charts.tiles, news.strip.ended, page.run);
      charts.facts(page.about, news.charts.facts);
      charts.update(news.charts.figures, page.about, news.strip.ended);
    }
    if (news.memory) { charts.update({ memory: news.memory }, page.about, news.strip.ended); charts.memoryFacts(news.memory_facts); }
    if (news.events) events.add(news.events, news.events_total);
    if (news.groups) { groups.map(news.groups, news.strip.ended); page.last = news.groups.last; }
    await advance();
    if (Date.now() - listed > LIST_EVERY && !strip.choosing()) await listRuns();
  }

  /** A run is seen for the first time on this page. */
  function meet(about) {
    page.about = about;
    page.run = about.id;
    document.title = `${about.name} · ${frame.name}`;
    body.hidden = false;
    rest.style.display = "contents";
    showRuns();
    lineage.show(about.parent);
    charts.about(about);
    groups.clear(); inspector.clear(); events.clear();
    remember();
  }

  /** Move to the newest step while following it; on the first tick, to the step that the address names. */
  async function advance() {
    if (!page.last) return;
    if (page.step === null) {
      await showStep(page.wantedStep ?? page.last, page.wantedPlace);
    } else if (page.following && page.step !== page.last && !inspector.node.matches(":hover, :focus-within") && !groups.rows.matches(":focus-within")) {
      await showStep(page.last);
    }
  }

  async function showStep(step, place = null) {
    const turn = page.turn;
    const wanted = (page.asking = step);
    const data = await ask("live_step", { step });
    if (turn !== page.turn || wanted !== page.asking || complain(data.error) || data.step === null) return;
    page.step = data.step;
    page.strips = data.groups;
    const chosen = data.groups[(place ?? 0) - 1] ?? data.groups.reduce((best, one) => ((one.spread ?? -1) > (best?.spread ?? -1) ? one : best), null);
    groups.strips(data, chosen?.id, page.following);
    if (chosen) await openGroup(chosen.id, false);
  }

  async function openGroup(id, byHand) {
    const turn = page.turn;
    page.group = id;
    groups.mark(id);
    if (byHand) pin();
    const detail = await attempt(() => ask("live_group", { group: id }), byHand);
    if (!detail) return;
    if (turn !== page.turn || page.group !== id || complain(detail.error)) return;
    inspector.show(detail, page.about, placeOf(id) + 1, page.strips.length);
    if (byHand) remember();
  }

  const placeOf = (id) => page.strips.findIndex((one) => one.id === id);

  function move(by) {
    if (!page.strips?.length) return;
    const place = (placeOf(page.group) + by + page.strips.length) % page.strips.length;
    openGroup(page.strips[place].id, true);
  }

  /** A step was chosen by hand: stay there, unless it is the newest. */
  async function pick(step) {
    if (!page.last) return;
    page.following = step >= page.last;
    await attempt(() => showStep(step, page.step === null ? null : placeOf(page.group) + 1));
    remember();
  }

  /** Somebody reads: new steps no longer change what is shown. */
  function pin() {
    page.following = false;
    if (page.strips) groups.strips({ step: page.step, groups: page.strips }, page.group, false);
    remember();
  }

  async function follow() {
    page.following = true;
    await attempt(() => showStep(page.last));
    remember();
  }

  function remember() {
    const address = new URLSearchParams(location.search);
    address.set("run", page.run);
    for (const key of ["step", "group"]) address.delete(key);
    const pending = page.step === null && !page.following;
    if (pending) { address.set("step", page.wantedStep); if (page.wantedPlace) address.set("group", page.wantedPlace); }
    else if (!page.following) { address.set("step", page.step); address.set("group", placeOf(page.group) + 1); }
    history.replaceState(history.state, "", `?${address}`);
  }

  /** The picker's list is fetched ahead: a native list that is open takes no new options. */
  async function listRuns() {
    listed = Date.now();
    const answer = await ask("live_runs");
    if (!answer.runs) return;
    page.runs = answer.runs;
    showRuns();
  }

  function showRuns() {
    if (page.about) strip.options(page.runs.some((run) => run.id === page.run) ? page.runs : [page.about, ...page.runs], page.about);
  }

  function choose(id) {
    if (id === page.run) return;
    // Nothing of the run before may stand under the new one's name.
    rest.style.display = "none";
    strip.blank();
    for (const one of [problem, trouble, damage]) one.show("");
    Object.assign(page, { run: id, about: null, strip: null, cursor: null, step: null, strips: null, group: null, last: 0, following: true, wantedStep: null, wantedPlace: null, rate: null, turn: page.turn + 1 });
    polling.now();
  }

  async function stop() {
    strip.asked(true);
    const answer = await attempt(() => ask("live_stop"));
    if (answer?.error) trouble.show(say(words.stop_failed, { error: answer.error }));
    if (!answer || answer.error) strip.asked(false);
    polling.now();
  }

  /** Something was done to the run; a run that was deleted is left for the list. */
  function acted(deleted = null) {
    if (deleted === page.run) location.href = "./runs";
    else polling.now();
  }

  /** The whole text, or null when there is no answer. */
  async function fullText(kind, id) {
    const answer = await attempt(() => ask("live_text", { kind, id }));
    return answer ? (answer.text ?? answer.error) : null;
  }

  /** An action that a person asked for: a lost connection is said, and stays said until the next action. */
  async function attempt(action, byHand = true) {
    if (byHand) trouble.show("");
    try {
      return await action();
    } catch (error) {
      if (!byHand) throw error;
      lost(error);
      return null;
    }
  }

  function lost(error) {
    console.warn("no answer", error);
    trouble.show(frame.lost);
  }

  function complain(error) {
    if (error) trouble.show(say(words.load_failed, { error }));
    return Boolean(error);
  }

  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, [contenteditable]")) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") { event.preventDefault(); move(event.key === "ArrowLeft" ? -1 : 1); }
  }
}

function whole(text) {
  return text && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
