"""What every part of the bench hands to the judge: the columns of the rows, and what is known about a verifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from grpo_studio.config import RewardSettings
from grpo_studio.data import Sample
from grpo_studio.store.records import ScoreRecord
from grpo_studio.verifiers.contract import GIVEN_COLUMNS, VerifierSpec
from grpo_studio.verifiers.discovery import discover
from grpo_studio.verifiers.judge_score import Score

WHOLE: Final = "whole reward"
"""Label of the weighted sum of all verifiers."""
_CHARACTERS_A_TOKEN = 4
Progress = Callable[[int, int], None]
"""Called with the rows done and the rows in all, between parts of the work; it ends the work by raising."""


def specs_of(rewards: Sequence[RewardSettings], directories: Sequence[Path]) -> list[VerifierSpec]:
    """The verifier of each reward. Raises VerifierError for one that is not there."""
    registry = discover(directories)
    return [registry.get(reward.verifier) for reward in rewards]


def columns_of(samples: Sequence[Sample], tokens: Sequence[int]) -> dict[str, list[Any]]:
    """One value for each sample and column, and those of `GIVEN_COLUMNS`: as a run passes them to its judge."""
    names = dict.fromkeys(name for sample in samples for name in sample.columns)
    columns: dict[str, list[Any]] = {name: [sample.columns.get(name) for sample in samples] for name in names}
    return columns | {"prompt": [sample.question for sample in samples], "completion_tokens": list(tokens)}


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, where there is no tokenizer to ask."""
    return -(-len(text) // _CHARACTERS_A_TOKEN)


def reads_gold(spec: VerifierSpec) -> bool:
    """Whether a judge that runs this verifier looks at anything besides the completion and its prompt."""
    return spec.place == "judge" and (spec.all_columns or any(name not in GIVEN_COLUMNS for name in spec.columns))


def gives_parts(spec: VerifierSpec) -> bool:
    """Whether partial scores are its design: it names no gold column but takes all there are, as an ensemble does."""
    return spec.all_columns and not any(name not in GIVEN_COLUMNS for name in spec.columns)


def top_of(spec: VerifierSpec) -> float:
    """The highest score among the verifier's own examples, but at most 1.

    Examples may use params that allow more than these do: so 1 is always enough.
    """
    return min(1.0, max((example.expected for example in spec.examples if example.expected is not None), default=1.0))


def as_record(reward: RewardSettings, score: Score) -> ScoreRecord:
    """A score with the weight of its reward, as runs record it."""
    return ScoreRecord(
        reward.label, score.value, reward.weight, score.seconds, score.reason, score.extracted, score.outcome
    )


def cut(value: Any, length: int = 200) -> str:
    """A value as short text on one line, free of what no browser takes."""
    text = value if isinstance(value, str) else str(value)
    text = " ".join(text[: 4 * length].encode("utf-8", "replace").decode("utf-8").split())
    return text if len(text) <= length else text[: length - 1] + "…"


def gold_of(spec: VerifierSpec, columns: Mapping[str, Any]) -> Any:
    """What a row holds for a verifier to judge by: one column's value, or a mapping of several."""
    names = [name for name in spec.columns if name not in GIVEN_COLUMNS and name in columns]
    if spec.all_columns or not names:
        names = ["answer"] if "answer" in columns else names
    return columns[names[0]] if len(names) == 1 else {name: columns[name] for name in names}
