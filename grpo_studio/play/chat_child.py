"""`python -m grpo_studio.play.chat_child RUN_DIR SIDE [SIDE]`: loads the sides of a chat and answers.

A process of its own, away from the app.

Reads one JSON object a line from stdin and writes one a line to stdout:

    in   {"turn": "t1", "side": 0, "messages": [...], "sampling": {...}}   or   {"stop": true}
    out  {"loading": "..."} ... {"ready": true}, {"turn", "side", "text": "a piece"} ...,
         {"turn", "side", "done": true, "tokens", "truncated"} or {"turn", "side", "error"}, and {"fatal": "..."}

The end of its stdin ends it, so that it never outlives who started it.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grpo_studio.checkpoints import checkpoint_or_base
from grpo_studio.errors import StudioError
from grpo_studio.play.talk import Sampling
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.store.folder import RunFolder

Tell = Callable[[Mapping[str, Any]], None]


class Requests:
    """What was asked for and not yet answered; `stopped` says that nobody wants the rest of the present turn."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._stop = threading.Event()

    def read(self) -> None:
        """Take lines until stdin ends, then end this process, whatever it does at the moment."""
        for line in sys.stdin.buffer:
            request = json.loads(line)
            if request.get("stop"):
                self._stop.set()
            else:
                self._waiting.put(request)
        os._exit(0)

    def next(self) -> dict[str, Any]:
        """The next turn to take; blocks."""
        request = self._waiting.get()
        if request.get("side") == 0:
            self._stop.clear()
        return request

    def stopped(self) -> bool:
        return self._stop.is_set()


def main(arguments: list[str]) -> None:
    """Load, then answer until stdin ends."""
    tell, requests = _channel(), Requests()
    threading.Thread(target=requests.read, daemon=True).start()
    try:
        answer = _answering(RunFolder(Path(arguments[0])), arguments[1:], tell, requests)
    except Exception as error:  # the boundary: whatever ends it is told to who started it
        tell({"fatal": _told(error)})
        return
    tell({"ready": True})
    while True:
        answer(requests.next())


def _answering(
    folder: RunFolder, names: list[str], tell: Tell, requests: Requests
) -> Callable[[Mapping[str, Any]], None]:
    sides = [checkpoint_or_base(folder, name) for name in names]
    tell({"loading": "loading the libraries"})
    from grpo_studio.training.chat import ChatModels

    models = ChatModels(folder.config(), Settings.from_env(), sides, lambda what: tell({"loading": what}))

    def answer(request: Mapping[str, Any]) -> None:
        about = {"turn": request["turn"], "side": request["side"]}
        try:
            reply = models.answer(
                request["side"],
                request["messages"],
                Sampling(**request["sampling"]),
                lambda piece: tell(about | {"text": piece}),
                requests.stopped,
            )
        except Exception as error:  # one reply's trouble: the chat goes on
            tell(about | {"error": _told(error)})
        else:
            tell(about | {"done": True, "tokens": reply.tokens, "truncated": reply.truncated})

    return answer


def _channel() -> Tell:
    """Stdout for the answers alone: what libraries print goes to stderr."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def tell(message: Mapping[str, Any]) -> None:
        out.write(json.dumps(message, ensure_ascii=True).encode() + b"\n")

    return tell


def _told(error: Exception) -> str:
    if isinstance(error, StudioError):
        return " ".join(str(error).split())
    traceback.print_exc()
    return f"{type(error).__name__}: {shown(str(error), 300)}"


if __name__ == "__main__":
    main(sys.argv[1:])
