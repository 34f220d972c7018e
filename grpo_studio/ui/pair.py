"""The page of two runs that differ in one setting: both over each other, live while they run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import gradio as gr

from grpo_studio.errors import RunNotFoundError, StudioError
from grpo_studio.job_queue import JobQueue
from grpo_studio.pair_records import SIDES, Pair, find_pair, same_pair
from grpo_studio.run_state import RunState
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import frame, pair_view
from grpo_studio.ui.guard import told
from grpo_studio.ui.pair_view import PairSide
from grpo_studio.ui.run_states import state_of

Answer = dict[str, Any]
LATEST = "latest"
PAIRS_REMEMBERED = 64


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /pair."""
    actions = PairActions(settings)
    with demo.route("Pair", "/pair"):
        frame.add_view("pair", "pair.js", [actions.pair_tick], settings)


@dataclass(frozen=True)
class _Seen:
    """A half as it is at this moment, and what tells that it has changed."""

    side: PairSide
    reader: RunReader | None
    mark: Answer


class PairActions:
    """The page's server functions. Requests come from anybody: a pair is looked up by its id."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._known: dict[str, Pair] = {}

    def pair_tick(self, request: Mapping[str, Any]) -> Answer:
        """What is new since `cursor`; with no cursor everything; with nothing new only the cursor.

        Parts of an answer: `about`, `sides`, and, when a step came or a run began anew, `measured`, `figures`,
        `settings`.
        """
        pair = self._pair(request)
        if pair is None:
            return {"empty": True}
        known = request.get("cursor") if isinstance(request.get("cursor"), Mapping) else {}
        with ExitStack() as stack:
            a, b = (self._seen(pair, place, stack) for place in range(2))
            memo = pair_view.memo_of(pair.id)
            with memo.lock:
                marks: Answer = {"pair": pair.id, "a": a.mark, "b": b.mark}
                unseen = a.reader is not None and b.reader is not None and not memo.compared.whole
                if not unseen and known and all(known.get(key) == value for key, value in marks.items()):
                    return {"cursor": dict(known)}
                sides = (a.side, b.side)
                news: Answer = {"about": pair_view.about(pair, sides), "sides": pair_view.sides(pair, sides)}
                if unseen or not known or _stepped(marks, known):
                    news |= pair_view.comparison(pair, sides, (a.reader, b.reader), memo)
        return {"cursor": marks} | news

    def _pair(self, request: Mapping[str, Any]) -> Pair | None:
        """The pair that is asked for, the newest when none is; None when there are none at all."""
        asked = frame.text_of(request, "pair")
        if asked is None:
            try:
                return find_pair(self.settings, LATEST)
            except RunNotFoundError:
                return None
        known = self._known.pop(asked, None)
        pair = find_pair(self.settings, asked) if known is None else same_pair(known, self.settings)
        self._known[asked] = pair
        while len(self._known) > PAIRS_REMEMBERED:
            del self._known[next(iter(self._known))]
        return pair

    def _seen(self, pair: Pair, place: int, stack: ExitStack) -> _Seen:
        """One half; what cannot be read costs neither the other half nor the page."""
        folder = pair.folders[place]
        if folder is None:
            return _Seen(PairSide(SIDES[place], None, None), None, {"gone": True})
        try:
            state = state_of(folder)
            reader = stack.enter_context(RunReader(folder.database))
            stack.enter_context(reader.snapshot())
            mark = asdict(reader.cursor()) | {"run": folder.run_id, "attempt": reader.newest_attempt().attempt}
        except (StudioError, OSError) as error:
            problem = told(f"the run {folder.run_id}", error)
            return _Seen(PairSide(SIDES[place], folder, None, problem=problem), None, {"problem": problem})
        side = PairSide(SIDES[place], folder, state, waits=self._waits(folder, state))
        return _Seen(side, reader, mark | {"state": state.state, "reason": state.reason, "waits": side.waits})

    def _waits(self, folder: RunFolder, state: RunState) -> bool:
        try:
            return state.state == "queued" and JobQueue(self.settings.queue_path).has(folder.path)
        except StudioError:  # the top bar tells what is wrong with the queue
            return True


def _stepped(marks: Answer, known: Mapping[str, Any]) -> bool:
    """Whether a step, a group, or an attempt came on either side, or a half came or went."""
    for side in ("a", "b"):
        before = known.get(side)
        if not isinstance(before, Mapping):
            return True
        if any(
            marks[side].get(key) != before.get(key) for key in ("metric", "group", "attempt", "run", "gone", "state")
        ):
            return True
    return False
