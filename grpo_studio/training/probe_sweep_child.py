"""`python -m grpo_studio.training.probe_sweep_child PARENT SPEC`: one backend in one number format, larger and larger.

Tells each size before it is tried: if this process is killed, that is where its line ends.
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from typing import Any

import torch

from grpo_studio.config import RunConfig
from grpo_studio.memory.allocation import out_of_memory
from grpo_studio.memory.sweep_plan import COUNTED_PASSES, FIRST, LARGEST, expected_bytes, next_size
from grpo_studio.training.probe_batch import Batch, lengthened, repeated, thaw, widths
from grpo_studio.training.probe_channel import Channel, answer
from grpo_studio.training.probe_measure import Step
from grpo_studio.training.probe_trainer import probe_trainer


class Line:
    """Tries sizes until memory, a limit or the size that was asked for ends it."""

    def __init__(self, spec: dict[str, Any], channel: Channel) -> None:
        self._channel, self._axis, self._limit = channel, spec["axis"], spec["limit"]
        self._until = None if spec["seconds"] is None else time.monotonic() + spec["seconds"]
        config = RunConfig.model_validate(spec["config"])
        trainer, _ = probe_trainer(config, spec["source"], Path(spec["folder"]) / "sweep")
        self._step, self._rows = Step(trainer), config.effective_micro_batch()
        self._later = config.gradient_accumulation() > 1  # then the fullest pass is not the first of its step
        self._batch = thaw(Path(spec["batch"]), torch.device("cpu"))
        self._device = trainer.accelerator.device
        self._to, self._to_reason = self._end(spec["to"], trainer.model.config.get_text_config())
        self._points: list[tuple[int, int]] = []
        self._slowest = 0.0
        self._passes = COUNTED_PASSES["cuda" if self._device.type == "cuda" else "cpu"]

    def run(self) -> None:
        """Tell each point, then how the line ended."""
        tried: list[tuple[int, bool]] = []
        ended: dict[str, Any] = {}
        while (x := next_size(tried, FIRST[self._axis], self._to)) is not None:
            trouble = self._refused(x) or self._measured(x)
            tried.append((x, trouble is None))
            if trouble is not None:
                self._clear()
            if trouble is not None and not ended:
                ended = {"ended_by": trouble[0], "end_x": x, "reason": trouble[1]}
            if trouble is not None and trouble[0] == "limit" and self._until is not None and self._late(x):
                break
        if not ended:
            ended = {"ended_by": "limit" if self._to_reason else "asked", "end_x": self._to}
            ended["reason"] = self._to_reason
        self._channel.found({"ended": ended})

    def _end(self, asked: int | None, model_config: Any) -> tuple[int, str | None]:
        """The largest size, and why that is not what was asked for, if so."""
        context = getattr(model_config, "max_position_embeddings", None)
        if self._axis == "tokens" and isinstance(context, int):
            room = max(1, context - widths(self._batch)[0])
            if asked is None or asked > room:
                return room, f"the model's context ends at {context:,} tokens"
        return asked or LARGEST, None if asked else f"{LARGEST:,} is the most that is tried"

    def _refused(self, x: int) -> tuple[str, str] | None:
        """Why a size is not even tried."""
        held = sum(self._step.held().values())
        if self._limit is not None and (wanted := expected_bytes(self._points, x, held)) > self._limit:
            return "limit", f"{x:,} would take about {wanted / 1e9:.1f} GB, and {self._limit / 1e9:.1f} GB are free"
        if self._late(x):
            return "limit", f"{x:,} would take longer than --minutes allows"
        return None

    def _late(self, x: int) -> bool:
        if self._until is None or not self._points:
            return False
        return time.monotonic() + self._passes * self._slowest * x / max(1, self._points[-1][0]) > self._until

    def _measured(self, x: int) -> tuple[str, str] | None:
        """Measure a size and tell it; what is wrong when memory runs out."""
        self._channel.found({"trying": x})
        try:
            batch = self._grown(x)
            parts = [batch]
            if not self._points:
                self._step.update(parts)  # whatever is made ready at the first pass
                self._step.settle()
            peak = max(self._step.peaks(batch, parts, later=self._later).values())
            seconds = self._step.timed(parts)
        except Exception as error:
            if (known := out_of_memory(error)) is None:
                raise
            return "memory", " ".join(str(known).split())[:300]
        self._points.append((x, peak))
        self._slowest = seconds
        self._channel.found({"point": {"x": x, "peak_bytes": peak, "seconds": seconds}})
        return None

    def _grown(self, x: int) -> Batch:
        grown = (
            repeated(self._batch, x)
            if self._axis == "completions"
            else lengthened(repeated(self._batch, self._rows), x)
        )
        return {name: value.to(self._device) for name, value in grown.items()}

    def _clear(self) -> None:
        """What a failed pass left is given back, so that a smaller size finds all of it."""
        self._step.model.zero_grad(set_to_none=True)
        self._step.trainer.forget()
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


def main(spec: dict[str, Any], channel: Channel) -> None:
    """Load, then try sizes."""
    channel.tell("loading the model")
    Line(spec, channel).run()


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:], main))
