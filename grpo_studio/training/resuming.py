"""GRPOTrainer whose checkpoints are whole or not there, and which goes on from one as if it had never ended.

Written for trl 1.16.0 and transformers 5.17.0, whose private methods are overridden here. What the two leave out of a
resume: the order of the rows in a later epoch, the batch that is used several times, and the place within its cycle.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.trainer import OPTIMIZER_NAME, SCHEDULER_NAME
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler

from grpo_studio.errors import CheckpointError
from grpo_studio.training.change import local_part
from grpo_studio.training.checkpointing import Checkpointer
from grpo_studio.training.checkpointing_state import load_process, require_weights, save_process
from grpo_studio.training.resuming_from import ResumePoint, reading


class ResumableTrainer(GRPOTrainer):
    """A trainer that saves by its `checkpointer` and, when that names a point to resume from, trains on from there.

    `before` is the fingerprint of the weights before the first step of the run, which every checkpoint carries along.
    """

    checkpointer: Checkpointer | None = None
    before: torch.Tensor
    _written_below: Path | None = None
    _sampler: RepeatSampler | None = None
    _restored: Mapping[str, Any] | None = None

    @property
    def _point(self) -> ResumePoint | None:
        return None if self.checkpointer is None else self.checkpointer.point

    def train_on(self) -> None:
        """Train to the end, from the point to resume from when there is one.

        Raises:
            CheckpointError: it cannot be read.
        """
        if self.checkpointer is not None:
            self.checkpointer.begin(self)
        point = self._point
        if point is None:
            self.train()
            return
        with reading(point.checkpoint.path):
            self._restored = load_process(point, self)
        self.train(resume_from_checkpoint=str(point.checkpoint.path))

    # --- saving ---

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: TRL would lay a draft beside the checkpoints at every save."""

    def _get_output_dir(self, trial: Any) -> str:
        return str(self._written_below or super()._get_output_dir(trial))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self.checkpointer is None:
            super()._save_checkpoint(model, trial)
            return

        def write(staged: Path) -> None:
            self._written_below = staged.parent
            self.state.log_history = []  # the run's database holds it; here each checkpoint would be larger
            try:
                super(ResumableTrainer, self)._save_checkpoint(model, trial)
            finally:
                self._written_below = None
            save_process(staged, self)

        self.checkpointer.save(self, f"checkpoint-{self.state.global_step}", write, resumable=True)

    def save_final(self) -> Path:
        """Save the weights of a run that is done; returns their folder."""
        if self.checkpointer is None:
            raise ValueError("this trainer has no checkpointer")
        self.args.save_on_each_node = False  # the weights of all machines are the same, and nothing resumes from here
        return self.checkpointer.save(self, "final", lambda staged: self.save_model(str(staged)), resumable=False)

    def score_final(self, final: Path) -> None:
        """Note the held-out score that these weights got after they were saved."""
        if self.checkpointer is not None and self.args.should_save:
            self.checkpointer.scored(final, self.state.global_step)

    def reference_weights(self) -> list[torch.Tensor]:
        """What this process holds of the reference model."""
        return [local_part(parameter) for parameter in self.ref_model.parameters()]

    # --- going on ---

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        self._sampler = super()._get_train_sampler(dataset)
        return self._sampler

    def _init_training_state(
        self, max_steps: int, updates: int, num_epochs: int, resume_from: str | None, trial: Any
    ) -> tuple[int, int]:
        epochs, batches = super()._init_training_state(max_steps, updates, num_epochs, resume_from, trial)
        point = self._point
        if point is None or resume_from is None:
            return epochs, batches
        if self.state.global_step != point.step:
            raise CheckpointError(f"the checkpoint {point.checkpoint.name} is damaged: the trainer's state is missing")
        self.state.compute_steps(self.args, max_steps)  # how often to save is as set now, not as it was then
        if self._sampler is not None and self._sampler.shuffle:
            for _ in range(epochs):  # each epoch has taken one order from the sampler's own generator
                torch.randperm(self._sampler.num_samples, generator=self._sampler.generator)
        self._go_on(point, epochs * len(self._sampler or ()) // self._rows_a_batch + batches)
        return epochs, batches

    @property
    def _rows_a_batch(self) -> int:
        return int(self._train_batch_size * self.args.steps_per_generation * self.accelerator.num_processes)

    def _go_on(self, point: ResumePoint, batches: int) -> None:
        """Take back what this process held; `batches` were taken from the data so far."""
        saved = self._restored or {}
        if not point.branch:
            self.before = saved["before"]
        if point.keeps_batch:
            self._step, self._buffered_inputs = saved["micro_batches"], saved["batch"]
        else:  # the batch at this place is sampled anew, by the settings that now hold
            self._step, self._buffered_inputs = batches, None
        if self.use_adaptive_entropy:
            self.entropy_coef, self._last_world_entropy = saved["entropy"]
        if self.args.sync_ref_model and "reference" in saved:
            with reading(point.checkpoint.path), torch.no_grad():
                for mine, theirs in zip(self.reference_weights(), saved["reference"], strict=True):
                    mine.copy_(theirs)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Weights of a whole model are loaded as they were the first time: the Trainer knows no names but the model's
        own, and those of a mixture of experts are others on the disk.
        """
        own: Any = self.model
        with reading(Path(resume_from_checkpoint)):
            if isinstance(own, PreTrainedModel) and model is None:
                saved = type(own).from_pretrained(resume_from_checkpoint, dtype=own.dtype)
                own.load_state_dict(saved.state_dict())
            else:
                super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            with reading(Path(checkpoint)):
                super()._load_rng_state(checkpoint)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """The moments of the optimizer are taken; in a branch learning rate and schedule are those of its settings."""
        point = self._point
        if checkpoint is None or point is None:
            return
        optimizer, scheduler = self.optimizer, self.lr_scheduler
        if optimizer is None or scheduler is None:
            raise ValueError("there is no optimizer yet")
        asked = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
        fresh = dict(scheduler.state_dict())
        with reading(Path(checkpoint)):
            if self.is_deepspeed_enabled or self.is_fsdp_enabled:
                super()._load_optimizer_and_scheduler(checkpoint)
            else:  # the Trainer passes over missing files, and cannot load in one of several processes on a CPU
                for loaded, name in ((optimizer, OPTIMIZER_NAME), (scheduler, SCHEDULER_NAME)):
                    loaded.load_state_dict(torch.load(Path(checkpoint, name), map_location="cpu", weights_only=True))
        if point.branch:
            for group, wanted in zip(optimizer.param_groups, asked, strict=True):
                group.update(wanted)
            scheduler.load_state_dict(fresh)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch would have the optimizer step first
                for _ in range(point.step):
                    scheduler.step()
        if self._restored is not None:
            require_weights(point, self._restored["weights"], self.model)

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        if self.state.global_step >= self.state.max_steps:  # all steps were done, and something after them failed
            self.control.should_training_stop = True
            return
        super()._run_epoch(*args, **kwargs)
