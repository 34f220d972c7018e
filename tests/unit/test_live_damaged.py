"""The Live and Runs pages with a run whose record is damaged while they are open: what is whole is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_run import SampleRun

from grpo_studio.settings import Settings
from grpo_studio.ui.live import LiveActions
from grpo_studio.ui.runs import RunsActions


@pytest.fixture
def run(settings: Settings) -> SampleRun:
    run = SampleRun(settings.home)
    run.begin()
    run.advance(30)
    return run


def damage(path: Path, first: int, pages: int) -> None:
    with path.open("r+b") as file:
        file.seek(first * 4096)
        file.write(bytes(pages * 4096))


@pytest.mark.parametrize(("first", "pages"), [(0, 1), (3, 40)])
def test_the_pages_show_what_is_whole_and_say_what_is_lost(
    settings: Settings, run: SampleRun, first: int, pages: int
) -> None:
    before = LiveActions(settings).live_tick({})
    run.writer.event("run_finished", "all steps done")
    run.writer.close()
    damage(run.folder.database, first, pages)
    news = LiveActions(settings).live_tick({})
    assert set(before) <= set(news)
    assert "was damaged" in str(news)
    assert run.folder.run_id in str(RunsActions(settings).runs_page({}))
