"""Forecast against measured peak memory: real trainers, real optimizer steps, on a CPU.

    python -m bench.forecast [--cases 1,2,...] [--out FILE.md]

Measured is what all tensors hold at once (ours and torch's MemTracker, which must agree) in the second step of our
trainer on a frozen batch, when the optimizer's states are there: the passes of the reference model, forward and
backward, the optimizer. The forecast sees the model's config.json alone. Sampling is left out of both.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # as the worker does on a CPU, and before torch is imported

import torch
from datasets import Dataset
from torch.distributed._tools.mem_tracker import MemTracker
from transformers import AutoConfig, AutoModelForCausalLM, TrainerCallback
from transformers.utils import logging

from bench.forecast_cases import CASES, Case
from bench.frozen_update import tokenizer
from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.memory.cards import card_for
from grpo_studio.memory.forecasting import forecast
from grpo_studio.memory.tracer import Tracer
from grpo_studio.settings import Settings
from grpo_studio.training.adapters import adapter_arguments, adapter_is_off
from grpo_studio.training.arguments import grpo_arguments
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.tensor_bytes import TensorBytes
from grpo_studio.training.trainer import StudioTrainer

MIB = 1 << 20
PHASES = ("reference", "loss", "optimizer")


@dataclass(frozen=True)
class Row:
    """One case: bytes by phase as forecast and as measured, and torch's own count of the whole."""

    case: Case
    expected: dict[str, int]
    measured: dict[str, int]
    by_torch: int | None
    seconds: float
    method: str

    @property
    def difference(self) -> float:
        """Of the peaks, relative to what was measured."""
        return max(self.expected.values()) / max(self.measured.values()) - 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", help="numbers by commas; all without it")
    parser.add_argument("--out", type=Path, help="write the table here, too")
    options = parser.parse_args(arguments)
    wanted = [int(text) for text in options.cases.split(",")] if options.cases else range(1, len(CASES) + 1)
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    rows = []
    with Tracer() as tracer, tempfile.TemporaryDirectory() as folder:
        for number in wanted:
            row = run(CASES[number - 1], Path(folder), tracer)
            print(line(number, row), file=sys.stderr, flush=True)
            rows.append((number, row))
        published = published_rows(tracer)
    table = "\n".join([*HEADER, *(line(number, row) for number, row in rows), "", *published])
    print(table)
    if options.out:
        options.out.write_text(table + "\n", encoding="utf-8")
    return 0


