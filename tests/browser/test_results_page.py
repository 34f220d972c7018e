"""The page of a run's results in Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import App
from playwright.sync_api import Page, expect
from sample_evaluations import add_evaluation, held_out_groups
from sample_run import HOSTILE_PROMPT, SampleRun
from studio_process import as_json, tiny_train

Open = Callable[..., Page]


def test_two_evaluations_their_flips_and_both_texts_of_a_row(app: App, open_page: Open) -> None:
    run = SampleRun(app.home)
    run.prepare()
    address = f"{app.url}/results?run={run.folder.run_id}"
    page = open_page(address)
    expect(page.locator(".nothing")).to_contain_text("scored once before training starts")
    add_evaluation(run, 0, held_out_groups(0.2, seed=0))
    add_evaluation(run, 10, held_out_groups(0.5, seed=1))
    add_evaluation(run, 20, held_out_groups(0.8, seed=2))
    expect(page.locator(".results-tile").first).to_be_visible()
    before, after = page.get_by_label("Before", exact=True), page.get_by_label("After", exact=True)
    expect(before).to_have_value("step-0")
    expect(after).to_have_value("step-20")
    expect(page.locator(".results-table tbody tr", has_text="pass@4")).to_have_count(1)
    expect(page.locator(".results-table")).to_contain_text("not judged: 1 before, 1 after")

    both = page.get_by_role("button", name="wrong both times")
    wrong = int(both.locator("b").inner_text())
    for name in ("wrong → right", "right → wrong", "wrong both times"):
        page.get_by_role("button", name=name).click()
    rows = page.locator(".results-row")
    expect(rows).to_have_count(wrong)
    assert set(rows.locator(".outcome").all_inner_texts()) == {"wrong"}
    rows.first.click()
    add_evaluation(run, 30, held_out_groups(0.9, seed=3))
    expect(after.locator("option")).to_have_count(4)
    expect(after).to_have_value("step-20")
    expect(page.locator(".results-one.side-b")).to_be_visible()

    after.select_option("step-10")
    expect(page).to_have_url(re.compile("/results[?]run=.*&a=step-0&b=step-10$"))
    for name in ("wrong → right", "right → wrong", "right both times", "not judged"):
        page.get_by_role("button", name=name).click()
    expect(rows).to_have_count(50)
    expect(rows.first.locator(".prompt")).to_have_text(HOSTILE_PROMPT)
    rows.first.click()
    side = page.locator(".results-one.side-b").first
    expect(side).to_contain_text("<script>window.hacked=1</script> is 15")
    assert page.evaluate("window.hacked === undefined && !document.getElementById('injected')")
    rows.nth(1).click()
    item = page.locator(".results-item").nth(1)
    item.get_by_role("button", name="Show all (9 900 characters)").last.click()
    expect(item.locator(".side-b .text")).to_have_text("many words " * 900)
    page.get_by_role("button", name="Next").click()
    expect(rows).to_have_count(10)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    run.writer.close()


@pytest.mark.slow
def test_a_checkpoint_is_evaluated_from_the_page(app: App, open_page: Open, tmp_path: Path) -> None:
    from tiny_model import make_tiny_model

    result = tiny_train(make_tiny_model(tmp_path / "tiny"), app.home, "--wait")
    assert result.returncode == 0, result.stderr
    page = open_page(f"{app.url}/results?run={as_json(result)['run']}")
    page.get_by_role("button", name="Evaluate a checkpoint").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Samples a row").fill("2")
    dialog.get_by_role("button", name="Evaluate", exact=True).click()
    dialog.get_by_role("button", name="Show it").click(timeout=120_000)
    expect(page.get_by_label("After", exact=True)).to_have_value(re.compile("^final-"))
    expect(page.locator(".results-table tbody tr", has_text="pass@2")).to_have_count(1)
