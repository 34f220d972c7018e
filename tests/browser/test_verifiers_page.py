"""The Verifiers page in Chromium: the list, a try, the bench, the editor, and what a public bind refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import App, start_app, stop_app
from playwright.sync_api import Page, expect
from test_http import answer, server_call

from grpo_studio.settings import BUNDLED_REWARDS

Open = Callable[..., Page]
HOSTILE = "<img src=x onerror=\"document.title='hacked'\">"
PAYS_FOR_NOTHING = '''from grpo_studio.verifiers import verifier


@verifier(examples=[("12", {"answer": "12"}, 1.0), ("13 and more", {"answer": "12"}, 0.0)])
def short_is_right(completion: str, answer: str) -> float:
    """Pays for anything short."""
    return float(len(completion) < 5)
'''
WRONG_TYPE = PAYS_FOR_NOTHING.replace("float(len(completion) < 5)", "[1.0]").replace("short_is_right", "gives_a_list")


@pytest.fixture
def verifiers(app: App, open_page: Open) -> Callable[..., Page]:
    """Open the page; `address` is what comes after /verifiers."""

    def open_(address: str = "", width: int = 1280) -> Page:
        page = open_page(f"{app.url}/verifiers{address}", width)
        expect(page.locator(".v-item").first).to_be_visible(timeout=60_000)
        return page

    return open_


@pytest.fixture
def own(app: App) -> Iterator[Path]:
    """The person's own folder, empty before and after."""
    folder = app.home / "rewards"
    folder.mkdir(exist_ok=True)
    yield folder
    for path in folder.glob("*.py"):
        path.unlink()


def judge(page: Page) -> None:
    page.get_by_role("button", name="Judge", exact=True).click()


def one_reward(page: Page, name: str) -> None:
    """Leave one reward on the bench."""
    rows = page.locator(".v-reward")
    expect(rows.first).to_be_visible()
    while rows.count():
        rows.first.get_by_role("button").click()
    page.get_by_label("Add a verifier").select_option(name)
    expect(rows).to_have_count(1)


# The list


def test_the_list_shows_every_built_in_and_a_file_that_is_dropped_in(verifiers: Callable[..., Page], own: Path) -> None:
    page = verifiers()
    for path in BUNDLED_REWARDS.glob("*.py"):
        expect(page.locator(f".v-item[data-name='{path.stem}']")).to_have_count(1)
    expect(page.locator(".v-failed")).to_be_hidden()
    (own / "broken.py").write_text("def f(:\n")
    expect(page.locator(".v-failed")).to_contain_text("broken.py")
    expect(page.locator(".v-failed")).to_contain_text("line 1")
    (own / "broken.py").write_text(PAYS_FOR_NOTHING)
    expect(page.locator(".v-item[data-name='short_is_right']")).to_be_visible()
    expect(page.locator(".v-failed")).to_be_hidden()


def test_the_level_of_the_sandbox_is_shown(verifiers: Callable[..., Page]) -> None:
    expect(verifiers().locator(".v-sandbox")).to_have_text(re.compile(r"Sandbox for code: \w+"))


def test_the_filter_and_the_address_choose(verifiers: Callable[..., Page]) -> None:
    page = verifiers("?verifier=regex_match")
    expect(page.locator(".v-title")).to_have_text("regex_match")
    page.get_by_role("searchbox").fill("numeric")
    expect(page.locator(".v-item")).to_have_count(1)
    page.locator(".v-item").click()
    expect(page).to_have_url(re.compile("verifier=math_numeric"))
    expect(page.locator(".v-title")).to_have_text("math_numeric")
    page = verifiers("?verifier=%3Cb%3Enone")
    expect(page.locator(".v-try")).to_have_text("There is no verifier <b>none.")


# Try it


