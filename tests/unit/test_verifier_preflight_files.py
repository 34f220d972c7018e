"""What `check` says about verifier files: those that are called by default, those that were edited, those added."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reward_checks import add_verifier, check_rewards

from grpo_studio.preflight import CheckReport
from grpo_studio.settings import Settings

HEAD = "from grpo_studio.verifiers import verifier\n\n\n"
Check = Callable[..., CheckReport]


@pytest.fixture
def add(settings: Settings) -> Callable[[str, str], Path]:
    return lambda name, source: add_verifier(settings, name, source)


@pytest.fixture
def checked(settings: Settings, tmp_path: Path, tiny_model: Path) -> Check:
    def run(rewards: list[dict[str, Any]]) -> CheckReport:
        return check_rewards(settings, tiny_model, tmp_path / "rows.jsonl", rewards)

    return run


def test_a_verifier_of_ones_own_is_not_scored_by_the_trainer(checked: Check, add: Callable[[str, str], Path]) -> None:
    add(
        "mine",
        HEAD + "@verifier(examples=[('a', {}, None)], place='trainer')\ndef mine(completion):\n    return None\n",
    )
    [problem] = checked([{"verifier": "mine", "params": {}}]).problems
    assert problem.field == "rewards.0.verifier"
    assert "scores by the shipped reward_model alone" in problem.message


OUTER = (
    HEAD + "from grpo_studio.verifiers import parts\n\n\n@verifier(examples=[('a', {{'answer': '1'}}, {expected})])\n"
    "def outer(completion, answer, *, verifier='inner'):\n    return parts.part(verifier, {{}})(completion, {{'answer': answer}})\n"
)
INNER = (
    HEAD
    + "@verifier(examples=[('a', {{'answer': '1'}}, {score})])\ndef inner(completion, answer):\n    return {score}\n"
)


def edited(path: Path, text: str) -> None:
    """Change a file as an editor might that keeps its time."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_edit_of_a_verifier_that_is_called_by_default_is_noticed(
    checked: Check, add: Callable[[str, str], Path]
) -> None:
    """Its examples and what it makes of the golds are asked anew, however old the files seem."""
    outer, inner = add("outer", OUTER.format(expected="1.0")), add("inner", INNER.format(score="1.0"))
    assert checked([{"verifier": "outer"}]).problems == []
    edited(inner, INNER.format(score="0.5"))
    assert any("example 1" in problem.message for problem in checked([{"verifier": "outer"}]).problems)
    edited(inner, INNER.format(score="None"))
    edited(outer, OUTER.format(expected="None"))
    [problem] = checked([{"verifier": "outer"}]).problems
    assert "can read the gold of none of the 40 rows" in problem.message


def test_the_file_of_a_verifier_that_is_called_by_default_is_looked_at(
    checked: Check, add: Callable[[str, str], Path]
) -> None:
    add("outer", OUTER.format(expected="1.0"))
    add("inner", "def (:\n")
    [problem] = checked([{"verifier": "outer"}]).problems
    assert "inner.py cannot be used: SyntaxError" in problem.message


def test_a_file_added_beside_the_shipped_ones_is_checked(
    checked: Check, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only what ships with the program is known to pass its own examples."""
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "added.py").write_text(
        INNER.format(score="1.0").replace("return 1.0", "return 0.0").replace("inner", "added")
    )
    monkeypatch.setattr("grpo_studio.settings.BUNDLED_REWARDS", shipped)
    monkeypatch.setattr("grpo_studio.verifiers.loading.BUNDLED_REWARDS", shipped)
    assert any("example 1" in problem.message for problem in checked([{"verifier": "added"}]).problems)
