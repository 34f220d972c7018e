import { h, replace, say, setText } from "./dom.js";
import { bytes, grouped } from "./format.js";

const TYPED_MS = 500;

/** The head of the Memory page: a preset or a run, the card, and the settings that matter for memory. */
export function buildSource({ words, about, view, onchange }) {
  const what = h("select", { class: "field", "aria-label": words.what, onchange: () => chosen(what.value) });
  const card = h("select", { class: "field", "aria-label": words.card, onchange: () => onchange({ card: card.value || null }) }, cardOptions());
  const sub = h("p", { class: "memory-sub" }, "\u00a0");
  const problems = h("ul", { class: "memory-problems", role: "alert", hidden: true });
  const other = h("p", { class: "muted small", hidden: true });
  const reset = h("button", { class: "button quiet", type: "button", hidden: true, onclick: () => { view.set.clear(); onchange({ prompt_tokens: null }); } }, words.reset);
  const fields = about.fields.map((field) => control(field));
  const prompt = promptControl();
  const node = h("section", { class: "card memory-head" },
    h("div", { class: "memory-title" }, h("h1", {}, words.title), what, h("label", { class: "memory-card-label" }, h("span", { class: "muted small" }, words.against), card)),
    sub,
    h("div", { class: "memory-fields" }, fields.map((one) => one.node), prompt.node),
    problems, h("div", { class: "memory-foot" }, other, reset));
  listed();

  function listed() {
    const option = (kind, id, name) => h("option", { value: `${kind} ${id}`, selected: kind === "run" ? view.run === id : !view.run && (view.preset ?? "quickstart") === id }, name);
    const rows = [...about.runs];
    if (view.run && !rows.some((one) => one.id === view.run)) rows.unshift({ id: view.run, name: view.run });
    replace(what,
      h("optgroup", { label: words.presets }, about.presets.map((one) => option("preset", one.name, one.name))),
      rows.length ? h("optgroup", { label: words.runs }, rows.map((one) => option("run", one.id, `${one.name} · ${dated(one.id)}`))) : []);
  }

  function chosen(value) {
    const at = value.indexOf(" ");
    const [kind, id] = [value.slice(0, at), value.slice(at + 1)];
    view.set.clear();
    onchange({ preset: kind === "preset" ? id : null, run: kind === "run" ? id : null, prompt_tokens: null });
  }

  function cardOptions() {
    const own = about.card.own;
    const first = own ? [["", say(words.own_card, { name: own.name, size: bytes(own.bytes) })]] : [];
    const rows = about.card.table.map((one) => [one.name, say(words.table_card, { name: one.name, size: bytes(one.gigabytes * 1e9, 2) })]);
    const known = [...first, ...rows, ["none", words.no_card]];
    const now = view.card ?? (own ? "" : about.card.usual);
    if (!known.some(([value]) => value === now)) known.unshift([now, now]);
    return known.map(([value, name]) => h("option", { value, selected: value === now }, name));
  }

  function control(field) {
    const input = inputOf(field, words);
    const problem = h("span", { class: "memory-problem small" });
    const node = h("label", { class: "memory-field", title: `${field.title}. ${field.help}` }, h("span", { class: "small" }, words.short[field.name] ?? field.title), input, problem);
    const send = () => {
      const text = read(input, field);
      if (view.look && text === view.look.base[field.name]) view.set.delete(field.name); else view.set.set(field.name, text);
      onchange({});
    };
    listen(input, send);
    return { node, input, field, show(found) {
      const wrong = found.problems.find((one) => one.field === field.name);
      setText(problem, wrong ? `${wrong.message}: ${wrong.fix}` : "");
      problem.hidden = !wrong;
      if (wrong) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
      node.classList.toggle("memory-changed", found.changed.includes(field.name));
      if (document.activeElement !== input || field.kind === "choice" || field.kind === "bool") write(input, field, found.values[field.name]);
      if (field.name === "memory.lora_rank") input.disabled = found.values["memory.adapter"] === "none";
      if (field.name === "memory.micro_batch") input.placeholder = found.derived ? say(words.derived, { count: found.derived.micro_batch }) : "";
    } };
  }

  function promptControl() {
    const input = h("input", { class: "field", type: "number", min: "1", step: "1", placeholder: words.assumed, value: view.prompt_tokens ?? "" });
    listen(input, () => onchange({ prompt_tokens: input.value || null }));
    return { input, node: h("label", { class: "memory-field", title: words.prompt_note }, h("span", { class: "small" }, words.prompt_tokens), input) };
  }

  /** What is known of the settings; an error leaves the fields as they are. */
  function show(found) {
    listed();
    if (found.error) { setText(sub, "\u00a0"); problems.hidden = true; return; }
    fields.forEach((one) => one.show(found));
    if (document.activeElement !== prompt.input) prompt.input.value = view.prompt_tokens ?? "";
    const names = fields.map((one) => one.field.name);
    const rest = found.problems.filter((one) => !names.includes(one.field));
    problems.hidden = rest.length === 0;
    replace(problems, rest.map((one) => h("li", {}, `${one.field}: ${one.message}: ${one.fix}`)));
    const more = found.changed.filter((name) => !names.includes(name));
    setText(other, more.length ? say(words.also_changed, { names: more.join(", ") }) : "");
    other.hidden = more.length === 0;
    reset.hidden = view.set.size === 0 && !view.prompt_tokens;
    setText(sub, found.derived ? describe(found) : found.model || "\u00a0");
  }

  function describe(found) {
    const parts = [found.model.split(/[/:]/).at(-1), words.dtypes[found.dtype] ?? found.dtype];
    if (found.adapter !== "none") parts.push(words.adapters[found.adapter]);
    parts.push(say(words.tokens_of, { count: grouped(found.completion_tokens) }), say(words.completions_of, { count: grouped(found.derived.completions) }));
    if (found.processes > 1) parts.push(say(words.processes_of, { count: found.processes }));
    return parts.join(" · ");
  }
  return { node, show };
}

function inputOf(field, words) {
  if (field.kind === "choice") return h("select", { class: "field" }, field.choices.map((value) => h("option", { value }, words.values[value] ?? value)));
  if (field.kind === "bool") return h("select", { class: "field" }, h("option", { value: "false" }, words.off), h("option", { value: "true" }, words.on));
  return h("input", { class: "field", type: "number", step: "1", min: String(field.ge ?? 1), max: String(field.le ?? "") });
}

function read(input, field) {
  return field.kind === "int" || field.kind === "number" ? input.value.trim() : input.value;
}

function write(input, field, text) {
  const value = field.kind === "bool" ? String(text === "true") : text;
  if (input.value !== value) input.value = value;
}

/** A choice is sent at once; what is typed when the typing stops, or by Enter. */
function listen(input, send) {
  if (input.tagName === "SELECT") { input.addEventListener("change", send); return; }
  let timer = null;
  let sent = input.value;
  const go = () => { clearTimeout(timer); if (input.value !== sent) { sent = input.value; send(); } };
  input.addEventListener("focus", () => { sent = input.value; });
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(go, TYPED_MS); });
  input.addEventListener("change", go);
}

/** "2026-11-29 23:53" out of an id that begins with 20261129-235338. */
function dated(id) {
  const found = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)/.exec(id);
  return found ? `${found[1]}-${found[2]}-${found[3]} ${found[4]}:${found[5]}` : "";
}
