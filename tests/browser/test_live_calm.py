"""The Live page when things go wrong or change under a person's hands: nothing is lost, nothing of another run is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import App
from playwright.sync_api import Page, Route, expect
from sample_run import SampleRun

Open = Callable[..., Page]
CALLS = "**/component_server**"
DRAWING = "document.querySelector('.plot.tall .drawing')"
RANGES = f"[{DRAWING}.layout.xaxis.range, {DRAWING}.layout.yaxis.range]"
HAS_STEP = f"(step) => {DRAWING}.data.at(-2).x.at(-1) === step"


@pytest.fixture(scope="module")
def run(app: App) -> Iterator[SampleRun]:
    run = SampleRun(app.home)
    run.begin()
    run.advance(12)
    yield run
    run.writer.close()


def _ready(page: Page) -> None:
    expect(page.locator(".answer").first).to_be_visible()
    page.wait_for_function("document.querySelectorAll('.main-svg').length >= 9")


def _asked(route: Route) -> tuple[str, dict[str, Any]]:
    body = json.loads(route.request.post_data or "{}")
    return body["fn_name"], body["data"]


def test_a_stop_without_an_answer_is_said_and_can_be_pressed_again(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    _ready(page)
    page.route(CALLS, lambda route: route.abort())
    stop = page.get_by_role("button", name="Stop", exact=True)
    stop.click()
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("Connection lost")
    expect(stop).to_be_enabled()
    expect(page.locator(".lost")).to_be_visible()
    page.unroute(CALLS)
    expect(page.locator(".lost")).to_be_hidden()
    assert not run.folder.stop_request.exists()


def test_what_an_action_did_not_do_stays_said_over_ticks(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    _ready(page)
    ticks: list[str] = []

    def refuse(route: Route) -> None:
        name, _ = _asked(route)
        if name == "live_stop":
            route.fulfill(json={"error": "the dispatcher <b>is gone</b>"})
            return
        ticks.append(name)
        route.continue_()

    page.route(CALLS, refuse)
    page.get_by_role("button", name="Stop", exact=True).click()
    alert = page.get_by_role("alert").filter(visible=True)
    expect(alert).to_have_text("Stop did not work: the dispatcher <b>is gone</b>")
    page.evaluate("window.line = document.querySelector('[role=alert]:not([hidden]) span')")
    seen = ticks.count("live_tick")
    while ticks.count("live_tick") < seen + 2:
        page.wait_for_timeout(200)
    expect(alert).to_be_visible()
    assert page.evaluate("window.line.isConnected"), "the alert was built anew, and would be read out again"
    page.locator(".group-row").nth(1).click()
    expect(alert).to_have_count(0)


def test_a_zoom_of_both_axes_survives_a_higher_reward_and_a_double_click_undoes_it(
    app: App, run: SampleRun, open_page: Open
) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    _ready(page)
    box = page.locator(".plot.tall .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.8, steps=8)
    page.mouse.up()
    page.wait_for_function(f"{DRAWING}.layout.xaxis.range[0] > 1.5")
    zoomed = page.evaluate(RANGES)
    for reward in (9.0, 12.0):
        run.advance()
        run.writer.metrics(run.now, {"reward/mean": reward})
        page.wait_for_function(HAS_STEP, arg=run.now)
        page.wait_for_function(f"{DRAWING}.data.at(-2).y.at(-1) === {reward}")
        assert page.evaluate(RANGES) == zoomed
    page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function(f"{DRAWING}.layout.yaxis.range[1] > 12")
    run.advance()
    run.writer.metrics(run.now, {"reward/mean": 20.0})
    page.wait_for_function(f"{DRAWING}.layout.yaxis.range[1] > 20")


def test_a_late_answer_of_another_run_is_not_shown_under_the_new_name(
    app: App, run: SampleRun, open_page: Open
) -> None:
    other = SampleRun(app.home, name="other", seed=8)
    other.begin()
    other.advance(3)
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    _ready(page)
    picker = page.get_by_label("Choose another run")
    expect(picker.locator("option")).to_have_count(2)  # without a focus: a native list that is open takes no new ones
    held: list[Route] = []

    def hold(route: Route) -> None:
        name, data = _asked(route)
        if name == "live_tick" and data["run"] == run.folder.run_id:
            held.append(route)
        else:
            route.continue_()

    page.route(CALLS, hold)
    while not held:
        page.wait_for_timeout(100)
    picker.select_option(other.folder.run_id)
    expect(page.locator(".tiles")).to_be_hidden()
    expect(page.locator(".strip .pill")).to_be_empty()
    for route in held:
        route.continue_()
    expect(page.locator(".strip-text")).to_contain_text("step 3 of 60")
    expect(page).to_have_title("other · GRPO Studio")
    assert other.folder.run_id in page.url
    other.end("run_finished", "all steps done")
    other.writer.close()


def test_the_keyboards_focus_stays_where_it_is(app: App, run: SampleRun, open_page: Open) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    _ready(page)
    row = page.locator(".group-row").nth(2)
    row.focus()
    page.keyboard.press("Enter")
    expect(row).to_be_focused()
    expect(row).to_have_attribute("aria-current", "true")
    run.advance()
    page.wait_for_function(HAS_STEP, arg=run.now)
    expect(row).to_be_focused()
    following = page.get_by_role("button", name="Next group")
    following.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".steps-nav")).to_contain_text("group 4 of 4")
    expect(following).to_be_focused()


@pytest.mark.parametrize("width", [1280, 390])
def test_every_note_is_inside_the_window(app: App, run: SampleRun, open_page: Open, width: int) -> None:
    page = open_page(f"{app.url}/live?run={run.folder.run_id}", width=width)
    _ready(page)
    terms = page.locator(".term").locator("visible=true")  # the sampler's panel is there for vLLM alone
    assert terms.count() >= 15
    for place in range(terms.count()):
        terms.nth(place).focus()
        left, right, shown, scrolls = terms.nth(place).evaluate(
            """(term) => {
                const note = getComputedStyle(term, "::after");
                const left = term.getBoundingClientRect().left + parseFloat(note.left);
                return [left, left + parseFloat(note.width), note.display, document.documentElement.scrollWidth > innerWidth];
            }"""
        )
        assert shown == "block"
        assert left >= 0
        assert right <= width
        assert not scrolls
