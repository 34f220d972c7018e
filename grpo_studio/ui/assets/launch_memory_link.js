import { query } from "./memory_address.js";

const SECTIONS = ["model", "algorithm", "memory", "rollout", "scale"]; // the others change no memory
const LONGEST = 500; // a chat template fits no address, and changes nothing there

/** The Memory page with the draft's settings: its preset, and what differs from it. */
export function memoryAddress(draft, card, promptTokens) {
  const set = new Map();
  for (const section of SECTIONS) {
    for (const [key, value] of Object.entries(draft.data[section] ?? {})) {
      const text = typeof value === "string" ? value : value === null ? "" : JSON.stringify(value);
      if (!draft.isPreset(`${section}.${key}`) && text.length <= LONGEST) set.set(`${section}.${key}`, text);
    }
  }
  return `./memory?${query({ preset: draft.preset, card, prompt_tokens: promptTokens, set })}`;
}
