"""Time and peak memory of the update (forward and backward of one optimizer step) by loss backend, and dead groups.

    python -m bench.update_step [--rounds N] [--shapes 1,2,...] [--out FILE.md|FILE.csv]

One frozen batch a shape, random weights, no sampling and no optimizer step. The backends take turns; medians, also of
the ratios. On a CPU these are of the seconds that all threads of this process computed, since others may use it too.
Peaks: weights, gradients and activations; on a GPU the allocator's over the timed rounds, on a CPU the bytes of all
tensors (torch's MemTracker) in a pass that is not timed. Second table: half of the groups dead, left out by ours,
against TRL's own trainer, which keeps them. Ratios are to the fastest and to the first of a table.
"""

from __future__ import annotations

import argparse
import csv
import gc
import importlib.metadata
import math
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.distributed._tools.mem_tracker import MemTracker
from transformers.utils import logging

from bench.frozen_update import DTYPE, ON_GPU, PLAIN, Shape, Update, frozen_batch
from grpo_studio.devices import worker_environment

BACKENDS = ("full", "trl", "liger")
MIB = 1024**2
# SmolLM2-135M as it is, and Qwen3-0.6B at half its width: the head's share of the work is that of small real models.
SHAPES_ON_CPU = (
    Shape("smollm2-135m", 49_152, 576, 30, 1536, 9, 3, 2, 4, 8, 32, 64),
    Shape("smollm2-135m", 49_152, 576, 30, 1536, 9, 3, 2, 4, 4, 32, 96),
    Shape("half qwen3-0.6b", 151_936, 512, 28, 1536, 8, 4, 2, 4, 8, 32, 64),
    Shape("half qwen3-0.6b", 151_936, 512, 28, 1536, 8, 4, 2, 4, 4, 64, 64),
)
SHAPES_ON_GPU = (
    Shape("smollm2-135m", 49_152, 576, 30, 1536, 9, 3, 4, 8, 32, 64, 256),
    Shape("qwen3-0.6b", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 32, 64, 256),
    Shape("qwen3-0.6b", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 16, 64, 512),
    Shape("qwen3-0.6b", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 16, 64, 1024),
)
Row = dict[str, Any]


def peak_on_cpu(update: Update) -> int:
    """Greatest sum of all tensors' bytes in the last micro-batch's passes, the gradients of those before it there."""
    update.model.zero_grad(set_to_none=True)
    for part in update.parts[:-1]:
        update.one(part)
    tracker = MemTracker()
    tracker.track_external(update.model, *update.parts[-1].values())
    with tracker:
        update.one(update.parts[-1])
    update.forget()
    return sum(device["Total"] for device in tracker.get_tracker_snapshot("peak").values())


def compare(shape: Shape, kinds: dict[str, tuple[str, bool]], dead_groups: int, rounds: int, folder: Path) -> list[Row]:
    """Median seconds and peak bytes of each kind, (backend or PLAIN, skip), on the same batch."""
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    batch = frozen_batch(shape, dead_groups)
    updates = {label: Update(shape, kind, skip, batch, folder) for label, (kind, skip) in kinds.items()}
    rows: dict[str, Row] = {}
    baseline: dict[str, Any] = {}
    for label, update in updates.items():  # warms up, too
        loss = update()
        baseline = baseline or {name: value.clone() for name, value in update.gradient().items()}
        rows[label] = {"shape": str(shape), "backend": label, "loss": loss}
        rows[label]["gradient apart"] = apart(update.gradient(), baseline)
        update.model.zero_grad(set_to_none=True)
    baseline.clear()
    runs: dict[str, list[Run]] = {label: [] for label in kinds}
    for _ in range(rounds):
        for label, update in updates.items():
            runs[label].append(timed(update))
    for label, update in updates.items():
        clock = [run.seconds for run in runs[label]]
        rows[label] |= {"seconds": statistics.median(clock), "least": min(clock), "most": max(clock)}
        if ON_GPU:
            rows[label]["MiB"] = max(run.peak for run in runs[label]) / MIB
        else:
            rows[label]["CPU seconds"] = statistics.median(run.cpu_seconds for run in runs[label])
            rows[label]["MiB"] = peak_on_cpu(update) / MIB
    series = {label: [run.seconds if ON_GPU else run.cpu_seconds for run in runs[label]] for label in kinds}
    fastest = min(kinds, key=lambda label: statistics.median(series[label]))
    first = next(iter(kinds))
    for label, row in rows.items():
        row["time / fastest"] = ratio(series[label], series[fastest])
        row[f"time / {first}"] = ratio(series[label], series[first])
        row[f"MiB / {first}"] = row["MiB"] / rows[first]["MiB"]
    return list(rows.values())


