// A list of suggestions under a free-text input: any text is allowed, the list only helps (ARIA combobox).

import { h } from "./dom.js";

let serial = 0;

/**
 * @param input the text input
 * @param holder its positioned parent
 * @param rows [{value, note}]
 * @param label what the list is of, for screen readers
 */
export function attachSuggestions(input, holder, rows, label) {
  const id = `launch-suggest-${++serial}`;
  const list = h("ul", { class: "launch-suggest", id, role: "listbox", "aria-label": label, hidden: true });
  let active = -1;
  let visible = [];
  holder.classList.add("launch-has-suggest");
  holder.append(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": id, "aria-expanded": "false" })) {
    input.setAttribute(name, value);
  }

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const mark = (index) => {
    active = index;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
    if (index < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[index].id);
    list.children[index].scrollIntoView({ block: "nearest" });
  };
  const pick = (row) => {
    input.value = row.value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };
  const open = (all) => {
    const typed = all ? "" : input.value.trim().toLowerCase();
    visible = rows.filter((row) => row.value.toLowerCase().includes(typed));
    if (visible.length === 0) return close();
    list.replaceChildren(...visible.map((row, index) => option(row, `${id}-${index}`, pick)));
    list.hidden = false;
    active = -1;
    input.setAttribute("aria-expanded", "true");
  };

  input.addEventListener("click", () => open(true));
  input.addEventListener("input", (event) => event.isTrusted && open(false));
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) return open(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark((active + step + visible.length) % visible.length);
    } else if (event.key === "Enter" && !list.hidden && active >= 0) {
      event.preventDefault();
      pick(visible[active]);
    } else if (event.key === "Escape" && !list.hidden) {
      event.stopPropagation();
      close();
    }
  });
}

function option(row, id, pick) {
  const item = h("li", { id, role: "option", "aria-selected": "false" }, h("span", { class: "launch-suggest-value" }, row.value));
  if (row.note) item.append(h("span", { class: "launch-suggest-note" }, row.note));
  // pointerdown comes before the input's blur, which would take the list away first
  item.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    pick(row);
  });
  return item;
}
