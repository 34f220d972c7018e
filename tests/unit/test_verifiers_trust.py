"""What a visitor may make this machine run: verifiers that run code, however they are called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grpo_studio.config import RewardSettings
from grpo_studio.errors import VerifierError
from grpo_studio.settings import Settings
from grpo_studio.ui.verifiers_catalogue import Catalogue
from grpo_studio.ui.verifiers_trust import require_sandbox, sandbox_state
from grpo_studio.verifiers.sandbox import FORCE_VARIABLE, BoxEnded

HEAD = "from grpo_studio.verifiers import verifier\n\n\n"
RUNS = HEAD + "@verifier(examples=[('a', {}, 1.0)], runs_code=True)\ndef runs(completion):\n    return 1.0\n"
CALLS = HEAD + "@verifier(examples=[('a', {}, 1.0)])\ndef calls(completion, *, verifier='runs'):\n    return 1.0\n"
NAMED = HEAD + "@verifier(examples=[('a', {}, 1.0)])\ndef code_words(completion):\n    return 1.0\n"


@pytest.fixture
def closed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """No code from the browser, and no wall around code in completions."""
    monkeypatch.setenv(FORCE_VARIABLE, "limits")
    settings.own_rewards.mkdir()
    for name, text in (("runs", RUNS), ("calls", CALLS), ("code_words", NAMED)):
        (settings.own_rewards / f"{name}.py").write_text(text)
    return replace(settings, edit_code=False)


@pytest.mark.parametrize(
    "reward",
    [
        RewardSettings(verifier="runs"),
        RewardSettings(verifier="calls"),
        RewardSettings(verifier="wrong_and_long", params={"verifier": "code_asserts"}),
        RewardSettings(verifier="ensemble", params={"parts": [{"verifier": "calls"}]}),
    ],
)
def test_a_verifier_that_runs_code_is_refused_however_it_is_called(closed: Settings, reward: RewardSettings) -> None:
    with pytest.raises(VerifierError, match=r"runs code, and the sandbox in force here .limits. is too weak"):
        require_sandbox(closed, [reward])


@pytest.mark.parametrize("name", ["code_words", "wrong_and_long", "nowhere"])
def test_a_verifier_that_runs_none_is_not(closed: Settings, name: str) -> None:
    require_sandbox(closed, [RewardSettings(verifier=name)])


def test_with_no_sandbox_at_all_the_state_says_why(closed: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise BoxEnded("no sandbox can be made here: it ended")

    monkeypatch.setattr("grpo_studio.code_runs.level", none)
    assert sandbox_state() == {"level": "none", "full": False, "note": "no sandbox can be made here: it ended"}
    with pytest.raises(VerifierError, match="too weak"):
        require_sandbox(closed, [RewardSettings(verifier="runs")])


def test_what_does_not_ship_is_a_persons_own(closed: Settings) -> None:
    listed = Catalogue(closed.rewards_dirs, closed.own_rewards).describe()["verifiers"]
    assert {one["name"] for one in listed if one["own"]} == {"runs", "calls", "code_words"}
