/** Small element builders. Text goes in as text nodes only: nothing here, or in any page, writes innerHTML. */

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") Object.entries(value).forEach(([name, v]) => node.style.setProperty(name, v));
    else if (key === "data") Object.assign(node.dataset, value);
    else if (["value", "checked", "disabled", "hidden", "open", "selected"].includes(key) && key in node) node[key] = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/** Append strings, numbers, nodes and nested lists of them; null and false are left out. */
export function add(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export function replace(node, ...children) {
  node.textContent = "";
  return add(node, children);
}

/** Set text only when it changes, so that a selection survives a tick. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A term with its hover note; the note is reachable by keyboard and read by screen readers. */
export function term(label, note) {
  if (!note) return h("span", {}, label);
  return h("span", { class: "term", tabindex: "0", "data-note": note, "aria-label": `${label}. ${note}` }, label);
}

/** Fill {name} places of a phrase. */
export function say(phrase, values = {}) {
  return String(phrase ?? "").replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
