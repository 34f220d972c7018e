import { openBranch } from "./actions_branch.js";
import { openEvaluate, openExport, openPush } from "./actions_carry.js";
import { openDialog, workButton } from "./actions_dialog.js";
import { h, say } from "./dom.js";
import { bytes, number } from "./format.js";
import { within } from "./poll.js";

/**
 * What a person does with a run, the same on the Live and the Runs page. A run is {id, name}.
 * `report(text)` says what an action did not do ("" takes it away); `changed()` looks at the runs again.
 */
export function makeActions({ server, words, frame, report, changed }) {
  const context = { server, words, frame, report, changed, ask };

  /** The answer, or null when there is none or it is an error; then that is told by `tell`, or on the page. */
  async function ask(name, request, tell = report) {
    tell("");
    try {
      const answer = await within(server[name](request), 60000);
      if (!answer.error) return answer;
      tell(answer.error, true);
    } catch (error) {
      console.warn("no answer", error);
      tell(frame.lost, true);
    }
    return null;
  }

  /** Goes on at once, unless a limit ended the run: then its new value is asked for. */
  async function resume(run, known = null) {
    const found = known ?? (await ask("run_menu", { run: run.id }))?.actions.resume;
    if (!found) return;
    if (!found.allowed) report(why("resume", found));
    else if (found.limit) openLimit(context, run, found.limit);
    else if (await ask("run_resume", { run: run.id, set: [] })) changed();
  }

  async function cancel(run) {
    if (await ask("run_cancel", { run: run.id })) changed();
  }

  async function move(run, place) {
    if (await ask("run_move", { run: run.id, place })) changed();
  }

  async function remove(run) {
    const menu = await ask("run_menu", { run: run.id });
    if (menu) openDelete(context, run, menu);
  }

  function why(name, action) {
    return action.allowed ? "" : say(words.why[action.why], { what: words.items[name] });
  }

  /** The rows of a run's menu, from what the server says can be done with it now. */
  async function items(run, leave = []) {
    const menu = await ask("run_menu", { run: run.id });
    if (!menu) return [];
    const id = encodeURIComponent(run.id);
    const all = {
      live: { href: `./live?run=${id}` },
      results: { href: `./results?run=${id}` },
      pair: { href: `./pair?pair=${id}` },
      play: { href: `./play?run=${id}` },
      memory: { href: `./memory?run=${id}` },
      resume: { run: () => resume(run, menu.actions.resume) },
      branch: { run: () => openBranch(context, run) },
      evaluate: { run: () => openEvaluate(context, run, menu) },
      export: { run: () => openExport(context, run, menu) },
      archive: { run: () => openExport(context, run, menu, "archive") },
      push: { run: () => openPush(context, run, menu) },
      cancel: { run: () => cancel(run) },
      delete: { danger: true, run: () => remove(run) },
    };
    return Object.entries(all).filter(([name]) => shown(name, menu) && !leave.includes(name))
      .map(([name, item]) => ({ ...item, label: words.items[name], why: menu.actions[name] ? why(name, menu.actions[name]) : "" }));
  }

  /** What cannot be meant is left out; what is meant and cannot be done is there with its reason. */
  function shown(name, menu) {
    const action = menu.actions[name];
    if (name === "live") return menu.state !== "unreadable";
    if (!action) return false;
    if (name === "cancel") return action.allowed;
    if (name === "resume") return !["not_ended", "finished"].includes(action.why);
    return true;
  }
  return { resume, cancel, move, remove, items, why, branch: (run) => openBranch(context, run) };
}

function openLimit(context, run, limit) {
  const { words, ask, changed } = context;
  const field = h("input", { class: "field", type: "text", inputmode: "decimal", autofocus: true, value: String(limit.suggested), "aria-label": limit.title });
  const go = workButton(words.resume, { work: send });
  const dialog = openDialog({
    title: say(words.limit_title, { name: run.name }), sub: say(words.limit_sub, { title: limit.title.toLowerCase(), value: number(limit.value) }), words,
    body: [h("label", { class: "labelled" }, h("span", { class: "small" }, say(words.limit_new, { title: limit.title })), field), h("p", { class: "muted small" }, limit.help)],
    actions: go,
  });
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") go.click(); });

  async function send() {
    if (!await ask("run_resume", { run: run.id, set: [[limit.field, field.value.trim()]] }, dialog.tell)) return;
    dialog.close();
    changed();
  }
}

function openDelete(context, run, menu) {
  const { words, frame, ask, changed } = context;
  const action = menu.actions.delete;
  const go = workButton(words.delete, { kind: "danger", work: send });
  go.disabled = !action.allowed;
  const dialog = openDialog({
    title: say(words.delete_title, { name: run.name }), words,
    body: [
      h("p", {}, say(words.delete_text, { size: bytes(menu.size), state: frame.states[menu.state] })),
      h("p", { class: "mono muted" }, menu.run),
      action.allowed ? null : h("p", { class: "fault" }, say(words.why[action.why], { what: words.items.delete })),
    ],
    actions: go,
  });
  dialog.closeButton.focus();

  async function send() {
    if (!await ask("run_delete", { run: menu.run, sure: menu.run }, dialog.tell)) return;
    dialog.close();
    changed(menu.run);
  }
}
