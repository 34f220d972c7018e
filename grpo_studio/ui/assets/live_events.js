import { h, replace, say, setText } from "./dom.js";
import { clock, grouped } from "./format.js";

const KEPT = 600;

/** Events and the log's tail: folded, searchable. The log is fetched when it is opened, and again on demand. */
export function buildEvents({ words, readLog, onlost }) {
  const count = h("span", { class: "sub muted small" });
  const list = h("div", { class: "scroll" });
  const search = h("input", { class: "field", type: "search", placeholder: words.search, "aria-label": `${words.search}: ${words.events}` });
  const events = h("details", { class: "card fold" }, h("summary", {}, h("h2", {}, words.events), count), h("div", { class: "fold-tools" }, search), list);
  let kept = [];

  function draw() {
    const wanted = search.value.toLowerCase();
    const found = kept.filter((event) => `${event.kind} ${event.message}`.toLowerCase().includes(wanted));
    replace(list, found.length ? found.map(line).reverse() : h("p", { class: "muted small" }, words.events_none));
  }
  search.addEventListener("input", draw);
  events.addEventListener("toggle", () => events.open && draw());

  const log = buildLog(words, readLog, onlost);
  return {
    nodes: [events, log.node],
    clear() { kept = []; log.clear(); setText(count, ""); if (events.open) draw(); },
    add(found, total) {
      kept = [...kept, ...found].slice(-KEPT);
      setText(count, say(total > kept.length ? words.events_shown : words.events_count, { count: grouped(total), shown: kept.length }));
      if (events.open) draw();
      if (log.node.open) log.load();
    },
    openLog() { log.node.open = true; log.node.scrollIntoView({ block: "nearest" }); },
  };
}

function line(event) {
  return h("div", { class: `event ${event.level}`, data: { kind: event.kind } }, h("span", { class: "muted" }, clock(event.ts)), h("span", { class: "kind" }, event.kind.replace(/_/g, " ")), h("span", { class: "message" }, event.message));
}

function buildLog(words, readLog, onlost) {
  const search = h("input", { class: "field", type: "search", placeholder: words.search, "aria-label": `${words.search}: ${words.log}` });
  const reload = h("button", { class: "button", type: "button" }, words.refresh);
  const text = h("pre", { class: "log", tabindex: "0" });
  const scroll = h("div", { class: "scroll" }, text);
  const node = h("details", { class: "card fold" }, h("summary", {}, h("h2", {}, words.log), h("span", { class: "muted small" }, words.log_sub)), h("div", { class: "fold-tools" }, search, reload), scroll);
  let whole = "";

  function draw() {
    const wanted = search.value.toLowerCase();
    const lines = wanted ? whole.split("\n").filter((one) => one.toLowerCase().includes(wanted)).join("\n") : whole;
    const atEnd = scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - 8;
    setText(text, plain(lines) || (whole ? words.events_none : words.log_none));
    if (atEnd) scroll.scrollTop = scroll.scrollHeight;
  }
  async function load() {
    try {
      const answer = await readLog();
      whole = answer.error ?? answer.text;
      draw();
    } catch (error) {
      onlost(error);
    }
  }
  search.addEventListener("input", draw);
  reload.addEventListener("click", load);
  node.addEventListener("toggle", () => node.open && load());
  return { node, load, clear() { whole = ""; setText(text, ""); if (node.open) load(); } };
}

/** Without terminal colours; of a line that was written over after a carriage return, only what is seen at the end. */
function plain(text) {
  return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").split("\n").map(lastWritten).join("\n");
}

function lastWritten(line) {
  const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
  return whole.slice(whole.lastIndexOf("\r") + 1);
}
