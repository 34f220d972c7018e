// Asks the server about the draft: after a pause in typing, only the newest answer counts, typing never waits.
// The check and the prompts are asked for side by side: prompts show while other settings are still wrong.

import { within } from "./poll.js";

const PAUSE_MS = 400;
const AGAIN_MS = 3000;
/** Names this page to the server, which answers its newest question only. */
export const PAGE = Math.random().toString(36).slice(2);

/**
 * @param handlers {checking(), report(report), previewing(), previewKept(), preview(answer), lost()}
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
      await Promise.all([check(ticket, data), preview(ticket, data)]);
    } catch (error) {
      if (ticket !== newest) return;
      console.warn("the check got no answer", error);
      handlers.lost();
      timer = setTimeout(() => ask(ticket), AGAIN_MS);
    }
  }

  async function check(ticket, data) {
    const report = await within(server.check_draft({ data, page: PAGE, ticket }), 120000);
    if (ticket === newest && !report.superseded) handlers.report(report);
  }

  async function preview(ticket, data) {
    const asked = JSON.stringify([data.model, data.dataset, data.algorithm?.extra]);
    if (asked === previewed) return handlers.previewKept();
    handlers.previewing();
    const answer = await within(server.preview_prompts({ data, page: PAGE, ticket }), 120000);
    if (ticket !== newest || answer.superseded) return undefined;
    previewed = answer.error ? null : asked;
    return handlers.preview(answer);
  }

  return { soon, now: () => soon(0) };
}
