// How long the prompts are, in tokens: bars, and the limits as lines. Its height is final before data comes.

import { h, replace, say, svg } from "./dom.js";
import { grouped } from "./format.js";

const HEIGHT = 118;
const TOP = 32; // for the two labels
const BOTTOM = 18; // for the axis
const FLOOR = HEIGHT - BOTTOM;
const NEAR = 1.6; // a limit within this many times the longest prompt is drawn to scale
const BREAK_AT = 80; // per cent of the width: where the axis is cut when the limits are far away

/** @returns {root, show(lengths), empty()} */
export function makeHistogram(words) {
  const own = words.scan;
  const drawing = svg("svg", { class: "launch-histogram", width: "100%", height: HEIGHT, role: "img", "aria-label": own.chart });
  const readout = h("p", { class: "launch-histogram-readout" });
  const note = h("p", { class: "launch-histogram-note" }, own.chart_waits);
  const root = h("div", { class: "launch-histogram-box", tabindex: "0", role: "group", "aria-label": own.chart_keys }, note, drawing, readout);
  let bars = [];
  let at = -1;
  let facts = "";

  const mark = (index) => {
    bars[at]?.hit.classList.remove("launch-bar-on");
    at = index;
    bars[at]?.hit.classList.add("launch-bar-on");
    readout.textContent = bars[at]?.text ?? facts;
  };
  root.addEventListener("pointerleave", () => mark(-1));
  root.addEventListener("blur", () => mark(-1));
  root.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || bars.length === 0) return;
    event.preventDefault();
    mark(Math.min(bars.length - 1, Math.max(0, at < 0 ? 0 : at + step)));
  });

  return {
    root,
    empty() {
      note.hidden = false;
      bars = [];
      facts = "";
      mark(-1);
      replace(drawing);
    },
    show(lengths) {
      if (!lengths?.counts?.length) return this.empty();
      note.hidden = true;
      const scale = scaleOf(lengths);
      bars = barsOf(lengths, scale, own);
      bars.forEach((bar, index) => bar.hit.addEventListener("pointerenter", () => mark(index)));
      replace(drawing, hatch(), bars.map((bar) => bar.shape), axis(lengths, scale), limits(lengths, scale, own), bars.map((bar) => bar.hit));
      facts = say(own.facts, { median: grouped(lengths.median), p95: grouped(lengths.p95), longest: grouped(lengths.longest) });
      drawing.setAttribute("aria-label", `${own.chart}. ${facts}. ${lengths.too_long ? say(own.too_long, { count: grouped(lengths.too_long), room: grouped(lengths.room) }) : ""}`);
      return mark(-1);
    },
  };
}

/** Where a number of tokens stands, in per cent of the width. Limits far away stand behind a cut in the axis. */
function scaleOf({ edges, room, context }) {
  const last = edges.at(-1);
  const first = Math.min(edges[0], last - 1);
  const known = [room, context].filter((limit) => limit !== null && limit !== undefined);
  const cut = known.some((limit) => limit > last * NEAR);
  const end = cut || known.length === 0 ? last : Math.max(last, ...known);
  const width = cut ? BREAK_AT : known.length ? 97 : 100;
  return { cut, first, last, end, place: (tokens) => (tokens <= end ? (width * (tokens - first)) / (end - first) : null) };
}

function barsOf({ edges, counts, room }, scale, own) {
  const most = Math.max(...counts);
  return counts.map((count, index) => {
    const [from, to] = [edges[index], edges[index + 1]];
    const [left, right] = [scale.place(from), scale.place(to)];
    // A bar of a single row among many thousands is still to be seen.
    const height = count ? Math.max(2, ((FLOOR - TOP) * count) / most) : 0;
    const long = room !== null && room !== undefined && to - 1 > room;
    const box = { x: `${left}%`, width: `${Math.max(0.2, right - left - 0.15)}%` };
    const last = Math.max(from, to - 1);
    return {
      shape: svg("rect", { ...box, y: FLOOR - height, height, class: long ? "launch-bar-long" : "launch-bar-count" }),
      hit: svg("rect", { ...box, y: TOP, height: FLOOR - TOP, class: "launch-bar-hit" }),
      text: say(own.bar, { from: grouped(from), to: grouped(last), rows: grouped(count) }) + (long && count ? ` · ${own.bar_long}` : ""),
    };
  });
}

function axis({ edges }, { cut, place, first, last }) {
  const label = (tokens, anchor) => svg("text", { x: `${place(tokens)}%`, y: HEIGHT - 4, class: "launch-histogram-text", "text-anchor": anchor }, grouped(tokens));
  const middle = edges[Math.floor(edges.length / 2)];
  return [
    svg("line", { x1: "0", x2: cut ? `${BREAK_AT + 1}%` : "100%", y1: FLOOR, y2: FLOOR, class: "launch-histogram-axis" }),
    cut && svg("line", { x1: `${BREAK_AT + 4}%`, x2: "100%", y1: FLOOR, y2: FLOOR, class: "launch-histogram-axis" }),
    cut && [1, 4].map((x) => svg("line", { x1: `${BREAK_AT + x - 0.6}%`, x2: `${BREAK_AT + x + 0.6}%`, y1: FLOOR + 5, y2: FLOOR - 5, class: "launch-histogram-axis" })),
    label(first, "start"), middle > first && middle < last && edges.length > 3 && label(middle, "middle"), label(last, "end"),
  ];
}

/** The room for a prompt and the model's context, each a line with its label. */
function limits({ room, context }, { place }, own) {
  const drawn = [[context, own.context, 12, 97], [room, own.room, 26, 91]]; // the lower line ends below the upper label
  return drawn.filter(([tokens]) => tokens !== null && tokens !== undefined).map(([tokens, phrase, y, far]) => {
    const x = place(tokens) ?? far;
    const left = x > 45;
    return [
      svg("line", { x1: `${x}%`, x2: `${x}%`, y1: y - 9, y2: FLOOR, class: `launch-histogram-limit${tokens === room ? " launch-histogram-room" : ""}` }),
      svg("text", { x: `${x}%`, dx: left ? -5 : 5, y, class: "launch-histogram-text", "text-anchor": left ? "end" : "start" }, say(phrase, { count: grouped(tokens) })),
    ];
  });
}

/** Too long is told by more than a colour. */
function hatch() {
  return svg("defs", {}, svg("pattern", { id: "launch-hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 5, height: 5, class: "launch-hatch-ground" }), svg("rect", { width: 2, height: 5, class: "launch-hatch-line" })));
}
