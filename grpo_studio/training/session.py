"""One attempt at a run: load, evaluate, train, evaluate, save. Tells what it does through the run's writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from datasets import Dataset
from transformers import TrainerCallback
from transformers.trainer_utils import set_seed

from grpo_studio import data
from grpo_studio.catalog import BUILTIN_MODELS, locate
from grpo_studio.config import RunConfig
from grpo_studio.errors import DataError
from grpo_studio.settings import Settings
from grpo_studio.stopping import Outcome, StopFlag
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.writer import RunWriter
from grpo_studio.training.arguments import grpo_arguments
from grpo_studio.training.convert import ensure_converted
from grpo_studio.training.evaluation import evaluate
from grpo_studio.training.phases import MemoryWatch, PhaseClock
from grpo_studio.training.precision import fast_bfloat16
from grpo_studio.training.recorder import Recorder, absent_metrics
from grpo_studio.training.rewards import SAMPLE_COLUMN, JudgedRewards
from grpo_studio.training.tokenization import load_tokenizer, prompt_for
from grpo_studio.training.trainer import StudioTrainer


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
        self._clock = PhaseClock()

    def run(self) -> Outcome:
        """Train to the end, or until a stop is requested.

        Raises:
            StudioError: model, data or verifiers cannot be used.
        """
        source = self._model_source()
        self._preparing("reading the data set")
        splits = data.load(self.config.dataset)
        self._preparing(f"loading {self.config.model.id}")
        tokenizer = load_tokenizer(source, self.config.model.revision)
        judged = JudgedRewards(self.config.rewards, self._settings.rewards_dirs)
        try:
            return self._train(source, tokenizer, splits, judged)
        finally:
            judged.close()

    def _train(self, source: str, tokenizer: Any, splits: data.DataSplits, judged: JudgedRewards) -> Outcome:
        arguments = grpo_arguments(self.config, self._folder.checkpoints)
        set_seed(arguments.seed)
        memory = MemoryWatch(self._clock, arguments.device)
        recorder = self._recorder(memory)
        trainer = StudioTrainer(
            model=source,
            args=arguments,
            train_dataset=_dataset(tokenizer, splits.train),
            processing_class=tokenizer,
            judged=judged,
            samples=splits.train,
            clock=self._clock,
            listener=recorder,
        )
        held_out = splits.held_out[: self.config.evaluation.rows]
        score_held_out = self._evaluation(trainer, tokenizer, held_out, judged, recorder)
        trainer.add_callback(_StepCallback(self.config, self._stop, self._clock, recorder, score_held_out))
        memory.start()
        try:
            self._tell_setup(trainer, splits)
            if held_out:
                self._preparing(f"scoring {len(held_out)} held-out rows before training")
            score_held_out(0)
            recorder.aside_done(0)
            self._writer.event("training_started", f"training for {self.config.algorithm.steps} steps")
            self._stop.training = True
            self._clock.take()  # so that the first step is not charged with the loading before it
            trainer.train()
            return self._conclude(trainer, recorder, score_held_out)
        finally:
            memory.stop()

    def _recorder(self, memory: MemoryWatch) -> Recorder:
        return Recorder(self._writer, self._clock, memory, self.config.algorithm.mask_truncated)

    def _conclude(self, trainer: StudioTrainer, recorder: Recorder, score_held_out: Callable[[int], None]) -> Outcome:
        """Save, then score: whatever befalls the last evaluation, the weights are safe."""
        step = trainer.state.global_step
        if self._stop.requested and step < self.config.algorithm.steps:
            return Outcome(step, stopped=True)
        if step == 0:
            raise DataError("training ended without a single step: the data set has too few rows for one batch")
        final = self._folder.checkpoints / "final"
        with self._clock.phase("save"):
            trainer.save_model(str(final))
        self._writer.event("checkpoint_saved", f"final weights saved in {final.relative_to(self._folder.path)}")
        score_held_out(step)
        recorder.aside_done(step)
        return Outcome(step, stopped=False)

    def _model_source(self) -> str:
        location = locate(self.config.model.id, self._settings.cache)
        if location.kind == "builtin":
            model = BUILTIN_MODELS[location.id]
            return str(ensure_converted(model, self._settings.cache, self._report_progress))
        return str(location.path or location.id)

    def _report_progress(self, what: str, share: float) -> None:
        self._preparing(f"{what}, {share:.0%}")

    def _preparing(self, what: str) -> None:
        self._writer.event("preparing", what)

    def _evaluation(
        self,
        trainer: StudioTrainer,
        tokenizer: Any,
        held_out: Sequence[data.Sample],
        judged: JudgedRewards,
        recorder: Recorder,
    ) -> Callable[[int], None]:
        done_at: set[int] = set()

        def score_held_out(step: int) -> None:
            if not held_out or step in done_at:
                return
            done_at.add(step)
            with self._clock.phase("evaluate"):
                model = trainer.accelerator.unwrap_model(trainer.model)
                length = self.config.algorithm.max_completion_length
                groups = evaluate(model, tokenizer, held_out, judged, length, list(trainer.eos_token_ids))
            recorder.evaluated(step, groups)

        return score_held_out

    def _tell_setup(self, trainer: StudioTrainer, splits: data.DataSplits) -> None:
        parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
        dtype = str(trainer.model.dtype).removeprefix("torch.")
        facts = {
            "device": str(trainer.args.device),
            "dtype": dtype,
            "parameters": parameters,
            "train_rows": len(splits.train),
            "held_out_rows": len(splits.held_out),
            **self.config.derived(),
        }
        self._writer.event(
            "setup", f"{parameters / 1e6:.1f} M parameters in {dtype} on {trainer.args.device}", data=facts
        )
        self._writer.event("absent_metrics", "metrics that this run does not have", data=absent_metrics(self.config))
        if dtype == "bfloat16" and not fast_bfloat16():
            slow = (
                "bfloat16 runs by scalar loops on this device, many times slower than float32; leave model.dtype empty"
            )
            self._writer.event("slow_precision", slow, level="warning")
        if splits.dropped:
            self._writer.event(
                "rows_dropped", f"{splits.dropped} rows have no usable prompt and were left out", level="warning"
            )


class _StepCallback(TrainerCallback):
    """Looks after each step: stop on request, score the held-out rows when it is their turn."""

    def __init__(
        self,
        config: RunConfig,
        stop: StopFlag,
        clock: PhaseClock,
        recorder: Recorder,
        score_held_out: Callable[[int], None],
    ) -> None:
        self._config = config
        self._stop = stop
        self._clock = clock
        self._recorder = recorder
        self._score_held_out = score_held_out

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.enter("optimizer")

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.leave()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if self._stop.requested:
            control.should_training_stop = True
            control.should_save = True
            return control
        every = self._config.evaluation.every
        if every and state.global_step % every == 0:
            self._score_held_out(state.global_step)
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.checkpoint_saved(state.global_step)


def _dataset(tokenizer: Any, samples: Sequence[data.Sample]) -> Dataset:
    prompts = [prompt_for(tokenizer, sample.messages) for sample in samples]
    return Dataset.from_dict({"prompt": prompts, SAMPLE_COLUMN: list(range(len(samples)))})
