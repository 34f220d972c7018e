"""The pictures of the docs, made of a real quickstart run: `make pictures` (about ten minutes on two cores)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, App, start_app, stop_app
from playwright.sync_api import FilePayload, Locator, Page, expect
from studio_process import TINY_RUN, as_json, studio, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
ENOUGH_STEPS = 14
FIRST_SCREENS = {"x": 0, "y": 0, "width": 1280, "height": 1480}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """docs/pictures when GRPO_STUDIO_PICTURES=1, else a folder that nobody keeps."""
    wanted = os.environ.get("GRPO_STUDIO_PICTURES") == "1"
    folder = ROOT / "docs" / "pictures" if wanted else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, str]]:
    """An app and the id of its quickstart run, which has done enough steps to be looked at and still runs."""
    home = tmp_path_factory.mktemp("home")
    run = str(as_json(studio("train", "--preset", "quickstart", "--json", home=home))["run"])
    app = start_app(home)
    try:
        wait_for(lambda: shown(home, run)["step"] >= ENOUGH_STEPS, limit=900, what=f"step {ENOUGH_STEPS}")
        yield app, run
    finally:
        studio("stop", run, home=home)
        stop_app(app)


def shown(home: Path, run: str) -> dict[str, Any]:
    return as_json(studio("show", run, "--json", home=home))


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [("live-1280.png", 1280, False), ("live-dark-1280.png", 1280, True), ("live-390.png", 390, False)],
)
def test_live(
    running: tuple[App, str], open_page: Callable[..., Page], pictures: Path, name: str, width: int, dark: bool
) -> None:
    page = open_page(running[0].url, width=width, dark=dark)
    expect(page.locator(".inspector")).to_contain_text("gold")
    page.wait_for_timeout(3_000)
    path = pictures / name
    page.screenshot(path=path, full_page=True, **({"clip": FIRST_SCREENS} if width > 1000 else {}))
    assert path.stat().st_size > 50_000


def test_launch(running: tuple[App, str], open_page: Callable[..., Page], pictures: Path) -> None:
    page = open_page(f"{running[0].url}/launch", 1280, 970)
    expect(page.locator(".launch-panel")).to_contain_text("<|im_start|>", timeout=60_000)
    page.wait_for_timeout(1_500)
    page.screenshot(path=pictures / "launch-1280.png")
    narrow = open_page(f"{running[0].url}/launch", 390, 844)
    expect(narrow.locator(".launch-bar-toggle")).to_contain_text("ready", timeout=60_000)
    narrow.wait_for_timeout(1_500)
    narrow.screenshot(path=pictures / "launch-390.png")
    narrow.locator(".launch-bar-toggle").click()
    expect(narrow.locator(".launch-panel")).to_be_in_viewport()
    narrow.wait_for_timeout(1_000)
    narrow.screenshot(path=pictures / "launch-390-sheet.png")


@pytest.mark.parametrize(("name", "width"), [("runs-1280.png", 1280), ("runs-390.png", 390)])
def test_runs(running: tuple[App, str], open_page: Callable[..., Page], pictures: Path, name: str, width: int) -> None:
    page = open_page(f"{running[0].url}/runs", width=width, height=400 if width > 1000 else 700)
    expect(page.locator(".studio")).to_contain_text("quickstart")
    page.wait_for_timeout(1_000)
    page.screenshot(path=pictures / name)


def test_verifiers(running: tuple[App, str], open_page: Callable[..., Page], pictures: Path) -> None:
    address = f"{running[0].url}/verifiers?verifier=math_equal"
    for name, width in (("verifiers-1280.png", 1280), ("verifiers-390.png", 390)):
        page = opened_verifiers(open_page, address, width)
        page.get_by_role("button", name="Judge", exact=True).click()
        expect(page.locator(".v-try .v-score-value")).to_be_visible(timeout=60_000)
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=pictures / name, full_page=True)


def test_the_bench_of_verifiers(running: tuple[App, str], open_page: Callable[..., Page], pictures: Path) -> None:
    page = opened_verifiers(open_page, f"{running[0].url}/verifiers?view=bench", 1280)
    for button, done in (("Check the golds", ".v-gold"), ("Probe", ".v-probes"), ("Start", ".v-spreads")):
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.locator(done).first).to_be_visible(timeout=400_000)
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(500)
    path = pictures / "verifiers-bench-1280.png"
    page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 50_000


def opened_verifiers(open_page: Callable[..., Page], address: str, width: int) -> Page:
    """The page with its list, and a folder's name that means something to a reader."""
    page = open_page(address, width)
    expect(page.locator(".v-item").first).to_be_visible(timeout=60_000)
    page.locator(".v-folder code").evaluate("(node) => { node.textContent = 'studio/rewards'; }")
    return page