HEADER = (
    "| | model | settings | forecast, MiB | measured, MiB | MemTracker, MiB | difference | greatest phase | took, s "
    "| method |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def published_rows(tracer: Tracer) -> list[str]:
    """Qwen3-0.6B, bfloat16, 512 tokens, gradient checkpointing, 32 completions in one pass: forecasts only."""
    rows = ["| backend | tensors, GiB | under full | completions in one pass on 80 GB |", "|---|---|---|---|"]
    full = 0
    for backend in ("full", "trl", "liger"):
        config = RunConfig.model_validate(with_overrides(PUBLISHED, (f"memory.loss_backend={backend}",)))
        peak = forecast(config, Settings.from_env(), prompt_tokens=1, tracer=tracer).by_phase["loss"]
        on_card = forecast(config, Settings.from_env(), prompt_tokens=1, tracer=tracer, card=card_for("80GB"))
        full = full or peak
        largest = on_card.largest_micro_batch[backend]
        rows.append(f"| {backend} | {peak / (1 << 30):.2f} | {1 - peak / full:.0%} | {largest:,} |")
    return rows


PUBLISHED: dict[str, Any] = {
    "model": {"id": "Qwen/Qwen3-0.6B", "dtype": "bfloat16"},
    "algorithm": {"prompts_per_step": 4, "group_size": 8, "max_completion_length": 511},
    "memory": {"micro_batch": 32, "gradient_checkpointing": True},
}


def line(number: int, row: Row) -> str:
    expected, measured = max(row.expected.values()), max(row.measured.values())
    torch_says = "-" if row.by_torch is None else f"{row.by_torch / MIB:,.1f}"
    greatest = max(row.measured, key=lambda phase: row.measured[phase])
    return (
        f"| {number} | {row.case.model} | {row.case} | {expected / MIB:,.1f} | {measured / MIB:,.1f} | {torch_says} | "
        f"{row.difference:+.1%} | {greatest} | {row.seconds:.1f} | {row.method} |"
    )


def run(case: Case, folder: Path, tracer: Tracer) -> Row:
    """Forecast a case, then measure it."""
    source = saved_model(case, folder)
    config = case.run_config(source)
    settings = Settings.from_env()
    began = time.perf_counter()
    found = forecast(config, settings, prompt_tokens=case.prompt_tokens, tracer=tracer)
    seconds = time.perf_counter() - began
    expected = {phase: size for phase, size in found.by_phase.items() if phase in PHASES}
    measured, by_torch = measure(case, config, source, folder)
    gc.collect()
    return Row(case, expected, measured, by_torch, seconds, found.method)


def saved_model(case: Case, folder: Path) -> Path:
    """A folder with the case's model, random weights from its config, unless it is a folder already."""
    if case.folder is not None:
        return case.folder
    place = folder / case.model.replace(" ", "-")
    if not place.exists():
        torch.manual_seed(0)
        config = AutoConfig.for_model(**case.config)
        AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(place)
        tokenizer().save_pretrained(place)
    return place


def measure(case: Case, config: RunConfig, source: Path, folder: Path) -> tuple[dict[str, int], int | None]:
    """Peak bytes by phase of the second step, and torch's peak."""
    clock = PhaseClock()
    rows = Dataset.from_dict({"prompt": ["a"] * case.rows * 4, "sample": [0] * case.rows * 4})
    trainer = StudioTrainer(
        model=str(source),
        args=grpo_arguments(config, folder / "out"),
        train_dataset=rows,
        processing_class=tokenizer(),
        config=config,
        judged=_NothingJudged(),
        samples=[],
        clock=clock,
        listener=_Listener(),
        **adapter_arguments(config.memory, config.model.dtype.replace("mixed", "float32")),
    )
    watch = SecondStep(trainer, clock)
    trainer.add_callback(watch)
    trainer._generate_and_score_completions = lambda inputs: scored(trainer, case, config)
    trainer.train()
    return {phase: size for phase, size in watch.bytes.by_phase.items() if phase in PHASES}, watch.by_torch


def scored(trainer: Any, case: Case, config: RunConfig) -> dict[str, torch.Tensor]:
    """A frozen batch of random tokens, prompts and completions of unequal length, with what TRL would add to it."""
    random = torch.Generator().manual_seed(1)
    vocabulary = trainer.model.config.get_text_config().vocab_size
    count, prompt, width = case.rows, case.prompt_tokens, case.completion_tokens
    shorter = torch.randint(0, max(1, prompt // 2), (count,), generator=random)
    shorter[0] = 0
    lengths = torch.full((count,), width)
    batch = {
        "prompt_ids": torch.randint(2, vocabulary, (count, prompt), generator=random),
        "prompt_mask": (torch.arange(prompt)[None, :] >= shorter[:, None]).long(),
        "completion_ids": torch.randint(2, vocabulary, (count, width), generator=random),
        "completion_mask": (torch.arange(width)[None, :] < lengths[:, None]).long(),
        "advantages": torch.linspace(-1, 1, count),
        "num_items_in_batch": lengths.sum(),
    }
    if config.algorithm.beta > 0:
        batch["ref_per_token_logps"] = _reference(trainer, batch)
    return batch


@torch.no_grad()
def _reference(trainer: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    width, size = batch["completion_ids"].shape[1], trainer.args.per_device_train_batch_size
    if trainer.ref_model is not None:
        return trainer._get_per_token_logps_and_entropies(trainer.ref_model, ids, mask, width, batch_size=size)[0]
    with trainer.model.disable_adapter():
        assert adapter_is_off(trainer.model)
        return trainer._get_per_token_logps_and_entropies(trainer.model, ids, mask, width, batch_size=size)[0]


class _Totals(MemTracker):
    """torch's count without its look into modules, which refuses a second forward of the same module."""

    def _no_look(self, *args: Any, **kwargs: Any) -> None:
        return None

    _pre_fw_hook = _post_fw_hook = _pre_bw_hook = _post_bw_hook = _no_look


class SecondStep(TrainerCallback):
    """Counts tensors from the beginning of the second step to its end, by the trainer's phases."""

    def __init__(self, trainer: Any, clock: PhaseClock) -> None:
        self._trainer, self._clock = trainer, clock
        self._stack = ExitStack()
        self._torch = _Totals()
        self.bytes = TensorBytes()
        self.by_torch: int | None = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step != 1:
            return
        optimizer = kwargs["optimizer"]
        plain = getattr(optimizer, "optimizer", optimizer)
        models = [model for model in (self._trainer.model, self._trainer.ref_model) if model is not None]
        buffered = [value for part in self._trainer._buffered_inputs or [] for value in part.values()]
        self.bytes.track(*models, plain, buffered)
        self._torch.track_external(*models, plain, *(v for v in buffered if isinstance(v, torch.Tensor)))
        self._stack.enter_context(self._torch)
        self._stack.enter_context(self.bytes)
        self._stack.enter_context(_phases_counted(self._clock, self.bytes))
        self._stack.enter_context(_step_as_phase(plain, self._clock))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step != 2:
            return
        self._stack.close()
        snapshot = self._torch.get_tracker_snapshot("peak")
        self.by_torch = max((int(found["Total"]) for found in snapshot.values()), default=None)


@contextmanager
def _phases_counted(clock: PhaseClock, counted: TensorBytes) -> Iterator[None]:
    """Every phase of the clock also is one of the count."""
    enter, leave = clock.enter, clock.leave
    with ExitStack() as around:
        open_phases: list[ExitStack] = []

        def entering(name: str) -> None:
            enter(name)
            inner = around.enter_context(ExitStack())
            inner.enter_context(counted.phase(name))
            open_phases.append(inner)

        def leaving() -> None:
            leave()
            if open_phases:
                open_phases.pop().close()

        clock.enter, clock.leave = entering, leaving  # type: ignore[method-assign]
        try:
            yield
        finally:
            clock.enter, clock.leave = enter, leave  # type: ignore[method-assign]


@contextmanager
def _step_as_phase(optimizer: torch.optim.Optimizer, clock: PhaseClock) -> Iterator[None]:
    """The optimizer's step as a phase of the clock."""
    before = optimizer.register_step_pre_hook(lambda *_: clock.enter("optimizer"))
    after = optimizer.register_step_post_hook(lambda *_: clock.leave())
    try:
        yield
    finally:
        before.remove()
        after.remove()


class _Listener:
    def batch_scored(self, step: int, batch: Any) -> None:
        """Nothing is scored here."""

    def step_done(self, step: int, logs: dict[str, Any]) -> None:
        """Nothing is logged here."""


class _NothingJudged:
    def functions(self, samples: Any) -> list[Callable[..., Any]]:
        return [_no_reward]


def _no_reward(completions: Any, **columns: Any) -> list[float]:
    raise AssertionError("the batch is frozen")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
