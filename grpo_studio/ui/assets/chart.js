import { h, replace } from "./dom.js";

/** Charts: one lasting node each, redrawn by Plotly.react, so that a zoom, a hidden line and the scroll position stay. */

let source = null;
let loading = null;
const drawn = new Set();
const coarse = matchMedia("(pointer: coarse)");

export function setPlotly(url) { source = url; }

function plotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  loading ??= new Promise((done, failed) => {
    document.head.append(h("script", { src: source, onload: () => done(window.Plotly), onerror: () => { loading = null; failed(new Error("plotly.js did not load")); } }));
  });
  return loading;
}

window.addEventListener("studio-theme", () => drawn.forEach((chart) => chart.redraw()));

export class Chart {
  /** node: the .plot element of fixed height; legend: an element or null; onstep: called with a clicked step. */
  constructor({ node, legend = null, onstep = null, label = "" }) {
    this.drawing = h("div", { class: "drawing", role: "img", "aria-label": label });
    this.note = h("div", { class: "note" });
    this.legend = legend;
    this.onstep = onstep;
    this.hidden = new Set();
    this.byHand = {}; // ranges of axes that a person chose: they outlive the figure's own
    this.figure = null;
    replace(node, this.drawing, this.note);
    drawn.add(this);
    new ResizeObserver(() => { if (this.figure && window.Plotly && this.drawing.data) window.Plotly.Plots.resize(this.drawing); }).observe(node);
  }

  /** Say in the chart's place what will appear, or why nothing does. */
  empty(text) {
    this.figure = null;
    this.byHand = {};
    this.note.hidden = false;
    if (this.note.textContent !== text) this.note.textContent = text;
    if (this.legend) replace(this.legend);
  }

  /** Draw a figure; returns false when it holds no point at all. */
  show(figure, asides = []) {
    if (!figure.data.some((trace) => (trace.y || []).some((value) => value !== null))) return false;
    if (this.figure?.layout.uirevision !== figure.layout.uirevision) this.byHand = {}; // another view, or run
    this.figure = figure;
    this.asides = asides;
    this.note.hidden = true;
    this.redraw();
    this.drawLegend();
    return true;
  }

  async redraw() {
    const figure = this.figure;
    if (!figure) return;
    const Plotly = await plotly();
    if (figure !== this.figure) return;
    const styles = getComputedStyle(document.documentElement);
    const data = figure.data.map((trace) => ({ ...coloured(trace, styles), name: escaped(trace.name), ...this.visibility(trace) }));
    await Plotly.react(this.drawing, data, this.kept(themed(figure.layout, styles)), { displayModeBar: false, responsive: false, doubleClick: "reset" });
    if (this.listening) return;
    this.listening = true;
    this.drawing.on("plotly_relayout", (change) => this.remember(change));
    this.drawing.on("plotly_doubleclick", () => { this.resetting = true; });
    if (this.onstep) this.drawing.on("plotly_click", (event) => this.onstep(Math.round(event.points[0].x)));
  }

  /** A zoom by hand sets a range, a double click takes it back. Plotly itself drops it when the figure's range moves. */
  remember(change) {
    if (this.resetting) { this.resetting = false; this.reset(); return; }
    for (const axis of this.ranged()) {
      const range = change[`${axis}.range`] ?? [change[`${axis}.range[0]`], change[`${axis}.range[1]`]];
      if (range.every(Number.isFinite)) this.byHand[axis] = [...range];
      if (change[`${axis}.autorange`]) delete this.byHand[axis];
    }
  }

  /** Back to the newest figure's own ranges: Plotly would go back to those that it drew first. */
  reset() {
    const own = Object.fromEntries(this.ranged().map((axis) => [`${axis}.range`, [...this.figure.layout[axis].range]]));
    this.byHand = {};
    if (Object.keys(own).length) window.Plotly.relayout(this.drawing, own).then(() => { this.byHand = {}; });
  }

  /** The axes whose range the figure sets; Plotly keeps a zoom of the others by itself. */
  ranged() {
    return ["xaxis", "yaxis", "yaxis2"].filter((axis) => this.figure?.layout[axis]?.range);
  }

  kept(layout) {
    // Copies: Plotly writes a zoom into the very list that it was given.
    for (const axis of this.ranged()) layout[axis] = { ...layout[axis], range: [...(this.byHand[axis] ?? layout[axis].range)] };
    return layout;
  }

  visibility(trace) {
    return this.hidden.has(trace.name) ? { visible: "legendonly" } : {};
  }

  drawLegend() {
    if (!this.legend) return;
    const traces = this.figure.data.filter((trace) => trace.showlegend !== false && trace.type !== "heatmap");
    const key = JSON.stringify([traces.map((trace) => trace.name), this.asides]);
    if (this.legend.dataset.key === key && this.legend.childElementCount) return;
    this.legend.dataset.key = key;
    replace(this.legend, traces.map((trace) => this.legendButton(trace)), this.asides.map((text) => h("span", { class: "aside" }, text)));
  }

  legendButton(trace) {
    const button = h("button", { type: "button", "aria-pressed": String(!this.hidden.has(trace.name)) }, mark(trace), trace.name);
    button.addEventListener("click", () => {
      if (!this.hidden.delete(trace.name)) this.hidden.add(trace.name);
      button.setAttribute("aria-pressed", String(!this.hidden.has(trace.name)));
      this.redraw();
    });
    return button;
  }
}

function mark(trace) {
  if (trace.mode === "markers" && trace.marker.line) return h("i", { class: "dot" });
  const block = trace.type === "bar" || trace.stackgroup || trace.mode === "markers" || trace.fill === "toself";
  const colour = trace.fillcolor && trace.stackgroup ? trace.fillcolor : (trace.marker || trace.line).color;
  return h("i", { class: block ? "area" : "", style: { background: colour } });
}

/** The value with every "var(--name)" replaced by the theme's colour. */
function coloured(value, styles) {
  if (typeof value === "string" && value.startsWith("var(")) return styles.getPropertyValue(value.slice(4, -1)).trim();
  if (Array.isArray(value)) return typeof value[0] === "object" ? value.map((item) => coloured(item, styles)) : value;
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, styles)]));
  return value;
}

/** Plotly reads a little HTML in names: text of a run must not be read so. */
function escaped(text) {
  return String(text ?? "").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function themed(layout, styles) {
  const colour = (name) => styles.getPropertyValue(name).trim();
  const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line-2"), linecolor: colour("--line-2"), tickfont: { color: colour("--ink-3"), size: 11 }, automargin: false, tickmode: "auto" };
  const own = coloured(layout, styles);
  const themedLayout = {
    ...own,
    margin: { l: 46, r: own.yaxis2 ? 46 : 8, t: 10, b: 24 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: styles.getPropertyValue("--body"), size: 12, color: colour("--ink-2") },
    hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--line-2"), font: { color: colour("--ink"), size: 12 } },
    dragmode: coarse.matches ? false : "zoom",
    xaxis: { ...axis, showgrid: false, zeroline: false, nticks: 8, ...own.xaxis },
    yaxis: { ...axis, ...own.yaxis },
  };
  if (own.yaxis2) themedLayout.yaxis2 = { ...axis, ...own.yaxis2 };
  return themedLayout;
}
