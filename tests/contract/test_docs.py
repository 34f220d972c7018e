"""The docs say what the program does: the settings table is current, and every link inside the repository leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grpo_studio import engine_table, presets_table, settings_table, verifiers_table

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])


def test_the_settings_table_is_current() -> None:
    assert settings_table.TARGET.read_text() == settings_table.render(), "run: python -m grpo_studio.settings_table"


def test_the_tables_of_the_engine_are_current() -> None:
    text = engine_table.TARGET.read_text()
    assert text == engine_table.page(text), "run: python -m grpo_studio.engine_table"


def test_the_table_of_verifiers_is_current() -> None:
    text = verifiers_table.TARGET.read_text()
    assert text == verifiers_table.page(text), "run: python -m grpo_studio.verifiers_table"


def test_the_page_of_presets_is_current() -> None:
    assert presets_table.TARGET.read_text() == presets_table.render(), "run: python -m grpo_studio.presets_table"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_say_something(page: Path) -> None:
    assert len(page.read_text()) > 300


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
