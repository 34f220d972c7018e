"""The memory chart of the Live page: its devices, its newest steps, and a zoom that new steps leave alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import App
from playwright.sync_api import Page, expect
from sample_run import SampleRun

pytestmark = pytest.mark.slow
RANGES = """() => {
  const { xaxis, yaxis } = document.querySelector(".live-memory-panel .drawing")._fullLayout;
  return [xaxis.range, yaxis.range].map((range) => range.map((value) => Math.round(value * 100) / 100));
}"""


def ranges(page: Page) -> list[list[float]]:
    found: list[list[float]] = page.evaluate(RANGES)
    return found


def zoom(page: Page) -> None:
    area = page.locator(".live-memory-panel .nsewdrag").first
    area.scroll_into_view_if_needed()
    box: Any = area.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.8, steps=6)
    page.mouse.up()


def legend(page: Page) -> list[str]:
    return page.locator(".live-memory-panel .legend button").all_inner_texts()


def test_devices_newest_steps_and_a_zoom(app: App, open_page: Callable[..., Page]) -> None:
    run = SampleRun(app.home, steps=90, cards=("cuda:0", "cuda:1"))
    run.begin()
    run.advance(60)
    page = open_page(f"{app.url}/live?run={run.folder.run_id}")
    panel = page.locator(".live-memory-panel")
    expect(panel.locator("tbody tr")).to_have_count(5)
    page.wait_for_function("() => document.querySelector('.live-memory-panel .drawing')?._fullLayout?.meta")
    assert {"cuda:0", "cuda:1", "other processes"} <= set(legend(page))
    panel.locator("select").select_option("cuda:1")
    expect(panel.locator(".legend")).to_contain_text("reserved")
    assert not {"cuda:0", "cuda:1"} & set(legend(page))

    whole = ranges(page)
    panel.get_by_role("button", name="Newest steps").click()
    page.wait_for_function(f"(start) => ({RANGES})()[0][0] > start", arg=whole[0][1] / 4)
    newest = ranges(page)
    run.advance(2)
    page.wait_for_function(f"(end) => ({RANGES})()[0][1] > end", arg=newest[0][1])
    end = ranges(page)[0][1]
    zoom(page)
    page.wait_for_function(f"(end) => ({RANGES})()[0][1] < end", arg=end)
    zoomed = ranges(page)
    step = run.now
    run.advance(2)
    expect(panel.locator("tbody tr").first).to_contain_text("rollout")
    expect(page.locator(".strip-text")).to_contain_text(f"step {step + 2}")
    assert ranges(page) == zoomed
    panel.locator("select").select_option("cuda:0")
    page.wait_for_function(f"(end) => ({RANGES})()[0][1] > end", arg=zoomed[0][1])
    assert ranges(page)[1] == whole[1]
    run.writer.close()