def test_a_try_gives_score_answer_and_reason(verifiers: Callable[..., Page]) -> None:
    page = verifiers("?verifier=math_numeric")
    page.get_by_label("Completion", exact=True).fill("First 7, so the answer is 13.")
    page.locator("[data-column='answer'] textarea").fill("12")
    judge(page)
    score = page.locator(".v-try .v-score")
    expect(score.locator(".v-score-value")).to_have_text("0")
    expect(score).to_contain_text("13")
    page.locator("[data-column='answer'] textarea").fill("")
    judge(page)
    expect(score.locator(".pill")).to_have_text("abstained")
    page.locator("[data-column='answer'] select").select_option("json")
    page.locator("[data-column='answer'] textarea").fill("[12, 13]")
    judge(page)
    expect(score.locator(".v-score-value")).to_have_text("1")
    page.locator("[data-column='answer'] textarea").fill("[12")
    judge(page)
    expect(score).to_contain_text("answer is not JSON")


def test_params_are_fields_and_a_wrong_one_is_named(verifiers: Callable[..., Page]) -> None:
    page = verifiers("?verifier=regex_match")
    pattern = page.locator(".v-try [data-field='pattern'] input")
    pattern.fill("(")
    judge(page)
    expect(page.locator(".v-try .v-score")).to_contain_text("not a regular expression")
    pattern.fill("[A-Z]+")
    page.locator(".v-try [data-field='match'] select").select_option(label="search")
    judge(page)
    expect(page.locator(".v-try .v-score-value")).to_have_text("1")


def test_hostile_text_is_text(verifiers: Callable[..., Page], own: Path) -> None:
    (own / "echo.py").write_text(
        f'''from grpo_studio.verifiers import Verdict, verifier


@verifier(examples=[({HOSTILE!r}, {{}}, 1.0)])
def echo(completion: str, *, word: str = {HOSTILE!r}) -> Verdict:
    """{HOSTILE.replace('"', "'")}"""
    return Verdict(1.0, completion, completion)
'''
    )
    (own / "raises.py").write_text(f"raise RuntimeError({HOSTILE!r})")
    page = verifiers("?verifier=echo")
    judge(page)
    expect(page.locator(".v-try .v-score")).to_contain_text(HOSTILE)
    expect(page.locator(".v-about")).to_contain_text("<img src=x onerror=")
    expect(page.locator(".v-failed")).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0
    expect(page).to_have_title(re.compile("Verifiers"))


# The bench


def test_the_gold_check_lists_an_unreadable_row(verifiers: Callable[..., Page], app: App) -> None:
    rows = [{"prompt": f"{number} + 1?", "answer": str(number + 1)} for number in range(8)]
    rows[2]["answer"], rows[5]["answer"] = "a dozen", HOSTILE
    path = app.home / "golds.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    page = verifiers("?view=bench")
    one_reward(page, "math_numeric")
    page.locator("[data-field='dataset.source'] input").fill(str(path))
    page.get_by_role("button", name="Check the golds").click()
    report = page.locator("[data-kind='gold'] .v-gold")
    expect(report).to_contain_text("75 %", timeout=60_000)
    listed = report.locator("tbody tr")
    expect(listed).to_have_count(2)
    expect(listed.nth(0)).to_contain_text("a dozen")
    expect(listed.nth(0).locator("td").first).to_have_text("3")
    expect(listed.nth(1)).to_contain_text("<img src=x")
    page.reload()
    expect(page.locator("[data-kind='gold'] .v-gold tbody tr")).to_have_count(2)
    expect(page.locator("[data-field='dataset.source'] input")).to_have_value(str(path))


def test_a_data_set_that_is_not_there_is_said(verifiers: Callable[..., Page]) -> None:
    page = verifiers("?view=bench")
    page.locator("[data-field='dataset.source'] input").fill("/nowhere/none.jsonl")
    page.get_by_role("button", name="Check the golds").click()
    expect(page.locator(".v-job").first.locator(".v-fault")).to_contain_text("there is no file /nowhere/none.jsonl")


def test_a_probe_that_pays_is_red_with_its_text(verifiers: Callable[..., Page], own: Path) -> None:
    (own / "short_is_right.py").write_text(PAYS_FOR_NOTHING)
    page = verifiers("?verifier=short_is_right")
    page.get_by_role("button", name="Take to the bench").click()
    one_reward(page, "short_is_right")
    page.get_by_role("button", name="Probe", exact=True).click()
    paying = page.locator(".v-probes tr.v-pays")
    expect(paying.first).to_contain_text("empty text", timeout=60_000)
    expect(paying.first.locator("pre")).to_be_visible()
    red = page.evaluate("getComputedStyle(document.querySelector('.v-pay')).color")
    assert red == page.evaluate(
        "(() => { const one = document.createElement('i'); one.style.color = 'var(--fault)';"
        " document.querySelector('.studio').append(one); return getComputedStyle(one).color; })()"
    )


