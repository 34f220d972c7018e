from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers import discover, problems_of
from grpo_studio.verifiers.judge import Judge, JudgeRequest

REWARDS = Path(__file__).resolve().parents[3] / "rewards"
SPEC = discover([REWARDS]).get("regex_match")


@pytest.mark.parametrize(
    ("text", "params", "score"),
    [
        ("cats", {"pattern": "cat"}, 0.0),
        ("a cat.", {"pattern": "cat"}, 1.0),
        ("concat cat", {"pattern": "cat"}, 1.0),
        ("12345", {"pattern": r"\d{4,}"}, 1.0),
        ("(x)", {"pattern": r"\("}, 1.0),
        ("A CAT", {"pattern": "(?i)cat"}, 1.0),
        ("A CAT", {"pattern": "cat", "flags": "i"}, 1.0),
        ("a cat", {"pattern": "cat # comment", "flags": "x"}, 1.0),
        ("dogs", {"pattern": "cat|dog"}, 0.0),
        ("a\nb", {"pattern": "a.b", "match": "full", "flags": "s"}, 1.0),
        ("a b c", {"pattern": "a", "match": "full"}, 0.0),
        ("abab", {"pattern": r"(ab)\1"}, 1.0),
    ],
)
def test_match_modes(text: str, params: dict[str, Any], score: float) -> None:
    assert problems_of(SPEC, params, []) == []
    assert SPEC.function(text, **params).score == score


@pytest.mark.parametrize(
    "params",
    [{"pattern": "[unclosed"}, {"pattern": "a)(b"}, {"pattern": "a", "flags": "q"}, {"pattern": "a", "match": "no"}],
)
def test_a_bad_setting_is_one_message_at_set_up(params: dict[str, Any]) -> None:
    assert len(problems_of(SPEC, params, [])) == 1


def test_a_pattern_that_never_ends_costs_its_item_only() -> None:
    with Judge([JudgeRequest("regex_match", {"pattern": "(a+)+$"})], [REWARDS], time_limit=0.5) as judge:
        [scores] = judge.score(["aaa", "a" * 40 + "!", "b aa"], {})
    # The probe with the verifier's own example ends, so the text is to blame.
    assert [(score.value, score.outcome) for score in scores] == [(1.0, "ok"), (0.0, "timeout"), (1.0, "ok")]
