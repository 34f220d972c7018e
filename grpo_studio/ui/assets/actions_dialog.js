import { h, replace } from "./dom.js";

/** A dialog over the page: Escape and a click beside it close it, and the focus goes back to where it was. */
export function openDialog({ title, sub = "", body, actions, words, wide = false, onclose = null }) {
  const before = document.activeElement;
  const line = h("p", { class: "dialog-line small", role: "status" });
  const heading = h("h2", { id: `dialog-${Date.now()}` }, title);
  const close = h("button", { class: "button", type: "button", onclick: () => shut() }, words.close);
  const foot = h("div", { class: "dialog-foot" }, close, actions);
  const node = h("dialog", { class: `dialog${wide ? " wide" : ""}`, "aria-labelledby": heading.id },
    h("div", { class: "dialog-head" }, heading, sub ? h("p", { class: "muted small" }, sub) : null),
    h("div", { class: "dialog-body" }, body), line, foot);
  node.addEventListener("click", (event) => { if (event.target === node && beside(node, event)) shut(); });
  node.addEventListener("close", () => {
    node.remove();
    onclose?.();
    if (before?.isConnected) before.focus({ preventScroll: true });
  });
  document.querySelector(".studio").append(node);
  node.showModal();
  node.querySelector("[autofocus]")?.focus();

  function shut() { node.close(); }
  function tell(text, fault = false) {
    if (line.textContent !== text) replace(line, text);
    line.setAttribute("role", fault ? "alert" : "status");
    line.classList.toggle("fault", fault);
  }
  return { node, close: shut, tell, closeButton: close };
}

/** A click on the ground outside the box; one that began inside, as when text is selected, has its end in it. */
function beside(node, event) {
  const box = node.getBoundingClientRect();
  return event.detail > 0 && (event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom);
}

/** A button of a dialog that works while `work` does; presses meanwhile are none. It keeps the focus: it is not `disabled`. */
export function workButton(label, { kind = "primary", work }) {
  const button = h("button", { class: `button ${kind}`, type: "button" }, label);
  button.addEventListener("click", async () => {
    if (button.classList.contains("off")) return;
    button.classList.add("off");
    try { await work(); } finally { button.classList.remove("off"); }
  });
  return button;
}

/** Rows to choose a checkpoint from; `chosen()` is what the server calls it. */
export function checkpointList({ rows, words, describe, onchange = () => {} }) {
  const name = `checkpoint-${Math.random().toString(36).slice(2)}`;
  const inputs = rows.map((row, place) => h("input", { type: "radio", name, value: row.asked, checked: place === 0, onchange }));
  const node = h("fieldset", { class: "checkpoints" }, h("legend", { class: "small muted" }, words.checkpoint),
    rows.map((row, place) => h("label", { class: "checkpoint" }, inputs[place], describe(row))));
  return { node, chosen: () => inputs.find((input) => input.checked)?.value ?? null };
}
