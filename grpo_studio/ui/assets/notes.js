/** Hover notes stay inside the window: a note that would run off the right edge is moved to the left. */

const MARGIN = 12;
const WIDEST = 300; // as in studio.css

export function placeNotes(element) {
  for (const kind of ["pointerover", "focusin"]) element.addEventListener(kind, (event) => place(event.target.closest?.(".term")));
}

function place(term) {
  if (!term) return;
  const width = Math.min(WIDEST, document.documentElement.clientWidth * 0.72);
  const room = document.documentElement.clientWidth - MARGIN - width - term.getBoundingClientRect().left;
  term.style.setProperty("--note-left", `${Math.floor(Math.min(0, room))}px`);
}
