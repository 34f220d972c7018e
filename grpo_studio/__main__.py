"""The command line: `python -m grpo_studio COMMAND`. What the app does, this does too."""

from __future__ import annotations

import sys

from grpo_studio.commands import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
