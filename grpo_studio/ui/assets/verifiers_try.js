// One verifier: what it is, and a box to try it on a text.

import { h, replace, say } from "./dom.js";
import { shown } from "./launch_text.js";
import { within } from "./poll.js";
import { columnFields, paramFields, readColumns } from "./verifiers_fields.js";
import { pair, prose, scoreBox } from "./verifiers_score.js";

const LONGEST_WAIT_MS = 120000;

export function makeTry(context) {
  const { words, memory } = context;
  const root = h("div", { class: "v-try" });
  let drawn = "";

  function draw() {
    const spec = context.find(context.chosen);
    const key = JSON.stringify([context.chosen, spec]);
    if (key === drawn) return;
    drawn = key;
    if (spec) replace(root, about(spec, context), box(spec));
    else replace(root, h("section", { class: "card" }, h("p", { class: "muted" }, context.chosen ? say(words.no_such, { name: context.chosen }) : words.none)));
  }

  function box(spec) {
    const kept = memory.get(`try.${spec.name}`);
    const typed = kept ?? startOf(spec.examples[0]);
    const completion = h("textarea", { class: "field v-input v-completion", id: "v-completion", rows: 5, spellcheck: "false" });
    completion.value = typed.completion;
    const score = scoreBox(words);
    const button = h("button", { type: "button", class: "button primary", onclick: judge }, words.judge);
    let params = typed.params;
    let columns = columnFields(columnsOf(spec, typed.columns, words), typed.columns, keep, words);
    const fields = paramFields(spec, params, (next) => { params = next; keep(); }, words);
    completion.addEventListener("input", keep);
    completion.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) judge(); });

    function keep() {
      try {
        memory.set(`try.${spec.name}`, { completion: completion.value, columns: columns.read(), params });
      } catch {
        // half-typed JSON is not kept
      }
    }

    async function judge() {
      const values = readColumns(columns, score, words);
      if (!values) return;
      button.disabled = true;
      score.wait();
      try {
        const answer = await within(context.server.verifiers_try({ verifier: spec.name, completion: completion.value, columns: values, params }), LONGEST_WAIT_MS);
        if (answer.error) score.fail(answer.error);
        else score.show(answer.score);
      } catch (error) {
        console.warn("no answer", error);
        score.fail(context.frame.lost);
      } finally {
        button.disabled = false;
      }
    }

    const prefill = spec.examples.map((example, number) => h("button", {
      type: "button", class: "v-chip", onclick: () => { memory.set(`try.${spec.name}`, startOf(example)); drawn = ""; draw(); focusCompletion(); },
    }, say(words.example, { number: number + 1 }), h("span", { class: "muted" }, ` → ${example.expected === null ? words.abstains : shown(example.expected)}`)));
    return h("section", { class: "card v-box" },
      h("div", { class: "card-head" }, h("h2", {}, words.try_title), h("span", { class: "sub" }, words.try_sub)),
      h("div", { class: "v-chips" }, prefill),
      h("div", { class: "v-box-grid" },
        h("div", { class: "v-fields" },
          h("div", { class: "v-field v-wide" }, h("label", { class: "v-label", for: "v-completion" }, words.completion), completion),
          columns.roots, fields.map((field) => field.root),
          h("div", { class: "v-actions v-wide" }, button,
            h("button", { type: "button", class: "button", onclick: () => context.bench(spec.name, params) }, words.to_bench))),
        score.root));
  }

  function focusCompletion() {
    root.querySelector(".v-completion")?.focus();
  }

  return { root, draw, catalogueChanged: draw };
}

function startOf(example) {
  return { completion: example?.completion ?? "", columns: example?.columns ?? {}, params: example?.params ?? {} };
}

/** The columns that a verifier is called with, and those that its example brings besides. */
export function columnsOf(spec, values, words) {
  const names = [...new Set([...spec.columns, ...Object.keys(values)])];
  const known = names.map((name) => ({
    name,
    optional: spec.optional.includes(name) || !spec.columns.includes(name),
    note: spec.given.includes(name) ? words.given : spec.optional.includes(name) ? words.optional : "",
  }));
  return spec.all_columns ? [...known, { name: words.more_columns, optional: true, rest: true, note: words.more_columns_note }] : known;
}

function about(spec, { words }) {
  const params = spec.params.map((param) => h("tr", {},
    h("th", { scope: "row" }, h("code", {}, param.name)),
    h("td", {}, param.required ? words.required : h("code", {}, shown(param.default) || words.empty_value)),
    h("td", { class: "muted" }, param.choices ? param.choices.map(String).join(", ") : prose(param.help))));
  const columns = spec.columns.map((name) => [h("code", {}, name), spec.optional.includes(name) ? h("span", { class: "muted" }, ` ${words.optional}`) : null, " "]);
  if (spec.all_columns) columns.push(words.all_columns);
  if (!columns.length) columns.push(words.no_columns);
  const expected = [...new Set(spec.examples.map((one) => one.expected).filter((value) => value !== null))].sort((a, b) => a - b);
  return h("section", { class: "card v-about" },
    h("div", { class: "v-about-head" }, h("h2", { class: "v-title" }, spec.name), spec.own ? h("span", { class: "pill" }, words.own_one) : null),
    h("p", {}, prose(spec.purpose)),
    spec.doc ? h("p", { class: "muted v-doc" }, prose(spec.doc)) : null,
    h("dl", { class: "v-facts v-facts-row" },
      pair(words.columns, columns),
      pair(words.scores, expected.length ? expected.map(shown).join(" · ") : "–"),
      pair(words.place, words.places[spec.place] ?? spec.place),
      pair(words.file, h("code", {}, spec.file))),
    params.length ? h("table", { class: "v-params" }, h("thead", {}, h("tr", {}, [words.param, words.default, words.meaning].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, params)) : h("p", { class: "muted small" }, words.no_params));
}
