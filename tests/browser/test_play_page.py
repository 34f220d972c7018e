"""The Play page in Chromium: a page that goes takes its process with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conftest import App
from playwright.sync_api import Page, expect
from sample_run import SampleRun
from studio_process import wait_for

Open = Callable[..., Page]


def chats_of(run: SampleRun) -> list[int]:
    """The processes that hold this run's models for a chat."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it ended just now
            continue
        if b"grpo_studio.play.chat_child" in words and str(run.folder.path).encode() in words:
            found.append(int(path.parent.name))
    return found


def test_a_page_that_is_left_or_loaded_anew_gives_its_memory_back(app: App, open_page: Open) -> None:
    run = SampleRun(app.home, name="talks")
    run.begin()
    run.end("run_finished", "all steps done")
    run.writer.close()
    page = open_page(f"{app.url}/play?run={run.folder.run_id}")
    for leave in (page.reload, lambda: page.goto(f"{app.url}/runs")):
        page.get_by_role("button", name="Load").click()
        expect(page.get_by_role("button", name="Free the memory")).to_be_visible()
        assert len(chats_of(run)) == 1
        leave()
        wait_for(lambda: not chats_of(run), limit=10, what="the end of the chat")
