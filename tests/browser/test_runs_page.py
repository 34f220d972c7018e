"""The Runs page in Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from conftest import App
from playwright.sync_api import Page, expect
from sample_run import SampleRun

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def runs(app: App) -> Iterator[list[SampleRun]]:
    names = ["quickstart", "long-answers", "beta-zero"]
    runs = [SampleRun(app.home, name=name, seed=number) for number, name in enumerate(names)]
    for number, run in enumerate(runs):
        run.begin()
        run.advance(10 + 15 * number)
    runs[0].end("run_finished", "all steps done")
    runs[1].end("run_failed", "the loss is <i>not finite</i>")
    for run in runs[:2]:
        process = run.folder.process()
        assert process is not None
        run.folder.process_path.write_text(run.folder.process_path.read_text().replace(process.started, "gone"))
    yield runs
    for run in runs:
        run.writer.close()


def test_rows_filter_and_open(app: App, runs: list[SampleRun], open_page: Open) -> None:
    page = open_page(f"{app.url}/runs")
    rows = page.locator(".runs-table tbody tr")
    expect(rows).to_have_count(3)
    for name, state in (("quickstart", "finished"), ("long-answers", "failed"), ("beta-zero", "running")):
        expect(rows.filter(has_text=name).locator(".pill")).to_have_text(state)
    expect(rows.filter(has_text="long-answers")).to_contain_text("the loss is <i>not finite</i>")
    expect(page.get_by_role("button", name="Stop")).to_have_count(1)
    page.get_by_role("searchbox").fill("failed")
    expect(rows).to_have_count(1)
    rows.first.click()
    expect(page).to_have_url(re.compile(f"/live\\?run={runs[1].folder.run_id}"))
    expect(page.locator(".strip .pill")).to_have_text("failed")


def test_a_new_step_appears_by_itself(app: App, runs: list[SampleRun], open_page: Open) -> None:
    page = open_page(f"{app.url}/runs")
    first = page.locator(".runs-table tbody tr", has_text="beta-zero")
    expect(first).to_contain_text(f"{runs[2].now} / 60")
    runs[2].advance()
    expect(first).to_contain_text(f"{runs[2].now} / 60")


@pytest.mark.parametrize("width", [1280, 390])
def test_no_sideways_scroll(app: App, runs: list[SampleRun], open_page: Open, width: int) -> None:
    page = open_page(f"{app.url}/runs", width=width)
    expect(page.locator(".runs-table tbody tr")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
