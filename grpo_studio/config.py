"""RunConfig: every setting of a run declared once, with its default, bounds, title and help text.

The form, the command line, the docs table and the checks are all made from these fields. `None` means "derive": one
method named `effective_...` says how. A field marked `not_yet` is accepted by name but refused by `check` at any value
other than its default. Imports neither torch nor gradio.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from grpo_studio.algorithm_settings import CISPO_CLAMP, AlgorithmSettings
from grpo_studio.declaration import Finite, Section, setting
from grpo_studio.engine_settings import MemorySettings, RolloutSettings, ScaleSettings

BUILTIN_PREFIX = "builtin:"
BUILTIN_MODEL = f"{BUILTIN_PREFIX}smollm2-135m-instruct"
BUILTIN_DATASET = f"{BUILTIN_PREFIX}arithmetic"
LARGEST_DERIVED_MICRO_BATCH = 16
LIGER_CHUNK_TOKENS = 2048
"""Liger's fused log-probs never hold more tokens than this at once, so a larger chunk saves it no memory."""


class ModelSettings(Section):
    id: str = setting(
        BUILTIN_MODEL,
        "Model",
        "A built-in model, a Hugging Face Hub id (owner/name), a local folder or a .gguf file.",
        main=True,
        min_length=1,
        max_length=500,
    )
    revision: str | None = setting(None, "Revision", "Branch, tag or commit of a Hub model. Empty: the newest.")
    dtype: Literal["float32", "bfloat16", "mixed"] | None = setting(
        None,
        "Precision",
        "Number format. mixed: weights in float32, multiplied in bfloat16, so that small updates are not rounded away. "
        "Empty: bfloat16 where the device multiplies it fast, else float32.",
    )
    attn_implementation: Literal["eager", "sdpa", "flash_attention_2"] | None = setting(
        None, "Attention", "Attention kernel. Empty: what transformers chooses for the model."
    )
    trust_remote_code: bool = setting(
        False,
        "Trust remote code",
        "Run Python code that comes with a Hub model. Always off: that code could do anything on this machine, with "
        "your tokens.",
    )
    chat_template: str | None = setting(
        None,
        "Chat template",
        "How chat messages become text. Empty: the model's own, or plain text when it has none. plain: plain text all "
        "the same. Else a ready one by its name (chatml, user_assistant), or the text of a Jinja template.",
        max_length=50_000,
    )


class ColumnSettings(Section):
    prompt: str | None = setting(
        None,
        "Prompt column",
        "Column that holds the question; a field of a mapping by its dotted name. Empty: known by its name, such as "
        "prompt, question or problem.",
        main=True,
        min_length=1,
    )
    answer: str | None = setting(
        None,
        "Answer column",
        "Column that holds the gold answer, passed to verifiers as `answer`. Empty: known by its name, such as answer, "
        "solution or ground_truth. -: there is none.",
        main=True,
        min_length=1,
    )


class DatasetSettings(Section):
    source: str = setting(
        BUILTIN_DATASET,
        "Data set",
        "A built-in data set, reasoning_gym:<task>, a Hub id (owner/name) or a local .jsonl, .json, .csv or .parquet "
        "file.",
        main=True,
        min_length=1,
        max_length=1000,
    )
    config: str | None = setting(
        None,
        "Configuration",
        "Configuration of a Hub data set; for builtin:arithmetic the levels, such as 1 or 1-3.",
        main=True,
    )
    split: str = setting("train", "Split", "Split of a Hub data set.", min_length=1)
    params: dict[str, Any] = setting(
        {},
        "Parameters",
        "Settings of a data set that is made in place: of builtin:countdown or a reasoning_gym task; levels of "
        "builtin:arithmetic.",
    )
    streaming: bool = setting(
        False,
        "Streaming",
        "Read only what the run needs: steps (always set here: the max_steps that a stream must have) over iterations, "
        "times prompts a step, besides the held-out rows and 10,000 to shuffle. All of it is read before the first "
        "step; a shorter set is gone over again.",
    )
    columns: ColumnSettings = Field(default_factory=ColumnSettings, title="Columns")
    system_prompt: str | None = setting(
        None,
        "System prompt",
        "Said to the model before each question. Empty: what its chat template does by itself.",
        max_length=20_000,
    )
    prompt_template: str | None = setting(
        None,
        "Prompt template",
        "Text around each question; {prompt} stands for the question.",
        main=True,
        max_length=20_000,
    )
    limit: int | None = setting(None, "Row limit", "Use only the first rows of the data set. Empty: all.", ge=1)
    held_out: int = setting(
        32,
        "Held-out rows",
        "Rows kept out of training, to measure what was learned. 0: none.",
        ge=0,
        le=100_000,
    )
    held_out_seed: int = setting(
        0, "Held-out seed", "Which rows are held out. The same seed: the same rows, whatever the run's own seed.", ge=0
    )
    unusable: Literal["leave_out", "stop"] = setting(
        "leave_out", "Unusable rows", "What to do with rows that have no usable prompt: leave them out, or stop."
    )
    too_long: Literal["stop", "leave_out"] = setting(
        "stop",
        "Too long prompts",
        "What to do when prompts and a completion do not fit the model's context: stop, or leave those rows out.",
    )


