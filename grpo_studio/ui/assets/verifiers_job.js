// One part of the bench: its button, how far it is, and what came of it. Found again after a reload by its key.

import { h, replace, say } from "./dom.js";
import { grouped } from "./format.js";
import { within } from "./poll.js";

const EVERY_MS = 1000;

/**
 * @param kind gold, samples or probes
 * @param request () => what is sent besides the key
 * @param result (result, context) => nodes
 * @param fields nodes above the button
 */
export function makeJob(context, { kind, request, result, fields = null }) {
  const { server, memory } = context;
  const { words } = context;
  const own = words.jobs[kind];
  const go = h("button", { type: "button", class: "button primary", onclick: begin }, own.go);
  const cancel = h("button", { type: "button", class: "button", hidden: true, onclick: giveUp }, words.cancel);
  const line = h("span", { class: "muted small", role: "status" });
  const bar = h("div", { class: "progress v-progress", hidden: true }, h("span"));
  const out = h("div", { class: "v-result", data: { kind } });
  const root = h("section", { class: "card v-job" },
    h("div", { class: "card-head" }, h("h2", {}, own.title), h("span", { class: "sub" }, own.sub)),
    fields, h("div", { class: "v-actions" }, go, cancel, line), bar, out);
  let timer = null;
  let turn = 0;

  const known = memory.get(`bench.job.${kind}`);
  if (known) follow(known, ++turn);

  async function begin() {
    const key = randomKey();
    const mine = ++turn;
    memory.set(`bench.job.${kind}`, key);
    busy(true);
    replace(out);
    tell(words.doing.waiting);
    await step(mine, key, () => server.verifiers_bench_begin({ key, kind, ...request() }));
  }

  async function giveUp() {
    cancel.disabled = true;
    try {
      await within(server.verifiers_bench_cancel({ key: memory.get(`bench.job.${kind}`) }));
    } catch (error) {
      console.warn("not cancelled", error);
      cancel.disabled = false;
      tell(context.frame.lost, true);
    }
  }

  function follow(key, mine) {
    return step(mine, key, () => server.verifiers_bench_progress({ key }));
  }

  async function step(mine, key, ask) {
    clearTimeout(timer);
    let answer = null;
    try {
      answer = await within(ask(), 30000);
    } catch (error) {
      console.warn("no answer", error);
      if (mine === turn) tell(context.frame.lost, true);
    }
    if (mine !== turn) return;
    if (answer?.error) return end(answer.error, true);
    if (answer?.unknown) return end("", false);
    if (answer && answer.state !== "running") return finish(answer);
    busy(true);
    if (answer) showProgress(answer);
    timer = setTimeout(() => follow(key, mine), EVERY_MS);
  }

  function showProgress({ message, done, wanted }) {
    const doing = words.doing[message] ?? message;
    tell(wanted ? say(words.so_far, { doing, done: grouped(done), wanted: grouped(wanted) }) : doing);
    bar.hidden = !wanted;
    bar.firstChild.style.width = `${wanted ? Math.min(100, (100 * done) / wanted) : 0}%`;
  }

  function finish(answer) {
    if (answer.state === "failed") return end(answer.message, true);
    if (answer.state === "cancelled") return end(words.cancelled, false);
    end("", false);
    replace(out, result(answer.result, context));
  }

  function end(text, fault) {
    busy(false);
    tell(text, fault);
  }

  function busy(on) {
    go.disabled = on;
    cancel.hidden = !on;
    cancel.disabled = false;
    if (!on) bar.hidden = true;
  }

  function tell(text, fault = false) {
    replace(line, text);
    line.classList.toggle("v-fault", fault);
    line.classList.toggle("muted", !fault);
  }

  return { root, stop: () => { turn += 1; clearTimeout(timer); } };
}

function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
