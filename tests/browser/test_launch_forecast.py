"""The forecast on the Launch page, in a real browser, of real modules that are traced: its bars follow the settings."""

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
from grpo_studio.ui.launch_command import complete

Launch = Callable[..., Page]
CARD = "T4"
ANSWERED = re.compile("^(shown|over)$")
TRACED_WITHIN = 90_000  # two cores that other tests use as well


@pytest.fixture
def launch(app: App, open_page: Callable[..., Page], tiny_model: Path) -> Launch:
    """The page as a person finds it who was here before: with a draft of a tiny model and a small card chosen."""

    def open_(**algorithm: int) -> Page:
        data = complete(config_files.read_preset("quickstart", [BUNDLED_PRESETS]))
        data["model"]["id"] = str(tiny_model)
        data["algorithm"] |= {"max_completion_length": 256, **algorithm}
        data["memory"]["micro_batch"] = 64
        page = open_page(f"{app.url}/runs", 1280, 970)
        draft = json.dumps({"preset": "quickstart", "data": data, "name": "", "folds": {}})
        page.evaluate("draft => sessionStorage.setItem('grpo-studio.launch.draft', draft)", draft)
        page.evaluate("card => localStorage.setItem('grpo-studio.forecast.card', card)", CARD)
        page.goto(f"{app.url}/launch")
        expect(page.get_by_label("Start from")).to_have_value("quickstart", timeout=30_000)
        expect(page.get_by_label("Card that the forecast is held against")).to_have_value(CARD)
        page.get_by_role("button", name=re.compile("^Memory")).click()
        return page

    return open_


def field(page: Page, name: str) -> Locator:
    return page.locator(f"[data-field='{name}']").locator("input, select, textarea").first


def fill(page: Page, name: str, value: str) -> None:
    field(page, name).fill(value)


def bars(page: Page) -> dict[str, float]:
    """Width of each phase's bar in shares of the track, once the forecast is that of the settings."""
    settle(page)
    found: dict[str, float] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.forecast-phase')].map((row) => [row.dataset.phase,
            row.querySelector('.forecast-bar').getBoundingClientRect().width
            / row.querySelector('.forecast-track').getBoundingClientRect().width]))"""
    )
    return found


def settle(page: Page) -> None:
    """Wait for the answer to the settings as they are, and for the bars to stand still."""
    expect(page.locator(".forecast")).to_have_attribute("data-state", ANSWERED, timeout=TRACED_WITHIN)
    page.wait_for_function("() => document.querySelector('.forecast').getAnimations({subtree: true}).length === 0")


def parts_of(page: Page, phase: str) -> dict[str, str]:
    """The legend while a phase is pointed at."""
    page.locator(f".forecast-phase[data-phase='{phase}'] .forecast-track").focus()
    rows = page.locator(".forecast-parts li")
    return {
        row.locator(".forecast-part-name").inner_text(): row.locator(".forecast-part-bytes").inner_text()
        for row in rows.all()
    }


def test_the_bars_move_with_the_batch(launch: Launch) -> None:
    page = launch(group_size=128)
    expect(page.locator(".forecast-phase")).to_have_count(3)  # there before the answer, so nothing jumps
    # The scan of the data has counted the longest prompt: nothing is assumed of it any more.
    expect(page.locator(".forecast-made")).to_have_text(
        re.compile(r"^For 64 at once, prompt [1-9]\d \+ completion 256"), timeout=TRACED_WITHIN
    )
    small = bars(page)
    assert set(small) == {"rollout", "loss", "optimizer"}
    expect(page.locator(".forecast-line")).to_contain_text(f"Fits {CARD}")
    expect(page.locator(".forecast-largest")).to_contain_text(re.compile(r"full [\d\s]+ · TRL [\d\s]+ · Liger [\d\s]+"))

    fill(page, "memory.micro_batch", "512")
    expect(page.locator(".forecast-made")).to_contain_text("For 512 at once")
    larger = bars(page)
    assert larger["loss"] > 1.5 * small["loss"]
    assert larger["optimizer"] == pytest.approx(small["optimizer"], abs=0.005)

    fill(page, "algorithm.group_size", "512")
    more = bars(page)
    assert more["rollout"] > 1.1 * larger["rollout"]
    assert more["loss"] == pytest.approx(larger["loss"], abs=0.02)

    fill(page, "memory.micro_batch", "64")
    expect(page.locator(".forecast-made")).to_contain_text("For 64 at once")
    assert bars(page)["loss"] < larger["loss"]

    rollout, loss = parts_of(page, "rollout"), parts_of(page, "loss")
    assert list(rollout) == list(loss)
    assert rollout["activations"] != loss["activations"]
    assert rollout["KV cache"] != "–"
    label = page.locator(".forecast-phase[data-phase='loss'] .forecast-track").get_attribute("aria-label")
    assert label is not None
    assert label.startswith("loss: ")
    assert f"activations {loss['activations']}" in label


def test_one_that_is_over_the_card_says_so_and_its_change_makes_it_fit(launch: Launch) -> None:
    page = launch(group_size=1024, prompts_per_step=16)
    field(page, "memory.loss_backend").select_option(label="full")
    fill(page, "memory.micro_batch", "16384")
    expect(page.locator(".forecast-line")).to_contain_text(f"Over {CARD}, 16.0 GB, by", timeout=TRACED_WITHIN)
    over = bars(page)
    assert max(over.values()) == pytest.approx(1, abs=0.01)
    past = page.locator(".forecast-phase[data-phase='loss'] .forecast-past")
    expect(past).to_be_visible()
    card_end = page.locator(".forecast-phase[data-phase='loss'] .forecast-end").bounding_box()
    hatched = past.bounding_box()
    assert card_end is not None
    assert hatched is not None
    assert hatched["x"] == pytest.approx(card_end["x"] + 1, abs=1.5)
    expect(page.locator("button", has_text="Start run").locator("visible=true")).to_be_enabled()

    before = {name: field(page, f"memory.{name}").input_value() for name in ("micro_batch", "loss_backend")}
    page.locator(".forecast-apply").click()
    expect(page.locator(".forecast-line")).to_contain_text(f"Fits {CARD}", timeout=TRACED_WITHIN)
    expect(past).to_be_hidden()
    expect(page.locator(".forecast-apply")).to_be_hidden()
    after = {name: field(page, f"memory.{name}").input_value() for name in before}
    assert after != before

    fill(page, "memory.micro_batch", "7")
    expect(page.locator(".forecast-line")).to_have_text("The forecast goes on once the settings are sound.")
    expect(page.locator(".forecast-bar").first).to_be_visible()


def test_the_card_that_is_chosen_is_kept_by_the_browser(launch: Launch) -> None:
    page = launch(group_size=128)
    cards = page.get_by_label("Card that the forecast is held against")
    cards.select_option("none")
    expect(page.locator(".forecast-line")).to_contain_text("Fits this machine", timeout=TRACED_WITHIN)
    page.reload()
    expect(cards).to_have_value("none", timeout=30_000)
