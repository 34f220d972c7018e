"""What checkpoints cost: seconds that one adds to a step, and seconds of a resume beyond the loading of the model.

    python -m bench.checkpoints [--rounds 5] [--steps 12]

The tiny model of the tests on this CPU. The kinds take turns within a round; figures are medians of the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
os.environ["TORCHDYNAMO_DISABLE"] = "1"

from resumed_here import Runs, begin
from tiny_model import make_tiny_model

from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["GRPO_STUDIO_HOME"] = place
        runs = Runs(make_tiny_model(Path(place) / "model"), Settings.from_env())
        rows = [_round(runs, options.steps) for _ in range(options.rounds + 1)][1:]  # the first one warms up
    print(f"{options.rounds} rounds of {options.steps} steps, medians in seconds (least, greatest)")
    for name in rows[0]:
        values = [row[name] for row in rows]
        print(f"  {name:<58}{statistics.median(values):8.3f}   ({min(values):.3f}, {max(values):.3f})")


def _round(runs: Runs, steps: int) -> dict[str, float]:
    plain = _trained(runs, f"algorithm.steps={steps}", "checkpoint.every=0", "dataset.held_out=0")
    saving = _trained(runs, f"algorithm.steps={steps}", "checkpoint.every=1", "dataset.held_out=0")
    start = _seconds_to_first_step(plain, attempt=1)
    begin(saving, steps - 1)
    with contextlib.redirect_stdout(io.StringIO()):
        runs.attempt(saving, 2)
    resumed = _seconds_to_first_step(saving, attempt=2)
    with_, without = _step_seconds(saving), _step_seconds(plain)
    return {
        "a step without a checkpoint": without,
        "a step with one": with_,
        "what a checkpoint adds": with_ - without,
        "from the start of the session to the first step: new run": start,
        "the same of a resume": resumed,
        "what a resume adds": resumed - start,
    }


def _trained(runs: Runs, *overrides: str) -> RunFolder:
    with contextlib.redirect_stdout(io.StringIO()):
        return runs.left_alone(*overrides)


def _step_seconds(folder: RunFolder) -> float:
    """Median seconds between the records of two steps that follow each other."""
    with RunReader(folder.database) as reader:
        moments = [
            moment
            for (moment,) in reader.rows(
                "SELECT ts FROM metric WHERE name = 'optim/loss' AND attempt = 1 ORDER BY step"
            )
        ]
    return statistics.median(after - before for before, after in itertools.pairwise(moments))


def _seconds_to_first_step(folder: RunFolder, attempt: int) -> float:
    with RunReader(folder.database) as reader:
        first = reader.rows("SELECT min(ts) FROM event WHERE attempt = ? AND kind = 'preparing'", (attempt,))[0][0]
        done = reader.rows("SELECT min(ts) FROM metric WHERE attempt = ? AND name = 'optim/loss'", (attempt,))[0][0]
    return float(done) - float(first)


if __name__ == "__main__":
    main()
