import { h, replace, say, term } from "./dom.js";
import { fixed, grouped, number, signed } from "./format.js";

/** The inspector: one group's prompt, gold and completions, best advantage first. All text is hostile and shown as text. */
export function buildInspector({ words, onmove, onread, fulltext }) {
  const node = h("div", { class: "inspector", "aria-live": "off" }, h("div", { class: "hint" }, words.inspect_hint));

  function show(group, run, place, count) {
    const focused = [...node.querySelectorAll(".steps-nav button")].indexOf(document.activeElement);
    const cards = group.completions.map((item) => card(item, group, run));
    replace(node,
      h("div", { class: "ask" },
        h("div", { class: "ask-head" }, textBox(group.prompt, group.prompt_length, "prompt", group.id), mover(place, count)),
        h("div", { class: "numbers" }, numbers(group))),
      group.kind === "mixed" ? null : h("p", { class: "muted small", style: { padding: "4px 12px" } }, group.kind === "unscored" ? words.no_reward : words.dead_note),
      h("div", { class: "answers" }, cards, cards.length < group.total ? h("p", { class: "muted small" }, say(words.best_of, { shown: cards.length, total: grouped(group.total) })) : null));
    node.querySelectorAll(".text-box").forEach(offerMore);
    if (focused >= 0) node.querySelectorAll(".steps-nav button")[focused].focus({ preventScroll: true });
  }

  function numbers(group) {
    const seen = group.seen.length > 1 ? say(words.seen, { steps: group.seen.join(", ") }) : group.seen_first ? words.seen_once : "";
    const gold = group.answer === null ? [words.no_gold] : [`${words.gold} `, h("b", {}, short(group.answer, 120))];
    return [gold, ` · ${words.mean} ${fixed(group.mean)} · ${words.deviation} ${fixed(group.spread)}${seen ? ` · ${seen}` : ""}`];
  }

  function mover(place, count) {
    return h("span", { class: "steps-nav" },
      h("button", { class: "icon-button", type: "button", "aria-label": words.previous, title: `${words.previous} (←)`, onclick: () => onmove(-1) }, "‹"),
      say(words.place, { place, count }),
      h("button", { class: "icon-button", type: "button", "aria-label": words.next, title: `${words.next} (→)`, onclick: () => onmove(1) }, "›"));
  }

  function card(item, group, run) {
    const advantage = item.advantage ?? 0;
    const sign = advantage > 0 ? "up" : advantage < 0 ? "down" : "flat";
    return h("article", { class: "answer" },
      h("span", { class: `advantage ${sign}`, title: words.advantage_note }, item.advantage === null ? "–" : signed(item.advantage)),
      bar(item, run),
      textBox(item.text, item.length, "completion", item.id),
      h("div", { class: "side" }, side(item, run)),
      h("div", { class: "judged" }, item.scores.map(judged)));
  }

  function side(item, run) {
    const score = item.scores.find((one) => one.extracted !== null && one.extracted !== undefined);
    const found = score ? [`${words.found} `, h("b", {}, short(score.extracted, 60)), " · "] : [];
    const tokens = item.tokens === 1 ? words.tokens_1 : say(words.tokens_n, { count: grouped(item.tokens) });
    return [found, tokens, item.truncated ? [" ", h("span", { class: "tag" }, say(words.cut, { count: run.longest }))] : null];
  }

  function judged(score) {
    const value = score.value === null ? words.abstains : say(words.score_of, { value: number(score.value), weight: number(score.weight) });
    return h("span", {}, h("i", { class: "swatch", style: { background: score.colour } }), `${score.verifier} `, h("b", {}, value), score.reason ? short(score.reason, 240) : "");
  }

  /** Weighted rewards, stacked from zero: what adds goes right, what takes away goes left. */
  function bar(item, run) {
    const low = Math.min(0, run.lowest);
    const high = Math.max(run.reachable, 0) || 1;
    const range = high - low;
    const parts = item.scores.filter((score) => score.value !== null && score.weight).map((score) => ({ colour: score.colour, size: score.value * score.weight, name: score.verifier }));
    let right = -low;
    let left = -low;
    const pieces = parts.map((part) => {
      const from = part.size >= 0 ? right : left + part.size;
      if (part.size >= 0) right += part.size; else left += part.size;
      return h("i", { style: { left: `${(100 * from) / range}%`, width: `${(100 * Math.abs(part.size)) / range}%`, background: part.colour } });
    });
    const label = item.reward === null ? words.no_reward : say(words.reward_of, { value: number(item.reward) });
    return h("div", { class: "bar", role: "img", "aria-label": label, title: `${label}\n${parts.map((part) => `${part.name} ${signed(part.size)}`).join("\n")}` }, pieces);
  }

  function textBox(text, length, kind, id) {
    const shown = h("div", { class: "text cut" }, text || "∅");
    return h("div", { class: "text-box", style: { flex: "1", "min-width": "0" }, data: { kind, id: String(id), length: String(length), sent: String([...text].length) } }, shown);
  }

  /** "show all" where the text was cut by the three lines or by the server. */
  function offerMore(box) {
    const shown = box.firstChild;
    const whole = Number(box.dataset.length);
    const partial = whole > Number(box.dataset.sent);
    if (!partial && shown.scrollHeight <= shown.clientHeight + 2) return;
    const label = `${words.show_all} (${say(words.more_chars, { count: grouped(whole) })})`;
    let complete = !partial;
    const button = h("button", { class: "link", type: "button", "aria-expanded": "false" }, label);
    button.addEventListener("click", async () => {
      onread();
      const open = shown.classList.contains("cut");
      if (open && !complete) {
        const all = await fulltext(box.dataset.kind, Number(box.dataset.id));
        if (all === null) return;
        shown.textContent = all;
        complete = true;
      }
      shown.className = open ? "text open" : "text cut";
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? words.show_less : label;
    });
    box.append(button);
  }

  return { node, show, clear: () => replace(node, h("div", { class: "hint" }, words.inspect_hint)) };
}

function short(text, most) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
