import { h, replace } from "./dom.js";

/** A line for faults that is put in, and so read out, only when it changes. `show("")` takes it away. */
export function faultBanner() {
  const node = h("div", { class: "banner fault", role: "alert", hidden: true });
  let told = "";
  return {
    node,
    show(text, ...more) {
      if (text !== told) replace(node, text ? [h("span", {}, text), ...more] : []);
      told = text;
      node.hidden = !text;
    },
  };
}
