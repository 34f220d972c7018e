// The Launch page: puts the form, the panel and the check together.

import { h, replace, say } from "./dom.js";
import { within } from "./poll.js";
import { makeActions } from "./launch_actions.js";
import { makeChecker } from "./launch_check.js";
import { Draft } from "./launch_draft.js";
import { makeForecast } from "./launch_forecast.js";
import { makeForm } from "./launch_form.js";
import { makeHead } from "./launch_head.js";
import { FieldIndex } from "./launch_index.js";
import { countText, makePanel } from "./launch_panel.js";
import { makeScan } from "./launch_scan.js";
import { makeSheet } from "./launch_sheet.js";

const SLOW_MS = 1200; // a check that takes longer than this takes Start away until it is done

/** context: {main (element to fill), server, words (strings of this page), frame (strings of the frame)} */
export async function start({ main, server, words, forecast, base }) {
  const message = h("section", { class: "card launch-wait", role: "status" }, words.loading);
  replace(main, message);
  const described = await describe(server, message, words);
  if (described.presets.length === 0) return (message.textContent = words.no_presets);
  build({ main, server, words, forecastWords: forecast, base, described });
}

/** Ask until there is an answer: the server may only just be coming up. */
async function describe(server, message, words) {
  for (;;) {
    try {
      const answer = await within(server.describe_launch({}), 30000);
      if (!answer.error) return answer;
      message.textContent = answer.error;
    } catch (error) {
      console.warn("no description of the form", error);
      message.textContent = words.lost;
    }
    await new Promise((done) => setTimeout(done, 3000));
  }
}

function build({ main, server, words, forecastWords, base, described }) {
  const draft = new Draft(described.presets, described.first_preset);
  const index = new FieldIndex();
  let problems = [];
  let last = null;
  let slow = null;
  const distribute = () => index.distribute(problems);
  const titleOf = titlesOf(described, words);
  const setField = (name, value) => {
    draft.set(name, value);
    index.entries.get(name)?.control.sync?.();
  };
  const context = { titleOf, server, words, base, described, draft, index, setField, lastReport: () => last, redistribute: distribute };
  const form = makeForm(context);
  const actions = makeActions(context);
  const goTo = (field) => {
    sheet.close();
    index.goTo(field);
  };
  const scan = makeScan(context, () => checker.now());
  const forecast = makeForecast({ ...context, forecastWords });
  const panel = makePanel({ words, draft, setField, goTo, titleOf }, forecast, scan, actions);
  const sheet = makeSheet({ panel: panel.root, startButton: actions.barButton, words });

  const checker = makeChecker(server, draft, {
    checking() {
      panel.checking();
      clearTimeout(slow);
      slow = setTimeout(() => actions.allow(false, words.reason_checking), SLOW_MS);
    },
    report(answer) {
      clearTimeout(slow);
      const report = withFacts(answer, last, draft);
      last = report;
      problems = report.problems;
      form.markProblems(distribute());
      form.showReport(report);
      panel.report(report);
      const line = report.ok ? words.ready : countText(problems.length, words);
      sheet.status(line, !report.ok);
      actions.allow(report.ok, reasonFor(problems, context));
      scan.consider(report);
      forecast.consider(report);
    },
    previewing: () => panel.prompts.stale(),
    previewKept: () => panel.prompts.again(),
    preview: (answer) => (answer.error ? panel.prompts.say(answer.error) : panel.prompts.show(answer.prompts, answer.gold_asked)),
    lost() {
      clearTimeout(slow);
      panel.lost();
      sheet.status(words.lost, true);
      actions.allow(false, words.lost);
    },
  });
  draft.onChange((field) => {
    if (field === null) index.syncAll();
    scan.changed();
    checker.soon();
    forecast.soon();
  });
  replace(main, h("div", { class: "launch" },
    h("div", { class: "launch-left" }, makeHead(context), form.root), panel.root, sheet.nodes));
  checker.now();
  forecast.now();
}

/** An answer as a report. What is known of the data stays while other settings are wrong and the data is the same. */
function withFacts(answer, last, draft) {
  const report = answer.error ? { ok: false, error: answer.error, problems: [{ field: "", message: answer.error, fix: "" }] } : answer;
  const { system_prompt, prompt_template, ...rows } = draft.data.dataset ?? {};
  const about = JSON.stringify(rows);
  const known = last?.about === about ? last.derived : {};
  const kept = Object.fromEntries(["dataset_rows", "train_rows", "held_out_rows", "longest_prompt"].map((key) => [key, known[key]]));
  return { ...report, about, derived: { ...kept, ...report.derived } };
}

function reasonFor(problems, { words, titleOf }) {
  const [first] = problems;
  if (!first) return "";
  return problems.length === 1 ? `${words.reason_one} ${titleOf(first.field) || first.message}` : `${countText(problems.length, words)} ${words.reason_many}`;
}

/** The name in the form of a dotted setting: "algorithm.group_size" is "Group size G", "rewards.1.params" is "Reward 2". */
function titlesOf(described, words) {
  const fields = described.form.sections.flatMap((section) => section.fields);
  const titles = new Map(fields.map((field) => [field.name, field.title]));
  for (const section of described.form.sections) titles.set(section.name, titles.get(section.name) ?? section.title);
  return (field) => {
    const reward = /^rewards\.(\d+)/.exec(field);
    if (reward) return say(words.reward_number, { number: Number(reward[1]) + 1 });
    return titles.get(field) ?? field;
  };
}
