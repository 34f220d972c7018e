import { buildFrame } from "./frame.js";
import { setPlotly } from "./chart.js";
import { setUnits } from "./format.js";
import { placeNotes } from "./notes.js";
import { answering } from "./poll.js";

/** Entry of every page: draws the frame once, then hands `main` to the page's own module. */
export async function start(context) {
  const { element, strings, page, module, base, plotly } = context;
  const server = answering(context.server);
  setPlotly(base + plotly);
  setUnits(strings.frame.units);
  if (element.dataset.started) return;
  element.dataset.started = "yes";
  const main = buildFrame({ element, server, words: strings.frame, page });
  placeNotes(element);
  const script = await import(module);
  await script.start({ main, server, words: strings[page] || {}, actions: strings.actions, forecast: strings.forecast, frame: strings.frame, base });
}
