import { commandJob } from "./actions_job.js";
import { Chart } from "./chart.js";
import { h, replace, say, setText, term } from "./dom.js";
import { bytes, clock, fixed, grouped, number } from "./format.js";
import { cardText, showAnew } from "./memory_forecast.js";

const PLACE = "memory probe";
const ANYWAY = "--anyway"; // a refusal that names it can be overruled

/** Loss backends on one frozen batch: the command that measures them, its table, its sweep as a chart. */
export function buildProbe({ words, server, frame, about, request, onchoose, onmade }) {
  const state = { look: null, asked: null, job: null };
  const sub = h("span", { class: "memory-probe-sub" }, words.probe_sub);
  const picker = h("select", { class: "field", "aria-label": words.older, hidden: true, onchange: () => onchoose(picker.value) });
  const buttons = { probe: starter("probe", words.run_probe, words.run_probe_note), sweep: starter("sweep", words.run_sweep, words.run_sweep_note) };
  const to = h("input", { class: "field memory-to", type: "number", min: "1", max: "65536", step: "1", value: about.sweep_to ?? "", placeholder: words.to_memory, "aria-label": words.to_note, title: words.to_note });
  const anyway = h("button", { class: "button", type: "button", hidden: true, onclick: () => begin({ ...state.asked, anyway: true }) }, words.anyway);
  const job = commandJob({ server: listening(server), words: words.job, lost: frame.lost, place: PLACE, result: done, onbusy: busy });
  const why = h("p", { class: "muted small", hidden: true });
  const plot = h("div", { class: "plot tall" });
  const legend = h("div", { class: "legend" });
  const chartTitle = h("h2", {}, words.sweep);
  const chartSub = h("span", { class: "sub" });
  const chart = new Chart({ node: plot, legend, label: words.sweep });
  const table = h("div", { class: "memory-table-card" });
  const node = h("section", { class: "memory-probe", "aria-label": words.probe },
    h("div", { class: "card" },
      h("div", { class: "memory-title" }, h("h2", {}, words.probe), sub, h("div", { class: "memory-buttons" }, picker, buttons.probe, buttons.sweep, h("label", { class: "memory-to-label small muted" }, words.to, to))),
      h("div", { class: "memory-job" }, job.node, anyway), why),
    h("div", { class: "two" },
      h("section", { class: "card panel" }, h("div", { class: "card-head" }, chartTitle, chartSub), plot, legend),
      h("section", { class: "card" }, table)));
  let drawn = "";
  chart.empty(words.will_sweep);
  replace(table, h("h2", {}, words.table), h("p", { class: "muted small memory-will" }, words.will_probe));
  allow();

  function starter(kind, label, note) {
    return h("button", { class: `button${kind === "probe" ? " primary" : ""}`, type: "button", title: note, onclick: () => begin({ kind }) }, label);
  }

  function begin(asked) {
    anyway.hidden = true;
    state.asked = asked;
    job.begin({ ...request(), to: to.value ? Number(to.value) : null, ...asked });
  }

  /** Only what this page began, or saw at work, is shown when it is done: a reload leaves the choice alone. */
  function done(answer) {
    if (state.asked && typeof answer.id === "string") onmade(answer.id);
    return h("p", { class: "small muted", role: "status" }, words.done);
  }

  /** A sweep over its limit of time says how long it takes, a probe that a GPU is in use: both can be begun all the same. */
  function listening(calls) {
    const heard = (answer) => {
      anyway.hidden = !(answer.state === "failed" && state.asked?.kind && answer.message.includes(ANYWAY));
      return answer;
    };
    return new Proxy(calls, { get: (_, name) => (asked) => calls[name](asked).then(heard) });
  }

  function busy(yes) {
    state.job = yes;
    allow();
  }

  function allow() {
    const reason = about.refused ?? (state.look && !state.look.derived ? words.mend_first : "");
    for (const button of Object.values(buttons)) button.disabled = Boolean(state.job || reason || !state.look);
    setText(why, reason || "");
    why.hidden = !reason;
  }

  function show({ probes, probe }) {
    const key = JSON.stringify([probes, probe]);
    if (key === drawn) return;
    drawn = key;
    picker.hidden = probes.length < 2 && !(probes.length === 1 && probes[0].problem);
    replace(picker, probes.map((one) => h("option", { value: one.id, selected: one.id === probe?.id }, listed(one, words))));
    if (!probe) return;
    setText(sub, probe.problem ? words.probe_sub : facts(probe, words));
    if (probe.problem) {
      chart.empty(words.will_sweep);
      replace(table, h("h2", {}, words.table), h("p", { class: "fault small", role: "alert" }, say(words.unreadable, { problem: probe.problem })));
      return;
    }
    replace(table, probeTable(probe, words), biggest(probe, words));
    drawSweep(probe);
  }

  function drawSweep(probe) {
    const tokens = probe.sweep?.axis === "tokens";
    setText(chartTitle, tokens ? words.sweep_tokens : words.sweep);
    if (!probe.sweep || !showAnew(chart, probe.sweep.figure)) {
      chart.empty(probe.sweep ? words.sweep_nothing : words.no_sweep);
      setText(chartSub, "");
      return;
    }
    setText(chartSub, cardText(probe.card_bytes ? { name: probe.device, bytes: probe.card_bytes } : null, probe.sweep.card_shown, words));
  }
  return { node, show, about: (look) => { state.look = look; allow(); } };
}

