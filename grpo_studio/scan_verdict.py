"""What a scan of the data means for the settings of a run: rows that do not fit, too few rows, rows left out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_studio.config import RunConfig
from grpo_studio.data.lengths import PromptLengths
from grpo_studio.data.row_numbers import SHOWN, listed_rows
from grpo_studio.data.scan import Finding, Tally, kinds_in_words
from grpo_studio.problem import Problem


@dataclass(frozen=True)
class Left:
    """Rows that a run trains on, and where the others went."""

    distinct: int
    train: int
    held_out: int
    unusable: int
    too_long: int
    in_all: int


def context_of(config: RunConfig, model_context: int | None) -> int | None:
    """Tokens that prompt and completion may have together: the model's context, or less where vLLM is given less."""
    engine = config.rollout.max_model_length if config.uses_vllm else None
    return min((limit for limit in (model_context, engine) if limit is not None), default=None)


def length_problem(config: RunConfig, lengths: PromptLengths | None, rows: int, context: int | None) -> Problem | None:
    """Why prompts and a completion do not fit the context; None when they do, or when those rows are left out."""
    completion = config.algorithm.max_completion_length
    if context is not None and completion >= context:
        longest = lengths.longest if lengths else 0
        fix = f"use {context - longest:,} or less" if context > longest else f"use much less than {context:,}"
        return Problem(
            "algorithm.max_completion_length",
            f"a completion of {completion:,} tokens leaves no room for a prompt in the context of {context:,}",
            fix,
        )
    if lengths is None or not lengths.too_long or config.dataset.too_long == "leave_out":
        return None
    context = lengths.context or 0
    return Problem(
        "dataset.too_long",
        f"{lengths.too_long:,} of {rows:,} prompts ({listed_rows(lengths.too_long_rows, lengths.too_long)}) have more "
        f"than {lengths.room:,} tokens: the context of {context:,} less {completion:,} for a completion",
        _ways_out(config, lengths.longest, context),
    )


def _ways_out(config: RunConfig, longest: int, context: int) -> str:
    ways = ["set dataset.too_long=leave_out"]
    if longest < context:
        ways.append(f"algorithm.max_completion_length={context - longest} or less")
    if config.uses_vllm and config.rollout.max_model_length == context:
        needed = longest + config.algorithm.max_completion_length
        ways.append(f"rollout.max_model_length={needed} or more if the model takes that")
    return ", or ".join(ways)


def too_long_note(lengths: PromptLengths, rows: int) -> str:
    """That rows are left out since they do not fit."""
    where = listed_rows(lengths.too_long_rows, lengths.too_long, SHOWN)
    more = f"{lengths.too_long:,} of {rows:,} prompts ({where}) have more than {lengths.room:,} tokens"
    return f"{more} and are left out"


def unusable_problem(unusable: Tally, rows: int, findings: Sequence[Finding]) -> Problem:
    """That rows have no usable prompt, where that is to stop a run."""
    return Problem(
        "dataset.unusable",
        _unusable(unusable, rows, findings),
        "mend those rows, or set dataset.unusable=leave_out",
    )


def unusable_note(unusable: Tally, rows: int, findings: Sequence[Finding]) -> str:
    """That rows without a usable prompt are left out."""
    return f"{_unusable(unusable, rows, findings)}; they are left out"


def _unusable(unusable: Tally, rows: int, findings: Sequence[Finding]) -> str:
    kinds = kinds_in_words(findings)
    told = f"{unusable.count:,} of {rows:,} rows have no usable prompt"
    return f"{told} ({listed_rows(unusable.rows, unusable.count, SHOWN)}){f': {kinds}' if kinds else ''}"


def few_rows_problem(config: RunConfig, left: Left) -> Problem | None:
    """Why there are too few rows for one generation batch; None when there are enough."""
    needed = config.algorithm.prompts_per_step
    if left.distinct >= needed:
        return None
    gone = list(_where_they_went(left))
    why = f": {left.in_all:,} rows less {', '.join(gone)}" if gone else f": the data set has {left.in_all:,} rows"
    message = f"a step needs {needed:,} different prompts, {left.distinct:,} are left to train on{why}"
    ways = [f"use {left.distinct:,} or fewer"] if left.distinct else []
    if left.distinct or not left.too_long:
        ways.append(f"give a data set with {left.in_all + needed - left.distinct:,} rows or more")
    if left.held_out:
        ways.append("hold out fewer")
    if left.too_long:
        ways.append("leave prompts more room by a shorter algorithm.max_completion_length")
    return Problem("algorithm.prompts_per_step", message, ", or ".join(ways))


def _where_they_went(left: Left) -> Iterator[str]:
    if left.held_out:
        yield f"{left.held_out:,} held out"
    if left.unusable:
        yield f"{left.unusable:,} without a usable prompt"
    if left.too_long:
        yield f"{left.too_long:,} too long"
    if left.train > left.distinct:
        yield f"{left.train - left.distinct:,} that repeat a prompt"


def row_facts(config: RunConfig, left: Left) -> dict[str, Any]:
    """Rows of each kind, and how often a run visits them."""
    per_step = config.algorithm.prompts_per_step
    visits = config.algorithm.steps * per_step / config.algorithm.num_iterations
    return {
        "train_rows": left.train,
        "held_out_rows": left.held_out,
        "left_out": left.unusable + left.too_long,
        "steps_per_epoch": left.train // per_step,
        "epochs": round(visits / left.train, 3) if left.train else None,
    }
