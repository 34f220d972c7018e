"""A person's own data on the Launch page: brought in, mapped, seen as the model sees it, scanned, trained on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import App
from playwright.sync_api import FilePayload, Locator, Page, expect
from test_launch import clipped, field, start_button

PATIENT = 60_000  # two cores that other tests use as well
QUESTIONS = [(f"Was ist {n} + {n + 1}?", str(2 * n + 1)) for n in range(60)]
CSV = "\ufeffFrage;Antwort\r\n" + "".join(f"{question};{answer}\r\n" for question, answer in QUESTIONS)


@pytest.fixture
def launch(app: App, open_page: Callable[..., Page], tiny_model: Path) -> Callable[..., Page]:
    """Open the page with the tiny model and small numbers."""

    def open_(width: int = 1280) -> Page:
        page = open_page(f"{app.url}/launch", width, 970)
        expect(page.get_by_label("Start from")).to_have_value("quickstart", timeout=PATIENT)
        field(page, "model.id").fill(str(tiny_model))
        return page

    return open_


def upload(page: Page, name: str, content: str) -> None:
    """Choose a file in the picker that the button opens."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(FilePayload(name=name, mimeType="text/csv", buffer=content.encode()))


def use(page: Page, column: str, role: str) -> Locator:
    return page.get_by_role("button", name=f"Use {column} as the {role}")


def scan_line(page: Page) -> Locator:
    return page.locator(".launch-scan-line")


def test_an_own_csv_is_uploaded_mapped_seen_scanned_and_trained_on(launch: Callable[..., Page], app: App) -> None:
    page = launch()
    upload(page, "Meine Fragen.csv", CSV)
    source = field(page, "dataset.source")
    expect(page.locator(".launch-upload-line")).to_contain_text("Meine Fragen.csv is stored", timeout=PATIENT)
    assert source.input_value().startswith(f"{app.home}/uploads/meine-fragen-")
    for column, role in (("Frage", "prompt"), ("Antwort", "gold")):
        expect(use(page, column, role)).to_have_attribute("aria-pressed", "true", timeout=PATIENT)
    page.get_by_role("button", name="no gold").click()
    expect(use(page, "Antwort", "gold")).to_have_attribute("aria-pressed", "false")
    use(page, "Antwort", "gold").click()
    expect(use(page, "Antwort", "gold")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="The question alone").click()
    prompt = page.locator(".launch-prompt")
    expect(prompt).to_contain_text("<|im_start|>user\nWas ist ", timeout=PATIENT)
    expect(page.locator(".launch-prompt-facts")).to_contain_text("gold: ")
    expect(scan_line(page)).to_have_text("60 rows · 40 to train on, 20 held out", timeout=PATIENT)
    expect(page.locator(".launch-golds")).to_contain_text("math_numeric reads all 60 golds")

    for name, value in (("prompts_per_step", "2"), ("group_size", "4"), ("steps", "2"), ("max_completion_length", "8")):
        field(page, f"algorithm.{name}").fill(value)
    page.locator(".launch-reward").nth(1).get_by_role("button", name="settings").click()
    page.locator("#launch-reward-1 [data-field='pattern'] input").fill("[a-m]")  # a random model meets it now and then
    expect(page.locator(".launch-status")).to_have_text("ready", timeout=PATIENT)
    start_button(page).click()
    page.wait_for_url("**/live?run=*", timeout=PATIENT)
    expect(page.locator(".pill[data-state='finished']")).to_be_visible(timeout=120_000)


def test_gsm8k_by_its_path_needs_no_further_word(launch: Callable[..., Page], shared_dir: Path) -> None:
    page = launch()
    field(page, "dataset.source").fill(str(shared_dir / "data" / "gsm8k_train.jsonl"))
    field(page, "algorithm.group_size").fill("1")  # what is wrong elsewhere keeps no prompt back
    for column, role in (("question", "prompt"), ("answer", "gold")):
        expect(use(page, column, role)).to_have_attribute("aria-pressed", "true", timeout=PATIENT)
    expect(page.locator(".launch-mapping")).to_contain_text("gold after ####")
    expect(page.locator(".launch-prompt")).to_contain_text("Natalia sold clips", timeout=PATIENT)
    expect(page.locator(".launch-prompt-facts")).to_contain_text("gold: 72 ·")
    expect(page.locator(".launch-prompt-where")).to_have_text("1 of 3")
    expect(page.locator("[data-field='algorithm.group_size'] .launch-problem")).to_be_visible()
    field(page, "algorithm.group_size").fill("4")
    expect(scan_line(page)).to_have_text("7\u202f473 rows · 7\u202f453 to train on, 20 held out", timeout=PATIENT)
    expect(page.locator(".launch-golds")).to_contain_text("math_numeric reads all 7\u202f473 golds")
    bars = page.locator(".launch-histogram .launch-bar-count, .launch-histogram .launch-bar-long")
    assert bars.count() > 5
    page.locator(".launch-histogram-box").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".launch-histogram-readout")).to_contain_text("tokens: ")
    assert clipped(page) == []


