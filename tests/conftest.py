"""Fixtures for all tests: a home folder of its own for each test, the tiny model, the shared cases."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis.configuration import set_hypothesis_home_dir
from tiny_model import make_tiny_model

from grpo_studio.settings import BUNDLED_REWARDS, Settings
from grpo_studio.verifiers import parts

ROOT = Path(__file__).resolve().parent.parent

# The same examples in every run, no time limit on a shared machine, and no notes left in the checkout: hypothesis
# keeps the constants that it found in the code even without a database.
_HYPOTHESIS_HOME = tempfile.TemporaryDirectory(prefix="grpo-studio-hypothesis-")
atexit.register(_HYPOTHESIS_HOME.cleanup)
set_hypothesis_home_dir(_HYPOTHESIS_HOME.name)
hypothesis.settings.register_profile("studio", database=None, derandomize=True, deadline=None)
hypothesis.settings.load_profile("studio")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings whose home and cache are this test's own, also for the processes that it starts."""
    monkeypatch.setenv("GRPO_STUDIO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GRPO_STUDIO_CACHE", str(tmp_path / "cache"))
    settings = Settings.from_env()
    settings.require_writable()
    return settings


@pytest.fixture(autouse=True)
def _parts_are_those_that_ship() -> Iterator[None]:
    """A check tells this process where the parts of an ensemble are, for good; another test has another home."""
    yield
    parts.configure([BUNDLED_REWARDS])


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real, tiny, random model in a folder."""
    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of shared cases beside the checkout; in CI its absence is a failure."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        message = f"the shared cases are missing: no folder {folder}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder
