import { h, replace, say, setText, svg, term } from "./dom.js";
import { bytes, duration, fixed, number, percent, signed } from "./format.js";

/** The top of Live: the strip, the banner and the tiles. */

export function buildStrip({ words, states, onstop, onchoose, actions }) {
  const picker = h("select", { "aria-label": words.choose, title: words.choose, onchange: () => onchoose(picker.value), });
  const pill = h("span", { class: "pill", role: "status" });
  const filled = h("span");
  const bar = h("div", { class: "progress", role: "progressbar", "aria-valuemin": "0" }, filled);
  const text = h("span");
  const spent = h("small", { style: { display: "block", color: "var(--ink-3)" } }, "\u00a0");
  const stop = h("button", { class: "button danger", type: "button", title: words.stop_note, onclick: () => onstop(stop) }, words.stop);
  const node = h("section", { class: "card strip" }, h("div", { class: "strip-name" }, picker), pill, bar, h("span", { class: "strip-text" }, text, spent), stop, actions.node);
  let stopAsked = false;
  let listed = "";

  function options(runs, chosen) {
    const key = JSON.stringify([runs, chosen.id]);
    if (key === listed) { picker.value = chosen.id; return; }
    listed = key;
    replace(picker, runs.map((run) => h("option", { value: run.id, selected: run.id === chosen.id }, run.id === chosen.id ? run.name : `${run.name} · ${when(run.id)} · ${states[run.state]}`)));
  }

  function update(strip, rate) {
    pill.dataset.state = strip.state;
    setText(pill, states[strip.state]);
    bar.setAttribute("aria-valuemax", strip.steps);
    bar.setAttribute("aria-valuenow", strip.step);
    filled.style.width = `${Math.min(100, (100 * strip.step) / strip.steps)}%`;
    const parts = [say(words.step_of, { step: strip.step, steps: strip.steps })];
    if (strip.seconds_left !== null && strip.seconds_left > 0) parts.push(say(words.left, { time: duration(strip.seconds_left) }));
    if (rate && strip.state === "running") parts.push(say(words.tokens, { rate: number(rate) }));
    setText(text, parts.join(" · "));
    const lives = strip.attempt > 1 ? [say(words.attempt, strip)] : [];
    setText(spent, [...lives, spentText(strip.money, words.money)].filter(Boolean).join(" · ") || "\u00a0");
    spent.title = strip.money.price ? say(words.money.price, strip.money) : words.money.no_price;
    if (strip.ended) stopAsked = false;
    stop.hidden = strip.ended;
    stop.disabled = stopAsked || strip.state === "stopping";
    const waits = strip.state === "queued";
    stop.title = waits ? words.cancel_note : words.stop_note;
    setText(stop, stop.disabled ? words.stopping : waits ? words.cancel : words.stop);
    actions.update(strip);
  }
  /** Another run was chosen: what is known of the one before no longer holds. */
  function blank() {
    stopAsked = false;
    stop.hidden = true;
    actions.blank();
    delete pill.dataset.state;
    filled.style.width = "0";
    for (const one of [pill, text, spent]) setText(one, "");
  }
  return { node, options, update, blank, choosing: () => document.activeElement === picker, asked: (yes) => { stopAsked = yes; stop.disabled = yes; setText(stop, yes ? words.stopping : words.stop); } };
}

/** What all attempts have taken and cost so far, what they will have cost, and the limit that comes before the end. */
export function spentText(money, says) {
  const parts = money.seconds ? [say(says.seconds, { time: duration(money.seconds) })] : [];
  if (money.cost !== null && money.seconds) parts.push(say(money.cost_at_end === null ? says.cost : says.cost_of, money));
  if (money.stops_in !== null) parts.push(say(says.stops, { limit: money.stops_at, time: duration(money.stops_in) }));
  return parts.join(" · ");
}

/** "29 Nov 23:53" out of an id that begins with 20261129-235338. */
export function when(id) {
  const found = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)/.exec(id);
  return found ? `${found[1]}-${found[2]}-${found[3]} ${found[4]}:${found[5]}` : id;
}