def test_two_golds_are_asked_about_and_rows_too_long_are_left_out_by_a_click_each(
    launch: Callable[..., Page], tmp_path: Path
) -> None:
    hostile = '<img src=x onerror="window.hacked=1">'
    rows = [
        {
            "question": f"{n} + 1? {'abc ' * (300 if n % 10 == 0 else 1)}",
            "answer": str(n + 1),
            "solution": f"{hostile} #### {n + 1}",
        }
        for n in range(60)
    ]
    rows[7]["question"] = ""
    data = tmp_path / "rows.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    page = launch()
    field(page, "dataset.source").fill(str(data))
    question = page.locator(".launch-ask")
    expect(question).to_contain_text("answer, solution could each be the gold. Which one is it?", timeout=PATIENT)
    expect(page.locator(".launch-prompt-facts")).to_contain_text("gold: to be chosen", timeout=PATIENT)
    expect(start_button(page)).to_be_disabled(timeout=PATIENT)
    question.get_by_role("button", name="answer").click()
    expect(question).to_be_hidden()
    expect(use(page, "answer", "gold")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".launch-problem-link")).to_contain_text("Too long prompts", timeout=PATIENT)
    expect(page.locator(".launch-bar-long").first).to_be_attached()
    expect(start_button(page)).to_be_disabled()
    page.locator(".launch-problems").get_by_role("button", name="Leave these rows out").click()
    expect(page.locator(".launch-status")).to_have_text("ready", timeout=PATIENT)
    expect(scan_line(page)).to_contain_text("7 left out")
    assert clipped(page) == []
    choice = page.locator("[data-choice='dataset.unusable']")
    choice.get_by_role("button", name="stop").click()
    expect(start_button(page)).to_be_disabled(timeout=PATIENT)
    choice.get_by_role("button", name="leave out").click()
    expect(start_button(page)).to_be_enabled(timeout=PATIENT)
    assert page.locator(".launch img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_a_hostile_name_is_stored_as_a_plain_one_and_a_wrong_kind_is_refused(
    launch: Callable[..., Page], app: App
) -> None:
    page = launch(390)
    upload(page, "rows.jsonl.exe", CSV)
    line = page.locator(".launch-upload-line")
    expect(line).to_contain_text("rows.jsonl.exe is no data file: give one that ends in .jsonl")
    upload(page, "<b onmouseover=hack()>..\u202egpj.csv", CSV)
    expect(line).to_contain_text("is stored", timeout=PATIENT)
    name = Path(field(page, "dataset.source").input_value()).name
    assert name.startswith("b-onmouseover-hack-gpj-")
    assert sorted(path.name for path in (app.home / "uploads").iterdir() if name == path.name) == [name]
    assert page.locator(".launch b[onmouseover]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_made_data_has_its_settings_and_offers_its_reward(launch: Callable[..., Page]) -> None:
    page = launch()
    field(page, "dataset.source").fill("builtin:countdown")
    rows = page.get_by_label("Size", exact=True)
    expect(rows).to_have_value("10000", timeout=PATIENT)
    rows.fill("80")
    page.get_by_role("button", name="Use countdown as the reward").click()
    expect(page.locator(".launch-reward")).to_have_count(1)
    expect(page.locator(".launch-offer")).to_be_hidden()
    page.get_by_role("button", name="Countdown equation").click()
    expect(page.locator(".launch-status")).to_have_text("ready", timeout=PATIENT)
    page.get_by_role("button", name="Copy as command").click()
    command = page.get_by_role("textbox", name="Copy as command")
    expect(command).to_have_value(re.compile(r"dataset\.params=.*size.*80.*rewards=.*countdown", re.DOTALL))
