"""Every word that a page script asks for is in the table."""

from __future__ import annotations

import re

import pytest

from grpo_studio.ui import strings
from grpo_studio.ui.frame import ASSETS


@pytest.mark.parametrize(("page", "pattern"), [("live", "live*.js"), ("runs", "runs.js"), ("frame", "frame.js")])
def test_every_word_of_a_script_is_in_the_table(page: str, pattern: str) -> None:
    used = {word for path in ASSETS.glob(pattern) for word in re.findall(r"\bwords\.(\w+)", path.read_text())}
    assert used
    assert used - set(strings.load()[page]) == set()
