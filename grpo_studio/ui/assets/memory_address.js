/** What the Memory page looks at, as its address says it: /memory?preset=NAME|run=ID&set=a.b=value&card=NAME&probe=ID. */

const NAMES = ["preset", "run", "card", "probe"];

export function fromAddress() {
  const asked = new URLSearchParams(location.search);
  const view = Object.fromEntries(NAMES.map((name) => [name, asked.get(name)]));
  const set = new Map();
  for (const one of asked.getAll("set")) {
    const at = one.indexOf("=");
    if (at > 0) set.set(one.slice(0, at), one.slice(at + 1));
  }
  const tokens = asked.get("prompt_tokens");
  return { ...view, set, prompt_tokens: tokens };
}

export function address(view) {
  const asked = query(view);
  history.replaceState(history.state, "", `${location.pathname}${asked ? `?${asked}` : ""}`); // Gradio gives the page another base
}

/** What stands after the question mark. */
export function query(view) {
  const named = new URLSearchParams();
  for (const name of [...NAMES, "prompt_tokens"]) if (view[name]) named.set(name, view[name]);
  for (const [field, text] of view.set) named.append("set", `${field}=${text}`);
  return named.toString();
}

/** The same as a request; a number that is none is sent as it was typed, for the server to say so. */
export function requestOf(view) {
  const tokens = /^\d{1,9}$/.test(view.prompt_tokens ?? "") ? Number(view.prompt_tokens) : view.prompt_tokens;
  return { preset: view.preset, run: view.run, card: view.card, prompt_tokens: tokens, set: [...view.set] };
}
