import { openImport } from "./actions_carry.js";
import { menuButton } from "./actions_menu.js";
import { buildQueue } from "./runs_queue.js";
import { makeActions } from "./actions_run.js";
import { faultBanner } from "./banner.js";
import { h, replace, say, setText, svg, term } from "./dom.js";
import { age, bytes, fixed, grouped, signed } from "./format.js";
import { lostLine } from "./frame.js";
import { sparkPoints, when } from "./live_top.js";
import { poll, within } from "./poll.js";

/** The Runs page: fifty rows a page; rows are redrawn only when the server says that something changed. */
export function start({ main, server, words, actions: own, frame }) {
  const asked = new URLSearchParams(location.search);
  const view = { filter: asked.get("filter") || "", page: 0, version: null, turn: 0, stopping: new Set() };
  const filter = h("input", { class: "field runs-filter", type: "search", placeholder: words.filter, "aria-label": words.filter, value: view.filter });
  const count = h("span", { class: "muted small", role: "status" });
  const problem = faultBanner(); // what the newest answer lacks
  const trouble = faultBanner(); // what an action did not do: goes with the next action
  const actions = makeActions({ server, words: own, frame, report: (text) => trouble.show(text), changed: refresh });
  const queue = buildQueue({ words, actions });
  const bring = h("button", { class: "button", type: "button", onclick: () => openImport({ server, words: own, frame, changed: refresh }) }, words.import);
  const body = h("tbody");
  const columns = ["state", "run", "model", "data", "reward", "steps", "age", "size"];
  const table = h("table", { class: "runs-table" }, h("thead", {}, h("tr", {},
    columns.map((name) => h("th", { scope: "col", class: `col-${name}` }, name === "reward" ? term(words.reward, words.reward_note) : words[name])), h("th", { class: "col-act" }))), body);
  const nothing = h("div", { class: "nothing", hidden: true });
  const pager = h("div", { class: "runs-pager", hidden: true });
  replace(main, problem.node, trouble.node, queue.node, h("section", { class: "card runs" }, h("div", { class: "runs-head" }, h("h1", {}, words.title), count, filter, bring), table, nothing, pager));
  document.title = `${words.title} · ${frame.name}`;
  const drawn = new Map(); // id -> {key, node, age, started}

  filter.addEventListener("input", () => ask({ filter: filter.value, page: 0 }));
  const polling = poll(tick, { line: lostLine(), lost: frame.lost });

  function ask(change) {
    Object.assign(view, change, { version: null, turn: view.turn + 1 });
    const address = new URLSearchParams(location.search);
    if (view.filter) address.set("filter", view.filter); else address.delete("filter");
    history.replaceState(history.state, "", address.size ? `?${address}` : location.pathname);
    polling.now();
  }

  async function tick() {
    const turn = view.turn;
    const answer = await within(server.runs_page({ filter: view.filter, page: view.page, version: view.version }));
    if (turn !== view.turn) return;
    problem.show(answer.error || "");
    if (answer.error) return;
    if (answer.rows) { view.version = answer.version; draw(answer); }
    for (const one of drawn.values()) setText(one.age, one.started ? age(Date.now() / 1000 - one.started) : "–");
  }

  function refresh() {
    view.version = null;
    polling.now();
  }

  function draw({ rows, total, page, pages, queue: waiting, queue_problem: broken }) {
    queue.show(waiting, broken);
    setText(count, total === 1 ? words.count_1 : say(words.count, { total: grouped(total) }));
    patch(rows);
    table.hidden = rows.length === 0;
    nothing.hidden = rows.length > 0;
    if (rows.length === 0) replace(nothing, view.filter ? h("p", { class: "muted" }, say(words.no_match, { filter: view.filter })) : [h("p", { class: "muted" }, words.none), h("a", { class: "button primary", href: "./launch" }, words.none_link)]);
    pager.hidden = pages < 2;
    const go = (label, by) => h("button", { class: "button", type: "button", disabled: page + by < 0 || page + by >= pages, onclick: () => ask({ page: page + by }) }, label);
    const key = `${page}/${pages}`;
    if (pager.dataset.key !== key) replace(pager, go(words.previous, -1), h("span", { class: "muted small" }, say(words.page_of, { page: page + 1, pages })), go(words.next, 1));
    pager.dataset.key = key;
  }

  /** Rows that are as they were stay the same nodes, so that the focus and a selection in them stay too. */
  function patch(rows) {
    const focused = document.activeElement?.closest("tr");
    const held = focused ? [...focused.querySelectorAll("a, button")].indexOf(document.activeElement) : -1;
    const focusedId = focused?.dataset.run;
    const wanted = new Set(rows.map((run) => run.id));
    for (const [id, one] of drawn) if (!wanted.has(id)) { one.node.remove(); drawn.delete(id); }
    rows.forEach((run, place) => {
      const key = JSON.stringify([run, view.stopping.has(run.id)]);
      const known = drawn.get(run.id);
      if (known?.key !== key) {
        const made = { key, started: run.started, ...row(run) };
        known?.node.replaceWith(made.node);
        drawn.set(run.id, made);
      }
      const { node } = drawn.get(run.id);
      if (body.children[place] !== node) body.insertBefore(node, body.children[place] ?? null);
    });
    if (held < 0 || document.activeElement?.closest("tr")) return;
    const again = drawn.get(focusedId)?.node.querySelectorAll("a, button");
    again?.[Math.min(held, again.length - 1)]?.focus({ preventScroll: true });
  }

  function row(run) {
    const link = `./live?run=${encodeURIComponent(run.id)}`;
    const old = h("td", { class: "col-age number" });
    const pill = h("span", { class: "pill", data: { state: run.state }, title: run.reason || "" }, frame.states[run.state]);
    const node = h("tr", { data: { run: run.id }, onclick: (event) => { if (!event.target.closest("a, button") && !String(getSelection())) location.href = link; } },
      h("td", { class: "col-state" }, pill),
      h("td", { class: "col-run" }, h("a", { href: link, "aria-label": say(words.open, { name: run.name }) }, run.name), h("div", { class: "under", title: run.problem || run.reason || run.id }, under(run))),
      h("td", { class: "col-model", title: run.model }, run.model),
      h("td", { class: "col-data", title: run.data }, run.data),
      h("td", { class: "col-reward" }, reward(run)),
      h("td", { class: "col-steps number" }, run.steps ? [String(run.step), h("span", { class: "muted" }, ` / ${run.steps}`), progress(run)] : "–"),
      old,
      h("td", { class: "col-size number" }, bytes(run.size), run.checkpoints ? h("div", { class: "under" }, run.checkpoints === 1 ? words.checkpoints_1 : say(words.checkpoints, { count: run.checkpoints })) : null),
      h("td", { class: "col-act" }, h("div", { class: "acts" }, run.ended ? null : stopButton(run), menuButton({ label: say(words.menu, { name: run.name }), words: own, items: () => actions.items(run) }))));
    return { node, age: old };
  }

  /** The line under a name: what is wrong, or why it ended, or when it began; and where it comes from. */
  function under(run) {
    const parts = [run.problem || (run.ended && run.state !== "finished" && run.reason) || when(run.id)];
    if (run.attempt > 1) parts.unshift(say(words.attempt, run));
    if (run.parent) parts.push(say(words.branch_of, run.parent));
    return parts.join(" · ");
  }

  function reward(run) {
    if (run.last === null) return h("span", { class: "muted" }, "–");
    const moved = run.last - run.first;
    const line = svg("svg", { class: "spark", viewBox: "0 0 100 22", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polyline", { points: sparkPoints(run.spark, 22) }));
    return h("div", { class: "runs-reward" }, h("b", {}, fixed(run.last)), h("span", { class: moved > 0 ? "good" : "muted" }, signed(moved)), line);
  }

  function progress(run) {
    return h("div", { class: "progress" }, h("span", { style: { width: `${Math.min(100, (100 * run.step) / run.steps)}%` } }));
  }

  /** Ask a run to stop; the line that says why it did not, if it did not. */
  async function stop(run) {
    try {
      const { error } = await within(server.runs_stop({ run: run.id }));
      return error ? say(words.stop_failed, { name: run.name, error }) : "";
    } catch (error) {
      console.warn("no answer", error);
      return frame.lost;
    }
  }

  function stopButton(run) {
    const busy = run.state === "stopping" || view.stopping.has(run.id);
    const label = run.state === "queued" ? words.cancel : words.stop;
    const button = h("button", { class: "button danger", type: "button", disabled: busy }, busy ? words.stopping : label);
    button.addEventListener("click", async () => {
      view.stopping.add(run.id);
      button.disabled = true;
      button.textContent = words.stopping;
      trouble.show("");
      const failed = await stop(run);
      if (failed) {
        view.stopping.delete(run.id);
        button.disabled = false;
        button.textContent = label;
        trouble.show(failed);
        view.version = null;
      }
      polling.now();
    });
    return button;
  }
}