def alone(*arguments: Any) -> list[Row]:
    """`compare` in a process of its own: the allocator's settings leave the heap of one table no use for the next."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(compare, arguments)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median over the rounds of what one took over the other in the same round, so that a slow spell is in both."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


@dataclass(frozen=True)
class Run:
    seconds: float
    cpu_seconds: float
    peak: int


def timed(update: Update) -> Run:
    """One update, from no gradients to all; the peak leaves out what other models hold on a GPU."""
    gc.collect()
    others = 0
    if ON_GPU:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        others = torch.cuda.memory_allocated() - update.weights()
        torch.cuda.synchronize()
    began, began_cpu = time.perf_counter(), time.process_time()
    update()
    if ON_GPU:
        torch.cuda.synchronize()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    peak = torch.cuda.max_memory_allocated() - others if ON_GPU else 0
    update.model.zero_grad(set_to_none=True)
    return Run(seconds, cpu_seconds, peak)


def apart(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Norm of the difference over the norm."""

    def squares(values: Iterable[Any]) -> float:
        return math.fsum(value.float().square().sum().item() for value in values)

    return math.sqrt(squares(ours[name] - theirs[name] for name in theirs) / squares(theirs.values()))


FORMATS = {"loss": "{:.6f}", "gradient apart": "{:.1e}", "MiB": "{:,.0f}"} | dict.fromkeys(
    ("seconds", "least", "most", "CPU seconds"), "{:.3f}"
)


def shown(name: str, value: Any) -> str:
    return value if isinstance(value, str) else FORMATS.get(name, "{:.2f}").format(value)


def markdown(rows: list[Row]) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *[[shown(name, row[name]) for name in names] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    device = torch.cuda.get_device_name() if ON_GPU else f"CPU, {torch.get_num_threads()} threads"
    packages = ("torch", "transformers", "trl", "liger-kernel", "accelerate")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return f"{device}; {DTYPE}; {versions}; Python {sys.version.split()[0]}"


def save(file: Path, heading: str, tables: dict[str, list[Row]]) -> None:
    if file.suffix == ".csv":
        with file.open("w", newline="", encoding="utf-8") as out:
            for title, rows in tables.items():
                writer = csv.DictWriter(out, ["table", *rows[0]])
                writer.writeheader()
                writer.writerows({"table": title, **row} for row in rows)
        return
    parts = [heading, *[f"## {title}\n\n{markdown(rows)}" for title, rows in tables.items()]]
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    known = SHAPES_ON_GPU if ON_GPU else SHAPES_ON_CPU
    parser = argparse.ArgumentParser(prog="python -m bench.update_step", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds, after one that warms up")
    parser.add_argument("--shapes", default="", help=f"numbers from 1 to {len(known)}, by commas; default: all")
    parser.add_argument("--out", type=Path, help="also write the tables to this file, .md or .csv")
    options = parser.parse_args(arguments)
    shapes = [known[int(number) - 1] for number in options.shapes.split(",")] if options.shapes else list(known)
    print(machine(), flush=True)
    tables: dict[str, list[Row]] = {"Update step by loss backend": [], "Half of the groups dead": []}
    with tempfile.TemporaryDirectory() as home:
        for shape in shapes:
            everyone = {backend: (backend, False) for backend in BACKENDS}
            rows = alone(shape, everyone, 0, options.rounds, Path(home))
            report(tables["Update step by loss backend"], rows)
            some = {PLAIN: (PLAIN, False)} | {f"{backend}, skipping": (backend, True) for backend in BACKENDS}
            rows = alone(shape, some, shape.prompts // 2, options.rounds, Path(home))
            report(tables["Half of the groups dead"], rows)
            if options.out:
                save(options.out, machine(), {title: rows for title, rows in tables.items() if rows})


def report(table: list[Row], rows: list[Row]) -> None:
    table += rows
    print(f"\n{markdown(rows)}", flush=True)


if __name__ == "__main__":
    missing = {name: value for name, value in worker_environment().items() if name not in os.environ}
    if missing:  # the allocator reads its settings as the process starts
        os.execve(sys.executable, [sys.executable, "-m", "bench.update_step", *sys.argv[1:]], {**os.environ, **missing})
    main(sys.argv[1:])
