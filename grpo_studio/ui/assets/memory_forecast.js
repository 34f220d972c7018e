import { Chart } from "./chart.js";
import { h, say, setText, term } from "./dom.js";
import { makeForecastBars } from "./forecast_bars.js";
import { bytes } from "./format.js";

/** The forecast of what is looked at: lines over completions in one pass, and bars by phase. */
export function buildForecast({ words, says, about, onapply }) {
  const bars = makeForecastBars(says, { apply: onapply, titleOf: (name) => about.fields.find((one) => one.name === name)?.title ?? name });
  const plot = h("div", { class: "plot tall" });
  const legend = h("div", { class: "legend" });
  const sub = h("span", { class: "sub" }, words.lines_sub);
  const chart = new Chart({ node: plot, legend, label: words.lines });
  const beside = h("p", { class: "memory-measured small", hidden: true });
  const node = h("div", { class: "two" },
    h("section", { class: "card panel" }, h("div", { class: "card-head" }, h("h2", {}, term(words.lines, words.lines_note)), sub), plot, legend),
    h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, term(words.bars, words.bars_note))), bars.root, beside));
  const known = { forecast: null, measured: null, changed: false };
  chart.empty(words.will_lines);

  function show(answer, view) {
    known.forecast = answer.error ? null : answer;
    known.changed = view.set.size > 0;
    if (answer.error) { bars.fail(answer.error); nothing(words.no_lines); } else bars.show(answer, { backend: answer.backend });
    tell();
  }

  function nothing(text) {
    chart.empty(text);
    plot.classList.remove("memory-stale");
    setText(sub, words.lines_sub);
  }

  function fail(text) {
    known.forecast = null;
    bars.fail(text);
    nothing(words.no_lines);
    tell();
  }

  /** The lines come after the bars; a zoom in them stays. */
  function lines(answer, card) {
    if (answer.error) { nothing(answer.error); return; }
    const left = answer.left_out.map((name) => say(words.left_out, { name: words.backends[name] ?? name }));
    if (!showAnew(chart, answer.figure, left)) { nothing(words.no_lines); return; }
    plot.classList.remove("memory-stale");
    setText(sub, cardText(card, answer.card_shown, words));
  }

  function measured(answer) {
    known.measured = answer;
    tell();
  }

  /** What was drawn stays, paler, until the new answer is there. */
  function wait() {
    bars.wait();
    plot.classList.add("memory-stale");
  }

  /** Forecast beside measured, when it is the run's own settings that are forecast. */
  function tell() {
    const { forecast, measured: found, changed } = known;
    const both = forecast && found && !changed;
    beside.hidden = !both;
    if (!both) return;
    const text = say(found.ended ? words.measured_ended : words.measured, { forecast: bytes(forecast.total_bytes), peak: bytes(found.peak), phase: found.phase });
    setText(beside, found.resident ? `${text} ${words.measured_resident}` : text);
  }
  return { node, show, lines, fail, measured, wait };
}

/** Draws a figure; a zoom is kept as long as it is of the same thing. False when it holds no point. */
export function showAnew(chart, figure, asides = []) {
  if (chart.figure?.layout.uirevision !== figure.layout.uirevision) chart.byHand = {};
  return chart.show(figure, asides);
}

/** What the dotted line of a chart is, or why there is none. */
export function cardText(card, shown, words) {
  if (!card) return words.card_none;
  return say(shown ? words.card_line : words.card_above, { name: card.name, size: bytes(card.bytes, 2) });
}
