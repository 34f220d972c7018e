import { h, replace, say, setText, term } from "./dom.js";
import { fixed, number } from "./format.js";
import { rewardColour } from "./reward_colour.js";

const ROOMY = 7;
const SLIDES_MS = 80;

/** Group strips: a mini-map of all steps, the groups of one step as rows of squares, and the step slider. */
export function buildGroups({ words, onstep, ongroup, onnewest, inspector }) {
  const sub = h("span", { class: "sub" });
  const canvas = h("canvas", { class: "map", role: "img", "aria-label": words.map, title: words.map });
  const rows = h("div", { class: "strips" });
  const slider = h("input", { type: "range", min: "1", max: "1", value: "1", "aria-label": words.slider });
  const at = h("span");
  const newest = h("button", { class: "link", type: "button", onclick: () => onnewest() }, words.newest);
  const low = h("span");
  const high = h("span");
  const stepper = h("div", { class: "stepper", hidden: true }, at, slider, newest);
  const scale = h("div", { class: "scale", hidden: true }, low, h("i"), high, h("span", {}, words.traces.mean));
  const waiting = h("div", { class: "hint" }, words.groups_wait);
  const body = h("div", { class: "groups-body", hidden: true }, h("div", { class: "groups-side" }, rows, stepper, scale), inspector);
  const node = h("section", { class: "card groups" }, h("div", { class: "card-head" }, h("h2", {}, term(words.groups, words.groups_note)), sub), canvas, waiting, body);
  canvas.hidden = true;
  const view = { map: null, step: null };
  let places = [];
  let drawn = "";

  let sliding = null; // a step is asked for when the slider rests, and nothing moves it meanwhile
  slider.addEventListener("input", () => {
    setText(at, `${words.slider} ${slider.value}`);
    clearTimeout(sliding);
    sliding = setTimeout(() => { sliding = null; onstep(Number(slider.value)); }, SLIDES_MS);
  });
  const slideTo = (step) => { if (sliding === null) { slider.value = step; setText(at, `${words.slider} ${step}`); } };
  canvas.addEventListener("click", (event) => {
    const place = Math.floor((event.clientX - canvas.getBoundingClientRect().left) / view.width);
    if (view.map && view.map.columns[place]) onstep(view.map.columns[place].step);
  });
  new ResizeObserver(() => paint(canvas, view)).observe(canvas);
  window.addEventListener("studio-theme", () => paint(canvas, view));

  function map(data, ended) {
    view.map = data;
    setText(waiting, ended ? words.groups_never : words.groups_wait);
    const some = data.columns.length > 0;
    canvas.hidden = stepper.hidden = scale.hidden = body.hidden = !some;
    waiting.hidden = some;
    slider.min = data.first;
    slider.max = Math.max(data.last, data.first);
    if (view.step !== null) slideTo(view.step);
    setText(low, number(data.scale[0]));
    setText(high, number(data.scale[1]));
    paint(canvas, view);
  }

  function strips(data, chosen, following) {
    view.step = data.step;
    slideTo(data.step);
    newest.hidden = following;
    setText(sub, say(words.groups_sub, { step: data.step }));
    const key = JSON.stringify([data.groups, view.map?.scale]);
    if (key !== drawn) { drawn = key; draw(data.groups); }
    mark(chosen);
    paint(canvas, view);
  }

  /** New rows; the keyboard's focus stays at its place among them. */
  function draw(groups) {
    const focused = places.indexOf(document.activeElement);
    const shared = sharedStart(groups.map((group) => group.prompt));
    places = groups.map((group, place) => row(group, shared, place, groups.length, view, words, ongroup));
    rows.classList.toggle("roomy", places.length <= ROOMY);
    replace(rows, places);
    if (focused >= 0) places[Math.min(focused, places.length - 1)]?.focus({ preventScroll: true });
  }

  function mark(chosen) {
    places.forEach((one) => one.setAttribute("aria-current", String(Number(one.dataset.group) === chosen)));
  }

  function clear() {
    view.map = null; view.step = null; drawn = ""; places = [];
    clearTimeout(sliding); sliding = null;
    canvas.hidden = stepper.hidden = scale.hidden = body.hidden = true;
    waiting.hidden = false;
    replace(rows); setText(sub, "");
  }
  return { node, rows, map, strips, mark, clear };
}

function row(group, shared, place, count, view, words, ongroup) {
  const dead = group.kind === "all_good" || group.kind === "all_bad";
  const what = group.kind === "mixed" ? say(words.mean_spread, { mean: fixed(group.mean), spread: fixed(group.spread) }) : words[group.kind];
  const scale = view.map ? view.map.scale : [0, 1];
  const squares = group.rewards.map((reward) => h("span", {
    class: `square${dead ? " dead" : ""}${reward === null ? " none" : ""}`,
    style: dead || reward === null ? {} : { background: rewardColour(reward, scale) },
    title: reward === null ? words.no_reward : say(words.reward_of, { value: number(reward) }),
  }));
  return h("button", {
    class: "group-row", type: "button", data: { group: String(group.id) },
    "aria-label": `${say(words.group_label, { place: place + 1, count, what })}: ${group.prompt}`, onclick: () => ongroup(group.id, true),
  }, h("span", { class: "prompt", title: group.prompt }, group.prompt.slice(shared)), h("span", { class: `squares${squares.length > 10 ? " many" : ""}` }, squares), h("span", { class: "what" }, what, group.hidden ? ` ${say(words.hidden, { count: group.hidden })}` : ""));
}

/** Length of the words that all prompts of a step begin with: they tell no group from another. */
function sharedStart(prompts) {
  if (prompts.length < 2) return 0;
  const first = prompts[0];
  let length = 0;
  while (length < first.length && prompts.every((prompt) => prompt[length] === first[length])) length += 1;
  const start = first.lastIndexOf(" ", length - 1) + 1;
  return prompts.every((prompt) => prompt.length > start) ? start : 0;
}

const WIDEST = 40;

function paint(canvas, view) {
  const width = canvas.clientWidth;
  if (!view.map || !width) return;
  const styles = getComputedStyle(document.documentElement);
  const ratio = window.devicePixelRatio || 1;
  const height = 34;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const columns = view.map.columns;
  view.width = Math.min(WIDEST, width / Math.max(1, columns.length));
  const gap = view.width > 5 ? 2 : view.width > 3 ? 1 : 0;
  const dead = styles.getPropertyValue("--hatch").trim();
  columns.forEach((column, place) => {
    const tall = (height - 6) / column.cells.length;
    column.cells.forEach(([mean, kind], level) => {
      pen.fillStyle = kind === "mixed" && mean !== null ? rewardColour(mean, view.map.scale) : dead;
      pen.fillRect(place * view.width, level * tall, view.width - gap, Math.max(1, tall - (tall > 3 ? 1 : 0)));
    });
  });
  const here = columns.findIndex((column) => column.step >= view.step);
  if (view.step !== null && here >= 0) {
    pen.fillStyle = styles.getPropertyValue("--accent").trim();
    pen.fillRect(here * view.width, height - 4, Math.max(3, view.width - gap), 3);
  }
}
