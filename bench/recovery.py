"""How long it takes from the start of the app until 200 runs of all kinds are listed with true states.

    python -m bench.recovery [RUNS]

Runs are made cheaply: each has a record of 50 steps and a process.json as its kind leaves it. Each figure is of a
process of its own, as after a crash; what it takes to import the libraries is measured apart.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from grpo_studio.config import RunConfig
from grpo_studio.process_identity import start_token
from grpo_studio.store.folder import ProcessRecord, RunFolder, create_run
from grpo_studio.store.writer import RunWriter

ROOT = Path(__file__).resolve().parent.parent
STEPS = 50
NO_PROCESS = 2**22 + 1
BOOT = "00000000-0000-0000-0000-000000000000"
KINDS = ("queued", "running", "finished", "stopped", "failed", "paused", "killed", "rebooted", "disk full", "damaged")
TRUE = {"rebooted": "killed", "disk full": "paused", "damaged": "finished"}
PAGE = """
import time
from grpo_studio.settings import Settings
from grpo_studio.ui.runs import RunsActions
began, used = time.perf_counter(), time.process_time()
RunsActions(Settings.from_env()).runs_page({})
print(time.perf_counter() - began, time.process_time() - used)
"""


def make(runs_dir: Path, kind: str) -> RunFolder:
    """A run of one kind, as it lies on the disk."""
    folder = create_run(runs_dir, RunConfig(), kind)
    if kind == "queued":
        return folder
    writer = RunWriter(folder.database, 1)
    writer.event("training_started", "training")
    for step in range(1, STEPS + 1):
        with writer.transaction():
            writer.metrics(step, {f"metric/{number}": step / 7 for number in range(40)} | {"optim/loss": 0.5})
    terminal = {"finished": "run_finished", "damaged": "run_finished", "stopped": "run_stopped", "failed": "run_failed"}
    terminal["paused"] = "run_paused"
    if kind in terminal:
        writer.event(terminal[kind], f"the end of a run that is {kind}")
    writer.close()
    pid = os.getpid() if kind == "running" else NO_PROCESS
    started = start_token(pid) or f"{BOOT}:1"
    code = {"disk full": 28, "killed": -9}.get(kind)
    signal = 9 if kind == "killed" else None
    folder.write_process(ProcessRecord(pid, started, pid, os.uname().nodename, 1, code, signal))
    if kind == "damaged":
        with folder.database.open("r+b") as file:
            file.write(bytes(4096))
    return folder


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """Seconds by the clock, seconds of the processor, what it printed."""
    began, used = time.perf_counter(), _used()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, _used() - used, done.stdout


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(runs: int = 200) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        made = {
            make(home / "runs", KINDS[number % len(KINDS)]).run_id: KINDS[number % len(KINDS)] for number in range(runs)
        }
        environment = {**os.environ, "GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache")}
        command = [sys.executable, "-m", "grpo_studio", "runs", "--json"]
        bare = timed([sys.executable, "-c", "import grpo_studio.commands"], environment)
        first = timed(command, environment)
        again = timed(command, environment)
        page = timed([sys.executable, "-c", PAGE], environment)[2].split()
        states = {row["run"]: row["state"] for row in json.loads(first[2])}
        wrong = {run: (kind, states.get(run)) for run, kind in made.items() if states.get(run) != TRUE.get(kind, kind)}
        print(f"| {runs} runs of {len(KINDS)} kinds | seconds | of the processor |\n|---|---|---|")
        print(f"| importing what `runs` needs | {bare[0]:.2f} | {bare[1]:.2f} |")
        clock, processor = (after - before for after, before in zip(first[:2], bare[:2], strict=True))
        print(f"| `runs --json` beyond that, the first time after a crash | {clock:.2f} | {processor:.2f} |")
        print(f"| `runs --json` beyond that, again | {again[0] - bare[0]:.2f} | {again[1] - bare[1]:.2f} |")
        print(f"| the page Runs, beyond its imports | {float(page[0]):.2f} | {float(page[1]):.2f} |")
        print(f"\nstates: {dict(Counter(states.values()))}; wrong: {wrong or 'none'}")
        if wrong:
            raise SystemExit(1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
