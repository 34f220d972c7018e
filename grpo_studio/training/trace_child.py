"""`python -m grpo_studio.training.trace_child`: traces models for a forecast, away from who asks.

Reads one `TraceRequest` as JSON a line from stdin and writes one object a line to stdout:

    {"traced": {...}}   or   {"error": "one line", "model": {...} | null}

The end of its stdin ends it, so that it never outlives who started it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

from grpo_studio.errors import StudioError
from grpo_studio.memory.traced import TraceRequest
from grpo_studio.shown import shown


def main() -> None:
    """Load the libraries, then answer until stdin ends."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what libraries print is no answer
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(waiting,), daemon=True).start()
    gc.disable()  # a fifth of the time that loading takes
    import peft  # noqa: F401 (models with an adapter need it, and it takes a while)

    from grpo_studio.training.trace_model import limit_memory
    from grpo_studio.training.trace_whole import trace  # noqa: F401 (the same)

    limit_memory()
    gc.collect()
    gc.freeze()
    gc.enable()
    while True:
        out.write(json.dumps(answer(waiting.get())).encode() + b"\n")
        gc.collect()


def answer(line: bytes) -> Mapping[str, Any]:
    """What is said to one line."""
    from grpo_studio.training.trace_model import TracedModel
    from grpo_studio.training.trace_whole import trace

    model: TracedModel | None = None
    try:
        request = TraceRequest.from_dict(json.loads(line))
        model = TracedModel(request)
        return {"traced": trace(model).as_dict()}
    except Exception as error:  # the boundary: whatever a stranger's config brings about is told
        counted = None if model is None else vars(model.bytes)
        return {"error": _told(error), "model": counted}


def _told(error: Exception) -> str:
    if isinstance(error, StudioError):
        return " ".join(str(error).split())
    traceback.print_exc()
    return (
        f"the model's modules cannot be traced: {type(error).__name__}: {shown(str(error), 300)}; go by the closed form"
    )


def _read(waiting: SimpleQueue[bytes]) -> None:
    """Take lines until stdin ends, then end this process, whatever it does at the moment."""
    for line in sys.stdin.buffer:
        waiting.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