class RewardSettings(Section):
    verifier: str = setting("math_numeric", "Verifier", "Name of a verifier in rewards/.", main=True, min_length=1)
    name: str | None = setting(None, "Name", "Name in charts. Empty: the verifier's.", min_length=1, max_length=60)
    weight: Finite = setting(
        1.0, "Weight", "Multiplies the verifier's score in the reward.", main=True, ge=-1000, le=1000
    )
    params: dict[str, Any] = setting({}, "Parameters", "Keyword arguments of the verifier.")

    @property
    def label(self) -> str:
        """The name this reward goes by in metrics and charts."""
        return self.name or self.verifier


class EvaluationSettings(Section):
    every: int = setting(
        0,
        "Evaluate every",
        "Score the held-out rows every so many steps, besides before and after. 0: only those two.",
        ge=0,
    )
    rows: int = setting(32, "Rows scored", "At most this many held-out rows are scored.", ge=1, le=100_000)
    samples: int = setting(
        0,
        "Samples a row",
        "Completions sampled for each scored row at the run's temperature, besides the greedy one; from them come the "
        "mean and pass@k. 0: the greedy one only.",
        ge=0,
        le=1024,
    )
    passed_by: str | None = setting(
        None,
        "Passed by",
        "Name of the reward that says whether a completion solves its row, for pass@k and for the rows that flipped. "
        "Empty: the one of the greatest weight, the first of equals.",
        min_length=1,
        max_length=60,
    )
    pass_score: Finite = setting(1.0, "Pass score", "A completion solves its row from this score of that reward on.")


class CheckpointSettings(Section):
    every: int = setting(
        0,
        "Checkpoint every",
        "Save a checkpoint every so many steps. 0: only when stopped or finished.",
        ge=0,
    )
    keep: int = setting(2, "Keep", "Newest checkpoints kept; the oldest go first.", ge=1, le=10_000)
    keep_best: bool = setting(
        True,
        "Keep the best",
        "Also keep the checkpoint with the best held-out score; a score is known where evaluation.every meets a "
        "checkpoint.",
    )
    keep_every: int = setting(
        0,
        "Keep for good",
        "Also keep, for good, the checkpoints whose step is a multiple of this. 0: none.",
        ge=0,
    )


class LimitSettings(Section):
    hours: Finite | None = setting(
        None, "Hours", "Save a checkpoint and stop after so many hours of all attempts together.", gt=0
    )
    cost: Finite | None = setting(
        None, "Cost", "Save a checkpoint and stop at this cost: hours of all attempts times the price an hour.", gt=0
    )
    price_per_hour: Finite | None = setting(
        None,
        "Price an hour",
        "What an hour of this machine costs, in any currency. Empty: the price of this card in the table of cards, "
        "in US dollars.",
        ge=0,
    )
    tokens: int | None = setting(
        None, "Tokens", "Save a checkpoint and stop after so many sampled completion tokens.", ge=1
    )
    abstained: Finite | None = setting(
        0.5,
        "Abstentions",
        "Pause the run when more than this share of the newest completions has no reward because a verifier abstained: "
        "a broken grader teaches nothing. Empty: never.",
        ge=0,
        le=1,
    )


class ReportSettings(Section):
    to: Literal["none", "trackio", "wandb", "tensorboard"] = setting(
        "none", "Report to", "Also send TRL's metrics to a tracker; its package must be installed."
    )
    hub_repo: str | None = setting(
        None,
        "Hub repository",
        "Push the final weights to this repository (owner/name) on the Hugging Face Hub.",
        pattern=r"^[\w.-]+/[\w.-]+$",
        max_length=200,
    )


def _default_rewards() -> tuple[RewardSettings, ...]:
    return (RewardSettings(verifier="math_numeric"),)


