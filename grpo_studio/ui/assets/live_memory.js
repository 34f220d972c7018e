import { Chart } from "./chart.js";
import { h, replace, setText, term } from "./dom.js";
import { bytes, grouped } from "./format.js";

/** The memory over time: of one device or of all, the whole run or its newest steps; the peaks by phase stand below. */

const ALL = "";

export function buildMemory(words) {
  const picker = h("select", { class: "field live-memory-device", "aria-label": words.memory_chart.device, hidden: true });
  const views = Object.fromEntries(["whole", "newest"].map((view) => [view, h("button", { type: "button", class: "button", "aria-pressed": "false", title: words.memory_chart[`${view}_note`] }, words.memory_chart[view])]));
  const tools = h("span", { class: "live-memory-tools" }, picker, h("span", { class: "live-memory-views", role: "group", "aria-label": words.memory_chart.span, hidden: true }, views.whole, views.newest));
  const plot = h("div", { class: "plot" });
  const legend = h("div", { class: "legend" });
  const peaks = h("div", { class: "live-memory-peaks" });
  const snapshot = h("p", { class: "live-memory-snapshot muted small", hidden: true });
  const [title, note] = words.panels.memory;
  const sub = h("span", { class: "sub" }, words.units.memory);
  const node = h("section", { class: "card panel wide live-memory-panel" }, h("div", { class: "card-head" }, h("h2", {}, term(title, note)), sub, tools), plot, legend, peaks, snapshot);
  const chart = new Chart({ node: plot, legend, label: title });
  const state = { figure: null, asides: [], device: ALL, view: "whole", facts: { peaks: [], snapshot: null } };

  picker.addEventListener("change", () => { state.device = picker.value; draw(); });
  for (const [view, button] of Object.entries(views)) button.addEventListener("click", () => { state.view = view; draw(); });

  function draw() {
    const { figure } = state;
    const { devices = [], newest, whole } = figure.layout.meta ?? {};
    showDevices(devices);
    const newer = Boolean(newest) && !whole;
    views.whole.parentElement.hidden = !newer;
    const view = newer ? state.view : "whole";
    for (const [name, button] of Object.entries(views)) button.setAttribute("aria-pressed", String(name === view));
    const data = figure.data.filter((trace) => shownOf(trace, devices)).map((trace) => named(trace));
    const layout = { ...figure.layout, uirevision: [figure.layout.uirevision, view, state.device].join(" ") };
    if (view === "newest") layout.xaxis = { ...layout.xaxis, range: newest };
    drawPeaks();
    return chart.show({ data, layout }, state.asides);
  }

  /** Of one device all its lines; of all of them one line each, over the phases of the first. */
  function shownOf(trace, devices) {
    const meta = trace.meta;
    if (!meta || devices.length < 2) return true;
    if (state.device !== ALL) return meta.device === state.device;
    return meta.main || (meta.band && meta.device === devices[0]);
  }

  const together = () => !picker.hidden && state.device === ALL;

  function named(trace) {
    if (!trace.meta?.main || !together()) return trace;
    return { ...trace, name: trace.meta.device, line: { ...trace.line, color: trace.meta.colour } };
  }

  function showDevices(devices) {
    if (picker.dataset.devices === JSON.stringify(devices)) return;
    picker.dataset.devices = JSON.stringify(devices);
    if (!devices.includes(state.device)) state.device = ALL;
    picker.hidden = devices.length < 2;
    replace(picker, [ALL, ...devices].map((device) => h("option", { value: device, selected: device === state.device }, device || words.memory_chart.all)));
  }

  function drawPeaks() {
    const rows = state.facts.peaks.filter((peak) => state.device === ALL || peak.device === state.device);
    const most = together() ? greatest(rows) : rows;
    const key = JSON.stringify([most, state.device]);
    if (peaks.dataset.key === key) return; // equal figures are left alone: a selection in them stays
    peaks.dataset.key = key;
    replace(peaks, most.length ? table(most) : null);
  }

  function table(rows) {
    return h("table", { class: "live-memory-table" },
      h("caption", { class: "muted small" }, words.memory_chart.peaks),
      h("thead", {}, h("tr", {}, [words.memory_chart.phase, words.memory_chart.greatest, words.memory_chart.at, words.memory_chart.last].map((text) => h("th", { scope: "col" }, text)), together() ? h("th", { scope: "col" }, words.memory_chart.device) : null)),
      h("tbody", {}, rows.map((row) => h("tr", {},
        h("th", { scope: "row" }, h("span", { class: "swatch", style: { background: row.colour } }), row.name),
        h("td", {}, bytes(row.greatest)), h("td", { class: "muted" }, grouped(row.greatest_step)), h("td", {}, bytes(row.last)),
        together() ? h("td", { class: "muted" }, row.device) : null))));
  }

  function facts(news) {
    state.facts = news;
    drawPeaks();
    snapshot.hidden = !news.snapshot;
    if (news.snapshot && snapshot.dataset.path !== news.snapshot) {
      snapshot.dataset.path = news.snapshot;
      replace(snapshot, words.memory_chart.snapshot, " ", h("code", {}, news.snapshot), " ", copyButton(news.snapshot, words));
    }
  }

  return {
    node, sub, facts,
    chart: {
      show(figure, asides) { Object.assign(state, { figure, asides }); return draw(); },
      empty(text) { state.facts = { peaks: [], snapshot: null }; picker.hidden = true; views.whole.parentElement.hidden = true; snapshot.hidden = true; drawPeaks(); chart.empty(text); },
    },
  };
}

/** Of each phase the row of the device with the most. */
function greatest(rows) {
  const most = new Map();
  for (const row of rows) if (!(most.get(row.phase)?.greatest >= row.greatest)) most.set(row.phase, row);
  return [...most.values()];
}

function copyButton(text, words) {
  const button = h("button", { class: "button", type: "button" }, words.memory_chart.copy);
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text); setText(button, words.memory_chart.copied); } catch (error) { console.warn("not copied", error); setText(button, words.memory_chart.copy_failed); }
  });
  return button;
}
