"""GSM8K for real: every gold solution is right by its own answer and wrong by the next row's, through a judge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from grpo_studio.verifiers.judge import Judge, JudgeRequest

REWARDS = Path(__file__).resolve().parents[2] / "rewards"
ROWS = 1319


@pytest.fixture(scope="module")
def solutions(shared_dir: Path) -> list[str]:
    """The worked solutions, each of which ends in `#### ` and its answer."""
    lines = (shared_dir / "data" / "gsm8k_test.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == ROWS
    return [json.loads(line)["answer"] for line in lines]


def _answer(solution: str) -> str:
    return solution.rpartition("#### ")[2].strip()


def _value(solution: str) -> int:
    return int(_answer(solution).replace(",", ""))


def _check(verifier: str, completions: Sequence[str], golds: Sequence[object], values: Sequence[int]) -> None:
    """Each completion is right by its own gold, and wrong by the next row's where the two differ."""
    others = [*golds[1:], golds[0]]
    differ = [value != other for value, other in zip(values, [*values[1:], values[0]], strict=True)]
    assert sum(differ) > ROWS * 0.9
    with Judge([JudgeRequest(verifier, {})], [REWARDS]) as judge:
        [own] = judge.score(completions, {"answer": golds})
        [other] = judge.score(completions, {"answer": others})
    assert [(row, score) for row, score in enumerate(own) if score.value != 1.0] == []
    wrong = [(row, score) for row, score in enumerate(other) if score.value != (0.0 if differ[row] else 1.0)]
    assert wrong == []


def test_math_numeric_reads_every_solution_as_completion_and_as_gold(solutions: list[str]) -> None:
    _check("math_numeric", solutions, solutions, [_value(solution) for solution in solutions])


def test_math_numeric_reads_every_answer_in_words(solutions: list[str]) -> None:
    said = [f"{solution.rpartition('#### ')[0]}\nThe answer is ${_answer(solution)}." for solution in solutions]
    values = [_value(solution) for solution in solutions]
    _check("math_numeric", said, values, values)


@pytest.mark.parametrize("verifier", ["math_boxed", "math_equal"])
def test_every_answer_in_a_box_is_right(verifier: str, solutions: list[str]) -> None:
    boxed = [f"{solution.rpartition('#### ')[0]}\\boxed{{{_answer(solution)}}}" for solution in solutions]
    _check(verifier, boxed, [_answer(solution) for solution in solutions], [_value(solution) for solution in solutions])
