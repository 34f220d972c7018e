"""Every word that a page script asks for is in the table, and the scripts hold none of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.plots.time import ORDER
from grpo_studio.run_state import ENDED
from grpo_studio.ui import strings
from grpo_studio.ui.frame import ASSETS

PAGES = {
    "live": "live*.js",
    "runs": "runs*.js",
    "launch": "launch*.js",
    "verifiers": "verifiers*.js",
    "play": "play*.js",
    "actions": "actions_*.js",
    "results": "results*.js",
    "forecast": "forecast_*.js",
    "memory": "memory*.js",
    "pair": "pair*.js",
    "frame": "frame.js",
}
SCRIPTS = sorted(ASSETS.glob("*.js"))


@pytest.mark.parametrize("page", PAGES)
def test_every_word_of_a_script_is_in_the_table(page: str) -> None:
    table = strings.load()[page]
    paths = {
        (script.name, path)
        for script in ASSETS.glob(PAGES[page])
        for path in re.findall(r"\bwords((?:\.[a-z_0-9]+)+)", script.read_text(encoding="utf-8"))
    }
    assert paths
    for script, path in paths:
        value: Any = table
        for part in path.strip(".").split("."):
            assert isinstance(value, dict), f"{script}: words{path}"
            assert part in value, f"{script}: words{path}"
            value = value[part]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_word_of_the_frame_that_a_script_uses_is_in_the_table(script: Path) -> None:
    used = set(re.findall(r"\bframe\.([a-z_]+)\b(?!\()", script.read_text(encoding="utf-8")))
    assert used - {"js"} <= set(strings.load()["frame"])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_has_no_sentence_of_its_own(script: Path) -> None:
    """Texts of three words and more that are not for the browser's console."""
    text = re.sub(r"(?m)//.*$|/\*[\s\S]*?\*/", "", script.read_text(encoding="utf-8"))
    text = re.sub(r"console\.warn\([^)]*\)|new Error\([^)]*\)", "", text)
    found = re.findall(r'"([A-Z]?[a-z]+(?: [a-z]+){2,}[.?!]?)"', text)
    allowed = re.compile(r"launch-|card |button |font|x unified|sub muted")
    assert [one for one in found if not allowed.search(one)] == []


def test_phases_and_states_have_their_words() -> None:
    words = strings.load()
    assert set(ORDER) <= set(words["live"]["phases"])
    assert {*ENDED, "queued", "preparing", "running", "stopping", "unreadable"} <= set(words["frame"]["states"])
    assert {"second", "minute", "hour", "day", "under_a_minute"} <= set(words["frame"]["units"])
