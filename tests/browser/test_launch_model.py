"""The Launch page knows a model before it is loaded: its card, its template, search on the Hub and in folders."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import App, start_app, stop_app
from hub_stand_in import SPARE, HubStandIn
from playwright.sync_api import Locator, Page, Route, expect

from grpo_studio.config import BUILTIN_MODEL
from grpo_studio.hints import GROUP_SIZE

Launch = Callable[..., Page]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[HubStandIn]:
    """A stand-in for the Hub with an open and a gated model, and a data set."""
    stand_in = HubStandIn(tmp_path_factory.mktemp("hub"))
    stand_in.add("model", "alice/tiny-open", tiny_model, info={"downloads": 2_000})
    stand_in.add("model", "alice/tiny-gated", tiny_model, gated=True, info={"downloads": 1_000})
    stand_in.add("dataset", "alice/tiny-sums", {"train.jsonl": '{"prompt": "1 + 1", "answer": "2"}\n'})
    yield stand_in
    stand_in.close()


@pytest.fixture(scope="module")
def app(hub: HubStandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app whose Hub is the stand-in."""
    turned = {name: hub.env[name] for name in ("HF_ENDPOINT", "HF_HOME", "NO_PROXY")}
    app = start_app(tmp_path_factory.mktemp("home"), **dict.fromkeys(SPARE, ""), **turned)
    yield app
    stop_app(app)


@pytest.fixture(autouse=True)
def _the_hub_is_up_again(hub: HubStandIn) -> Iterator[None]:
    yield
    hub.fault = None


@pytest.fixture
def launch(app: App, open_page: Callable[..., Page]) -> Launch:
    """Open the page, begun from the quickstart preset."""

    def open_(width: int = 1280, height: int = 970) -> Page:
        page = open_page(f"{app.url}/launch", width, height)
        expect(page.get_by_label("Start from")).to_have_value("quickstart", timeout=30_000)
        return page

    return open_


