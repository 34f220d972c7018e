// The scan of the whole data set: begins by itself when the quick check is sound, again when what it depends on changes.

import { h, replace, say } from "./dom.js";
import { grouped } from "./format.js";
import { PAGE } from "./launch_check.js";
import { makeHistogram } from "./launch_scan_chart.js";
import { makeFindings } from "./launch_scan_findings.js";
import { within } from "./poll.js";

const EVERY_MS = 600;
const AGAIN_MS = 3000;
const SECTIONS = ["model", "dataset", "rewards", "algorithm", "memory", "rollout"]; // as in launch_data.py

/**
 * @param done called when a scan has ended: the check knows more then
 * @returns {root, changed(), consider(report)}
 */
export function makeScan({ server, draft, words, setField }, done) {
  const own = words.scan;
  const line = h("p", { class: "launch-scan-line", role: "status" }, own.waits);
  const fill = h("div", { class: "launch-progress-fill" });
  const bar = h("div", { class: "launch-progress", role: "progressbar", "aria-label": own.title, "aria-valuemin": "0", "aria-valuemax": "100" }, fill);
  const chart = makeHistogram(words);
  const findings = makeFindings({ draft, words, setField });
  const root = h("section", { class: "launch-scan", "aria-label": own.title },
    h("div", { class: "launch-scan-head" }, h("h3", {}, own.title), line), bar, chart.root, findings.root);
  let turn = 0;
  let key = null; // of the job that runs
  let about = null; // what was scanned, or is being scanned
  let timer = null;
  let shown = "";

  const aboutNow = () => JSON.stringify(SECTIONS.map((section) => draft.data[section]));
  const progress = (share) => {
    bar.classList.toggle("launch-scan-idle", share === null);
    fill.style.setProperty("width", `${Math.round(100 * (share ?? 0))}%`);
    bar.setAttribute("aria-valuenow", String(Math.round(100 * (share ?? 0))));
  };
  const tell = (text, wrong = false) => {
    if (line.textContent !== text) line.textContent = text;
    line.classList.toggle("launch-reason-wrong", wrong);
  };
  progress(null);

  const end = () => {
    key = null;
    progress(null);
    root.classList.remove("launch-scan-stale");
  };
  const forget = (text, wrong = false) => {
    end();
    shown = "";
    tell(text, wrong);
    chart.empty();
    findings.clear();
  };

  function begin() {
    const mine = ++turn;
    about = aboutNow();
    key = randomKey();
    const asked = { key, page: PAGE, data: structuredClone(draft.data) };
    step(mine, () => server.scan_begin(asked));
  }

  async function step(mine, ask) {
    clearTimeout(timer);
    let answer;
    try {
      answer = await within(ask(), 30000);
    } catch (error) {
      console.warn("no answer about the scan", error);
      if (mine === turn) timer = setTimeout(follow, AGAIN_MS, mine);
      return;
    }
    if (mine !== turn) return;
    if (answer.error) return forget(answer.error, true);
    if (answer.unknown || answer.state === "cancelled") return lostTrack();
    if (answer.state === "failed") return forget(answer.message, true);
    if (answer.state === "done") return finish(answer.result);
    tell(doing(answer));
    progress(answer.wanted ? answer.done / answer.wanted : 0);
    timer = setTimeout(follow, EVERY_MS, mine);
  }

  const stop = () => {
    turn += 1;
    clearTimeout(timer);
  };
  const follow = (mine) => step(mine, () => server.scan_progress({ key }));
  const lostTrack = () => {
    about = null;
    end();
    tell(own.waits);
  };
  const doing = ({ message, done: steps, wanted }) => {
    const what = own.doing[message] ?? message;
    return wanted ? `${what} · ${Math.floor((100 * steps) / wanted)} %` : what;
  };

  function show(report) {
    end();
    const whole = JSON.stringify(report);
    if (whole === shown) return;
    shown = whole;
    tell(summary(report, own));
    chart.show(report.lengths);
    findings.show(report);
  }

  function finish(report) {
    show(report);
    done();
  }

  return {
    root,
    /** The draft moved: what is shown may be out of date, and an older scan is of no use. */
    changed() {
      if (about === null || about === aboutNow()) return;
      root.classList.add("launch-scan-stale");
      about = null;
      if (key === null) return;
      server.scan_cancel({ key }).catch(() => {});
      stop();
      end();
    },
    /** The quick check has answered. */
    consider(report) {
      if (report.scan) {
        stop();
        about = aboutNow();
        return show(report.scan);
      }
      if (about === aboutNow()) return root.classList.remove("launch-scan-stale");
      if (sound(report)) return begin();
      about = null;
      stop();
      return forget(own.waits);
    },
  };
}

/** What a scan reads is there. */
function sound(report) {
  return !report.error && report.problems.every((problem) => !/^(model|dataset|rewards)\b/.test(problem.field));
}

function summary(report, own) {
  const rows = say(report.sampled ? own.sampled : own.whole, { rows: grouped(report.rows) });
  const parts = [rows, say(own.split, { train: grouped(report.train_rows), held_out: grouped(report.held_out_rows) })];
  if (report.left_out) parts.push(say(own.left_out, { count: grouped(report.left_out) }));
  return parts.join(" · ");
}

function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
