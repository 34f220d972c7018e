"""One attempt at a run: load, evaluate, train, evaluate, save. Tells what it does through the run's writer.

With several processes each holds a Session; they differ in their writer alone, which is silent but for the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from accelerate import PartialState
from datasets import Dataset
from transformers.trainer_utils import set_seed
from trl import GRPOConfig

from grpo_studio import data, hub
from grpo_studio.config import RunConfig
from grpo_studio.errors import DataError, StudioError, TrainingError
from grpo_studio.evaluation_passing import pass_rule
from grpo_studio.memory.allocation import out_of_memory
from grpo_studio.settings import Settings
from grpo_studio.stopping import Outcome, PausedEarlyError, StopFlag
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.writer import RunWriter
from grpo_studio.training.adapters import adapter_arguments, require_targets
from grpo_studio.training.arguments import grpo_arguments
from grpo_studio.training.callbacks import StepCallback
from grpo_studio.training.change import changed, fingerprint
from grpo_studio.training.checkpointing import Checkpointer
from grpo_studio.training.engines import prepare_engine, rollout_engine
from grpo_studio.training.evaluation import HeldOut
from grpo_studio.training.memory_in_use import resident
from grpo_studio.training.memory_watch import watch_memory
from grpo_studio.training.model_source import model_source
from grpo_studio.training.out_of_memory import FailureClock, Scene, told
from grpo_studio.training.precision import effective_dtype
from grpo_studio.training.recorder import Recorder
from grpo_studio.training.resuming_from import data_facts, require_same_data, resume_point
from grpo_studio.training.reward_setup import prepare_rewards
from grpo_studio.training.rewards import SAMPLE_COLUMN, JudgedRewards
from grpo_studio.training.setup_facts import tell_setup
from grpo_studio.training.sharding import keep_outputs_exact
from grpo_studio.training.tokenization import load_tokenizer, prompt_for
from grpo_studio.training.trainer import StudioTrainer
from grpo_studio.training.usable_rows import UsableRows, usable_rows
from grpo_studio.training.verifier_faults import AbstentionWatch
from grpo_studio.training.worst_case import Rehearsal, rehearse, wanted


class Session:
    """Builds and runs the trainer of one attempt. `stop` is looked at after each step."""

    def __init__(
        self, config: RunConfig, settings: Settings, folder: RunFolder, writer: RunWriter, stop: StopFlag
    ) -> None:
        self.config = config
        self._settings = settings
        self._folder = folder
        self._writer = writer
        self._stop = stop
        self._clock = FailureClock()
        self._trainer: StudioTrainer | None = None
        self._doing = "beginning"
        self._longest_prompt: int | None = None
        self._besides = resident()

    def run(self) -> Outcome:
        """Train to the end, or until a stop is requested or the rewards fail.

        Raises:
            StudioError: model, data, verifiers or rollout engine cannot be used, memory was too small, or nothing was
                learned.
        """
        try:
            return self._run()
        except Exception as error:
            if out_of_memory(error) is None:
                raise
            failed = told(error, self._scene())
        raise failed

    def _scene(self) -> Scene:
        trainer, self._trainer = self._trainer, None
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return Scene(
            self.config,
            self._settings,
            self._folder.path,
            device if trainer is None else trainer.accelerator.device,
            "" if self._stop.training else self._doing,
            None if trainer is None else trainer.state.global_step,
            self._clock.current,
            self._longest_prompt,
            self._besides,
        )

    def _run(self) -> Outcome:
        self._point = resume_point(self._folder, self.config, self._writer.attempt)
        prepare_engine(self.config)
        arguments = grpo_arguments(self.config, self._folder.checkpoints)  # first: it joins the processes
        if self.config.report.hub_repo is not None and arguments.process_index == 0:
            hub.require_writable(self.config.report.hub_repo)
        source = model_source(self.config, self._settings.cache, self._preparing, PartialState().main_process_first)
        self._preparing("reading the data set")
        splits = data.load(self.config.dataset, self.config.rows_wanted())
        self._preparing(f"loading {self.config.model.id}")
        tokenizer = load_tokenizer(source, self.config.model.revision, self.config.model.chat_template)
        require_targets(source, self.config.model.revision, self.config.memory)
        usable = usable_rows(self.config, tokenizer, source, splits)
        splits = usable.splits
        self._tell_rows(usable)
        facts = data_facts(splits.train)
        if self._point is not None:
            require_same_data(self._point, facts)
        with ExitStack() as stack:
            judged = prepare_rewards(self.config, self._settings, self._folder, self._writer, arguments)
            stack.callback(judged.close)
            url = stack.enter_context(rollout_engine(self.config, source, self._folder, self._preparing))
            arguments.vllm_server_base_url = url
            try:
                return self._train(arguments, source, tokenizer, splits, judged, facts)
            except PausedEarlyError as error:
                return Outcome(self._from_step, paused=str(error))

    @property
    def _from_step(self) -> int:
        """The step after which this attempt begins."""
        return 0 if self._point is None else self._point.step

    def _train(
        self,
        arguments: GRPOConfig,
        source: str,
        tokenizer: Any,
        splits: data.DataSplits,
        judged: JudgedRewards,
        facts: dict[str, Any],
    ) -> Outcome:
        set_seed(arguments.seed)
        memory = watch_memory(self.config, self._folder.path, self._clock, arguments.device, self._writer.event)
        abstentions = AbstentionWatch(self.config.limits.abstained)
        masks, passes = self.config.algorithm.mask_truncated, pass_rule(self.config)
        recorder = Recorder(self._writer, self._clock, memory, abstentions, masks, passes)
        trainer = StudioTrainer(
            model=source,
            args=arguments,
            train_dataset=_dataset(tokenizer, splits.train),
            processing_class=tokenizer,
            config=self.config,
            judged=judged,
            samples=splits.train,
            clock=self._clock,
            listener=recorder,
            **adapter_arguments(self.config.memory, effective_dtype(self.config.model)),
        )
        self._trainer = trainer
        trainer.checkpointer = Checkpointer(
            self._folder, self.config, self._writer.attempt, facts, self._point, recorder
        )
        if self.config.uses_vllm:
            trainer.watch_sync(tokenizer, recorder.warned)
        rows = splits.held_out[: self.config.evaluation.rows]
        held_out = HeldOut(trainer, tokenizer, rows, judged, self.config, self._clock)

        def begin() -> None:
            """Runs once the model is wrapped for training, before the first step."""
            tell_setup(self._writer, self.config, trainer, splits)
            keep_outputs_exact(trainer.model)
            if wanted(self.config, arguments.device):
                tokens = self._longest_prompt or 1
                rehearse(Rehearsal(self.config, trainer, self._writer, self._clock, memory, tokens, self._from_step))
            if self._point is None or self._point.branch:
                trainer.before = fingerprint(trainer.model)
                self._score_before(recorder, held_out, abstentions)
            recorder.aside_done(self._from_step)
            after = "" if self._point is None else f"from {self._point.checkpoint.name} "
            self._writer.event("training_started", f"training {after}for {self.config.algorithm.steps} steps")
            self._stop.training = True
            self._clock.take()  # so that the first step is not charged with the loading before it

        trainer.add_callback(
            StepCallback(trainer, self.config, self._stop, self._clock, recorder, held_out, abstentions, begin)
        )
        memory.start(trainer.model, trainer.ref_model)
        try:
            trainer.train_on()
            return self._conclude(trainer, recorder, held_out, abstentions.lost)
        finally:
            memory.stop()

    def _score_before(self, recorder: Recorder, held_out: HeldOut, abstentions: AbstentionWatch) -> None:
        step = self._from_step
        if not held_out.due(step):
            return
        self._preparing("scoring the held-out rows before training")
        scored = held_out.score(step)
        recorder.baseline = recorder.evaluated(step, scored)
        if reason := abstentions.verdict_on(scored):
            raise PausedEarlyError(f"before training, on the held-out rows: {reason}")

    def _conclude(self, trainer: StudioTrainer, recorder: Recorder, held_out: HeldOut, lost: int) -> Outcome:
        """Save, then score: whatever befalls the last evaluation, the weights are safe."""
        step = trainer.state.global_step
        if trainer.paused is not None:
            return Outcome(step, paused=f"after step {step}: {trainer.paused}")
        if trainer.stopped and step < self.config.algorithm.steps:
            return Outcome(step, stopped=True)
        if step == 0:
            raise DataError("training ended without a single step: the data set has too few rows for one batch")
        self._require_change(trainer, step, lost)
        with self._clock.phase("save"):
            final = trainer.save_final()
        if trainer.args.should_save:
            self._writer.event("checkpoint_saved", f"final weights saved in {final.relative_to(self._folder.path)}")
        if held_out.due(step) and step not in recorder.scores:
            recorder.evaluated(step, held_out.score(step))
            trainer.score_final(final)
        recorder.aside_done(step)
        if self.config.report.hub_repo is not None and trainer.accelerator.is_main_process:
            self._push(self.config.report.hub_repo)
        return Outcome(step)

    def _push(self, repo: str) -> None:
        """The weights are safe on the disk: that they cannot be pushed is told, and ends nothing."""
        from grpo_studio.exporting.pushing import push_final  # it brings pandas, which few runs need

        try:
            url = push_final(self._folder, self._settings, repo, print)
            self._writer.event("pushed", f"final weights and their model card pushed to {url}")
        except StudioError as error:
            self._writer.event("push_failed", str(error), level="error")

    def _require_change(self, trainer: StudioTrainer, step: int, lost: int) -> None:
        if self._point is not None and self._point.branch:
            step -= self._from_step
        if changed(trainer.before, fingerprint(trainer.model), trainer.accelerator):
            return
        if trainer.live_steps == 0:
            masked = " or cut off and masked" if self.config.algorithm.mask_truncated else ""
            masked += f", and {lost} completions had none since a verifier abstained" if lost else ""
            raise TrainingError(
                f"nothing was learned in {step} steps: no completion had an advantage, since the rewards of each group "
                f"were all equal{masked}; use easier questions, a reward that tells answers apart, or larger groups"
            )
        raise TrainingError(
            f"nothing was learned in {step} steps: no trainable weight has changed; use a larger learning rate than "
            f"{self.config.algorithm.learning_rate:g}, or model.dtype=mixed, which rounds no small update away"
        )

    def _tell_rows(self, usable: UsableRows) -> None:
        for note in usable.notes:
            self._writer.event("rows_left_out", note, level="warning")
        longest, context = usable.facts["longest_prompt"], usable.facts["context_length"]
        room = longest if context is None else context - self.config.algorithm.max_completion_length
        self._longest_prompt = min(longest, room)
        limit = "" if context is None else f" of a context of {context:,}"
        self._writer.event(
            "data_read",
            f"{len(usable.splits.train):,} rows to train on, {len(usable.splits.held_out):,} held out; "
            f"the longest prompt has {longest:,} tokens{limit}",
            data=usable.facts,
        )

    def _preparing(self, what: str) -> None:
        self._doing = what
        self._writer.event("preparing", what)


def _dataset(tokenizer: Any, samples: Sequence[data.Sample]) -> Dataset:
    prompts = [prompt_for(tokenizer, sample.messages) for sample in samples]
    return Dataset.from_dict({"prompt": prompts, SAMPLE_COLUMN: list(range(len(samples)))})
