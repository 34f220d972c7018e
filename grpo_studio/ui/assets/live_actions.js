import { changesTable } from "./actions_branch.js";
import { menuButton } from "./actions_menu.js";
import { h, replace, say, setText } from "./dom.js";

/** The actions in the strip of Live: Resume, Branch and the menu. `words` are those of Live, `own` those of actions. */
export function buildStripActions({ words, own, actions, report, run }) {
  const resume = guarded("primary", () => actions.resume(run()), report);
  const branch = guarded("", () => actions.branch(run()), report);
  const menu = h("span", { class: "strip-menu" });
  const node = h("div", { class: "strip-actions" }, resume.node, branch.node, menu);
  let named = "";

  function update(strip) {
    const can = strip.actions;
    resume.node.hidden = ["not_ended", "finished"].includes(can.resume.why);
    resume.set(words.resume, actions.why("resume", can.resume), can.resume.step ? say(words.resume_note, can.resume) : "");
    branch.set(words.branch, actions.why("branch", can.branch), words.branch_note);
    const { name } = run();
    if (named === name) return;
    named = name;
    replace(menu, menuButton({ label: say(own.menu, { name }), words: own, items: () => actions.items(run(), ["live", "resume", "branch"]) }));
  }
  return { node, update, blank: () => { resume.node.hidden = true; } };
}

/** A button that cannot be used now stays reachable and says why: on hover, to a screen reader, and when it is pressed. */
function guarded(kind, run, report) {
  const node = h("button", { class: `button ${kind}`, type: "button" });
  let off = "";
  let busy = false; // not `disabled`: that would take the focus away, and a dialog that opens gives it back to this button
  node.addEventListener("click", async () => {
    if (busy) return;
    if (off) { report(off); return; }
    busy = true;
    try { await run(); } finally { busy = false; }
  });
  return {
    node,
    set(label, why, note) {
      off = why;
      setText(node, label);
      node.title = why || note;
      node.classList.toggle("off", Boolean(why));
      if (why) node.setAttribute("aria-disabled", "true"); else node.removeAttribute("aria-disabled");
    },
  };
}

/** What the banner offers after an end that nobody wished for: the words that help, and what can be done at once. */
export function bannerHelp({ words, actions, run }) {
  const button = (label, onclick) => h("button", { class: "link", type: "button", onclick }, label);
  return (strip) => {
    const can = strip.actions;
    if (!strip.help) return [];
    return [
      words.help[strip.help] ? h("span", {}, words.help[strip.help]) : null,
      can.resume.allowed ? button(can.resume.step === null ? words.resume : say(words.resume_from, can.resume), () => actions.resume(run())) : null,
      can.branch.allowed ? button(words.branch, () => actions.branch(run())) : null,
      strip.help === "disk" ? h("a", { class: "link", href: "./runs" }, words.free_disk) : null,
    ];
  };
}

/** Where a branch comes from, and what it changed: one line that opens. */
export function buildLineage(words, own) {
  const node = h("section", { class: "card lineage", hidden: true });
  function show(parent) {
    node.hidden = !parent;
    if (!parent) return;
    const link = parent.here ? h("a", { href: `./live?run=${encodeURIComponent(parent.run)}` }, parent.name) : h("span", {}, parent.name, " ", h("span", { class: "muted" }, words.branch_gone));
    const from = [words.branch_of, " ", link, parent.step === null ? "" : ` ${say(words.branch_from, { step: parent.step })}`];
    const count = parent.changes.length;
    const counted = count === 1 ? words.branch_changes_1 : say(count ? words.branch_changes : words.branch_no_changes, { count });
    replace(node, count ? h("details", {}, h("summary", {}, from, ` · ${counted}`), changesTable(parent.changes, own)) : h("span", {}, from, ` · ${counted}`));
  }
  return { node, show };
}
