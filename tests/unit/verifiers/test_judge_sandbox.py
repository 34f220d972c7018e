"""Verifiers whose sandboxes are made by judge children."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from child_process import ends

from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers.judge import Judge, JudgeRequest
from grpo_studio.verifiers.sandbox import FORCE_VARIABLE, level
from grpo_studio.verifiers.sandbox.inside.cage import descendants

CODE = "```python\nimport os\ndef home(): return os.environ['HOME']\n```"
HANGS = "```python\ndef home():\n    while True: pass\n```"
# Only the sandbox without namespaces has a folder of that name; in the other one the private /tmp is home.
TESTS = "assert 'grpo-studio-sandbox' in home()"


@pytest.fixture(params=["bubblewrap", "limits"])
def forced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(FORCE_VARIABLE, request.param)
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)  # the sandbox's user has to get through
    monkeypatch.setenv("TMPDIR", str(folder))
    yield level().name
    deadline = time.monotonic() + 10
    while list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    folder.rmdir()  # raises unless each sandbox has removed its own


def test_code_that_a_judge_runs_is_at_the_level_that_the_app_tells(forced: str) -> None:
    with Judge([JudgeRequest("code_asserts")], [BUNDLED_REWARDS]) as judge:
        [[score]] = judge.score([CODE], {"answer": [TESTS]})
    assert (score.outcome, score.value) == ("ok", float(forced == "limits")), score.reason


@pytest.mark.parametrize("killed", [False, True])
def test_sandboxes_end_with_their_judge(forced: str, killed: bool) -> None:
    with Judge([JudgeRequest("code_asserts", {"seconds": 0.3})], [BUNDLED_REWARDS]) as judge:
        [scores] = judge.score([CODE, HANGS] * 3, {"answer": [TESTS] * 6})
        children = [child for pid in judge.pids() for child, _ in descendants(pid)]
        for pid in judge.pids() if killed else []:
            os.kill(pid, signal.SIGSTOP)  # it does not end, and tidy up, when it is asked to
    assert [score.value for score in scores[1::2]] == [0.0] * 3
    assert children, "each child keeps a sandbox ready"
    assert all(map(ends, children))
