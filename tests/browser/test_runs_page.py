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


def test_a_stop_without_an_answer_is_said_and_can_be_pressed_again(
    app: App, runs: list[SampleRun], open_page: Open
) -> None:
    page = open_page(f"{app.url}/runs")
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_have_count(1)
    page.route("**/component_server**", lambda route: route.abort())
    stop.click()
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("Connection lost")
    expect(stop).to_be_enabled()
    assert not runs[2].folder.stop_request.exists()


def test_the_focus_in_a_row_stays_when_the_row_changes(app: App, runs: list[SampleRun], open_page: Open) -> None:
    page = open_page(f"{app.url}/runs")
    row = page.locator(".runs-table tbody tr", has_text="beta-zero")
    other = page.locator(".runs-table tbody tr", has_text="quickstart")
    expect(row).to_have_count(1)
    other.evaluate("(node) => { window.other = node; }")
    link = row.get_by_role("link")
    link.focus()
    runs[2].advance()
    expect(row).to_contain_text(f"{runs[2].now} / 60")
    expect(link).to_be_focused()
    assert page.evaluate("window.other.isConnected"), "a row that is as it was has been built anew"


def test_a_damaged_run_is_a_row_among_the_others(app: App, runs: list[SampleRun], open_page: Open) -> None:
    damaged = SampleRun(app.home, name="damaged")
    damaged.writer.close()
    damaged.folder.config_path.write_text("algorithm: {steps: x}")
    page = open_page(f"{app.url}/runs")
    rows = page.locator(".runs-table tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.filter(has_text="damaged")).to_contain_text("algorithm.steps")
    expect(rows.filter(has_text="quickstart").locator(".pill")).to_have_text("finished")
