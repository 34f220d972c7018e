"""What one optimizer step on a frozen batch takes: loss, gradient, time, and peak bytes of each phase.

Peaks are those of a step in the middle of training: the optimizer's state is there. On a CPU they are the bytes of all
live tensors (`TensorBytes`), counted in a pass that is not timed; on a GPU what the allocator has handed out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from trl.trainer.utils import split_tensor_dict

from grpo_studio.training.probe_batch import Batch
from grpo_studio.training.probe_trainer import ProbeTrainer
from grpo_studio.training.tensor_bytes import TensorBytes

Tell = Callable[[dict[str, int]], None]


class Step:
    """One optimizer step of a trainer on a batch, as often as wanted; the weights stay as they are."""

    def __init__(self, trainer: ProbeTrainer) -> None:
        self.trainer = trainer
        trainer.frozen = True
        self.model = trainer.ready()
        self._on_gpu = trainer.accelerator.device.type == "cuda"
        for group in trainer.optimizer.param_groups:
            group["lr"] = 0.0

    def micro_batches(self, batch: Batch) -> list[Batch]:
        """Those of the first optimizer step on a generation batch, as TRL cuts them."""
        args = self.trainer.args
        return list(split_tensor_dict(batch, args.steps_per_generation)[: args.gradient_accumulation_steps])

    def update(self, parts: Sequence[Batch]) -> float:
        """Make the gradient anew; returns the loss as it is logged."""
        self.model.zero_grad(set_to_none=True)
        self.trainer.current_gradient_accumulation_steps = len(parts)
        return self._gradient(parts)

    def timed(self, parts: Sequence[Batch]) -> float:
        """Seconds of forward and backward passes."""
        self._wait()
        began = time.perf_counter()
        self.update(parts)
        self._wait()
        return time.perf_counter() - began

    def settle(self) -> None:
        """Let the optimizer make its state; the learning rate is 0."""
        self._optimize()

    def peaks(
        self, batch: Batch, parts: Sequence[Batch], tell: Tell = lambda peaks: None, later: bool = False
    ) -> dict[str, int]:
        """Peak bytes of each phase of a step, with all that lies there meanwhile.

        Args:
            tell: gets them as they come.
            later: the passes are not the step's first: gradients of earlier ones lie there.
        """
        found: dict[str, int] = {}
        self.model.zero_grad(set_to_none=True)
        with self._counting(batch, parts) as peak_of:
            rows = parts[0]["completion_ids"].shape[0]
            scored, peak = peak_of(lambda: self.trainer.pass_without_gradient(batch, rows))
            if scored:
                found["reference"] = peak
                tell(found)
            if later:
                for parameter in self.model.parameters():
                    parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
            self.trainer.current_gradient_accumulation_steps = len(parts)
            found["loss"] = peak_of(lambda: self._gradient(parts))[1]
            tell(found)
            found["optimizer"] = peak_of(self._optimize)[1]
            tell(found)
        return found

    def held(self) -> dict[str, int]:
        """Bytes that outlast a step's passes, by kind."""
        trainer = self.trainer
        parameters = list(self.model.parameters())
        reference = [] if trainer.ref_model is None else list(trainer.ref_model.parameters())
        state = [value for values in trainer.optimizer.state.values() for value in values.values()]
        return {
            "weights": _bytes([*parameters, *self.model.buffers()]),
            "reference": _bytes(reference),
            "gradients": _bytes([one for one in parameters if one.requires_grad]),
            "optimizer": _bytes([value for value in state if torch.is_tensor(value)]),
        }

    def _gradient(self, parts: Sequence[Batch]) -> float:
        loss = 0.0
        for place, part in enumerate(parts):
            torch.manual_seed(self.trainer.args.seed + place)  # the same dropout whatever the backend drew before
            loss += float(self.trainer.training_step(self.model, part, None))
        self.trainer.forget()
        return loss

    def _optimize(self) -> None:
        if self.trainer.args.max_grad_norm > 0:
            self.trainer.accelerator.clip_grad_norm_(self.model.parameters(), self.trainer.args.max_grad_norm)
        self.trainer.optimizer.step()
        self.model.zero_grad(set_to_none=True)

    @contextmanager
    def _counting(self, batch: Batch, parts: Sequence[Batch]) -> Iterator[Callable[[Callable[[], Any]], Any]]:
        """Gives a function that does something and returns its result with the peak bytes meanwhile."""
        if self._on_gpu:
            yield self._allocated
            return
        counter = TensorBytes()
        counter.track(self.model, self.trainer.ref_model, self.trainer.optimizer.state, batch, list(parts))

        def counted(work: Callable[[], Any]) -> Any:
            counter.reset_peak()
            return work(), counter.peak

        with counter:
            yield counted

    def _allocated(self, work: Callable[[], Any]) -> Any:
        device = self.trainer.accelerator.device
        torch.cuda.reset_peak_memory_stats(device)
        result = work()
        self._wait()
        return result, int(torch.cuda.max_memory_allocated(device))

    def _wait(self) -> None:
        if self._on_gpu:
            torch.cuda.synchronize(self.trainer.accelerator.device)


def _bytes(tensors: Sequence[Any]) -> int:
    """Tied weights are counted once."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values())
