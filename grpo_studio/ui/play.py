"""The Play page: chat with a run's model as it was and as it became, or with any two of its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gradio as gr

from grpo_studio import queries
from grpo_studio.checkpoints import BASE, best_of, checkpoint_or_base, whole_checkpoints
from grpo_studio.errors import StoreError, UsageError
from grpo_studio.play.process import PlayProcess
from grpo_studio.play.talk import as_in_training, messages_of, sampling_of
from grpo_studio.plots.figure import tidy
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import frame
from grpo_studio.ui.chosen import chosen_run
from grpo_studio.ui.live_run import run_name
from grpo_studio.ui.play_sessions import PlaySessions
from grpo_studio.ui.run_states import state_of

QUESTIONS = 30

Answer = dict[str, Any]


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /play."""
    actions = PlayActions(settings)
    functions: list[frame.ServerFunction] = [
        actions.play_about, actions.play_open, actions.play_state, actions.play_say, actions.play_stop,
        actions.play_close,
    ]  # fmt: skip
    with demo.route("Play", "/play"):
        frame.add_view("play", "play.js", functions, settings)


class PlayActions:
    """The page's server functions. A chat goes by the key that the page made up for itself."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sessions = PlaySessions()

    def play_about(self, request: Mapping[str, Any]) -> Answer:
        """The run, the sides that there are to choose from, and some held-out questions."""
        folder = chosen_run(self.settings, request)
        config = folder.config()
        found = whole_checkpoints(folder)
        best = best_of(found)
        sides: list[Answer] = [{"name": BASE, "step": 0, "score": None, "best": False}]
        sides += [
            {"name": one.name, "step": one.step, "score": tidy(one.manifest.score, 3), "best": one == best}
            for one in found
        ]
        return {
            "run": folder.run_id,
            "name": run_name(folder.run_id),
            "state": state_of(folder).state,
            "model": config.model.id,
            "sides": sides,
            "template": config.dataset.prompt_template,
            "system_prompt": config.dataset.system_prompt,
            "max_tokens": sampling_of({}, config).max_tokens,
            "questions": _questions(folder),
        }

    def play_open(self, request: Mapping[str, Any]) -> Answer:
        """Load two sides in a process of their own; returns at once."""
        folder = chosen_run(self.settings, request)
        names = [frame.text_of(request, side) or BASE for side in ("a", "b")]
        for name in names:
            checkpoint_or_base(folder, name)  # a checkpoint that is not there is told now
        return _told(self.sessions.open(_key(request), folder, self.settings, names))

    def play_state(self, request: Mapping[str, Any]) -> Answer:
        """How far loading is, and the replies of the turn that is named."""
        chat = self.sessions.chat(_key(request))
        if chat is None:
            return {"state": "ended"}
        turn = frame.text_of(request, "turn")
        return _told(chat) | {"replies": [asdict(said) for said in chat.replies(turn)] if turn else []}

    def play_say(self, request: Mapping[str, Any]) -> Answer:
        """Ask both sides, each in its own chat."""
        chat, turn, chats = self._open_chat(request), frame.text_of(request, "turn"), request.get("chats")
        if turn is None or not isinstance(chats, list) or len(chats) != len(chat.sides):
            raise UsageError(f"a turn has a name and {len(chat.sides)} chats")
        config = RunFolder(self.settings.runs_dir / chat.run_id).config()
        template = request.get("template") is True
        asked = [as_in_training(messages_of(messages), config.dataset, template) for messages in chats]
        sampling = request.get("sampling")
        chat.say(turn, asked, sampling_of(sampling if isinstance(sampling, Mapping) else {}, config))
        return {"ok": True}

    def play_stop(self, request: Mapping[str, Any]) -> Answer:
        """Let the reply that is being written end where it is."""
        self._open_chat(request).stop_turn()
        return {"ok": True}

    def play_close(self, request: Mapping[str, Any]) -> Answer:
        """Free the memory."""
        self.sessions.close(_key(request))
        return {"state": "ended"}

    def _open_chat(self, request: Mapping[str, Any]) -> PlayProcess:
        chat = self.sessions.chat(_key(request))
        if chat is None:
            raise UsageError("this chat was closed and its memory freed; load the models again")
        return chat


def _key(request: Mapping[str, Any]) -> str:
    key = frame.text_of(request, "key", longest=64)
    if key is None:
        raise UsageError("a chat has a key of up to 64 characters")
    return key


def _told(chat: PlayProcess) -> Answer:
    return {"state": chat.state, "message": chat.message, "sides": chat.sides}


def _questions(folder: RunFolder) -> list[str]:
    """Held-out questions as the run scored them, to try; none when nothing can be read."""
    try:
        with RunReader(folder.database) as reader:
            return queries.held_out_prompts(reader, QUESTIONS)
    except StoreError:
        return []
