import { h, say, setText } from "./dom.js";
import { grouped } from "./format.js";

/** One message and the two replies to it. What models say is put in as text alone. */
export function turnView(id, question, words) {
  const sides = ["a", "b"].map((side) => {
    const text = h("div", { class: "play-text" });
    const about = h("div", { class: "small muted", role: "status" }, words.waits);
    return { text, about, node: h("div", { class: `play-reply side-${side}` }, text, about) };
  });
  const node = h("article", { class: "play-turn" }, h("p", { class: "play-question" }, question), h("div", { class: "play-replies" }, sides.map((side) => side.node)));

  function show(replies) {
    replies.forEach((reply, place) => {
      const side = sides[place];
      setText(side.text, reply.text);
      side.text.classList.toggle("writing", !reply.done && reply.text !== "");
      setText(side.about, told(reply));
      side.about.classList.toggle("play-fault", Boolean(reply.error));
    });
  }

  function told(reply) {
    if (reply.error) return reply.error;
    if (!reply.done) return reply.text ? words.writes : words.waits;
    const count = say(reply.tokens === 1 ? words.tokens_1 : words.tokens_n, { count: grouped(reply.tokens) });
    return [count, reply.truncated ? words.cut_off : "", reply.text ? "" : words.said_nothing].filter(Boolean).join(" · ");
  }

  function end(reason) {
    for (const side of sides) if (side.text.classList.contains("writing") || !side.text.textContent) setText(side.about, reason);
    sides.forEach((side) => side.text.classList.remove("writing"));
  }

  return { id, node, show, end };
}
