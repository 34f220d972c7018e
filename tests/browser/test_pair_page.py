"""The page of two runs that differ in one setting, and the dialog that starts them, in Chromium."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import App
from playwright.sync_api import Page, expect
from sample_pair import SamplePair, end, finished_pair
from sample_run import HOSTILE
from studio_process import TINY_RUN, as_json, studio

from grpo_studio.job_queue import JobQueue
from grpo_studio.store.folder import run_folders
from grpo_studio.store.records import CompletionRecord, GroupRecord

Open = Callable[..., Page]
DRAWN = "document.querySelectorAll('.pair-figures .main-svg').length >= 5"


@pytest.fixture
def unserved(app: App) -> Iterator[None]:
    """What is queued stays there: somebody else holds the lock of what would serve the queue."""
    with (app.home / "dispatcher.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_a_finished_pair_is_opened(app: App, open_page: Open) -> None:
    pair = finished_pair(app.home, pair="20261130-120000-finished-ab12")
    page = open_page(f"{app.url}/pair?pair={pair.id}")
    expect(page.locator("h1")).to_have_text("Two runs that differ in Loss backend")
    expect(page.locator(".pair-side .pill")).to_have_text(["finished", "finished"])
    expect(page.locator(".pair-side .pair-value")).to_have_text(["liger", "full"])
    expect(page.locator(".pair-sentence")).to_contain_text("equal to the last digit up to step 12")
    expect(page.locator(".pair-tile-row b")).to_have_count(8)
    page.wait_for_function(DRAWN)
    lines = "document.querySelector('.pair-plot .drawing').data.map((line) => line.y.filter((value) => value !== null).length)"
    assert page.evaluate(lines) == [40, 40]
    expect(page.locator(".pair-settings tbody tr")).to_have_count(1)
    expect(page.locator(".pair-settings tbody tr")).to_contain_text("memory.loss_backend")
    expect(page.locator(".pair-difference")).to_contain_text("In step 13")
    expect(page.locator(".pair-texts mark")).to_have_count(2)
    link = page.get_by_role("link", name="open in B")
    expect(link).to_have_attribute("href", re.compile(f"run={pair.b.folder.run_id}&step=13&group=1$"))
    expect(page.get_by_role("link", name="the probe")).to_have_attribute("href", "./memory")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    link.click()
    expect(page.locator(".groups")).to_contain_text("13")


def test_both_are_followed_while_they_run_and_what_they_write_is_text(app: App, open_page: Open) -> None:
    pair = SamplePair(app.home, field="algorithm.learning_rate", values=(1e-5, 2e-5), pair="20261130-120001-live-ab12")
    pair.a.begin()
    pair.a.advance(3)
    page = open_page(f"{app.url}/pair?pair={pair.a.folder.run_id}")
    expect(page.locator(".pair-sentence")).to_have_text(
        "Only A has done steps; B is queued. There is nothing to compare yet."
    )
    expect(page).to_have_url(re.compile(f"pair={pair.id}$"))
    pair.b.begin()
    pair.b.advance(2)
    expect(page.locator(".pair-sentence")).to_contain_text("in all 2 steps")
    page.wait_for_function(DRAWN)
    drawing = page.locator(".pair-plot .drawing").first
    drawing.evaluate("(node) => { node.dataset.kept = 'yes'; }")
    text = CompletionRecord(HOSTILE, 3, False, 0.5, 0.0, ())
    pair.b.writer.groups(3, [GroupRecord(HOSTILE, "1", (text,), 0.5, 0.0)])
    pair.b.writer.metrics(3, {"optim/loss": 0.1, "reward/mean": 0.5})
    expect(page.locator(".pair-sentence")).to_contain_text("differ")
    expect(page.locator(".pair-difference")).to_contain_text("In step 3")
    assert drawing.get_attribute("data-kept") == "yes"
    assert page.evaluate("window.hacked === undefined && !document.getElementById('injected')")
    end(pair.a)
    expect(page.locator(".pair-side .pill").first).to_have_text("finished")
    pair.b.writer.close()


def test_two_that_differ_are_started_once_from_the_form(
    app: App, open_page: Open, tiny_model: Path, unserved: None
) -> None:
    before = len(list(run_folders(app.home / "runs")))
    page = open_page(f"{app.url}/launch")
    page.locator("[data-field='model.id'] input").fill(str(tiny_model))
    page.get_by_role("button", name="Two that differ in").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".pair-choice[aria-selected=true]")).to_contain_text("Loss backend")
    expect(dialog.get_by_label("A: Loss backend")).to_have_value('"liger"')
    expect(dialog).to_contain_text("memory and time alone", timeout=60_000)
    dialog.get_by_role("searchbox").fill("micro batch")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    dialog.get_by_label("B: Micro-batch").fill("7")
    start = dialog.get_by_role("button", name="Start both")
    expect(dialog.locator(".pair-found")).to_contain_text("B: ", timeout=60_000)
    expect(start).to_be_disabled()
    dialog.get_by_label("B: Micro-batch").fill("8")
    expect(start).to_be_enabled(timeout=60_000)
    start.dblclick()
    page.wait_for_url("**/pair?pair=*", timeout=60_000)
    expect(page.locator("h1")).to_have_text("Two runs that differ in Micro-batch")
    expect(page.locator(".pair-side .pill")).to_have_text(["queued", "queued"])
    expect(page.locator(".pair-side .pair-value")).to_have_text(["empty", "8"])
    assert len(list(run_folders(app.home / "runs"))) == before + 2
    queue = JobQueue(app.home / "queue.db")
    waiting = queue.waiting()
    assert [("-a-" in path.name, "-b-" in path.name) for path in waiting] == [(True, False), (False, True)]
    for path in waiting:
        queue.remove(path)


@pytest.mark.slow
def test_a_pair_that_was_really_run_is_opened(app: App, open_page: Open, tiny_model: Path) -> None:
    tiny = ("--preset", "quickstart", "--set", f"model.id={tiny_model}", "--set", "dataset.held_out=4", *TINY_RUN)
    done = studio(
        "pair", *tiny, "--set", "model.dtype=float32", "--differ", "memory.loss_backend=liger,trl", "--wait", "--json",
        home=app.home, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = open_page(f"{app.url}/pair?pair={as_json(done)['pair']}")
    expect(page.locator(".pair-sentence")).to_have_text(as_json(done)["measured"]["sentence"])
    expect(page.locator(".pair-side .pair-step")).to_have_text(["step 3 of 3", "step 3 of 3"])
    page.wait_for_function(DRAWN)
