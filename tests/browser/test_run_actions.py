"""What a person does with runs in Chromium: stop, resume, branch, the queue, delete; one of the runs really trains."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import App
from live_runs import events_of, step_of
from playwright.sync_api import Locator, Page, expect
from sample_run import HOSTILE, SampleRun
from studio_process import wait_for

from grpo_studio import supervisor
from grpo_studio.checkpoints import Manifest, write_manifest
from grpo_studio.config import RunConfig
from grpo_studio.job_queue import JobQueue
from grpo_studio.resume_rules import config_hash, settings_that_matter
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.worker_process import kill_session

Open = Callable[..., Page]
NO_SIDEWAYS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture(scope="module")
def home(app: App) -> Settings:
    return Settings.from_env({"GRPO_STUDIO_HOME": str(app.home), "GRPO_STUDIO_CACHE": str(app.home / "cache")})


@pytest.fixture(scope="module")
def trains(home: Settings, tiny_model: Path) -> Iterator[RunFolder]:
    """A run of the tiny model that goes on until it is stopped; it starts while the other tests look at theirs."""
    config = RunConfig.model_validate(
        {
            "model": {"id": str(tiny_model)},
            "dataset": {"held_out": 0, "prompt_template": "{prompt}"},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {
                "steps": 100_000, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 6,
            },
        }
    )  # fmt: skip
    folder = supervisor.submit(config, home, "trains")
    yield folder
    JobQueue(home.queue_path).remove(folder.path, only_waiting=True)
    if (process := folder.process()) is not None:
        kill_session(process.session)


@pytest.fixture(scope="module")
def ended(home: Settings, trains: RunFolder) -> Iterator[list[SampleRun]]:
    """Three runs whose worker is gone: one killed with checkpoints, one failed without, one finished."""
    runs = [SampleRun(home.home, name=name, seed=n) for n, name in enumerate(("killed", "failed", "done"))]
    for run in runs:
        run.begin()
        run.advance(6)
        process = run.folder.process()
        assert process is not None
        run.folder.write_process(replace(process, started="gone"))
    for step, score in ((2, 0.75), (4, 0.5)):
        _checkpoint(runs[0], step, score)
    runs[1].end("run_failed", f"the loss is not finite {HOSTILE}")
    runs[2].end("run_finished", "all 6 steps done")
    yield runs
    for run in runs:
        run.writer.close()


def _checkpoint(run: SampleRun, step: int, score: float) -> None:
    path = run.folder.checkpoints / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"weights")
    matter = settings_that_matter(run.config)
    write_manifest(path, Manifest(step, 1, True, config_hash(run.config), matter, score=score))


def _menu(page: Page, name: str, item: str) -> Locator:
    page.get_by_role("button", name=f"More about {name}").click()
    return page.get_by_role("menuitem", name=item)


def test_after_a_kill_the_page_says_what_happened_and_what_to_do(
    app: App, ended: list[SampleRun], open_page: Open
) -> None:
    page = open_page(f"{app.url}/live?run={ended[0].folder.run_id}")
    banner = page.locator(".banner.fault").filter(has_text="was killed")
    expect(banner).to_contain_text("the worker ended without a word")
    expect(banner.get_by_role("button", name="Resume from step 4")).to_be_visible()
    expect(banner.get_by_role("button", name="See the log")).to_be_visible()
    expect(page.locator(".strip").get_by_role("button", name="Resume")).to_be_enabled()
    banner.get_by_role("button", name="Branch").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".checkpoint")).to_have_count(2)
    expect(dialog.locator(".checkpoint").filter(has_text="best")).to_contain_text("step 2 · held-out 0.75")
    expect(dialog.locator(".difference")).to_contain_text("goes on after step 4")
    dialog.get_by_label("algorithm.learning_rate").fill("algorithm.learning_rate")
    expect(dialog.locator(".about")).to_contain_text("Learning rate")
    dialog.get_by_label("value").fill("fast")
    expect(dialog.get_by_role("alert")).to_contain_text("algorithm.learning_rate")
    expect(dialog.get_by_role("button", name="Start the branch")).to_be_disabled()
    dialog.get_by_label("value").fill("0.0003")
    expect(dialog.locator(".difference tr")).to_have_count(1)
    expect(dialog.locator(".difference tr")).to_contain_text("0.0003")
    expect(dialog.get_by_role("button", name="Start the branch")).to_be_enabled()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(banner.get_by_role("button", name="Branch")).to_be_focused()
    button = page.locator(".strip").get_by_role("button", name="Branch")
    button.dblclick()
    expect(dialog).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()


def test_what_cannot_be_done_says_why(app: App, ended: list[SampleRun], open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={ended[1].folder.run_id}")
    banner = page.locator(".banner.fault").filter(has_text="This run failed")
    expect(banner).to_contain_text("not finite <img src=x")
    expect(banner).to_contain_text("no checkpoint to go on from")
    resume = page.locator(".strip").get_by_role("button", name="Resume")
    expect(resume).to_have_attribute("aria-disabled", "true")
    resume.click(force=True)
    expect(page.get_by_role("alert").filter(has_text="No checkpoint was saved.").first).to_be_visible()
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("width", [1280, 390])
def test_the_menu_is_reached_by_keys_and_stays_in_the_window(
    app: App, ended: list[SampleRun], open_page: Open, width: int
) -> None:
    page = open_page(f"{app.url}/runs", width=width)
    button = page.get_by_role("button", name="More about done")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Open in Live")).to_be_focused()
    box = page.get_by_role("menu").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    expect(page.get_by_role("menuitem", name="Branch…")).to_have_attribute("aria-disabled", "true")
    expect(page.get_by_role("menuitem", name="Resume")).to_have_count(0)
    page.keyboard.press("End")
    expect(page.get_by_role("menuitem", name="Delete…")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(button).to_be_focused()
    _menu(page, "killed", "Export…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".checkpoints .checkpoint")).to_have_count(2)
    dialog.get_by_text("The whole run in one file").click()
    expect(dialog.locator(".checkpoints")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.evaluate(NO_SIDEWAYS)


def test_deleting_asks_first_and_takes_the_row_away(app: App, ended: list[SampleRun], open_page: Open) -> None:
    page = open_page(f"{app.url}/runs")
    _menu(page, "done", "Delete…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile(r"[\d.]+ [kM]B on disk"))
    expect(dialog).to_contain_text(ended[2].folder.run_id)
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    assert ended[2].folder.path.is_dir()
    _menu(page, "done", "Delete…").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator("tbody tr", has_text="done")).to_have_count(0)
    assert not ended[2].folder.path.exists()


def test_an_export_is_a_command_with_its_result_in_the_dialog(
    app: App, ended: list[SampleRun], open_page: Open
) -> None:
    page = open_page(f"{app.url}/runs")
    _menu(page, "killed", "Archive…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Export").click()
    expect(dialog.locator(".result-box")).to_contain_text(f"{ended[0].folder.exports}/archive/", timeout=30_000)
    assert list(ended[0].folder.exports.glob("archive/*.tar.gz"))


def test_the_queue_is_changed_in_the_browser(
    app: App, home: Settings, trains: RunFolder, ended: list[SampleRun], open_page: Open
) -> None:
    """While a run trains two others wait: neither ever begins."""
    queue = JobQueue(home.queue_path)
    wait_for(lambda: any(job.taken for job in queue.jobs()), what="the run's turn")
    waiting = [SampleRun(app.home, name=name) for name in ("waits-a", "waits-b")]
    for run in waiting:
        queue.add(run.folder.path)
        run.writer.close()
    page = open_page(f"{app.url}/live?run={waiting[0].folder.run_id}")
    expect(page.locator(".badge", has_text="queue 2")).to_be_visible()
    page.locator(".badge", has_text="queue 2").click()
    rows = page.locator(".queue-row")
    expect(rows).to_have_count(3)
    expect(page.get_by_role("heading", name="Queue")).to_be_focused()
    page.get_by_role("button", name="Earlier: waits-b").click()
    expect(rows.nth(1)).to_contain_text("waits-b")
    expect(page.get_by_role("button", name="Later: waits-b")).to_be_focused()
    for name in ("waits-b", "waits-a"):
        rows.filter(has_text=name).get_by_role("button", name="Cancel").click()
        expect(rows.filter(has_text=name)).to_have_count(0)
        expect(page.locator("tbody tr", has_text=name).locator(".pill")).to_have_text("stopped")
    assert [job.run_dir for job in queue.jobs()] == [trains.path]


def test_stop_resume_and_branch_from_the_browser(app: App, home: Settings, trains: RunFolder, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={trains.run_id}")
    pill, strip = page.locator(".strip .pill"), page.locator(".strip")
    expect(pill).to_have_text("running", timeout=60_000)
    wait_for(lambda: step_of(trains) >= 2, what="two steps")
    strip.get_by_role("button", name="Stop").click()
    expect(pill).to_have_text("stopped", timeout=30_000)
    stopped_at = step_of(trains)
    strip.get_by_role("button", name="Resume").click()
    expect(strip).to_contain_text(f"attempt 2, from step {stopped_at}", timeout=30_000)
    expect(pill).to_have_text(re.compile("queued|preparing|running"))
    strip.get_by_role("button", name="Branch").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name of the new run").fill("the branch")
    dialog.get_by_label("algorithm.learning_rate").fill("algorithm.learning_rate")
    dialog.get_by_label("value").fill("0.002")
    expect(dialog.locator(".difference")).to_contain_text("0.002")
    dialog.get_by_role("button", name="Start the branch").click()
    expect(page).to_have_url(re.compile("the-branch"), timeout=30_000)
    expect(pill).to_have_text("queued")
    lineage = page.locator(".lineage")
    expect(lineage).to_contain_text(f"Branch of trains from step {stopped_at} · 1 setting changed")
    strip.get_by_role("button", name="Cancel").click()
    expect(pill).to_have_text("stopped")
    lineage.get_by_role("link", name="trains").click()
    expect(pill).to_have_text("running", timeout=60_000)
    wait_for(lambda: step_of(trains) > stopped_at, what="a step of the second attempt")
    expect(page.locator(".plot.tall .shapelayer path").first).to_be_attached()
    page.locator("details.fold", has_text="Events").locator("summary").click()
    expect(page.locator(".event[data-kind=attempt_began]")).to_contain_text(f"goes on after step {stopped_at}")
    strip.get_by_role("button", name="Stop").click()
    expect(pill).to_have_text("stopped", timeout=30_000)
    assert [event.kind for event in events_of(trains)].count("run_stopped") == 2
