"""Which verifiers a reward calls, which files they are in, and which of them run code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RewardSettings
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers import Registry, discover
from grpo_studio.verifiers_used import files_used, runs_code, used_by_all, verifiers_used

RULE = (
    "from grpo_studio.verifiers import verifier\n\n\n"
    "@verifier(examples=[('a', {{}}, 1.0)]{flag})\ndef {name}(completion, *, verifier={inner!r}):\n    return 1.0\n"
)


@pytest.fixture(scope="module")
def shipped() -> Registry:
    return discover([BUNDLED_REWARDS])


@pytest.mark.parametrize(
    ("name", "params", "used"),
    [
        ("math_numeric", {}, ["math_numeric"]),
        ("wrong_and_long", {}, ["wrong_and_long", "math_numeric"]),
        ("wrong_and_long", {"verifier": "math_boxed"}, ["wrong_and_long", "math_boxed"]),
        (
            "ensemble",
            {"parts": [{"verifier": "format_tags"}, {"verifier": "wrong_and_long"}]},
            ["ensemble", "format_tags", "wrong_and_long", "math_numeric"],
        ),
        (
            "wrong_and_long",
            {"verifier": "ensemble", "params": {"parts": [{"verifier": "code_stdin"}]}},
            ["wrong_and_long", "ensemble", "code_stdin"],
        ),
        ("nowhere", {"parts": [{"verifier": "code_stdin"}]}, ["nowhere", "code_stdin"]),
        ("ensemble", {"parts": [{"verifier": "nowhere"}]}, ["ensemble", "nowhere"]),
        ("ensemble", {"verifier": 3, "pattern": "verifier", "parts": [1, None, {"verifier": ["a"]}]}, ["ensemble"]),
    ],
)
def test_what_is_called_by_params_or_by_default_is_used(
    shipped: Registry, name: str, params: dict[str, Any], used: list[str]
) -> None:
    assert verifiers_used(RewardSettings(verifier=name, params=params), shipped) == used


def test_a_verifier_that_calls_itself_by_default_ends_the_search(tmp_path: Path) -> None:
    (tmp_path / "round.py").write_text(RULE.format(name="round", inner="about", flag=""))
    (tmp_path / "about.py").write_text(RULE.format(name="about", inner="round", flag=""))
    assert verifiers_used(RewardSettings(verifier="round"), discover([tmp_path])) == ["round", "about"]


def test_verifiers_that_run_code_say_so_themselves(shipped: Registry, tmp_path: Path) -> None:
    rewards = [RewardSettings(verifier="wrong_and_long", params={"verifier": "code_asserts"})]
    assert runs_code(used_by_all(rewards, shipped), shipped) == ["code_asserts"]
    assert runs_code(list(shipped.specs), shipped) == ["code_asserts", "code_stdin"]
    (tmp_path / "own.py").write_text(RULE.format(name="own", inner="code_words", flag=", runs_code=True"))
    (tmp_path / "code_words.py").write_text(RULE.format(name="code_words", inner="", flag=""))
    registry = discover([tmp_path])
    assert runs_code(used_by_all([RewardSettings(verifier="own")], registry), registry) == ["own"]


def test_files_change_with_their_text(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(RULE.format(name="own", inner="", flag=""))
    registry = discover([tmp_path])
    before = files_used(["own", "nowhere"], registry)
    assert [name for name, _ in before] == [str(path)]
    path.write_text(path.read_text().replace("return 1.0", "return 0.5"))
    assert files_used(["own"], registry) != before
