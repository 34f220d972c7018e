"""What the app costs while one page is open on a running run: its CPU time over a minute, in percent of one core.

    python -m bench.idle_page [SECONDS]

Needs what requirements-dev.txt installs, and Chromium. The run is the quickstart; the page is Live, left alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import psutil
from playwright.sync_api import sync_playwright

from bench.workers import ROOT
from grpo_studio.serving import free_port


def main(seconds: float) -> None:
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "GRPO_STUDIO_HOME": home, "GRPO_STUDIO_PORT": str(port), "PYTHONPATH": str(ROOT)}
        studio = [sys.executable, "-m", "grpo_studio"]
        subprocess.run(
            [*studio, "train", "--preset", "quickstart"], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        app = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        try:
            measure(app, f"http://127.0.0.1:{port}/live", seconds)
        finally:
            app.terminate()
            app.wait()
            subprocess.run([*studio, "stop", "latest"], env=environment, check=True, stdout=subprocess.DEVNULL)


def measure(app: subprocess.Popen[bytes], address: str, seconds: float) -> None:
    for _ in range(120):
        try:
            urllib.request.urlopen(address, timeout=5).read()
            break
        except OSError:
            time.sleep(0.5)
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.wait_for_function("document.body.innerText.match(/step [1-9]/)", timeout=300_000)
        time.sleep(10)
        process = psutil.Process(app.pid)
        before, began, text = cpu_seconds(process), time.monotonic(), page.inner_text("body")
        time.sleep(seconds)
        used, passed = cpu_seconds(process) - before, time.monotonic() - began
        moved = page.inner_text("body") != text
        browser.close()
    print(
        f"app with one idle page on a running run: {used:.2f} s CPU in {passed:.0f} s = {used / passed:.2%} of one core"
    )
    state = "moved on" if moved else "did not move"
    print(f"the page {state} meanwhile; resident {process.memory_info().rss / 2**20:.0f} MiB")


def cpu_seconds(process: psutil.Process) -> float:
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(time.user + time.system for time in times)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