@pytest.fixture
def base_model(tiny_model: Path, tmp_path: Path) -> Path:
    """The tiny model as a base model: without a chat template."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "base"))
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps({k: v for k, v in json.loads(settings.read_text()).items() if k != "chat_template"}))
    return folder


def field(page: Page, name: str) -> Locator:
    """The input of a setting by its dotted name."""
    return page.locator(f"[data-field='{name}']").locator("input, select, textarea").first


def fact(page: Page, name: str) -> Locator:
    return page.locator(f".launch-fact-{name} dd")


def chip(page: Page, name: str) -> Locator:
    return page.locator(".launch-template").get_by_role("button", name=name, exact=True)


def command_of(page: Page) -> Locator:
    """What "Copy as command" gives now."""
    page.get_by_role("button", name="Copy as command").click()
    return page.get_by_role("textbox", name="Copy as command")


def rows_of(page: Page, name: str) -> Locator:
    return page.locator(f"[data-field='{name}'] [role='option']")


def test_the_card_tells_what_is_known_and_keeps_its_place(launch: Launch, tiny_model: Path) -> None:
    page = launch()
    expect(page.locator(".launch-facts")).to_have_attribute("aria-busy", "false", timeout=60_000)
    before = page.locator(".launch-facts").bounding_box()
    for name, text in (("licence", "Apache-2.0"), ("download", "92.9 MB"), ("access", "built in")):
        expect(fact(page, name)).to_have_text(text)
    config = json.loads((tiny_model / "config.json").read_text())
    field(page, "model.id").fill(str(tiny_model))
    expect(fact(page, "context")).to_have_text("512")
    for name, text in (
        ("architecture", "LlamaForCausalLM"), ("vocabulary", str(config["vocab_size"])),
        ("template", "the model's own"), ("licence", "–"), ("download", "nothing to fetch"),
        ("pad", "<|end|>"), ("end", "<|im_end|>"),
    ):  # fmt: skip
        expect(fact(page, name)).to_have_text(text)
    expect(fact(page, "end").locator("code")).to_have_count(1)
    expect(fact(page, "dtype").locator(".term")).to_have_attribute(
        "data-note", re.compile("GB of weights.*bfloat16 where")
    )
    expect(page.locator("#launch-card-model").locator("..").locator(".launch-summary")).to_contain_text("context 512")
    assert page.locator(".launch-facts").bounding_box() == before


def test_a_model_without_a_template_gets_the_one_that_is_picked(launch: Launch, base_model: Path) -> None:
    page = launch()
    field(page, "model.id").fill(str(base_model))
    expect(fact(page, "template")).to_have_text("none", timeout=30_000)
    expect(chip(page, "plain text")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".launch-summary").first).to_contain_text("no chat template")
    chip(page, "chatml").click()
    expect(fact(page, "template")).to_have_text("chatml")
    expect(page.locator(".launch-prompt .launch-special").first).to_have_text("<|im_start|>", timeout=60_000)
    expect(command_of(page)).to_have_value(re.compile(r" --set model.chat_template=chatml\b"))
    own = field(page, "model.chat_template")
    expect(own).to_be_hidden()
    chip(page, "your own…").click()
    expect(own).to_be_focused()
    own.fill("{% for message in messages %}Q: {{ message['content'] }} A:{% endfor %}")
    expect(page.locator(".launch-prompt")).to_contain_text("Q: What is", timeout=30_000)
    own.fill("{% for message in messages %}")
    expect(page.locator("[data-field='model.chat_template'] .launch-problem")).to_be_visible(timeout=30_000)
    chip(page, "plain text").click()
    expect(own).to_be_hidden()
    expect(command_of(page)).to_have_value(re.compile(r"^((?!chat_template).)*$"))


def test_a_model_with_a_template_can_be_shown_plain_text(launch: Launch, tiny_model: Path) -> None:
    page = launch()
    field(page, "model.id").fill(str(tiny_model))
    expect(chip(page, "the model's own")).to_have_attribute("aria-pressed", "true")
    expect(chip(page, "chatml")).to_have_count(0)
    chip(page, "plain text").click()
    expect(fact(page, "template")).to_have_text("plain text")
    expect(chip(page, "the model's own")).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".launch-prompt")).to_contain_text("What is", timeout=30_000)
    expect(page.locator(".launch-prompt .launch-special")).to_have_count(0)
    page.reload()
    expect(chip(page, "plain text")).to_have_attribute("aria-pressed", "true", timeout=30_000)


def test_the_hub_is_searched_while_one_types(launch: Launch) -> None:
    page = launch()
    model, rows = field(page, "model.id"), rows_of(page, "model.id")
    model.click()
    expect(rows.first).to_contain_text(BUILTIN_MODEL)
    model.fill("")
    model.press_sequentially("in")  # in builtin:smollm2-135m-instruct, and in alice/tiny-open
    expect(rows.first).to_contain_text(BUILTIN_MODEL)
    place = rows.first.bounding_box()
    expect(rows.filter(has_text="alice/tiny-gated")).to_contain_text("gated")
    assert rows.first.bounding_box() == place
    model.fill("")
    model.press_sequentially("tiny-o")
    expect(rows).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(model).to_have_value("alice/tiny-open")
    expect(rows.first).to_be_hidden()
    expect(fact(page, "access")).to_have_text("open")
    expect(fact(page, "architecture")).to_have_text("LlamaForCausalLM")


def test_an_answer_that_comes_late_is_not_shown(launch: Launch, tiny_model: Path, base_model: Path) -> None:
    page = launch()
    held: list[Route] = []

    def hold(route: Route) -> None:
        """Keep what is asked of the first search and of the tiny model's card."""
        asked = route.request.post_data or ""
        late = ("search_hub" in asked and "tiny-g" in asked) or ("model_card" in asked and str(tiny_model) in asked)
        held.append(route) if late else route.continue_()

    def release() -> None:
        with page.expect_response(held[-1].request.url):
            held.pop().continue_()

    page.route("**/component_server**", hold)
    model, rows = field(page, "model.id"), rows_of(page, "model.id")
    model.fill("")
    with page.expect_request(lambda request: "search_hub" in (request.post_data or "")):
        model.press_sequentially("tiny-g")
    model.fill("")
    model.press_sequentially("tiny-o")
    expect(rows).to_have_text(re.compile("alice/tiny-open"))
    release()
    expect(rows).to_have_count(1)
    with page.expect_request(lambda request: "model_card" in (request.post_data or "")):
        model.fill(str(tiny_model))
    model.fill(str(base_model))
    expect(fact(page, "template")).to_have_text("none")
    release()
    expect(fact(page, "template")).to_have_text("none")


