// Where the lists under "Model" and "Data set" get further rows from: the Hub, and paths of this machine.

import { bytes } from "./format.js";
import { within } from "./poll.js";

const DOWN_MS = 20000; // how long the Hub is left alone after it could not be reached
const PATH = /^(?:\/|~$|~\/|\.{1,2}$|\.{1,2}\/)/;
const HUB = /^[\w][\w./ -]+$/; // what an id is searched by; a path or builtin:name is no one else's business

/** Let the fields for models and data sets search. */
export function searchFrom({ index, server, words }) {
  for (const [name, kind] of [["model.id", "model"], ["dataset.source", "dataset"]]) {
    index.entries.get(name)?.control.suggest?.from(makeSource(kind, server, words));
  }
}

function makeSource(kind, server, words) {
  let down = { until: 0, line: "" };
  const paths = async (text) => {
    const { rows = [], starts = [] } = await asked(server.complete_path({ kind, text }));
    return { rows: rows.map((row) => pathRow(row, words)), starts: text ? [] : starts, startsLabel: words.search.starts };
  };
  const hub = async (text) => {
    const answer = await asked(server.search_hub({ kind, text }));
    if (!answer.error) return { rows: answer.rows };
    down = { until: Date.now() + DOWN_MS, line: answer.error };
    return { line: answer.error };
  };
  return (text) => {
    if (text === "" || PATH.test(text)) return { waiting: "", answer: () => paths(text) };
    if (!HUB.test(text)) return null;
    if (Date.now() < down.until) return { waiting: down.line, answer: null };
    return { waiting: words.search.waiting, answer: () => hub(text) };
  };
}

/** An answer that does not come is no rows: the page says elsewhere that the connection is lost. */
async function asked(call) {
  try {
    return await within(call, 30000);
  } catch (error) {
    console.warn("no answer to a search", error);
    return { rows: [] };
  }
}

function pathRow({ value, kind, bytes: size }, words) {
  const note = { folder: words.search.folder, model: words.search.model_folder, file: bytes(size) }[kind];
  return { value, note, further: kind === "folder" };
}
