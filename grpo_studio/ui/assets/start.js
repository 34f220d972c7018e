import { buildFrame } from "./frame.js";
import { setPlotly } from "./chart.js";

/** Entry of every page: draws the frame once, then hands `main` to the page's own module. */
export async function start(context) {
  const { element, server, strings, page, module, base, plotly } = context;
  setPlotly(base + plotly);
  if (element.dataset.started) return;
  element.dataset.started = "yes";
  const main = buildFrame({ element, server, words: strings.frame, page });
  const script = await import(module);
  await script.start({ main, server, words: strings[page] || {}, frame: strings.frame, base });
}