def test_samples_give_a_verdict(verifiers: Callable[..., Page], tiny_model: Path) -> None:
    page = verifiers("?view=bench")
    page.locator("[data-field='model.id'] input").fill(str(tiny_model))
    page.locator("[data-field='prompts'] input").fill("3")
    page.locator("[data-field='per_prompt'] input").fill("2")
    page.get_by_role("button", name="Start", exact=True).click()
    result = page.locator("[data-kind='samples']")
    expect(result.locator(".v-verdict")).to_be_visible(timeout=120_000)
    expect(result.locator(".v-spread")).to_have_count(3)
    expect(result.locator(".v-legend")).to_contain_text("3 (100 %)")


def test_sampling_can_be_cancelled(verifiers: Callable[..., Page], tiny_model: Path) -> None:
    page = verifiers("?view=bench")
    page.locator("[data-field='model.id'] input").fill(str(tiny_model))
    page.locator("[data-field='algorithm.max_completion_length'] input").fill("512")
    page.locator("[data-field='prompts'] input").fill("256")
    page.locator("[data-field='per_prompt'] input").fill("64")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".v-job").nth(1)).to_contain_text("Cancelled.", timeout=30_000)
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()


# The editor


def test_a_template_is_saved_appears_and_can_be_tried(verifiers: Callable[..., Page], own: Path) -> None:
    page = verifiers("?view=write")
    page.get_by_label("Name of a new verifier").fill("my_rule")
    page.get_by_role("button", name="New", exact=True).click()
    expect(page.get_by_label("Code of the verifier")).to_have_value(re.compile("def my_rule"))
    page.get_by_role("button", name="Save and use").click()
    expect(page.locator(".v-editor")).to_contain_text("Saved and in use.", timeout=60_000)
    expect(page.locator(".v-report")).to_contain_text("All 3 examples get their scores.")
    page.locator(".v-item[data-name='my_rule']").click()
    judge(page)
    expect(page.locator(".v-try .v-score-value")).to_have_text("1")
    page.get_by_role("tab", name="Write your own").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Keep it").click()
    assert (own / "my_rule.py").exists()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.locator(".v-item[data-name='my_rule']")).to_have_count(0)
    assert not (own / "my_rule.py").exists()


def test_a_wrong_type_is_named_and_is_a_draft_at_most(verifiers: Callable[..., Page], own: Path) -> None:
    page = verifiers("?view=write")
    page.get_by_label("Name of a new verifier").fill("gives_a_list")
    page.get_by_role("button", name="New", exact=True).click()
    code = page.get_by_label("Code of the verifier")
    expect(code).to_have_value(re.compile("def gives_a_list"))
    code.fill(WRONG_TYPE)
    page.get_by_role("button", name="Save and use").click()
    expect(page.locator(".v-report")).to_contain_text("list", timeout=60_000)
    expect(page.locator(".v-editor")).to_contain_text("Not saved")
    assert list(own.glob("*.py")) == []
    page.get_by_role("button", name="Save as draft").click()
    expect(page.locator(".v-files")).to_contain_text("gives_a_list.py draft")
    assert [path.name for path in own.glob("*.py")] == ["_gives_a_list.py"]
    expect(page.locator(".v-item[data-name='gives_a_list']")).to_have_count(0)
    code.fill("def broken(:\n")
    page.get_by_role("button", name="Run on its examples").click()
    expect(page.locator(".v-problems")).to_contain_text("line 1")
    expect(page.locator(".v-line-wrong")).to_have_text("1")


