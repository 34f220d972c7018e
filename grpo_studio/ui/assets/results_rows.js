import { h, replace, say } from "./dom.js";
import { fixed, grouped, number } from "./format.js";
import { within } from "./poll.js";

const FILTERS = ["gained", "lost", "right", "wrong", "unjudged"];

/** The rows of a comparison by what became of them, fifty a page; one opens to both completions side by side. */
export function buildRows({ words, server, trouble, lost, asked, onread }) {
  const view = { chosen: new Set(["gained", "lost"]), page: 0, pair: "", turn: 0 };
  const filters = Object.fromEntries(FILTERS.map((name) => [name, filter(name)]));
  const odds = h("p", { class: "muted small" });
  const list = h("div", { class: "results-list" });
  const pager = h("div", { class: "results-pager", hidden: true });
  const node = h("section", { class: "card results-rows" },
    h("div", { class: "card-head" }, h("h2", {}, words.rows), h("span", { class: "sub" }, words.rows_sub)),
    h("div", { class: "results-filters", role: "group", "aria-label": words.rows }, FILTERS.map((name) => filters[name].button)), odds, list, pager);

  function filter(name) {
    const count = h("b", {}, "–");
    const button = h("button", { class: "results-filter", type: "button", data: { outcome: name }, "aria-pressed": "false", onclick: () => toggle(name) }, count, h("span", {}, words.outcomes[name]));
    return { button, count };
  }

  function toggle(name) {
    if (!view.chosen.delete(name)) view.chosen.add(name);
    view.page = 0;
    onread();
    ask();
  }

  function show(found, pair) {
    for (const name of FILTERS) {
      filters[name].count.textContent = grouped(found.flips[name]);
      filters[name].button.hidden = name === "unjudged" && !found.flips[name];
    }
    odds.textContent = found.p === null ? words.no_flips : say(words.odds, { p: found.p < 0.001 ? "< 0.001" : `= ${number(found.p)}` });
    if (pair === view.pair) return;
    const first = view.pair === "";
    Object.assign(view, { pair, page: 0 });
    if (first && !found.flips.gained && !found.flips.lost) view.chosen = new Set(FILTERS);
    ask();
  }

  async function ask() {
    const turn = ++view.turn;
    for (const name of FILTERS) filters[name].button.setAttribute("aria-pressed", String(view.chosen.has(name)));
    if (!view.chosen.size) { replace(list, h("p", { class: "results-hint muted" }, words.choose_outcome)); pager.hidden = true; return; }
    const answer = await call("results_rows", { outcomes: [...view.chosen], page: view.page });
    if (turn !== view.turn || !answer) return;
    replace(list, answer.rows.length ? answer.rows.map(item) : h("p", { class: "results-hint muted" }, words.no_rows));
    pager.hidden = answer.pages < 2;
    const go = (label, by) => h("button", { class: "button", type: "button", disabled: answer.page + by < 0 || answer.page + by >= answer.pages, onclick: () => { view.page = answer.page + by; onread(); ask(); } }, label);
    replace(pager, go(words.previous, -1), h("span", { class: "muted small" }, say(words.page_of, { page: answer.page + 1, pages: answer.pages, total: grouped(answer.total) })), go(words.next, 1));
  }

  /** The answer, or null when there is none; that is told on the page. */
  async function call(name, request) {
    try {
      const answer = await within(server[name]({ ...asked(), ...request }));
      trouble.show(answer.error || "");
      return answer.error ? null : answer;
    } catch (error) {
      console.warn("no answer", error);
      trouble.show(lost);
      return null;
    }
  }

  function item(row) {
    const inside = h("div", { class: "results-inside", hidden: true });
    const button = h("button", { class: "results-row", type: "button", "aria-expanded": "false", data: { outcome: row.outcome } },
      h("span", { class: "outcome" }, words.marks[row.outcome]),
      h("span", { class: "prompt" }, row.prompt),
      h("span", { class: "gold muted" }, row.answer === null ? "" : say(words.gold, { answer: short(row.answer, 60) })),
      h("span", { class: "scores" }, `${number(row.before)} → ${number(row.after)}`));
    button.addEventListener("click", async () => {
      onread();
      const open = inside.hidden;
      if (open && !inside.childElementCount) {
        const both = await call("results_row", { group: row.group });
        if (!both) return;
        replace(inside, whole(both));
      }
      inside.hidden = !open;
      button.setAttribute("aria-expanded", String(open));
      if (open) inside.querySelectorAll(".text-box").forEach(offerMore);
    });
    return h("div", { class: "results-item" }, button, inside);
  }

  function whole({ before, after }) {
    return [
      h("div", { class: "results-prompt" }, box(after, "prompt", after.group, after.prompt, after.prompt_length), after.answer === null ? h("p", { class: "muted small" }, words.no_gold) : h("p", { class: "small" }, say(words.gold, { answer: after.answer }))),
      h("div", { class: "results-both" }, side(before, "a"), side(after, "b")),
    ];
  }

  function side(one, name) {
    return h("article", { class: `results-one side-${name}` },
      h("div", { class: "results-one-head" }, h("b", {}, words[`side_${name}`]), h("span", { class: "muted small" }, facts(one))),
      box(one, "completion", one.completion, one.text, one.length),
      h("ul", { class: "results-judged" }, one.scores.map(judged)));
  }

  function facts(one) {
    const parts = [one.reward === null ? words.no_reward : say(words.reward_of, { value: fixed(one.reward) }), say(one.tokens === 1 ? words.tokens_1 : words.tokens_n, { count: grouped(one.tokens) })];
    if (one.truncated) parts.push(words.cut_off);
    if (one.samples?.judged) parts.push(say(words.samples_of, one.samples));
    return parts.join(" · ");
  }

  function judged(score) {
    const value = score.value === null ? words.abstained : number(score.value);
    const found = score.extracted === null || score.extracted === undefined ? "" : say(words.found, { text: short(score.extracted, 60) });
    return h("li", {}, h("span", {}, `${score.verifier} `, h("b", {}, value)), h("span", { class: "muted" }, [found, score.reason].filter(Boolean).join(" · ")));
  }

  function box(one, kind, id, text, length) {
    return h("div", { class: "text-box", data: { kind, id: String(id), evaluation: one.evaluation, length: String(length), sent: String([...text].length) } }, h("div", { class: "text cut" }, text || "∅"));
  }

  /** "show all" where the text was cut by its lines or by the server. */
  function offerMore(node_) {
    const shown = node_.firstChild;
    const { kind, id, evaluation, length, sent } = node_.dataset;
    const partial = Number(length) > Number(sent);
    if (node_.dataset.offered || (!partial && shown.scrollHeight <= shown.clientHeight + 2)) return;
    node_.dataset.offered = "yes";
    const label = say(words.show_all, { count: grouped(Number(length)) });
    let complete = !partial;
    const button = h("button", { class: "link", type: "button", "aria-expanded": "false" }, label);
    button.addEventListener("click", async () => {
      const open = shown.classList.contains("cut");
      if (open && !complete) {
        const all = await call("results_text", { kind, id: Number(id), evaluation });
        if (!all) return;
        shown.textContent = all.text;
        complete = true;
      }
      shown.className = open ? "text open" : "text cut";
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? words.show_less : label;
    });
    node_.append(button);
  }
  return { node, show };
}

function short(text, most) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
