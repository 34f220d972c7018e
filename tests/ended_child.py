"""`python -m ended_child PARENT SPEC`: tells what the spec says, as a probe's child does, then ends as it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    spec = json.loads(Path(sys.argv[2]).read_text())
    if spec.get("leaves_a_child"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(spec["leaves_a_child"]).write_text(str(child.pid))
    for message in spec.get("messages", []):
        print(json.dumps(message), flush=True)
    print(spec.get("words", ""), file=sys.stderr, flush=True)
    if "signal" in spec:
        os.kill(os.getpid(), spec["signal"])
        signal.pause()
    time.sleep(spec.get("sleeps", 0))
    sys.exit(spec.get("code", 0))


main()