def test_the_tutorial(running: tuple[App, str], open_page: Callable[..., Page], pictures: Path) -> None:
    """From a person's own CSV to a first run; after the tests of the run that it ends."""
    app, quickstart = running
    studio("stop", quickstart, home=app.home)
    page = open_page(f"{app.url}/launch", 1280, 1080)
    expect(page.locator(".launch-panel")).to_contain_text("<|im_start|>", timeout=60_000)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a file").click()
    rows = "".join(f"Was ist {a} + {b}?;{a + b}\r\n" for a in range(1, 11) for b in range(1, 11))
    csv = FilePayload(name="fragen.csv", mimeType="text/csv", buffer=f"\ufeffFrage;Antwort\r\n{rows}".encode())
    chooser.value.set_files(csv)
    expect(page.get_by_role("button", name="Use Antwort as the gold")).to_be_visible(timeout=60_000)
    data_card = page.locator("section.launch-card", has=page.locator("[data-field='dataset.source']"))
    told_as_studio(page, app.home)
    whole_width(page, data_card, pictures / "tutorial-upload.png")
    page.get_by_role("button", name="Number only").click()
    page.locator("[data-field='dataset.system_prompt'] textarea").fill("")
    page.get_by_role("button", name="Use Antwort as the gold").focus()
    told_as_studio(page, app.home)
    whole_width(page, data_card, pictures / "tutorial-mapping.png")
    expect(page.locator(".launch-golds")).to_contain_text("math_numeric reads all 100 golds", timeout=120_000)
    expect(page.locator(".launch-status")).to_have_text("ready", timeout=60_000)
    expect(page.locator(".launch-prompt")).to_contain_text("Reply with the number only")
    told_as_studio(page, app.home)
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=pictures / "tutorial-scan.png")
    page.get_by_label("Name of the run").fill("My first run")
    page.locator("button", has_text="Start run").locator("visible=true").click()
    page.wait_for_url("**/live?run=*", timeout=120_000)
    run = page.url.partition("run=")[2]
    wait_for(lambda: shown(app.home, run)["step"] >= 4, limit=900, what="step 4")
    page.wait_for_timeout(4_000)
    told_as_studio(page, app.home)
    page.screenshot(path=pictures / "tutorial-live.png", full_page=True, clip=FIRST_SCREENS)
    studio("stop", run, home=app.home)
    assert (pictures / "tutorial-live.png").stat().st_size > 50_000


def test_what_came_of_a_run(running: tuple[App, str], open_page: Callable[..., Page], pictures: Path) -> None:
    """After its end: what it scores beside its start, a chat with both sides, and what can be done with it."""
    app, run = running
    studio("stop", run, home=app.home)
    assert studio("evaluate", run, home=app.home, timeout=600).returncode == 0
    page = open_page(f"{app.url}/results?run={run}", 1280, 900)
    expect(page.locator(".results-tile").first).to_be_visible()
    page.locator(".results-row").first.click()
    expect(page.locator(".results-one.side-b").first).to_be_visible()
    page.wait_for_timeout(1_000)
    page.screenshot(path=pictures / "results-1280.png")
    page = open_page(f"{app.url}/play?run={run}", 1280, 760)
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.locator(".play")).to_contain_text("Ready.", timeout=120_000)
    for question in (1, 2):
        page.get_by_label("Take a held-out question").select_option(index=question)
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".play-turn").nth(question - 1).locator(".side-b")).to_contain_text(
            "token", timeout=120_000
        )
        expect(page.get_by_role("button", name="Stop")).to_have_count(0, timeout=60_000)
    page.screenshot(path=pictures / "play-1280.png")
    page.get_by_role("button", name="Free the memory").click()
    page = open_page(f"{app.url}/live?run={run}", 1280, 900)
    page.locator(".strip").get_by_role("button", name="Branch").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.wait_for_timeout(1_000)
    page.screenshot(path=pictures / "branch-1280.png")


