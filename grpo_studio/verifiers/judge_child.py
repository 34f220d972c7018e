"""The process that runs verifiers: `python -m grpo_studio.verifiers.judge_child PARENT_PID MEMORY_LIMIT BOARD`.

Protocol, one JSON document a line, on duplicates of fd 0 and 1 that verifiers do not know of:
in first   {"directories": [path], "requests": [{"path", "name", "params"}, or null for one that is given up]}
                                   out  {"problems": [message or null, for each request], "seconds": [number],
                                    "refused": [requests whose params the verifier's own check refuses]}
in a unit  {"unit", "first", "items": [request, place, request, place, ...], "texts": [...], "columns": {name: [...]}}
                                   out  [unit, place of the first answer among the items, [answer...], done], some times
An answer is [kind, value, reason, extracted, seconds], its kind `raised` or one of `judge_score.RETURNED`. A text of
null asks for the ideal completion. `first` is the number of the unit's first item, counted over this child's life.

Answers are kept back for a moment, since writing each one costs more than most verifiers do. What tells the parent
which item hangs, or has ended this process, is the board, a page of shared memory: the number of the current item is
written to it before the item is judged. There the parent says, too, past which item the rest is no longer wanted.
What a verifier prints goes nowhere; the environment was emptied by the parent.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grpo_studio.verifiers.judge_prepared import Prepared, Unfit, prepare
from grpo_studio.verifiers.judge_process import BOARD_BYTES, CURRENT, LAST_WANTED
from grpo_studio.verifiers.lifeline import die_with_parent, limit_memory
from grpo_studio.verifiers.loading import load_in_this_process
from grpo_studio.verifiers.parts import configure

_MOST_HELD = 64
_LONGEST_HELD = 0.02  # seconds


def main() -> None:
    """Serve units until the pipe ends."""
    parent, memory, descriptor = (int(argument) for argument in sys.argv[1:4])
    die_with_parent(parent)
    limit_memory(memory)
    board = memoryview(mmap.mmap(descriptor, BOARD_BYTES)).cast("Q")
    os.close(descriptor)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    faulthandler.enable()  # A crash in C code leaves its traceback in the worker's log.

    setup = json.loads(requests.readline())
    load_in_this_process()
    configure([Path(directory) for directory in setup["directories"]])
    judged: list[Prepared | Unfit] = []
    for number, request in enumerate(setup["requests"], start=1):
        board[CURRENT] = number
        judged.append(prepare(request) if request else Unfit("it is given up"))
    board[CURRENT] = 0
    _send(
        answers,
        {
            "problems": [one.reason if isinstance(one, Unfit) else None for one in judged],
            "refused": [place for place, one in enumerate(judged) if isinstance(one, Unfit) and one.refused],
            "seconds": [0.0 if isinstance(one, Unfit) else one.seconds for one in judged],
        },
    )
    for line in requests:
        _serve(json.loads(line), judged, board, answers)


def _serve(unit: Mapping[str, Any], judged: list[Prepared | Unfit], board: memoryview, channel: int) -> None:
    items, texts, columns = unit["items"], unit["texts"], unit["columns"]
    number, count, process = unit["first"], len(items) // 2, os.getpid()
    held: list[list[Any]] = []
    sent, flushed = 0, time.perf_counter()
    for place in range(count):
        board[CURRENT] = number + place
        if 0 < board[LAST_WANTED] < number + place:
            count = place
            break
        prepared, row = judged[items[2 * place]], items[2 * place + 1]
        assert isinstance(prepared, Prepared), "the parent never sends an item of a request that has a problem"
        held.append(prepared.judge(texts[row], columns, row))
        if os.getpid() != process:
            os._exit(0)  # a fork that the verifier made and forgot to end
        if len(held) >= _MOST_HELD or time.perf_counter() - flushed > _LONGEST_HELD:
            _send(channel, [unit["unit"], sent, held, False])
            sent, held, flushed = place + 1, [], time.perf_counter()
    _send(channel, [unit["unit"], sent, held, True])


def _send(channel: int, document: Any) -> None:
    data = json.dumps(document).encode() + b"\n"
    while data:
        data = data[os.write(channel, data) :]


if __name__ == "__main__":
    main()
