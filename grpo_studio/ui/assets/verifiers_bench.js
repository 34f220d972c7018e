// The bench: what to judge with and on, then the gold check, real samples and the exploit probes.

import { faultBanner } from "./banner.js";
import { h, replace } from "./dom.js";
import { within } from "./poll.js";
import { goldResult } from "./verifiers_gold.js";
import { makeJob } from "./verifiers_job.js";
import { probesResult } from "./verifiers_probes.js";
import { makeRewards } from "./verifiers_rewards.js";
import { samplesResult } from "./verifiers_samples.js";
import { dataFields, modelFields } from "./verifiers_setup.js";

const FIRST = { prompts: 16, per_prompt: 8 };

export function makeBench(context) {
  const { words, memory, server } = context;
  const root = h("div", { class: "v-bench" });
  const problem = faultBanner();
  let form = null;
  let rewards = null;
  let jobs = [];
  const waiting = []; // verifiers to add once the form is there
  const draft = () => memory.get("bench.data");

  load();

  async function load() {
    for (;;) {
      try {
        const answer = await within(server.verifiers_bench_form({}));
        if (!answer.error && answer.presets.length) { form = answer; break; }
        problem.show(answer.error || words.no_presets);
      } catch (error) {
        console.warn("no form of the bench", error);
      }
      await new Promise((done) => setTimeout(done, 3000));
    }
    if (!draft()) begin(form.presets[0].name);
    build();
    for (const [name, params] of waiting.splice(0)) add(name, params);
  }

  function begin(preset) {
    const settings = structuredClone(form.presets.find((one) => one.name === preset).settings);
    memory.set("bench.preset", preset);
    memory.set("bench.data", settings);
    memory.set("bench.size", memory.get("bench.size", { ...FIRST }));
  }

  function build() {
    problem.show("");
    for (const job of jobs) job.stop();
    const change = () => memory.set("bench.data", draft());
    rewards = makeRewards(context, draft(), form, change);
    const size = memory.get("bench.size", { ...FIRST });
    jobs = [
      makeJob(context, { kind: "gold", request, result: goldResult }),
      makeJob(context, { kind: "samples", request: () => ({ ...request(), ...memory.get("bench.size") }), result: samplesResult, fields: modelFields(form, draft(), size, () => { memory.set("bench.size", size); change(); }, words) }),
      makeJob(context, { kind: "probes", request, result: probesResult }),
    ];
    replace(root, problem.node, h("section", { class: "card v-setup" },
      h("div", { class: "card-head" }, h("h2", {}, words.bench_title), h("span", { class: "sub" }, words.bench_sub), presetPicker()),
      h("h3", {}, words.rewards), rewards.root,
      h("h3", {}, words.data), dataFields(form, draft(), change, words)), jobs.map((job) => job.root));
  }

  function presetPicker() {
    const select = h("select", { class: "field", id: "v-preset", onchange: () => { begin(select.value); build(); } },
      form.presets.map((one) => h("option", { value: one.name, selected: one.name === memory.get("bench.preset") }, one.name)));
    return h("span", { class: "v-preset" }, h("label", { class: "v-label", for: "v-preset" }, words.from_preset), select);
  }

  /** The settings as they are now; the wait for this call never changes what is sent. */
  function request() {
    return { data: structuredClone(draft()) };
  }

  function add(name, params) {
    if (!rewards) waiting.push([name, params]);
    else rewards.add(name, params);
  }

  return { root, add, catalogueChanged: () => rewards?.catalogueChanged() };
}

