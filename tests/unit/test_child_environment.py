"""What child processes are given: this very program first, what was there behind it, and the folders of the settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_studio.child_environment import of_program, search_path
from grpo_studio.settings import PACKAGE_DIR, Settings

HERE = str(PACKAGE_DIR.parent)


@pytest.mark.parametrize(
    ("before", "after"), [({}, HERE), ({"PYTHONPATH": ""}, HERE), ({"PYTHONPATH": "/a:/b"}, f"{HERE}:/a:/b")]
)
def test_what_the_variable_holds_already_stays_behind(before: dict[str, str], after: str) -> None:
    assert search_path(before) == {"PYTHONPATH": after}


def test_a_child_started_elsewhere_is_this_program_on_the_same_folders(settings: Settings, tmp_path: Path) -> None:
    code = (
        "import grpo_studio.settings as s; f = s.Settings.from_env(); print(s.PACKAGE_DIR, f.home, f.cache, sep='\\n')"
    )
    environment = os.environ | of_program(settings)
    said = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == [str(PACKAGE_DIR), str(settings.home), str(settings.cache)]