class RunConfig(Section):
    """All settings of one run. Cross-field rules are in `grpo_studio.rules`."""

    model: ModelSettings = Field(default_factory=ModelSettings, title="Model")
    dataset: DatasetSettings = Field(default_factory=DatasetSettings, title="Data")
    rewards: tuple[RewardSettings, ...] = Field(
        default_factory=_default_rewards, title="Rewards", min_length=1, max_length=64
    )
    algorithm: AlgorithmSettings = Field(default_factory=AlgorithmSettings, title="Training")
    memory: MemorySettings = Field(default_factory=MemorySettings, title="Memory")
    rollout: RolloutSettings = Field(default_factory=RolloutSettings, title="Rollouts")
    scale: ScaleSettings = Field(default_factory=ScaleSettings, title="Scale")
    evaluation: EvaluationSettings = Field(default_factory=EvaluationSettings, title="Evaluation")
    checkpoint: CheckpointSettings = Field(default_factory=CheckpointSettings, title="Checkpoints")
    limits: LimitSettings = Field(default_factory=LimitSettings, title="Limits")
    alerts: tuple[dict[str, Any], ...] = setting((), "Alerts", "Rules that raise an event.", not_yet="alert rules")
    report: ReportSettings = Field(default_factory=ReportSettings, title="Report")

    @property
    def completions_per_step(self) -> int:
        """Completions sampled for one batch: prompts a step times G."""
        return self.algorithm.prompts_per_step * self.algorithm.group_size

    @property
    def world_size(self) -> int:
        """Training processes on all machines together."""
        return self.scale.processes * self.scale.machines

    def effective_micro_batch(self) -> int:
        """Completions in one pass of one process: as set, else the largest divisor of its share up to 16."""
        if self.memory.micro_batch is not None:
            return self.memory.micro_batch
        share = max(1, self.completions_per_step // self.world_size)
        return max(n for n in range(1, min(share, LARGEST_DERIVED_MICRO_BATCH) + 1) if share % n == 0)

    def gradient_accumulation(self) -> int:
        """Forward and backward passes before each optimizer step (TRL's gradient_accumulation_steps)."""
        return max(1, self.completions_per_step // (self.effective_micro_batch() * self.world_size))

    def effective_chunk_size(self, tokens: int) -> int:
        """Completions of `tokens` tokens each in one chunk of Liger's loss: as set, else as hold 2,048 tokens."""
        return self.memory.chunk_size or max(1, LIGER_CHUNK_TOKENS // max(1, tokens))

    def effective_importance_sampling_mode(self) -> str:
        """As set, else TRL's default; vespo has its own sequence weights, so it takes a ratio per token only."""
        default = "token_truncate" if self.algorithm.loss_type == "vespo" else "sequence_mask"
        return self.rollout.importance_sampling_mode or default

    def effective_skip_dead_groups(self) -> bool:
        """As set, else whether leaving them out changes no gradient (`skipping_changes` says what would)."""
        wanted = self.memory.skip_dead_groups
        return self.skipping_changes() is None if wanted is None else wanted

    def skipping_changes(self) -> str | None:
        """Why dead groups matter to the update although their advantages are 0; None when they do not."""
        extra = self.algorithm.extra
        if self.algorithm.beta > 0:
            return f"beta is {self.algorithm.beta:g}, so the KL term also acts on them"
        if extra.get("entropy_coef") or extra.get("use_adaptive_entropy"):
            return "the entropy bonus also acts on them"
        if extra.get("top_entropy_quantile", 1.0) != 1.0:
            return "the entropy threshold is taken over their tokens, too"
        return None

    def rows_wanted(self) -> int | None:
        """Training rows that a streamed run reads: one for each prompt of each batch; None unless it streams."""
        if not self.dataset.streaming:
            return None
        return -(-self.algorithm.steps // self.algorithm.num_iterations) * self.algorithm.prompts_per_step

    @property
    def uses_vllm(self) -> bool:
        return self.rollout.engine != "transformers"

    def effective_epsilon_high(self) -> float:
        """TRL's epsilon_high: as set; else epsilon, and for cispo, which clamps the ratio itself, its usual 5."""
        if self.algorithm.epsilon_high is not None:
            return self.algorithm.epsilon_high
        return CISPO_CLAMP if self.algorithm.loss_type == "cispo" else self.algorithm.epsilon

    def derived(self) -> dict[str, int]:
        """What follows from the settings alone, by the names that `check` prints."""
        return {
            "completions_per_step": self.completions_per_step,
            "micro_batch": self.effective_micro_batch(),
            "gradient_accumulation_steps": self.gradient_accumulation(),
            "per_device_train_batch_size": self.effective_micro_batch(),
            "processes": self.world_size,
            "generation_batch_size": self.completions_per_step,
            "largest_tokens_per_step": self.completions_per_step * self.algorithm.max_completion_length,
            "completions_total": self.completions_per_step * -(-self.algorithm.steps // self.algorithm.num_iterations),
        }
