"""The Launch page in a real browser against a real app: from a preset to a run that is followed on the Live page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import App
from playwright.sync_api import Locator, Page, expect

from grpo_studio import config_files
from grpo_studio.settings import BUNDLED_PRESETS

Launch = Callable[..., Page]
PRESET = config_files.read_preset("quickstart", [BUNDLED_PRESETS])


@pytest.fixture
def launch(app: App, open_page: Callable[..., Page]) -> Callable[..., Page]:
    """Open the page, begun from the quickstart preset, with another model when one is given."""

    def open_(model: Path | None = None, width: int = 1280, height: int = 970) -> Page:
        page = open_page(f"{app.url}/launch", width, height)
        expect(page.get_by_label("Start from")).to_have_value("quickstart", timeout=30_000)
        if model is not None:
            field(page, "model.id").fill(str(model))
        return page

    return open_


def field(page: Page, name: str) -> Locator:
    """The input of a setting by its dotted name."""
    return page.locator(f"[data-field='{name}']").locator("input, select, textarea").first


def start_button(page: Page) -> Locator:
    """The one that can be seen: of the panel, or of the bar on a narrow page."""
    return page.locator("button", has_text="Start run").locator("visible=true")


def test_a_run_is_set_up_started_and_followed_on_the_live_page(launch: Launch, app: App, tiny_model: Path) -> None:
    page = launch(tiny_model)
    prompt = page.locator(".launch-prompt")
    expect(prompt).to_contain_text("<|im_start|>user", timeout=60_000)
    assert prompt.locator(".launch-special").first.text_content() == "<|im_start|>"
    texts = set()
    for number in (1, 2, 3):
        expect(page.locator(".launch-prompt-where")).to_have_text(f"{number} of 3")
        texts.add(prompt.text_content())
        page.get_by_role("button", name="Next prompt").click()
    assert len(texts) == 3

    expect(start_button(page)).to_be_enabled()
    field(page, "algorithm.group_size").fill("1")
    problem = page.locator("[data-field='algorithm.group_size'] .launch-problem")
    expect(problem).to_contain_text("greater than or equal to 2 (found 1)")
    expect(start_button(page)).to_be_disabled()
    expect(page.locator("#launch-reason")).to_contain_text("Group size G")
    field(page, "algorithm.seed").focus()
    page.locator(".launch-problem-link").click()
    expect(field(page, "algorithm.group_size")).to_be_focused()

    field(page, "algorithm.group_size").fill("4")
    for name, value in (("prompts_per_step", "2"), ("steps", "3"), ("max_completion_length", "8")):
        field(page, f"algorithm.{name}").fill(value)
    expect(problem).to_be_hidden()
    page.locator(".launch-reward").nth(1).get_by_role("button", name="settings").click()
    page.locator("#launch-reward-1 [data-field='pattern'] input").fill("[a-m]")  # a random model meets it now and then
    page.get_by_label("Name of the run").fill("From the page")
    expect(page.locator(".launch-status")).to_have_text("ready", timeout=20_000)
    start_button(page).dblclick()
    page.wait_for_url("**/live?run=*from-the-page*", timeout=60_000)

    def is_alive() -> None:
        expect(page.locator(".pill[data-state='finished']")).to_be_visible(timeout=120_000)
        expect(page.locator(".js-plotly-plot .scatterlayer .trace").first).to_be_attached(timeout=30_000)
        expect(page.locator(".answer .text").first).not_to_be_empty(timeout=30_000)

    is_alive()
    page.reload()
    is_alive()
    assert len(list((app.home / "runs").iterdir())) == 1, "a double click started two runs"


def test_a_draft_survives_a_reload_and_goes_back_to_its_preset(launch: Launch, tiny_model: Path) -> None:
    page = launch(tiny_model)
    field(page, "algorithm.steps").fill("7")
    page.get_by_role("button", name="Add a verifier").click()
    page.locator(".launch-menu-item", has_text="math_numeric").click()
    expect(page.locator(".launch-reward")).to_have_count(3)
    page.reload()
    expect(field(page, "algorithm.steps")).to_have_value("7", timeout=30_000)
    expect(page.locator(".launch-reward")).to_have_count(3)
    page.get_by_role("button", name="Reset to preset").click()
    expect(field(page, "algorithm.steps")).to_have_value(str(PRESET["algorithm"]["steps"]))
    expect(field(page, "model.id")).to_have_value(PRESET["model"]["id"])
    expect(page.locator(".launch-reward")).to_have_count(2)


def test_a_draft_becomes_a_command_and_a_preset(launch: Launch, tiny_model: Path) -> None:
    page = launch(tiny_model)
    field(page, "algorithm.group_size").fill("5")
    page.get_by_role("button", name="Copy as command").click()
    expect(page.get_by_role("textbox", name="Copy as command")).to_have_value(
        f"python -m grpo_studio train --preset quickstart --set model.id={tiny_model} --set algorithm.group_size=5"
    )
    page.get_by_role("button", name="Save as preset").click()
    page.get_by_label("Name of the preset").fill("quickstart")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("is a built-in preset")).to_be_visible()
    page.get_by_label("Name of the preset").fill("Mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("Start from")).to_have_value("mine")
    page.reload()
    expect(page.get_by_label("Start from")).to_have_value("mine", timeout=30_000)
    expect(field(page, "model.id")).to_have_value(str(tiny_model))


def test_an_action_without_an_answer_says_so(launch: Launch, tiny_model: Path) -> None:
    page = launch(tiny_model)
    expect(start_button(page)).to_be_enabled(timeout=60_000)
    page.route("**/component_server**", lambda route: route.abort())
    page.get_by_role("button", name="Copy as command").click()
    expect(page.locator(".launch-below")).to_contain_text("No connection to the app")
    start_button(page).click()
    expect(page.locator("#launch-reason")).to_contain_text("The app did not answer")
    expect(start_button(page)).to_be_enabled()


def test_all_four_cards_begin_above_the_fold(launch: Launch) -> None:
    page = launch()
    box = page.get_by_role("button", name=re.compile("^4 ?Training|^Training")).bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 970


def test_a_folded_setting_that_is_wrong_is_found_from_its_problem(launch: Launch, tiny_model: Path) -> None:
    page = launch(tiny_model)
    page.get_by_role("button", name="Memory").click()
    field(page, "memory.micro_batch").fill("7")
    expect(page.locator(".launch-problem-link")).to_contain_text("7 does not divide", timeout=20_000)
    page.get_by_role("button", name=re.compile("^Memory")).click()
    expect(field(page, "memory.micro_batch")).to_be_hidden()
    expect(page.get_by_role("button", name=re.compile("^Memory"))).to_contain_text("1 problem")
    page.locator(".launch-problem-link").click()
    expect(field(page, "memory.micro_batch")).to_be_focused()


def test_settings_that_are_not_built_yet_cannot_be_touched(launch: Launch) -> None:
    page = launch()
    page.get_by_role("button", name="Alerts").click()
    expect(field(page, "alerts")).to_be_disabled()
    expect(page.locator("[data-field='alerts']")).to_contain_text("not yet")


def test_text_from_data_is_shown_as_text(launch: Launch, tiny_model: Path, tmp_path: Path) -> None:
    hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script> 2 + 2?'
    data = tmp_path / "rows.jsonl"
    rows = [{"question": f"{hostile} {number}", "answer": f"{hostile} #### 4"} for number in range(40)]
    data.write_text("\n".join(json.dumps(row) for row in rows))
    page = launch(tiny_model)
    field(page, "dataset.source").fill(str(data))
    expect(page.locator(".launch-prompt")).to_contain_text(hostile, timeout=30_000)
    assert page.locator(".launch img, .launch script").count() == 0
    assert page.evaluate("window.hacked") is None


def test_the_narrow_page_has_a_sheet_and_never_scrolls_sideways(launch: Launch, tiny_model: Path) -> None:
    page = launch(tiny_model, 390, 844)
    bar = page.locator(".launch-bar-toggle")
    expect(bar).to_contain_text("ready", timeout=60_000)
    panel = page.locator(".launch-panel")
    expect(panel).to_be_hidden()
    field(page, "algorithm.group_size").fill("1")
    expect(bar).to_contain_text("1 problem")
    expect(start_button(page)).to_be_disabled()
    for name in ("Algorithm", "Memory", "Evaluation"):
        page.get_by_role("button", name=name).click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    bar.click()
    page.locator(".launch-problem-link").click()
    expect(panel).to_be_hidden()
    expect(field(page, "algorithm.group_size")).to_be_focused()
    bar.click()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(bar).to_be_focused()


def test_every_control_has_a_label(launch: Launch) -> None:
    page = launch()
    closed = page.locator(".launch-fold[aria-expanded='false'], .launch-reward-actions [aria-expanded='false']")
    for _ in range(closed.count()):
        closed.first.click()
    assert closed.count() == 0
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('.launch input, .launch select, .launch textarea, .launch button')]
            .filter((node) => !(node.labels?.length || node.getAttribute('aria-label') || node.textContent.trim()))
            .map((node) => node.outerHTML)"""
    )
    assert nameless == []


def test_the_page_fits_the_widths_of_the_drawings(launch: Launch) -> None:
    page = launch()
    expect(page.locator(".launch-status")).to_have_text("ready", timeout=60_000)
    expect(page.locator(".launch-prompt")).not_to_contain_text("in a moment", timeout=60_000)
    assert clipped(page) == []
    page.mouse.wheel(0, 300)
    expect(start_button(page)).to_be_in_viewport()
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("scrollTo(0, 0)")
    expect(start_button(page)).to_be_in_viewport()
    assert clipped(page) == []
    page.locator(".launch-bar-toggle").click()
    expect(page.locator(".launch-panel")).to_be_in_viewport()


def clipped(page: Page) -> list[str]:
    """Texts that are wider than the box they stand in, but for those that end in an ellipsis on purpose.

    The button of a hint can be hit around the circle that shows, so its box is wider than it as well.
    """
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('.launch *, html')]
            .filter((node) => node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0)
            .filter((node) => !['ellipsis'].includes(getComputedStyle(node).textOverflow) && node.tagName !== 'INPUT')
            .filter((node) => !node.matches('.launch-hint, .launch-field-name'))
            .map((node) => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 60)}`)"""
    )
    return found
