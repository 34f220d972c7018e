import { h, replace, say } from "./dom.js";
import { age } from "./format.js";

/** The queue on the Runs page: what trains now, then what waits, in order, with its place to be changed. */
export function buildQueue({ words, actions }) {
  const list = h("ol", { class: "queue-list" });
  const problem = h("p", { class: "small muted", hidden: true });
  const title = h("h2", { tabindex: "-1" }, words.queue);
  const node = h("section", { class: "card queue", id: "queue", hidden: true },
    h("div", { class: "card-head" }, title, h("span", { class: "sub" }, words.queue_note)), problem, list);
  let drawn = "";
  let asked = location.hash === "#queue";
  window.addEventListener("hashchange", () => { if (location.hash === "#queue") { asked = true; reach(); } });

  function show(rows, broken) {
    node.hidden = !rows.length && !broken;
    problem.hidden = !broken;
    replace(problem, broken);
    const key = JSON.stringify(rows);
    if (key !== drawn) {
      const held = focused();
      drawn = key;
      const last = Math.max(0, ...rows.map((row) => row.place));
      replace(list, rows.map((row) => line(row, last)));
      if (held) refocus(held);
    }
    reach();
  }

  /** The address asks for the queue: its title gets the focus, once. */
  function reach() {
    if (!asked || node.hidden) return;
    asked = false;
    node.scrollIntoView({ block: "nearest" });
    title.focus({ preventScroll: true });
  }

  function line(row, last) {
    const name = row.run ? h("a", { href: `./live?run=${encodeURIComponent(row.run)}` }, row.name) : h("span", { class: "muted" }, row.name, ` ${words.queue_elsewhere}`);
    const since = row.place ? say(words.queue_since, { age: age(Math.max(0, Date.now() / 1000 - row.enqueued)) }) : row.devices.length ? say(words.queue_devices, { devices: row.devices.join(", ") }) : "";
    return h("li", { class: "queue-row", data: { place: row.place, run: row.run } },
      h("span", { class: "muted" }, row.place || words.queue_now), h("span", { class: "name" }, name), h("span", { class: "since small" }, since),
      h("span", { class: "acts" }, row.place && row.run ? buttons(row, last) : null));
  }

  function buttons(row, last) {
    const run = { id: row.run, name: row.name };
    const arrow = (act, sign, label, by, off) => h("button", { class: "icon-button", type: "button", "aria-label": say(label, row), title: say(label, row), disabled: off, data: { act }, onclick: () => actions.move(run, row.place + by) }, sign);
    return [
      arrow("up", "↑", words.queue_up, -1, row.place === 1), arrow("down", "↓", words.queue_down, 1, row.place === last),
      h("button", { class: "button danger", type: "button", data: { act: "cancel" }, onclick: () => actions.cancel(run) }, words.queue_cancel),
    ];
  }

  /** The button that has the focus, by what it does to which run: after a move the focus goes with the run. */
  function focused() {
    const button = document.activeElement?.closest?.(".queue-row button");
    return button ? { run: button.closest("li").dataset.run, act: button.dataset.act } : null;
  }

  function refocus({ run, act }) {
    const row = [...list.children].find((one) => one.dataset.run === run);
    const wanted = row?.querySelector(`button[data-act="${act}"]:not(:disabled)`) ?? row?.querySelector("button:not(:disabled)");
    (wanted ?? title).focus({ preventScroll: true });
  }
  return { node, show };
}
