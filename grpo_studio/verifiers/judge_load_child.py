"""Loads files and ends: `python -m grpo_studio.verifiers.judge_load_child PARENT_PID MEMORY_LIMIT`.

In: one line, a JSON list of paths. Out: a byte for each file before it is begun with, and one after the last.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.lifeline import die_with_parent, limit_memory
from grpo_studio.verifiers.loading import load_file, load_in_this_process


def main() -> None:
    """Load the files named in the first line."""
    parent, memory = (int(argument) for argument in sys.argv[1:3])
    die_with_parent(parent)
    limit_memory(memory)
    requests, told = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # what the file prints as it is loaded is printed by the app, which loads it too
        os.dup2(nowhere, descriptor)
    load_in_this_process()
    for path in json.loads(requests.readline()):
        os.write(told, b".")
        with contextlib.suppress(VerifierError, KeyboardInterrupt):
            load_file(Path(path))
    os.write(told, b".")
    os._exit(0)  # threads that a file started must not keep this process


if __name__ == "__main__":
    main()