function listed(one, words) {
  if (one.problem) return say(words.unreadable_row, { name: one.name });
  return [`${dayOf(one.started)} ${clock(one.started).slice(0, 5)}`, short(one.model), words.dtypes[one.dtype] ?? one.dtype, one.swept ? words.swept : ""].filter(Boolean).join(" · ");
}

function dayOf(started) {
  return new Date(started * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

function short(model) {
  return String(model).split(/[/:]/).at(-1);
}

function facts(probe, words) {
  const parts = [short(probe.model), words.dtypes[probe.dtype] ?? probe.dtype];
  if (probe.adapter && probe.adapter !== "none") parts.push(words.adapters[probe.adapter] ?? probe.adapter);
  parts.push(say(words.tokens_both, { prompt: grouped(probe.prompt_tokens), completion: grouped(probe.completion_tokens) }), words.same_batch);
  return parts.join(" · ");
}

/** One row a backend: its peak and time against the reference's, and how far its gradient is from it. */
function probeTable(probe, words) {
  const least = Math.min(...probe.rows.map((row) => row.peak ?? Infinity));
  const head = [[words.loss, ""], [words.peak, words.peak_notes[probe.measured]], [say(words.against_reference, { name: name(probe.reference, words) }), ""], [words.time, words.time_note], [words.gradient, words.gradient_note]];
  const body = probe.rows.map((row) => (row.error ? failed(row, words) : h("tr", { class: row.peak === least && probe.rows.length > 1 ? "memory-least" : null },
    h("th", { scope: "row" }, name(row.backend, words), h("span", { class: "memory-under" }, number(row.loss, 4))),
    h("td", { title: phases(row, words) }, bytes(row.peak), h("span", { class: "memory-under" }, row.forecast ? say(words.forecast_of, { size: bytes(row.forecast) }) : "\u00a0")),
    h("td", {}, row.reference || row.against === null ? "–" : share(row.against)),
    h("td", { title: row.seconds === null ? null : say(words.seconds, { count: number(row.seconds) }) }, fixed(row.time)),
    h("td", {}, row.reference ? words.reference : exponent(row.gradient)))));
  return [
    h("h2", {}, say(words.at, { count: grouped(probe.completions) }), probe.micro_batch < probe.completions ? h("span", { class: "sub muted small" }, say(words.at_once, { count: grouped(probe.micro_batch) })) : null),
    h("table", { class: "memory-table" }, h("thead", {}, h("tr", {}, head.map(([label, note]) => h("th", { scope: "col" }, note ? term(label, note) : label)))), h("tbody", {}, body)),
    verdict(probe, words),
    probe.notes.length ? h("details", { class: "memory-notes small" }, h("summary", {}, say(probe.notes.length === 1 ? words.one_note : words.many_notes, { count: probe.notes.length })), h("ul", {}, probe.notes.map((note) => h("li", {}, note)))) : null,
  ];
}

function failed(row, words) {
  return h("tr", {}, h("th", { scope: "row" }, name(row.backend, words)), h("td", { class: row.memory ? "memory-out" : "memory-out fault", colspan: "4" }, row.error));
}

/** Said only when the numbers say it. */
function verdict({ loss }, words) {
  if (!loss) return null;
  const text = loss.same ? (loss.saves ? words.saved : words.same_loss) : say(words.other_loss, { difference: exponent(loss.difference) });
  return h("p", { class: "muted small" }, text);
}

function phases(row, words) {
  return Object.entries(row.by_phase).map(([phase, size]) => `${words.phases[phase] ?? phase} ${bytes(size)}`).join(", ");
}

function biggest({ sweep }, words) {
  if (!sweep) return h("p", { class: "muted small memory-biggest" }, words.no_biggest);
  const most = Math.max(1, ...sweep.biggest.map((row) => row.largest ?? 0));
  const several = new Set(sweep.biggest.map((row) => row.backend)).size < sweep.biggest.length;
  return h("div", { class: "memory-biggest" },
    h("h3", {}, sweep.axis === "tokens" ? words.biggest_tokens : words.biggest),
    sweep.biggest.map((row) => h("div", { class: "memory-big", title: endOf(row, words) },
      h("span", { class: "memory-big-name" }, several ? row.name : name(row.backend, words)),
      h("span", { class: "memory-big-track" }, h("span", { data: { backend: row.backend }, style: { width: `${(100 * (row.largest ?? 0)) / most}%` } })),
      h("b", {}, row.largest === null ? words.none : say(row.end === "asked" ? words.at_least : words.exactly, { count: grouped(row.largest) })))),
    sweep.biggest.some((row) => row.end === "asked") ? h("p", { class: "muted small" }, words.at_least_note) : null);
}

function endOf(row, words) {
  return [say(words.ends[row.end], { count: grouped(row.end_x) }), row.reason].filter(Boolean).join(": ");
}

function name(backend, words) {
  return words.backends[backend] ?? backend ?? words.reference;
}

function share(value) {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.round(Math.abs(value) * 100)} %`;
}

/** "2.0e−6": for what is tiny, with one decimal. */
function exponent(value) {
  if (value === null || value === undefined) return "–";
  return value === 0 ? "0" : value.toExponential(1).replace("e+", "e").replace("-", "−");
}