def test_gated_missing_and_down_are_three_messages(launch: Launch, hub: HubStandIn) -> None:
    page = launch()
    said = page.locator(".launch-model-top")
    field(page, "model.id").fill("alice/tiny-gated")
    expect(fact(page, "access")).to_have_text("gated, no access")
    expect(said).to_contain_text("accept its terms")
    field(page, "model.id").fill("alice/none")
    expect(said).to_contain_text(re.compile("the hub has no model", re.IGNORECASE))
    expect(fact(page, "access")).to_have_text("–")
    hub.fault = "down"
    field(page, "model.id").fill("alice/other")
    expect(said).to_contain_text(re.compile("cannot reach the hub", re.IGNORECASE))
    hub.fault = None
    page.locator(".launch-model-foot").get_by_role("button", name="More").click()
    field(page, "model.trust_remote_code").check()
    expect(page.locator("[data-field='model.trust_remote_code'] .launch-problem")).to_contain_text("never run here")


def test_a_local_file_is_a_few_clicks_away(launch: Launch, app: App, tiny_model: Path) -> None:
    rows = [{"question": f"What is {number} + 1?", "answer": f"#### {number + 1}"} for number in range(40)]
    (app.home / "mine").mkdir()
    (app.home / "mine" / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    page = launch()
    field(page, "model.id").fill(str(tiny_model))
    field(page, "dataset.source").click()
    page.locator("[data-field='dataset.source'] .launch-suggest-start", has_text="./").click()
    rows_of(page, "dataset.source").filter(has_text="./mine/").click()
    rows_of(page, "dataset.source").filter(has_text="sums.jsonl").click()
    expect(field(page, "dataset.source")).to_have_value("./mine/sums.jsonl")
    expect(page.locator(".launch-prompt")).to_contain_text("What is 0 + 1?", timeout=30_000)


def test_hints_and_what_a_preset_is_for_have_their_sources(launch: Launch) -> None:
    page = launch()
    hint = page.locator("[data-field='algorithm.group_size'] .launch-hints")
    button = page.get_by_role("button", name="Hints for Group size G")
    button.focus()
    page.keyboard.press("Enter")
    expect(hint).to_contain_text(GROUP_SIZE[0].text)
    link = hint.get_by_role("link").first
    expect(link).to_have_attribute("href", GROUP_SIZE[0].url)
    expect(link).to_have_attribute("rel", re.compile("noopener"))
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(hint).to_be_hidden()
    expect(button).to_be_focused()

    expect(page.locator(".launch-about-text")).to_contain_text("SmolLM2")
    page.get_by_label("Start from").select_option("gsm8k-qwen3-0.6b-lora")
    expect(page.locator(".launch-about-text")).to_contain_text("Qwen3-0.6B")
    page.get_by_role("button", name="details").click()
    expect(page.locator(".launch-about")).to_contain_text("GPU")
    expect(page.locator(".launch-about a").first).to_have_attribute("href", re.compile("^https://"))
    page.get_by_role("button", name="Save as preset").click()
    page.get_by_label("Name of the preset").fill("Without words")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("Start from")).to_have_value("without-words")
    expect(page.locator(".launch-about-line")).to_be_hidden()
    expect(page.locator(".launch-about")).to_be_hidden()


def test_card_lists_and_hints_fit_a_narrow_page(launch: Launch) -> None:
    page = launch(390, 844)
    expect(page.locator(".launch-facts")).to_have_attribute("aria-busy", "false", timeout=30_000)
    field(page, "model.id").click()
    expect(rows_of(page, "model.id").first).to_be_visible()
    page.keyboard.press("Escape")
    for name in ("Group size G", "Learning rate"):
        page.get_by_role("button", name=f"Hints for {name}").click()
        box = page.locator(".launch-hints:visible").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# Last, because the app leaves a Hub that is down alone for a while.


def test_without_the_hub_the_lists_say_what_works(launch: Launch, hub: HubStandIn) -> None:
    page = launch()
    model = field(page, "model.id")
    hub.fault = "down"
    model.fill("")
    model.press_sequentially("qwenx")
    line = page.locator("[data-field='model.id'] .launch-suggest-line")
    expect(line).to_contain_text("built-in models, local folders and GGUF files work without the Hub")
    source = field(page, "dataset.source")
    source.fill("")
    source.press_sequentially("gsm9")
    expect(page.locator("[data-field='dataset.source'] .launch-suggest-line")).to_contain_text("work without the Hub")
