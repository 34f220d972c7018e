"""A real server (app.py in a process of its own) and a real Chromium for the browser tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from grpo_studio.serving import free_port

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
START_WITHIN = 60
expect.set_options(timeout=15_000)  # two cores that other tests use as well


@dataclass(frozen=True)
class App:
    """A running app: its address and its home folder."""

    url: str
    home: Path
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Chromium of the system; its absence is a failure, not a skip."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.fail("chromium is not installed: run `make test`, which installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


def start_app(home: Path, **env: str) -> App:
    """Start app.py, with more of an environment where that is given, and wait until it answers."""
    port = free_port()
    environment = {
        **os.environ,
        "GRPO_STUDIO_HOME": str(home),
        "GRPO_STUDIO_CACHE": str(home / "cache"),
        "GRPO_STUDIO_PORT": str(port),
        **env,
    }
    with (home / "app.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "app.py")], cwd=home, env=environment, stdout=log, stderr=log
        )
    app = App(f"http://127.0.0.1:{port}", home, process)
    deadline = time.monotonic() + START_WITHIN
    while not _answers(app.url):
        if process.poll() is not None or time.monotonic() > deadline:
            stop_app(app)
            pytest.fail(f"the app did not start:\n{(home / 'app.log').read_text()[-2000:]}")
        time.sleep(0.2)
    return app


def stop_app(app: App) -> None:
    app.process.terminate()
    try:
        app.process.wait(15)
    except subprocess.TimeoutExpired:
        app.process.kill()
        app.process.wait()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One app with an empty home folder for the tests of a file."""
    app = start_app(tmp_path_factory.mktemp("home"))
    yield app
    stop_app(app)


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Open an address; the test fails if the page's scripts raise an error or ask another host for anything."""
    contexts = []
    troubles: list[str] = []

    def open_(url: str, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: troubles.append(f"script error: {error}"))
        page.on("request", lambda request: _note_foreign(request.url, troubles))
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert troubles == []


def _note_foreign(url: str, troubles: list[str]) -> None:
    if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
        troubles.append(f"another host was asked: {url}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
