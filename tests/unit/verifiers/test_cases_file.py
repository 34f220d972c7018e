from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from grpo_studio.errors import DataError
from grpo_studio.verifiers.cases import run_cases, summary

REWARDS = Path(__file__).resolve().parents[3] / "rewards"


def test_each_line_is_judged_or_says_why_not(tmp_path: Path) -> None:
    def case(name: str, reward: str, completion: object, answer: object, expected: object) -> str:
        row = {"id": name, "reward": reward, "completion": completion, "answer": answer, "expected": expected}
        return json.dumps(row)

    lines = [
        case("right", "math_numeric", "It is 4", 4, 1),
        case("wrong", "math_numeric", "It is 5\u2028", "4", 1.0),
        case("must abstain", "math_numeric", "It is 5", None, None),
        case("must not abstain", "math_numeric", "It is 5", None, 0.0),
        "",
        case("unknown", "math_numric", "x", "x", 1.0),
        "{broken",
        "[1]",
        '{"reward": "math_numeric", "completion": "x"}',
        case("no number", "math_numeric", "4", "4", "1"),
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(lines))

    results = run_cases(path, [REWARDS])

    assert [result.passed for result in results] == [True, False, True, False, False, False, False, False, False]
    assert [result.line for result in results] == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    reasons = [result.reason for result in results]
    assert reasons[1] == "5 is not 4"
    assert reasons[4].startswith("no such verifier: no verifier 'math_numric'; did you mean math_numeric")
    assert [reason.partition(":")[0] for reason in reasons[5:]] == [f"line {n} is not a case" for n in (7, 8, 9, 10)]
    assert summary(results) == "2 passed, 7 failed"


RULES = '''
import os
from grpo_studio.verifiers import verifier

@verifier(examples=[("a", {}, None)])
def wrong(completion):
    """Returns what is no number."""
    return [1.0]

@verifier(examples=[("a", {}, None)], warm=lambda: 1 / 0)
def cold(completion):
    """Never gets ready."""
    return None

@verifier(examples=[("a", {}, None)], check=lambda: 1 / 0)
def careless(completion):
    """Its check raises."""
    return None

@verifier(examples=[("a", {}, None)], warm=lambda: os._exit(3))
def leaves(completion):
    """Ends its process as it gets ready."""
    return None
'''


@pytest.mark.parametrize(
    ("reward", "params", "passed", "reason"),
    [
        ("math_numeric", {}, True, "gold"),
        ("regex_match", {"pattern": "[unclosed"}, True, "is not a regular expression"),
        ("math_numeric", {"tolerance": -1}, True, "tolerance is -1"),
        ("math_numeric", {"tolerence": 0.1}, False, "math_numeric has no param 'tolerence'"),
        ("math_numeric", {"tolerance": "0.1"}, False, "'tolerance' is '0.1'; it must be float"),
        ("regex_match", {}, False, "regex_match needs the param 'pattern'"),
        ("regex_match", {"pattern": "[unclosed", "patern": "a"}, False, "no param 'patern'"),
        ("wrong", {}, False, "wrong returned [1.0] (list)"),
        ("cold", {}, False, "its hook 'warm' failed"),
        ("careless", {}, False, "its check failed: ZeroDivisionError"),
        ("leaves", {}, False, "leaves cannot be made ready"),
    ],
)
def test_an_abstention_must_be_the_verifiers_own_word(
    tmp_path: Path, reward: str, params: dict[str, object], passed: bool, reason: str
) -> None:
    (tmp_path / "rules.py").write_text(RULES)
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"reward": reward, "completion": "4", "params": params, "expected": None}))
    [result] = run_cases(path, [REWARDS, tmp_path])
    assert result.passed == passed
    assert reason in result.reason


def test_a_judge_that_does_not_start_is_no_abstention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"reward": "math_numeric", "completion": "4", "expected": null}\n')
    assert run_cases(path, [REWARDS])[0].passed
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no_python"))
    [result] = run_cases(path, [REWARDS])
    assert not result.passed
    assert result.reason.startswith("the judge process does not start")


def test_only_keeps_the_cases_of_some_rewards(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"reward": "other", "completion": "x", "expected": 1}\n')
    assert run_cases(path, [REWARDS], only={"math_numeric"}) == []


def test_a_missing_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        run_cases(tmp_path / "none.jsonl", [REWARDS])
