"""What happens between the trainer's steps: begin, stop (also at a limit) or pause, score held-out rows, save."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import broadcast_object_list
from transformers import TrainerCallback

from grpo_studio.config import RunConfig
from grpo_studio.stopping import StopFlag
from grpo_studio.store.folder import RunFolder
from grpo_studio.training.evaluation import HeldOut
from grpo_studio.training.limits import LimitWatch
from grpo_studio.training.phases import PhaseClock
from grpo_studio.training.recorder import Recorder
from grpo_studio.training.trainer import StudioTrainer
from grpo_studio.training.verifier_faults import AbstentionWatch


class StepCallback(TrainerCallback):
    """`begin` is called once the model is wrapped and before the first step."""

    def __init__(
        self,
        trainer: StudioTrainer,
        config: RunConfig,
        stop: StopFlag,
        clock: PhaseClock,
        recorder: Recorder,
        held_out: HeldOut,
        abstentions: AbstentionWatch,
        begin: Callable[[], None],
    ) -> None:
        self._trainer = trainer
        self._config = config
        self._stop = stop
        self._clock = clock
        self._recorder = recorder
        self._held_out = held_out
        self._abstentions = abstentions
        self._begin = begin
        self._limits: LimitWatch | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._begin()
        if self._trainer.accelerator.is_main_process:
            self._limits = LimitWatch(self._config, RunFolder(Path(args.output_dir).parent).database)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.enter("optimizer")

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.leave()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        self._trainer.stopped = self._stop_agreed(state.global_step, last=state.global_step >= state.max_steps)
        if not self._trainer.stopped:
            self._trainer.paused = self._abstentions.verdict(last=state.global_step >= state.max_steps)
        if self._trainer.stopped or self._trainer.paused is not None:
            control.should_training_stop = True
            control.should_save = True
            return control
        every = self._config.evaluation.every
        if every and state.global_step % every == 0 and self._held_out.due(state.global_step):
            self._recorder.evaluated(state.global_step, self._held_out.score(state.global_step))
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.checkpoint_saved(state.global_step)

    def _stop_agreed(self, step: int, last: bool) -> bool:
        """Whether any process was asked to stop, or a limit is reached: all have to end after the same step."""
        asked, accelerator = self._stop.requested, self._trainer.accelerator
        reason = "" if last or self._limits is None else self._limits.verdict(step) or ""
        if accelerator.num_processes > 1:
            flags = torch.tensor([[asked, bool(reason)]], device=accelerator.device, dtype=torch.int32)
            asked, at_limit = accelerator.gather(flags).any(dim=0).tolist()
            reason = broadcast_object_list([reason])[0] if at_limit else ""
        self._stop.reason = "" if asked else reason
        return asked or bool(reason)
