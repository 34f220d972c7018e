"""The Memory page in Chromium: forecast, probes and pairs, each view an address, hostile text shown as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import App
from playwright.sync_api import Page, expect
from sample_run import SampleRun

from grpo_studio.memory.probe_document import BackendResult, ProbeDocument, Sweep, SweepLine, SweepPoint
from grpo_studio.memory.probes import keep_probe
from grpo_studio.settings import Settings

Open = Callable[..., Page]
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
PAIR = "20261130-120000-pair-aaaa"
COLD = 90_000
"""Milliseconds for a first trace while other tests keep the cores busy."""


def settings_of(app: App) -> Settings:
    return Settings.from_env({"GRPO_STUDIO_HOME": str(app.home)})


def line(backend: str, dtype: str, step: float, ended_by: str) -> SweepLine:
    points = [SweepPoint(x=size, peak_bytes=int(10**9 * (4 + step * size)), seconds=1.0) for size in (1, 2, 4, 8)]
    return SweepLine(backend=backend, dtype=dtype, points=points, ended_by=ended_by, end_x=16, largest=8)  # type: ignore[arg-type]


def keep(app: App, probe_id: str, **more: Any) -> None:
    shared: dict[str, Any] = {"grad_norm": 0.5, "peak_by_phase": {"loss": 6 * 10**9}}
    full = BackendResult(backend="full", loss=0.25, peak_bytes=30 * 10**9, seconds=1.0, **shared)
    liger = BackendResult(
        backend="liger", loss=0.25, peak_bytes=6 * 10**9, seconds=1.06, grad_relative_difference=1.9e-6, **shared
    )
    sweep = Sweep(
        axis="completions", lines=[line("full", "float32", 7, "memory"), line("liger", "float32", 0.2, "asked")]
    )
    told: dict[str, Any] = {
        "id": probe_id, "name": "made", "started": 1.8e9, "config": {}, "model": "Qwen/Qwen3-0.6B", "dtype": "bfloat16",
        "adapter": "none", "device": "H100", "card_bytes": 80 * 10**9, "prompt_tokens": 190, "completion_tokens": 512,
        "completions": 32, "micro_batch": 32, "backends": [full, liger], "reference_backend": "full", "sweep": sweep,
    }  # fmt: skip
    keep_probe(settings_of(app), ProbeDocument(**(told | more)))


def shrink(page: Page) -> None:
    """To a narrow window, in which nothing is wider than it once the charts have followed."""
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.fixture(scope="module")
def runs(app: App) -> list[str]:
    """The ids of two runs that ended and are a pair."""
    made = SampleRun(app.home, name="alpha"), SampleRun(app.home, name="beta")
    ids = [run.folder.run_id for run in made]
    for run, side in zip(made, "AB", strict=True):
        run.begin()
        run.advance(2)
        told = {"pair": PAIR, "side": side, "field": "memory.loss_backend", "values": ["liger", "full"], "runs": ids}
        (run.folder.path / "pair.json").write_text(json.dumps(told))
        run.end("run_finished", "all steps done")
        run.writer.close()
    return ids


def test_a_forecast_follows_the_settings_and_any_view_is_an_address(app: App, open_page: Open, runs: list[str]) -> None:
    page = open_page(f"{app.url}/memory?run={runs[0]}&set=memory.micro_batch=8&card=L4")
    bars = page.locator(".forecast")
    expect(bars).to_contain_text("For 8", timeout=COLD)
    expect(page.locator(".memory-changed")).to_have_count(1)
    expect(page.locator(".memory-measured")).to_be_hidden()
    chart = page.locator(".panel", has_text="Forecast: peak against completions")
    expect(chart.locator(".legend button")).to_have_text(["full", "TRL", "Liger"], timeout=COLD)
    expect(chart.locator(".js-line").first).to_be_attached()

    loss = bars.locator(".forecast-phase", has_text="loss").locator(".forecast-bytes")
    before = loss.inner_text()
    page.get_by_label("Micro-batch").fill("16")
    expect(bars).to_contain_text("For 16")
    assert loss.inner_text() != before
    expect(page).to_have_url(re.compile("set=memory.micro_batch%3D16"))
    page.get_by_label("Micro-batch").fill("7")
    expect(page.locator(".memory-problem:visible")).to_contain_text("divide")
    expect(page.get_by_role("button", name="Run probe")).to_be_disabled()
    page.reload()
    expect(page.get_by_label("Micro-batch")).to_have_value("7")
    page.get_by_role("button", name="Back to what it was").click()
    expect(page).to_have_url(re.compile(rf"/memory\?run={runs[0]}&card=L4$"))
    expect(bars).to_contain_text("For 16")
    page.get_by_label("Card that the forecast").select_option("L40S")
    expect(page).to_have_url(re.compile("card=L40S"))
    expect(chart.locator(".sub")).to_contain_text("L40S, 48 GB")


def test_probes_are_told_as_measured_and_text_of_their_files_is_text(app: App, open_page: Open) -> None:
    page = open_page(f"{app.url}/memory?preset=no-such{HOSTILE}")
    expect(page.locator(".banner.fault")).to_contain_text("no preset")
    probe = page.locator(".memory-probe")
    expect(probe).to_contain_text("Run probe measures loss, gradient")
    lost = BackendResult(backend="full", error="out of memory in loss: 18 GB were asked for; a smaller micro-batch")
    odd = BackendResult(backend=HOSTILE[:40], loss=0.3, peak_bytes=10**9, seconds=1.0)
    keep(app, "20261130-100000-odd-aaaa", model=HOSTILE, notes=[HOSTILE], backends=[lost, odd], reference_backend=None)
    keep(app, "20261130-120000-made-aaaa")

    rows = probe.locator(".memory-table tbody tr")
    expect(rows).to_have_count(2, timeout=20_000)
    expect(rows.nth(1)).to_contain_text(re.compile(r"Liger.*6\.00 GB.*−80 %.*1\.06.*1\.9e−6", re.DOTALL))
    expect(probe).to_contain_text("Same loss to 1e-6: the memory is saved, not the work.")
    expect(probe.locator(".memory-big")).to_have_text([re.compile("full.*8"), re.compile("Liger.*≥ 8")])
    expect(probe.locator(".legend button")).to_have_text(["full, fp32", "Liger, fp32"])
    expect(probe.locator(".panel .sub")).to_have_text("dotted line: H100, 80 GB")
    height = page.evaluate("document.documentElement.scrollHeight")

    probe.get_by_label("Probe to show").select_option("20261130-100000-odd-aaaa")
    expect(page).to_have_url(re.compile("probe=20261130-100000-odd-aaaa"))
    expect(rows.first).to_contain_text("out of memory in loss")
    expect(rows.nth(1)).to_contain_text("<img src=x")
    expect(probe).not_to_contain_text("Same loss")
    assert page.evaluate("window.hacked === undefined")
    assert abs(page.evaluate("document.documentElement.scrollHeight") - height) < 400
    shrink(page)


def test_a_run_beside_its_forecast_pairs_and_the_cards(app: App, open_page: Open, runs: list[str]) -> None:
    page = open_page(f"{app.url}/live?run={runs[0]}")
    page.locator(".tile a.change").click()
    expect(page).to_have_url(re.compile(f"/memory\\?run={runs[0]}"))
    expect(page.locator(".nav-link[aria-current=page]")).to_have_text("Memory")
    expect(page.locator(".memory-measured")).to_contain_text("measured peak", timeout=COLD)
    pair = page.locator(".memory-pair")
    expect(pair).to_contain_text("liger against full")
    expect(pair).to_have_attribute("href", f"./pair?pair={PAIR}")

    hand = page.locator("details", has_text="Hand figures")
    hand.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(hand).to_contain_text("147,456 bytes")
    expect(hand).to_contain_text("bitsandbytes keeps embeddings and head in 16 bits")
    methods = page.locator("details", has_text="PPO, DPO, GRPO")
    methods.locator("summary").click()
    expect(methods.locator("tbody tr")).to_have_count(6)
    shrink(page)


@pytest.mark.slow
def test_a_probe_is_run_and_one_is_ended_from_the_page(app: App, open_page: Open, tmp_path: Path) -> None:
    from tiny_model import make_tiny_model

    model = make_tiny_model(tmp_path / "tiny")
    page = open_page(f"{app.url}/memory?preset=quickstart&set=model.id={model}&set=model.dtype=float32")
    start, job = page.get_by_role("button", name="Run probe"), page.locator(".memory-job")
    expect(start).to_be_enabled(timeout=COLD)
    start.click()
    job.get_by_role("button", name="Cancel").click()
    expect(job).to_contain_text("Cancelled.", timeout=60_000)
    start.click()
    expect(job).to_contain_text("Measured; the result is below.", timeout=300_000)
    expect(page).to_have_url(re.compile("probe="))
    expect(page.locator(".memory-table tbody tr")).to_have_count(3)
