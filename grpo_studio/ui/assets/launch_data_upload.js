// "Upload a file": by a file picker or dropped onto the card; once it is stored, its path is the source.

import { h, say } from "./dom.js";
import { bytes } from "./format.js";

/**
 * @param card the element that files can be dropped on
 * @param stored called with the path of the stored file
 * @returns {button, line}
 */
export function makeUpload({ words, described, base }, card, stored) {
  const { off, most_bytes: most, suffixes, path } = described.upload;
  const own = words.upload;
  const picker = h("input", { type: "file", class: "launch-picker", hidden: true, accept: suffixes.join(","), "aria-label": own.button, tabindex: "-1" });
  const button = h("button", { type: "button", class: "launch-link launch-upload", disabled: Boolean(off), title: off ?? own.note, onclick: () => picker.click() }, own.button);
  const text = h("span", { class: "launch-upload-text" });
  const bar = h("div", { class: "launch-progress" }, h("div", { class: "launch-progress-fill" }));
  const stop = h("button", { type: "button", class: "launch-link", onclick: () => request?.abort() }, own.cancel);
  const line = h("div", { class: "launch-upload-line", role: "status", hidden: true }, text, stop, bar, picker);
  let request = null;

  const tell = (message, { wrong = false, share = null } = {}) => {
    line.hidden = message === "";
    text.textContent = message;
    line.classList.toggle("launch-upload-wrong", wrong);
    bar.hidden = stop.hidden = share === null;
    bar.firstChild.style.setProperty("width", `${Math.round(100 * (share ?? 0))}%`);
  };
  const ended = (message, wrong = true) => {
    request = null;
    button.disabled = Boolean(off);
    tell(message, { wrong });
  };
  const send = (file) => {
    if (off) return tell(off, { wrong: true });
    if (request) return undefined;
    if (!suffixes.some((suffix) => file.name.toLowerCase().endsWith(suffix))) return tell(say(own.wrong_kind, { name: file.name.slice(-60), suffixes: suffixes.join(", ") }), { wrong: true });
    if (file.size > most) return tell(say(own.too_large, { size: bytes(file.size), most: bytes(most) }), { wrong: true });
    request = post(`${base}${path}?name=${encodeURIComponent(file.name)}`, file, {
      progress: (share) => tell(say(own.sending, { name: file.name.slice(-60), size: bytes(file.size) }), { share }),
      done(answer) {
        ended(answer.error ?? say(own.done, { name: file.name.slice(-60) }), Boolean(answer.error));
        if (answer.path) stored(answer.path);
      },
      lost: () => ended(own.lost),
      stopped: () => ended(own.stopped, false),
    });
    button.disabled = true;
    return undefined;
  };
  picker.addEventListener("change", () => {
    if (picker.files.length) send(picker.files[0]);
    picker.value = "";
  });
  takeDrops(card, send);
  return { button, line };
}

/** Send a file as it lies on the disk; XMLHttpRequest is the one that tells how far it is. */
function post(url, file, { progress, done, lost, stopped }) {
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", (event) => progress(event.lengthComputable ? event.loaded / event.total : 0));
  request.addEventListener("load", () => {
    try {
      done(JSON.parse(request.responseText));
    } catch {
      lost();
    }
  });
  request.addEventListener("error", lost);
  request.addEventListener("abort", stopped);
  request.open("POST", url);
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.send(file);
  progress(0);
  return request;
}

function takeDrops(card, send) {
  let inside = 0; // enter and leave come for every child as well
  const mark = (on) => {
    inside = on ? inside : 0;
    card.classList.toggle("launch-drop", on);
  };
  const withFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  card.addEventListener("dragenter", (event) => {
    if (!withFile(event)) return;
    inside += 1;
    mark(true);
  });
  card.addEventListener("dragleave", () => {
    inside -= 1;
    if (inside <= 0) mark(false);
  });
  card.addEventListener("dragover", (event) => withFile(event) && event.preventDefault());
  card.addEventListener("drop", (event) => {
    if (!withFile(event)) return;
    event.preventDefault();
    mark(false);
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
}