/** `help(strip)` are nodes: what a person can do now. */
export function buildBanner(words, onlog, help) {
  const node = h("div", { class: "banner", hidden: true });
  let told = "";
  function update(strip) {
    const title = words.banner[strip.state];
    const fault = strip.state === "failed" || strip.state === "killed";
    node.hidden = !title || strip.state === "finished";
    node.className = `banner ${fault ? "fault" : "wait"}`;
    const role = fault ? "alert" : "status";
    if (node.getAttribute("role") !== role) node.setAttribute("role", role);
    const key = JSON.stringify([title, strip.reason, strip.step, strip.help, strip.actions]);
    if (node.hidden || key === told) return; // a live region is read out with every change
    told = key;
    replace(node, h("strong", {}, title), h("span", {}, strip.reason),
      strip.step && !/\blast step\b/.test(strip.reason) ? h("span", {}, say(words.banner_step, strip)) : null,
      help(strip),
      fault ? h("button", { class: "link", type: "button", onclick: onlog }, words.banner_log) : null);
  }
  return { node, update };
}

const SHOWN = { reward: fixed, mixed: percent, truncated: percent, kl: number, step: duration, memory: bytes };

export function buildTiles(words) {
  const tiles = Object.keys(SHOWN).map((key) => tile(key, words));
  const node = h("section", { class: "tiles", "aria-label": words.reward }, tiles.map((one) => one.node));
  return { node, update: (values, ended, run) => tiles.forEach((one) => one.update(values[one.key], ended, run)) };
}

function tile(key, words) {
  const value = h("div", { class: "value" }, "–");
  const change = h(key === "memory" ? "a" : "div", { class: "change" }); // the peak leads to its forecast
  const line = svg("polyline", { points: "" });
  const spark = svg("svg", { class: "spark", viewBox: "0 0 100 26", preserveAspectRatio: "none", "aria-hidden": "true" }, line);
  const [label, note] = words.tiles[key];
  const node = h("div", { class: "card tile" }, h("div", { class: "label" }, term(label, note)), value, change, spark);
  function update(data, ended, run) {
    if (key === "memory") change.href = `./memory?run=${encodeURIComponent(run)}`;
    setText(value, SHOWN[key](data.value));
    const [text, good] = changeOf(key, data, words, ended);
    setText(change, text);
    change.title = text;
    change.classList.toggle("good", good);
    line.setAttribute("points", sparkPoints(data.spark));
  }
  return { key, node, update };
}

/** The line under a tile's number, and whether it is good news. */
function changeOf(key, data, words, ended) {
  if (key === "kl" && data.no_reference) return [words.tile_no_kl, false];
  if (data.value === null) return [ended ? words.tile_never : words.tile_none, false];
  const moved = data.value - data.first;
  if (key === "reward") return [`${moved >= 0 ? "▲" : "▼"} ${signed(moved)} ${words.tile_since}`, moved > 0];
  if (key === "mixed" && data.dead !== null) return [say(data.dead ? words.tile_dead : words.tile_all_mixed, data), data.dead === 0];
  if (key === "step" && data.phase) return [say(words.tile_phase, { phase: data.phase, share: percent(data.share) }), false];
  if (key === "memory" && data.phase) return [say(words.tile_peak, data), false];
  if (moved === 0) return [words.tile_same, false];
  return [`${moved > 0 ? "▲" : "▼"} ${say(words.tile_from, { value: SHOWN[key](data.first) })}`, key === "truncated" && moved < 0];
}

export function sparkPoints(values, height = 26) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return "";
  const low = Math.min(...known);
  const range = Math.max(...known) - low;
  return values.map((value, place) => {
    const level = range ? (value - low) / range : 0.5;
    return `${((100 * place) / (values.length - 1)).toFixed(2)},${(height - 2 - level * (height - 4)).toFixed(2)}`;
  }).join(" ");
}
