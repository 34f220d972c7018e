import { h, replace, say, setText } from "./dom.js";
import { bytes } from "./format.js";
import { poll, within } from "./poll.js";

const PAGES = ["launch", "live", "memory", "verifiers", "runs"];

/** The top bar with its badges, and the element that a page fills. Draws into `element` once. */
export function buildFrame({ element, server, words, page }) {
  const lost = h("div", { class: "lost", role: "status", hidden: true });
  const device = h("span", { class: "badge", title: words.device_note });
  const queue = h("a", { class: "badge", href: "./runs#queue", title: words.queue_note });
  const links = PAGES.map((name) =>
    h("a", { href: name === "live" ? "./live" : `./${name}`, class: "nav-link", "aria-current": name === page ? "page" : null }, words.pages[name]));
  const theme = h("button", { class: "icon-button", type: "button", title: words.theme, "aria-label": words.theme,
    onclick: () => window.studioTheme() }, "◐");
  const main = h("main", { class: "page", id: "page" });
  replace(element,
    h("a", { class: "skip", href: "#page" }, words.skip),
    h("header", { class: "topbar" },
      h("a", { class: "brand", href: "./live" }, words.name),
      h("nav", { class: "nav", "aria-label": words.name }, links),
      h("div", { class: "badges" }, device, queue, theme)),
    lost, main);
  poll(async () => {
    const status = await within(server.frame_status({}));
    if (status.error) throw new Error(status.error);
    setText(device, say(words.device, { device: status.device, used: share(status.used, status.total), total: bytes(status.total, 2) }));
    setText(queue, status.queue_problem ? words.queue_unknown : say(status.queued ? words.queue : words.queue_empty, { count: status.queued }));
    queue.title = say(words.queue_open, { note: status.queue_problem || words.queue_note });
  }, { every: 10000, line: lost, lost: words.lost });
  return main;
}

/** The thin line under the top bar, for the page's own polling. */
export function lostLine() {
  return document.querySelector(".studio .lost");
}

/** The part in the unit of the whole, without it: "2.9" of "24 GB". */
function share(used, total) {
  const unit = total / Number.parseFloat(bytes(total, 3));
  return (used / unit).toFixed(1);
}
