"""A rehearsal of the largest step that a run can have, before its first: memory then runs out in minute one or never.

The longest prompt, completions that are all full, and a loss that leaves nothing out go through the trainer's own code,
in the order of two steps, so that the optimizer's state is there for the second. Afterwards nothing has changed but the
allocator's free blocks. What is not rehearsed: vLLM's pool, which is fixed at its start, and DeepSpeed, whose engine
steps by itself.
"""

from __future__ import annotations

import gc
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from grpo_studio.config import RunConfig
from grpo_studio.disk import sized
from grpo_studio.memory.allocation import out_of_memory
from grpo_studio.store.writer import RunWriter
from grpo_studio.training.memory_watch import MemoryWatch, Taken, gathered
from grpo_studio.training.out_of_memory import REHEARSAL
from grpo_studio.training.phases import OTHER, PhaseClock
from grpo_studio.training.trainer import StudioTrainer
from grpo_studio.training.worst_case_batch import Sizes, batch_of, inputs_of, log_probs
from grpo_studio.training.worst_case_optimizer import rehearse_optimizer
from grpo_studio.training.worst_case_rollout import rehearse_rollout
from grpo_studio.training.worst_case_state import as_it_was, drop_gradients


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal works with. `longest_prompt` is in tokens, `step` the last one that was done."""

    config: RunConfig
    trainer: StudioTrainer
    writer: RunWriter
    clock: PhaseClock
    memory: MemoryWatch
    longest_prompt: int
    step: int


def wanted(config: RunConfig, device: torch.device) -> bool:
    """Whether a run rehearses: as set, else on a GPU."""
    asked = config.memory.worst_case_step
    return device.type == "cuda" if asked is None else asked


def rehearse(work: Rehearsal) -> None:
    """Rehearse and tell what it took. Trouble that is no lack of memory is a warning, and training begins.

    With several processes all call it together, with batches of the same shapes: what fails on one fails on all.

    Raises:
        Exception: whatever says that there was too little memory, with its phases noted (`out_of_memory.FailureClock`).
    """
    if work.config.scale.strategy in ("zero2", "zero3"):
        work.writer.event("worst_case_skipped", "no worst-case step: DeepSpeed's engine would take it for a real one")
        return
    sizes = Sizes.of(work.config, work.trainer, work.longest_prompt)
    work.writer.event("preparing", f"rehearsing the largest step: {sizes}")
    work.writer.memory_samples(work.memory.take().samples)  # of the loading
    began = time.perf_counter()
    try:
        with work.clock.phase(REHEARSAL), as_it_was(work.trainer):
            notes = _two_steps(work, sizes)
    except Exception as error:
        if out_of_memory(error):
            raise
        _warn(work.writer, error)
        return
    finally:
        _free()
    taken = gathered(work.memory.take())
    samples = [replace(sample, phase=REHEARSAL, step=work.step) for sample in taken.samples]
    work.writer.memory_samples(samples)
    _tell(work.writer, sizes, taken, time.perf_counter() - began, notes)


def _two_steps(work: Rehearsal, sizes: Sizes) -> list[str]:
    """A step's loss and optimizer, then a whole step with the optimizer's state in memory; returns notes."""
    trainer, clock, notes = work.trainer, work.clock, list[str]()
    batch = batch_of(trainer, sizes)
    _losses(trainer, inputs_of(trainer, batch, {}), 1)
    with clock.phase("optimizer"):
        held = rehearse_optimizer(trainer)
    drop_gradients(trainer)
    with clock.phase("rollout"):
        if work.config.uses_vllm:
            notes.append("vLLM's pool is fixed at its start: no rollout was rehearsed")
        elif trainer.use_transformers_continuous_batching:
            notes.append("the pool of continuous batching is fixed: no rollout was rehearsed")
        elif note := rehearse_rollout(trainer, batch.prompt_ids, batch.prompt_mask):
            notes.append(note)
    _losses(trainer, inputs_of(trainer, batch, log_probs(trainer, batch)), min(2, sizes.accumulation))
    del held
    return notes


def _losses(trainer: StudioTrainer, inputs: dict[str, Any], count: int) -> None:
    """Forward and backward of so many micro-batches by the trainer's own training step, the last of them synced."""
    trainer._prepare_inputs = lambda generation_batch: inputs
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    for place in range(count):
        last = place == count - 1
        trainer.accelerator.gradient_state._set_sync_gradients(last)
        with nullcontext() if last else trainer.accelerator.no_sync(trainer.model_wrapped):
            trainer.training_step(trainer.model_wrapped, inputs, None)
    del trainer._prepare_inputs


def _tell(writer: RunWriter, sizes: Sizes, taken: Taken, seconds: float, notes: list[str]) -> None:
    peaks = {phase: peak for phase, peak in taken.peaks.items() if phase not in (OTHER, REHEARSAL)}
    phase = max(peaks, key=lambda name: peaks[name])
    data = {
        "peak_bytes": peaks[phase],
        "by_phase": peaks,
        "seconds": round(seconds, 2),
        "prompt_tokens": sizes.prompt,
        "completion_tokens": sizes.completion,
        "notes": notes,
    }
    more = "".join(f"; {note}" for note in notes)
    writer.event(
        "worst_case_step",
        f"the largest step fits: {sizes} peak at {sized(peaks[phase])} in its {phase} phase, "
        f"rehearsed in {seconds:.0f} s{more}",
        data=data,
    )


def _warn(writer: RunWriter, error: Exception) -> None:
    what = " ".join(str(error).split())[:300]
    message = f"the largest step could not be rehearsed, training begins without: {type(error).__name__}: {what}"
    writer.event("worst_case_failed", message, level="warning")


def _free() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
