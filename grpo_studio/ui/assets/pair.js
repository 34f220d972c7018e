import { faultBanner } from "./banner.js";
import { h, replace, say, setText } from "./dom.js";
import { lostLine } from "./frame.js";
import { buildDifference, buildSettings } from "./pair_difference.js";
import { buildFigures } from "./pair_figures.js";
import { buildSides, buildTiles, liveAddress } from "./pair_sides.js";
import { poll, within } from "./poll.js";

const UNFINISHED_MS = 300; // a long pair is compared in several looks

/** The page of two runs that differ in one setting: asks one question every two seconds, and gets what is new. */
export function start({ main, server, words, frame }) {
  const view = { pair: new URLSearchParams(location.search).get("pair"), cursor: null, sides: [] };
  const problem = faultBanner();
  const heading = h("h1", {}, words.title);
  const field = h("code", { class: "mono muted" });
  const about = h("p", { class: "muted small" });
  const sides = buildSides({ words, states: frame.states });
  const sentence = h("p", { class: "pair-sentence", role: "status" });
  const warnings = h("ul", { class: "pair-warnings small", hidden: true });
  const tiles = buildTiles(words);
  const figures = buildFigures({ words, onstep: (step) => open(step) });
  const difference = buildDifference(words);
  const settings = buildSettings(words);
  const nothing = h("section", { class: "card nothing", hidden: true }, h("h2", {}, words.none), h("p", { class: "muted" }, words.none_text), h("a", { class: "button primary", href: "./launch" }, words.none_link));
  const body = h("div", { style: { display: "contents" } },
    h("section", { class: "card pair-head" }, h("div", { class: "pair-title" }, heading, field), about, sides.node),
    h("section", { class: "card pair-measured" }, h("h2", { class: "pair-small-head" }, words.measured), sentence, warnings),
    tiles.node, figures.node, h("div", { class: "pair-two" }, difference.node, settings.node));
  replace(main, problem.node, nothing, body);
  body.style.display = "none";
  const polling = poll(tick, { line: lostLine(), lost: frame.lost });

  async function tick() {
    const news = await within(server.pair_tick({ pair: view.pair, cursor: view.cursor }));
    problem.show(news.error || "", h("a", { href: "./runs" }, words.to_runs));
    nothing.hidden = !news.empty;
    if (news.empty || news.error) { body.style.display = "none"; view.cursor = null; return; }
    view.cursor = news.cursor;
    if (!news.about) return;
    body.style.display = "contents";
    draw(news);
    if (news.measured && unfinished(news.measured)) setTimeout(polling.now, UNFINISHED_MS);
  }

  function draw({ about: told, sides: both, measured, figures: drawn, settings: rows, tensors, lost }) {
    view.sides = both;
    document.title = `${say(words.title, told)} · ${frame.name}`;
    if (view.pair !== told.pair) { view.pair = told.pair; remember(); }
    setText(heading, say(words.title, told));
    setText(field, told.field);
    if (about.dataset.kind !== told.kind) {
      about.dataset.kind = told.kind;
      replace(about, `${told.kind === "data" ? words.other_data : words.same_data} · ${words.not_bitwise} `, h("a", { href: "./memory" }, words.the_probe), ` ${words.is}`);
    }
    sides.update(both);
    if (drawn === undefined) return;
    setText(sentence, measured ? measured.steps ? measured.sentence : waiting(both) : alone(both));
    warn([...both.flatMap((side, place) => (lost[place] ? [`${side.side}: ${lost[place]}`] : [])), ...unlike(tensors), ...settingNotes(rows)], resident(tensors));
    tiles.update(measured);
    figures.update(drawn, told, measured);
    difference.update(measured, both, told);
    settings.update(rows);
  }

  /** Why there is nothing to compare yet. */
  function waiting(both) {
    const begun = both.filter((side) => side.step > 0);
    if (begun.length === 1) return say(words.one_begun, { side: begun[0].side, other: other(begun[0].side), state: frame.states[both.find((side) => side !== begun[0]).state] });
    return both.every((side) => side.ended) ? words.none_begun_ended : words.none_begun;
  }

  function alone(both) {
    const gone = both.find((side) => !side.here) ?? both.find((side) => side.state === "unreadable") ?? both[0];
    return say(gone.here ? words.unreadable : words.gone, { side: gone.side, run: gone.run });
  }

  const unlike = ([a, b]) => (a !== null && b !== null && a !== b ? [words.unlike_memory] : []);
  const resident = ([a, b]) => (a === false && b === false ? [words.resident] : []);

  function settingNotes(rows) {
    return rows && rows.some((row) => !row.meant) ? [words.more_differ] : rows && rows.length === 0 ? [words.none_differs] : [];
  }

  function warn(lines, asides) {
    const key = [...lines, ...asides].join("\n");
    if (warnings.dataset.key === key) return;
    warnings.dataset.key = key;
    warnings.hidden = key === "";
    replace(warnings, lines.map((line) => h("li", { class: "warned" }, line)), asides.map((line) => h("li", { class: "muted" }, line)));
  }

  /** A step of the charts opens in the run that has it. */
  function open(step) {
    const side = view.sides.find((one) => one.here && one.step >= step);
    if (side) location.assign(liveAddress(side.run, step));
  }

  function remember() {
    history.replaceState(history.state, "", `${location.pathname}?pair=${encodeURIComponent(view.pair)}`);
  }
}

const other = (side) => (side === "A" ? "B" : "A");
const unfinished = (measured) => measured.compared_upto < measured.steps && !measured.first_difference;
