"""What the sandbox says of itself: why it is not the better one, and what it leaves open."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_studio.verifiers.sandbox import FORCE_VARIABLE, level
from grpo_studio.verifiers.sandbox.level import _found, _kept


@pytest.mark.parametrize(
    ("root", "measures", "open_"),
    [
        (False, "", True),
        (False, "no network, no signals to other processes (seccomp)", True),
        (False, "files outside Python's own cannot be opened (Landlock)", False),
        (True, "", False),
    ],
)
def test_the_level_says_that_keys_of_the_trainer_can_be_read(root: bool, measures: str, open_: bool) -> None:
    """The same user reads /proc/PID/environ of its processes unless Landlock keeps files away."""
    kept = _kept(root, root, measures)
    assert any("environment of all processes of this user" in one for one in kept) == open_


def test_a_bwrap_that_fails_leaves_the_limits_with_its_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FORCE_VARIABLE, raising=False)
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr("grpo_studio.verifiers.sandbox.places.bwrap_programs", lambda: [str(program)])
    _found.cache_clear()
    try:
        found = level()
        assert found.name == "limits"
        assert "No permissions to create new namespace" in found.detail
    finally:
        _found.cache_clear()