def test_what_was_typed_survives_a_reload_and_a_change_elsewhere_is_asked_about(
    verifiers: Callable[..., Page], own: Path
) -> None:
    (own / "short_is_right.py").write_text(PAYS_FOR_NOTHING)
    page = verifiers("?view=write")
    page.locator(".v-chip[data-file='short_is_right.py']").click()
    code = page.get_by_label("Code of the verifier")
    expect(code).to_have_value(PAYS_FOR_NOTHING)
    mine = PAYS_FOR_NOTHING.replace("anything short", "short texts")
    code.fill(mine)
    page.reload()
    expect(page.get_by_label("Code of the verifier")).to_have_value(mine)
    theirs = PAYS_FOR_NOTHING.replace("anything short", "what is short")
    (own / "short_is_right.py").write_text(theirs)
    page.get_by_role("button", name="Save and use").click()
    question = page.get_by_role("alertdialog")
    expect(question).to_contain_text("was changed since you opened it", timeout=60_000)
    assert (own / "short_is_right.py").read_text() == theirs
    question.get_by_role("button", name="Overwrite it").click()
    expect(page.locator(".v-editor")).to_contain_text("Saved and in use.", timeout=60_000)
    assert (own / "short_is_right.py").read_text() == mine


def test_the_keyboard_alone_is_enough(verifiers: Callable[..., Page], own: Path) -> None:
    page = verifiers("?view=try")
    page.get_by_role("tab", name="Try it").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Write your own")).to_be_focused()
    page.get_by_label("Name of a new verifier").focus()
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    code = page.get_by_label("Code of the verifier")
    expect(code).to_be_focused()
    code.fill("")
    page.keyboard.type("if x:")
    page.keyboard.press("Enter")
    page.keyboard.type("y")
    page.keyboard.press("Tab")
    expect(code).to_have_value("if x:\n    y    ")
    page.keyboard.press("Shift+Tab")
    expect(code).to_have_value("if x:\ny    ")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Save and use")).to_be_focused()


@pytest.mark.parametrize("view", ["try", "bench", "write"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_sideways_scroll(verifiers: Callable[..., Page], width: int, view: str) -> None:
    page = verifiers(f"?verifier=math_numeric&view={view}", width)
    expect(page.locator(".v-panel:not([hidden]) .card").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


# A public bind


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app on which code may not be written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRPO_STUDIO_EDIT_CODE", "off")
        app = start_app(tmp_path_factory.mktemp("closed"))
    yield app
    stop_app(app)


REQUEST = {
    "name": "mine", "file": "mine", "code": PAYS_FOR_NOTHING, "verifier": "short_is_right", "completion": "", "columns": {},
    "params": {}, "replace": True,
}  # fmt: skip


@pytest.mark.parametrize("function", ["new", "open", "check", "try_code", "save", "delete"])
def test_no_code_is_taken_where_writing_is_off(closed: App, function: str) -> None:
    call = server_call(closed, "verifiers", f"verifiers_{function}", REQUEST)
    for request in (REQUEST, {**REQUEST, "draft": True}):
        status, body = answer(f"{closed.url}/gradio_api/component_server", {**call, "data": request}, Origin=closed.url)
        assert status == 200
        assert json.loads(body)["error"].startswith("Writing code in the browser is off")
    assert not (closed.home / "rewards").exists()


def test_no_code_is_taken_from_behind_a_proxy_or_another_name(app: App, own: Path) -> None:
    call = server_call(app, "verifiers", "verifiers_save", REQUEST)
    for headers in ({"X_Forwarded_For": "10.1.2.3"}, {"Host": "rebound.example", "Origin": "http://rebound.example"}):
        status, body = answer(f"{app.url}/gradio_api/component_server", call, **headers)
        assert status == 200
        assert "can be reached from other machines" in json.loads(body)["error"]
    assert list(own.glob("*.py")) == []


def test_where_writing_is_off_the_page_says_so_and_built_in_verifiers_are_tried(closed: App, open_page: Open) -> None:
    page = open_page(f"{closed.url}/verifiers?view=write")
    expect(page.locator(".v-off")).to_contain_text("Writing code in the browser is off")
    expect(page.get_by_role("button", name="New", exact=True)).to_be_disabled()
    page.locator(".v-item[data-name='math_numeric']").click()
    judge(page)
    expect(page.locator(".v-try .v-score-value")).to_have_text("1")
