// Asks the server about the draft: after a pause in typing, only the newest answer counts, typing never waits.

import { within } from "./poll.js";

const PAUSE_MS = 400;
const AGAIN_MS = 3000;
const PAGE = Math.random().toString(36).slice(2); // names this page to the server, which answers its newest question only

/** Whether the prompts can be shown: only the model and the data matter to them. */
export function canRender(report) {
  return !report.error && report.problems.every((problem) => !/^(model|dataset)\b/.test(problem.field));
}

/**
 * @param handlers {checking(), report(report), previewing(), preview(answer), lost()}
 * @returns {soon(), now()}
 */
export function makeChecker(server, draft, handlers) {
  let newest = 0;
  let timer = null;
  let previewed = null;

  const soon = (pause = PAUSE_MS) => {
    clearTimeout(timer);
    newest += 1; // whatever is on its way answers an older draft
    handlers.checking();
    timer = setTimeout(() => ask(newest), pause);
  };

  async function ask(ticket) {
    const data = structuredClone(draft.data);
    try {
      const report = await within(server.check_draft({ data, page: PAGE, ticket }), 120000);
      if (ticket !== newest || report.superseded) return;
      handlers.report(report);
      if (canRender(report)) await preview(ticket, data);
    } catch (error) {
      if (ticket !== newest) return;
      console.warn("the check got no answer", error);
      handlers.lost();
      timer = setTimeout(() => ask(ticket), AGAIN_MS);
    }
  }

  async function preview(ticket, data) {
    const asked = JSON.stringify([data.model, data.dataset]);
    if (asked === previewed) return handlers.previewKept();
    handlers.previewing();
    const answer = await within(server.preview_prompts({ data }), 120000);
    if (ticket !== newest) return;
    previewed = answer.error ? null : asked;
    handlers.preview(answer);
  }

  return { soon, now: () => soon(0) };
}
