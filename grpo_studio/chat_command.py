"""`python -m grpo_studio chat RUN`: talk with a run's model as it was beside what it became."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from grpo_studio.checkpoints import BASE, checkpoint_or_base
from grpo_studio.command_output import tell
from grpo_studio.config import RunConfig
from grpo_studio.play.talk import Message, Reply, Sampling, as_in_training, messages_of, sampling_of
from grpo_studio.settings import Settings
from grpo_studio.shown import visible
from grpo_studio.store.folder import find_run

Answering = Callable[[int, Sequence[Message], Sampling, Callable[[str], None], Callable[[], bool]], Reply]
"""`training.chat.ChatModels.answer`."""


def add_chat_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `chat` besides those of all commands."""
    command.add_argument("run", help="id of the run, an unambiguous part of it, or latest")
    command.add_argument("--checkpoint", default="newest", help="its step, best, newest or final (default: newest)")
    command.add_argument("--against", default=BASE, help="the other side: base, a checkpoint, or none (default: base)")
    command.add_argument("--prompt", help="ask this alone and end; without it, each line that is typed is a turn")
    command.add_argument("--temperature", type=float, help="0 is greedy (default: 0)")
    command.add_argument("--max-tokens", type=int, help="longest reply (default: the run's longest completion)")
    command.add_argument("--seed", type=int, help="of the sampling (default: the run's)")
    command.add_argument("--raw", action="store_true", help="leave the run's prompt template out")


def chat(options: argparse.Namespace, settings: Settings) -> tuple[dict[str, Any], list[str], int]:
    """Both sides' replies: all turns of the chat, which ends with the input.

    Raises:
        StudioError: the run, a checkpoint or a model cannot be used.
    """
    folder = find_run(settings.runs_dir, options.run)
    config = folder.config()
    names = [options.checkpoint] if options.against == "none" else [options.against, options.checkpoint]
    sides = [checkpoint_or_base(folder, name) for name in names]
    sampling = sampling_of(vars(options), config)
    from grpo_studio.libraries import load_libraries

    load_libraries()
    from grpo_studio.training.chat import ChatModels

    models = ChatModels(config, settings, sides, tell)
    talk = _Talk(models.answer, config, names, sampling, template=not options.raw)
    turns = [talk.turn(text, show=None if options.json else _show) for text in _asked(options)]
    document = {"run": folder.run_id, "sides": names, "sampling": sampling.as_dict(), "turns": turns}
    return document, [], 0


class _Talk:
    """The chat so far; each side goes on from what it said itself."""

    def __init__(
        self, answer: Answering, config: RunConfig, names: Sequence[str], sampling: Sampling, template: bool
    ) -> None:
        self._answer, self._config, self._names = answer, config, names
        self._sampling, self._template = sampling, template
        self._said: list[list[Message]] = [[] for _ in names]

    def turn(self, text: str, show: Callable[[str], None] | None) -> dict[str, Any]:
        """Ask all sides; returns the question and each side's reply."""
        replies: list[Reply] = []
        for side, name in enumerate(self._names):
            messages = messages_of([*self._said[side], {"role": "user", "content": text}])
            if show is not None:
                show(f"{name}: ")
            asked = as_in_training(messages, self._config.dataset, self._template)
            reply = self._answer(side, asked, self._sampling, show or _quiet, lambda: False)
            if show is not None:
                show(f"{' [cut off]' if reply.truncated else ''}\n")
            self._said[side] = [*messages, {"role": "assistant", "content": reply.text}]
            replies.append(reply)
        told = [
            {"side": name, "text": reply.text, "tokens": reply.tokens, "truncated": reply.truncated}
            for name, reply in zip(self._names, replies, strict=True)
        ]
        return {"prompt": text, "replies": told}


def _asked(options: argparse.Namespace) -> Iterator[str]:
    """The questions, one after the other: the one given, or what is typed until the input ends."""
    if options.prompt is not None:
        yield options.prompt
        return
    typed = sys.stdin.isatty() and not options.json
    while True:
        if typed:
            print("you: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _show(text: str) -> None:
    """A piece of text on the terminal, without what a terminal would obey."""
    print("\n".join(visible(line) for line in text.split("\n")), end="", flush=True)


def _quiet(text: str) -> None:
    return None
