import { openDialog } from "./actions_dialog.js";
import { commandJob } from "./actions_job.js";
import { h, say } from "./dom.js";
import { fixed } from "./format.js";

/** The dialog that evaluates a checkpoint by the command line; `made(key)` is called with the new evaluation. */
export function openEvaluate({ server, words, lost, about, made }) {
  const checkpoint = h("select", { class: "field wide" },
    about.checkpoints.map((one) => h("option", { value: one.name }, described(one, words))), h("option", { value: "base" }, words.before_training));
  const rows = h("input", { class: "field", type: "number", min: "1", max: "100000", step: "1", value: String(about.rows) });
  const samples = h("input", { class: "field", type: "number", min: "0", max: "1024", step: "1", value: String(about.samples) });
  const button = h("button", { class: "button primary", type: "button", onclick: begin }, words.evaluate_go);
  const job = commandJob({ server, words, lost, place: `results ${about.run}`, onbusy: (busy) => { button.disabled = busy; }, result: ready });
  const labelled = (text, field) => h("label", { class: "labelled" }, h("span", { class: "small" }, text), field);
  const dialog = openDialog({
    title: words.evaluate_title, sub: words.evaluate_sub, words, actions: button, onclose: job.stop,
    body: [labelled(words.checkpoint, checkpoint), h("div", { class: "results-sizes" }, labelled(words.rows_asked, rows), labelled(words.samples_asked, samples)),
      about.checkpoints.length ? null : h("p", { class: "muted small" }, words.no_checkpoint), job.node],
  });

  function begin() {
    job.begin({ kind: "evaluate", run: about.run, checkpoint: checkpoint.value, rows: Math.round(Number(rows.value)), samples: Math.round(Number(samples.value)) });
  }

  function ready(answer) {
    const show = h("button", { class: "button primary", type: "button", onclick: () => { made(answer.evaluation); dialog.close(); } }, words.evaluated_show);
    return h("div", { class: "result-box" }, h("p", {}, say(words.evaluated, { rows: answer.rows })), show);
  }
}

function described(one, words) {
  const parts = [one.final ? words.final : say(words.after_step, { step: one.step })];
  if (one.score !== null) parts.push(say(words.score_known, { score: fixed(one.score) }));
  if (one.best) parts.push(words.best);
  return parts.join(" · ");
}
