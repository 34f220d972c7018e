/** Numbers for people: three significant digits, with units; "–" for what is not there. */

const NONE = "–";
const MINUS = "−";
let units = {};
const missing = (value) => value === null || value === undefined || !Number.isFinite(value);

/** The words for units of time, from the table of strings. */
export function setUnits(words) { units = words; }

export function number(value, digits = 3) {
  if (missing(value)) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(1).replace(".0e", "e").replace("e+", "e").replace(/-/g, MINUS);
  if (size >= 1000) return grouped(Math.round(value));
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return trim(value.toFixed(Math.min(places, 6))).replace("-", MINUS);
}

/** Always two decimals: for columns and big tiles, so that nothing jumps. */
export function fixed(value, places = 2) {
  return missing(value) ? NONE : value.toFixed(places).replace("-", MINUS);
}

export function signed(value, places = 2) {
  return missing(value) ? NONE : (value >= 0 ? "+" : "") + fixed(value, places);
}

export function percent(value) {
  if (missing(value)) return NONE;
  const share = value * 100;
  return `${share > 0 && share < 1 ? share.toFixed(1) : Math.round(share)} %`;
}

export function grouped(value) {
  return missing(value) ? NONE : String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

export function bytes(value, digits = 3) {
  if (missing(value)) return NONE;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  let left = value;
  while (left >= 1000 && power < units.length - 1) { left /= 1000; power += 1; }
  return `${power === 0 ? left : left >= 999.5 ? Math.round(left) : left.toPrecision(Math.max(digits, Math.ceil(Math.log10(left + 1))))} ${units[power]}`;
}

/** Seconds as "5.6 s", "1 min 30 s", "2 h 5 min", "3 d 1 h". */
export function duration(seconds) {
  if (missing(seconds)) return NONE;
  const { second, minute, hour, day } = units;
  if (seconds < 10) return `${seconds.toFixed(1)} ${second}`;
  if (seconds < 60) return `${Math.min(59, Math.round(seconds))} ${second}`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} ${minute} ${Math.min(59, Math.round(seconds % 60))} ${second}`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} ${hour} ${Math.floor((seconds % 3600) / 60)} ${minute}`;
  return `${Math.floor(seconds / 86400)} ${day} ${Math.floor((seconds % 86400) / 3600)} ${hour}`;
}

/** A rough age that does not tick: "< 1 min", then whole minutes, hours, days. */
export function age(seconds) {
  if (seconds < 60) return units.under_a_minute;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} ${units.minute}`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} ${units.hour}` : `${Math.floor(seconds / 86400)} ${units.day}`;
}

export function clock(ts) {
  return new Date(ts * 1000).toLocaleTimeString("en-GB");
}

function trim(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
