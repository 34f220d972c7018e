from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_studio.errors import VerifierError
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers import parts
from grpo_studio.verifiers.judge import Judge, JudgeRequest

ODD = '''"""Verifiers of all kinds, in a file that does not have their names."""
from grpo_studio.verifiers import Verdict, verifier

WARMED = []

def warm(value):
    WARMED.append(value)

@verifier(examples=[("a", {"value": 1}, 1)], warm=warm)
def returns(completion, *, value: float | str | list | dict | bool | None = 1):
    """What it is told to."""
    return float(value) if value in ("nan", "inf") else value

@verifier(examples=[("a", {"answer": "a"}, 1)])
def needs(completion, answer, extra="none"):
    """Equality."""
    return Verdict(float(completion == answer), extra)

@verifier(examples=[("a", {}, 1)])
def takes_all(completion, **columns):
    """Every column."""
    return Verdict(1, ",".join(sorted(columns)))

@verifier(examples=[("a", {}, 1)])
def counts(completion):
    """How often this file was warmed."""
    return len(WARMED)

@verifier(examples=[("a", {}, 1)], place="trainer")
def elsewhere(completion):
    """On the trainer's device."""
    return 1
'''


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "broken.py").write_text("def (")
    parts.configure([BUNDLED_REWARDS, tmp_path])
    yield tmp_path
    parts.configure([BUNDLED_REWARDS])


def test_without_more_it_finds_those_that_ship() -> None:
    assert parts.part("math_numeric", {})("The answer is 12.", {"answer": 12}).score == 1.0


def test_a_folder_that_is_configured_is_searched_too(odd: Path) -> None:
    assert parts.part("returns", {"value": 3})("a", {}).score == 3.0
    with pytest.raises(VerifierError, match="did you mean returns"):
        parts.part("retuns", {})
    with pytest.raises(VerifierError, match="SyntaxError"):
        parts.spec_named("broken")


def test_a_folder_that_is_configured_no_longer_is_not_searched(odd: Path) -> None:
    parts.part("returns", {})
    parts.configure([BUNDLED_REWARDS])
    with pytest.raises(VerifierError, match="no verifier 'returns'"):
        parts.part("returns", {})


def test_a_part_is_called_with_the_columns_that_it_names(odd: Path) -> None:
    columns = {"answer": "a", "prompt": "p"}
    assert parts.part("needs", {})("a", columns).reason == "none"
    assert parts.part("needs", {})("a", columns | {"extra": "given"}).reason == "given"
    assert parts.part("takes_all", {})("a", columns).reason == "answer,prompt"
    with pytest.raises(VerifierError, match="needs a column 'answer'"):
        parts.part("needs", {})("a", {"prompt": "p"})


def test_a_part_is_warmed_once_for_each_setting(odd: Path) -> None:
    for value in (1, 2, 1, 2):
        parts.part("returns", {"value": value})("a", {})
    assert parts.part("counts", {})("a", {}).score == 2.0


@pytest.mark.parametrize("value", ["1.0", [1.0], True, "nan", "inf", {"a": 1}, 1e39])
def test_an_answer_that_breaks_the_contract_is_an_error_with_the_name(odd: Path, value: object) -> None:
    with pytest.raises(VerifierError, match="returns returned"):
        parts.part("returns", {"value": value})("a", {})


def test_a_part_is_held_to_the_contract_in_the_words_of_a_judge(odd: Path) -> None:
    with Judge([JudgeRequest("returns", {"value": value}) for value in ([1.0], True, 1e39)], [odd]) as judge:
        for value, [score] in zip(([1.0], True, 1e39), judge.score(["a"], {}), strict=True):
            with pytest.raises(VerifierError) as error:
                parts.part("returns", {"value": value})("a", {})
            assert str(error.value) == score.reason


def test_an_abstention_stays_one(odd: Path) -> None:
    assert parts.part("returns", {"value": None})("a", {}).score is None


def test_problems_are_told_before_any_item(odd: Path) -> None:
    assert parts.part_problems("returns", {}) == []
    assert "unknown" in parts.part_problems("returns", {"unknown": 1})[0]
    assert "scored by the trainer" in parts.part_problems("elsewhere", {})[0]
    assert "no verifier" in parts.part_problems("../odd", {})[0]