def test_memory(running: tuple[App, str], open_page: Callable[..., Page], pictures: Path) -> None:
    """A forecast of the published setting, and a probe with its sweep as this machine measured them; the run has ended."""
    app, run = running
    studio("stop", run, home=app.home)
    tokens = ("--set", "algorithm.max_completion_length=160", "--set", "algorithm.prompts_per_step=2")
    shape = (*tokens, "--set", "memory.micro_batch=8", "--set", "model.dtype=float32")
    sweep = ("--sweep", "completions", "--to", "16", "--anyway")
    found = studio("probe", "--preset", "quickstart", *shape, *sweep, home=app.home, timeout=900)
    assert found.returncode == 0, found.stderr
    settings = "set=memory.adapter=none&set=memory.gradient_checkpointing=false&set=memory.micro_batch=32"
    page = open_page(f"{app.url}/memory?preset=gsm8k-qwen3-0.6b-lora&{settings}", 1280, 900)
    expect(page.locator(".memory-table tbody tr")).to_have_count(3)
    for chart in page.locator(".plot").all():
        expect(chart.locator(".js-line").first).to_be_attached(timeout=60_000)
    page.wait_for_timeout(1_000)
    path = pictures / "memory-1280.png"
    page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 50_000


def test_a_pair(open_page: Callable[..., Page], pictures: Path, tiny_model: Path, tmp_path: Path) -> None:
    """Two runs of the tiny model in float32, Liger's loss against TRL's: what docs/memory.md shows."""
    tiny = ("--preset", "quickstart", "--set", f"model.id={tiny_model}", *TINY_RUN, "--set", "dataset.held_out=4")
    shape = ("model.dtype=float32", "memory.track_tensors=true", "algorithm.steps=40", "algorithm.learning_rate=1e-3")
    done = studio(
        "pair", *tiny, *(part for one in shape for part in ("--set", one)), "--differ", "memory.loss_backend=liger,trl",
        "--name", "backends", "--wait", "--json", home=tmp_path, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    app = start_app(tmp_path)
    try:
        page = open_page(f"{app.url}/pair?pair={as_json(done)['pair']}", 1280, 900)
        page.wait_for_function("document.querySelectorAll('.pair-figures .main-svg').length >= 5")
        page.wait_for_timeout(1_000)
        path = pictures / "pair-1280.png"
        page.screenshot(path=path, full_page=True)
        assert path.stat().st_size > 50_000
    finally:
        stop_app(app)


def whole_width(page: Page, card: Locator, path: Path) -> None:
    """A picture of the page's whole width, as high as a card and the gaps around it."""
    page.evaluate("window.scrollTo(0, 0)")
    box = card.bounding_box()
    assert box is not None
    clip = {"x": 0, "y": box["y"] - 8, "width": 1280, "height": box["height"] + 16}
    page.screenshot(path=path, full_page=True, clip=clip)


def told_as_studio(page: Page, home: Path) -> None:
    """A home folder's name that means something to a reader, in what is shown alone."""
    page.evaluate(
        """(home) => {
            const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(home, 'studio');
            for (const input of document.querySelectorAll('input')) if (input.value.startsWith(home)) input.value = input.value.replace(home, 'studio');
        }""",
        str(home),
    )
