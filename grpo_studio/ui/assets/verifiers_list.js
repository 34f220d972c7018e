// The list of all verifiers that were found, and of the files that failed.

import { h, replace, say, term } from "./dom.js";
import { prose } from "./verifiers_score.js";

export function makeList(context) {
  const { words, memory } = context;
  const count = h("span", { class: "muted small", role: "status" });
  const sandbox = h("span", { class: "v-sandbox" });
  const filter = h("input", { class: "field v-filter", type: "search", placeholder: words.filter, "aria-label": words.filter, value: memory.get("filter", "") });
  const body = h("div", { class: "v-groups" });
  const failed = h("div", { class: "v-failed", hidden: true });
  const folder = h("p", { class: "muted small v-folder" });
  const scrolled = h("div", { class: "v-list-scroll" }, body);
  const root = h("section", { class: "card v-list" },
    h("div", { class: "v-list-head" }, h("h1", {}, words.title), count), sandbox, filter, failed, scrolled, folder);
  filter.addEventListener("input", () => { memory.set("filter", filter.value); draw(); });

  function draw() {
    const { verifiers, failures, editor } = context.catalogue;
    const wanted = filter.value.trim().toLowerCase();
    const shown = verifiers.filter((one) => `${one.name} ${one.purpose} ${one.file}`.toLowerCase().includes(wanted));
    replace(count, say(words.count, { total: verifiers.length }));
    drawSandbox(context.catalogue.sandbox);
    const held = document.activeElement?.closest?.(".v-item")?.dataset.name;
    const groups = [[words.own, shown.filter((one) => one.own)], [words.built_in, shown.filter((one) => !one.own)]];
    replace(body, groups.filter(([, items]) => items.length).map(([title, items]) =>
      h("div", {}, h("h2", {}, title), h("ul", {}, items.map(item)))), shown.length ? null : h("p", { class: "muted small" }, words.no_match));
    drawFailed(failures);
    replace(folder, words.folder, " ", h("code", {}, editor.folder));
    mark();
    if (held) [...body.querySelectorAll(".v-item")].find((node) => node.dataset.name === held)?.focus({ preventScroll: true });
  }

  function item(one) {
    return h("li", {}, h("button", { type: "button", class: "v-item", data: { name: one.name }, onclick: () => context.choose(one.name) },
      h("span", { class: "v-name" }, one.name), h("span", { class: "v-purpose" }, prose(one.purpose))));
  }

  function drawFailed(failures) {
    failed.hidden = failures.length === 0;
    replace(failed, h("h2", {}, failures.length === 1 ? words.failed_1 : say(words.failed, { count: failures.length })),
      h("ul", {}, failures.map((one) => h("li", {}, h("b", {}, one.file), h("span", {}, one.message)))));
  }

  function drawSandbox(level) {
    replace(sandbox, level ? [h("span", { class: "muted" }, `${words.sandbox} `),
      h("span", { class: level.full ? "v-good" : "v-warn" }, term(level.level, level.note || words.sandbox_note))] : []);
  }

  /** Bring it into view in the list alone: the page itself does not move. */
  function reveal(node) {
    const [box, own] = [scrolled.getBoundingClientRect(), node.getBoundingClientRect()];
    if (own.bottom > box.bottom || own.top < box.top) scrolled.scrollTop += own.top - box.top - box.height / 3;
  }

  function mark() {
    for (const node of body.querySelectorAll(".v-item")) {
      const chosen = node.dataset.name === context.chosen;
      if (!chosen) node.removeAttribute("aria-current");
      else if (!node.hasAttribute("aria-current")) { node.setAttribute("aria-current", "true"); reveal(node); }
    }
  }

  return { root, draw, mark };
}
