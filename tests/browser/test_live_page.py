"""The Live page in Chromium: what a person sees, that it stays calm while a run goes on, and that hostile text is text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from conftest import App, start_app, stop_app
from playwright.sync_api import Page, expect
from sample_run import SampleRun

Open = Callable[..., Page]
RANGE = "document.querySelector('.plot.tall .drawing').layout.xaxis.range"
HAS_STEP = "(step) => document.querySelector('.plot.tall .drawing').data.at(-2).x.at(-1) === step"
NO_SIDEWAYS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture(scope="module")
def run(app: App) -> Iterator[SampleRun]:
    run = SampleRun(app.home)
    run.begin()
    run.advance(40)
    yield run
    run.writer.close()


def _ready(page: Page) -> None:
    expect(page.locator(".pill").first).not_to_be_empty()
    expect(page.locator(".answer").first).to_be_visible()
    page.wait_for_function("document.querySelectorAll('.main-svg').length >= 9")


def test_the_newest_run_is_shown(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(app.url)
    _ready(page)
    expect(page.locator(".strip .pill")).to_have_text("running")
    expect(page.locator(".strip-text")).to_contain_text(f"step {run.now} of 60")
    expect(page.locator(".tile")).to_have_count(6)
    expect(page.locator(".group-row")).to_have_count(4)
    expect(page.locator(".answer")).to_have_count(8)
    assert page.locator(".square.dead").count() >= 8
    assert run.folder.run_id in page.url


def test_the_inspector_shows_hostile_text_as_text(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}&step=5&group=1")
    _ready(page)
    expect(page.locator(".stepper")).to_contain_text("Step 5")
    expect(page.locator(".inspector .ask .text")).to_contain_text("</textarea><style>body{display:none}</style>")
    hostile = page.locator(".answer", has_text="onerror")
    expect(hostile).to_contain_text("<script>window.hacked=1</script> is 15")
    expect(hostile.locator(".tag")).to_have_text("cut at 24 tokens")
    hostile.get_by_role("button", name="show all").click()
    expect(hostile.locator(".text.open")).to_contain_text("filler " * 890)
    page.locator("details", has_text="worker.log").locator("summary").click()
    expect(page.locator(".log")).to_contain_text("<b>not bold</b>")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#injected, main img, main script, main style, .log b").count() == 0


def test_arrow_keys_move_between_groups_and_the_address_follows(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}&step=7&group=2")
    _ready(page)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".steps-nav")).to_contain_text("group 3 of 4")
    assert "step=7&group=3" in page.url
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".steps-nav")).to_contain_text("group 1 of 4")


def test_a_zoom_survives_a_tick_and_an_older_step_stays(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    _ready(page)
    box = page.locator(".plot.tall .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    page.wait_for_function(f"{RANGE}[0] > 5")
    zoomed = page.evaluate(RANGE)
    page.evaluate("window.node = document.querySelector('.plot.tall .drawing')")
    page.locator(".stepper input").fill("12")
    expect(page.locator(".groups .sub").first).to_contain_text("step 12")

    run.advance()
    page.wait_for_function(HAS_STEP, arg=run.now)

    assert page.evaluate(RANGE) == zoomed
    assert page.evaluate("window.node === document.querySelector('.plot.tall .drawing')")
    expect(page.locator(".strip-text")).to_contain_text(f"step {run.now} of 60")
    expect(page.locator(".groups .sub").first).to_contain_text("step 12")
    page.get_by_role("button", name="Newest", exact=True).click()
    expect(page.locator(".groups .sub").first).to_contain_text(f"step {run.now}")


def test_a_page_that_follows_moves_on_by_itself(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(app.url)
    _ready(page)
    run.advance()
    expect(page.locator(".stepper")).to_contain_text(f"Step {run.now}")


def test_reload_and_a_second_browser_show_the_same(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}&step=9&group=2")
    _ready(page)
    seen = page.locator(".inspector").inner_text()
    page.reload()
    _ready(page)
    expect(page.locator(".steps-nav")).to_contain_text("group 2 of 4")
    assert page.locator(".inspector").inner_text() == seen
    other = open_page(page.url)
    _ready(other)
    assert other.locator(".inspector").inner_text() == seen


def test_a_restarted_app_shows_the_same(run: SampleRun, open_page: Open, app: App) -> None:
    second = start_app(app.home)
    try:
        page = open_page(f"{second.url}/live?run={run.folder.run_id}&step=9&group=2")
        _ready(page)
        before = page.locator(".inspector").inner_text()
    finally:
        stop_app(second)
    expect(page.locator(".lost")).to_be_visible()
    page.close()
    page = open_page(f"{app.url}/live?run={run.folder.run_id}&step=9&group=2")
    _ready(page)
    assert page.locator(".inspector").inner_text() == before


def test_notes_and_labels_are_reachable_by_keyboard(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(app.url)
    _ready(page)
    term = page.locator(".tile .term").first
    term.focus()
    expect(term).to_be_focused()
    assert "weight × score" in (term.get_attribute("aria-label") or "")
    assert page.locator(".studio button:not([aria-label])").evaluate_all(
        "(all) => all.every((one) => one.textContent.trim() !== '')"
    )


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, False), (1280, True)])
def test_no_sideways_scroll_in_any_width_and_theme(
    app: App, run: SampleRun, open_page: Open, width: int, dark: bool
) -> None:
    page = open_page(app.url, width=width, dark=dark)
    _ready(page)
    page.wait_for_timeout(800)
    assert page.evaluate(NO_SIDEWAYS)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(16, 17, 20)") is dark


def test_a_run_without_a_reference_model_says_so(app: App, open_page: Open) -> None:
    run = SampleRun(app.home, name="no-reference", beta=0.0)
    run.begin()
    run.advance(2)
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    _ready(page)
    expect(page.locator(".tile", has_text="KL to start")).to_contain_text("beta 0: no reference")
    expect(page.locator(".panel", has_text="KL and entropy")).to_contain_text("no reference model: beta is 0")
    run.end("run_finished", "all steps done")


def test_a_run_that_prepares_says_what_it_does_at_final_height(app: App, open_page: Open) -> None:
    run = SampleRun(app.home, name="early")
    run.prepare()
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    expect(page.locator(".strip .pill")).to_have_text("preparing")
    expect(page.locator(".banner:visible")).to_contain_text("loading the model")
    expect(page.locator(".plot .note:visible")).to_have_count(9)
    heights = page.evaluate("[...document.querySelectorAll('.panel, .groups')].map((one) => one.offsetHeight)")
    run.begin()
    run.advance(2)
    _ready(page)
    after = page.evaluate("[...document.querySelectorAll('.panel, .groups')].map((one) => one.offsetHeight)")
    assert max(abs(one - two) for one, two in zip(heights, after, strict=True)) <= 24
    run.end("run_finished", "all steps done")


def test_a_failed_run_has_a_banner_with_the_reason_and_last_step(app: App, open_page: Open) -> None:
    run = SampleRun(app.home, name="broken")
    run.begin()
    run.advance(3)
    run.end("run_failed", "the loss is <b>not finite</b> at step 3")
    run.folder.record_exit(1)
    process = run.folder.process()
    assert process is not None
    (run.folder.process_path).write_text(run.folder.process_path.read_text().replace(process.started, "gone"))
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    banner = page.get_by_role("alert").filter(visible=True)
    expect(banner).to_contain_text("This run failed")
    expect(banner).to_contain_text("the loss is <b>not finite</b> at step 3")
    expect(banner).to_contain_text("Last step: 3 of 60")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_stop_answers_at_once_and_reaches_the_worker(app: App, open_page: Open) -> None:
    # A worker that takes its time to stop: it ignores the first signal, as a real one finishes its step first.
    command = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True)); print('up', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "up\n"
        run = SampleRun(app.home, name="stop-me")
        run.prepare(worker.pid)
        page = open_page(f"{app.url}/live?run={run.folder.run_id}")
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.locator(".strip .pill")).to_have_text("stopping")
        expect(page.get_by_role("button", name="Stopping")).to_be_disabled()
        assert worker.stdout.readline() == "asked\n"
        assert run.folder.stop_request.exists()
        worker.kill()
        expect(page.locator(".strip .pill")).to_have_text("killed", timeout=10_000)
        expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("This run was killed")


def test_a_run_killed_by_signal_9_is_told_with_its_last_step_and_stays_readable(app: App, open_page: Open) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) as worker:
        run = SampleRun(app.home, name="killed-run")
        run.begin()
        run.prepare(worker.pid)
        run.advance(3)
        page = open_page(f"{app.url}/live?run={run.folder.run_id}")
        _ready(page)
        worker.kill()
        worker.wait()
        run.folder.record_exit(-9)
        expect(page.locator(".strip .pill")).to_have_text("killed", timeout=10_000)
        banner = page.get_by_role("alert").filter(visible=True)
        expect(banner).to_contain_text("killed by signal 9")
        expect(banner).to_contain_text("last step 3")
        expect(page.locator(".inspector .answer").first).to_be_visible()


def test_a_run_that_is_not_there_is_said_so(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run=../../etc/passwd")
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("no run '../../etc/passwd'")
