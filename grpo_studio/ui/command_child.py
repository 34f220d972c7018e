"""`python -m grpo_studio.ui.command_child LIFELINE COMMAND...`: one command of the app's, gone when the app is.

LIFELINE is the descriptor of a pipe whose other end the app alone holds: it ends with the app, however that dies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from grpo_studio.commands import run


def _die_with(lifeline: int) -> None:
    os.read(lifeline, 1)  # nothing is ever written: this returns when the other end is closed
    os.killpg(0, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Run the command; its exit code."""
    lifeline, *command = arguments
    threading.Thread(target=_die_with, args=(int(lifeline),), daemon=True).start()
    return run(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
