// The Verifiers page: the list on the left; on the right a verifier with its try-it box, the bench, or the editor.

import { h, replace } from "./dom.js";
import { faultBanner } from "./banner.js";
import { lostLine } from "./frame.js";
import { poll, within } from "./poll.js";
import { makeBench } from "./verifiers_bench.js";
import { makeEditor } from "./verifiers_editor.js";
import { makeList } from "./verifiers_list.js";
import { Memory } from "./verifiers_memory.js";
import { makeTabs } from "./verifiers_tabs.js";
import { makeTry } from "./verifiers_try.js";

const VIEWS = ["try", "bench", "write"];

export function start({ main, server, words, frame }) {
  const asked = new URLSearchParams(location.search);
  const memory = new Memory("grpo-studio-verifiers");
  const context = {
    server, words, frame, memory,
    catalogue: { verifiers: [], failures: [], editor: { off: "", files: [], folder: "" }, sandbox: null, version: null },
    chosen: asked.get("verifier") || memory.get("chosen"),
    find: (name) => context.catalogue.verifiers.find((one) => one.name === name),
    choose, show, refresh: () => polling.now(),
    bench: (name, params) => { bench.add(name, params); show("bench"); },
  };
  document.title = `${words.title} · ${frame.name}`;
  const problem = faultBanner();
  const list = makeList(context);
  const [tryIt, bench, editor] = [makeTry(context), makeBench(context), makeEditor(context)];
  const panels = { try: tryIt, bench, write: editor };
  const tabs = makeTabs({ label: words.title, names: words.views, panels, chosen: (view) => remember({ view }) });
  replace(main, problem.node, h("div", { class: "verifiers" }, list.root, h("div", { class: "v-main" }, tabs.root)));
  tabs.show(VIEWS.find((view) => view === asked.get("view")) || (asked.has("verifier") ? "try" : memory.get("view") || "try"));
  const polling = poll(tick, { line: lostLine(), lost: frame.lost });

  async function tick() {
    const { version, editor: known } = context.catalogue;
    const answer = await within(server.verifiers_list({ version, editor: known }), 60000);
    problem.show(answer.error || "");
    if (answer.error || !answer.verifiers) return;
    context.catalogue = answer;
    if (!context.chosen) context.chosen = answer.first;
    list.draw();
    for (const panel of Object.values(panels)) panel.catalogueChanged();
  }

  function choose(name) {
    context.chosen = name;
    remember({ verifier: name });
    memory.set("chosen", name);
    list.mark();
    show("try");
    tryIt.draw();
    // In one column the verifier is below the list, where nobody would see that it changed.
    if (list.root.getBoundingClientRect().width > main.clientWidth / 2) tabs.root.scrollIntoView({ block: "start" });
  }

  function show(view) {
    tabs.show(view);
    remember({ view });
  }

  /** The address says what is on the page, so that it can be sent on. */
  function remember(change) {
    if (change.view) memory.set("view", change.view);
    const address = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(change)) address.set(key, value);
    history.replaceState(history.state, "", `?${address}`);
  }
}
