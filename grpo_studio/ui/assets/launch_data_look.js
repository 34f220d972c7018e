// Asks the server what columns the data has, after a pause in typing; only the newest answer counts.

import { PAGE } from "./launch_check.js";
import { within } from "./poll.js";

const PAUSE_MS = 300;

/** @param mapping {wait(), again(), show(answer), hide()} @returns {soon(kind)} */
export function makeLooker({ server, draft }, mapping) {
  let timer = null;
  let newest = 0;
  let known = null;

  async function ask(ticket, about) {
    const { model, dataset } = structuredClone(draft.data);
    try {
      const answer = await within(server.look_at_data({ data: { model: { id: model?.id }, dataset }, page: PAGE, ticket }), 120000);
      if (ticket !== newest || answer.superseded) return;
      known = answer.error ? null : about;
      if (answer.error) mapping.hide(); // the check says beside the field what is wrong
      else mapping.show(answer);
    } catch (error) {
      console.warn("no answer about the data", error);
      if (ticket === newest) mapping.hide();
    }
  }

  return {
    soon(kind) {
      clearTimeout(timer);
      newest += 1;
      if (kind === "builtin" || kind === "reasoning_gym") {
        known = null;
        return mapping.hide();
      }
      const { source, config, split, params, columns, streaming } = draft.data.dataset ?? {};
      const about = JSON.stringify([source, config, split, params, columns, streaming]);
      if (about === known) return mapping.again();
      mapping.wait();
      timer = setTimeout(ask, PAUSE_MS, newest, about);
    },
  };
}
