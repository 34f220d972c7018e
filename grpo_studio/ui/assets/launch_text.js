// Numbers and values as a person reads and writes them. No DOM here.

import { grouped } from "./format.js";

/** Three significant digits with a unit letter: 32768 -> "32.8 k". */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(Number(value))) return "–";
  const number = Number(value);
  const size = Math.abs(number);
  for (const [limit, unit] of [[1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (size >= limit) return trimmed(number / (limit === 1e4 ? 1e3 : limit)) + unit;
  }
  return Number.isInteger(number) ? grouped(number) : trimmed(number);
}

function trimmed(number) {
  return String(Number(number.toPrecision(3)));
}

/** The value of a setting as text for its input; numbers as people write them. */
export function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "number" && value !== 0 && Math.abs(value) < 0.001) return value.toExponential().replace("e-0", "e-");
  return String(value);
}

/** What a person typed, as the value to send; text that is no number stays text, and the check says so. */
export function parsed(text, field) {
  const plain = text.trim();
  if (plain === "" && field.nullable) return null;
  if (field.kind === "int" || field.kind === "number") {
    return plain !== "" && Number.isFinite(Number(plain)) ? Number(plain) : text;
  }
  if (field.kind === "map") {
    try {
      return JSON.parse(plain);
    } catch {
      return text;
    }
  }
  return text;
}
