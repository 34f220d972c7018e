"""Does the quickstart learn? Three seeds, one after the other, as `make demo` would run them.

    python -m bench.quickstart_seeds [HOME]

Prints a table and writes docs/quickstart.csv and docs/pictures/quickstart-seeds.png (the picture needs what
requirements-dev.txt installs).
"""

from __future__ import annotations

import csv
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import plotly.graph_objects as go

from bench.workers import ROOT, quickstart_run, series
from grpo_studio.devices import worker_environment
from grpo_studio.store.folder import RunFolder

SEEDS = (1, 2, 3)
COLOURS = ("#0072B2", "#E69F00", "#009E73")
CURVES = ("reward/mean", "reward/math_numeric/mean", "eval/math_numeric/mean")


def main(home: Path) -> None:
    runs: dict[int, RunFolder] = {}
    header = (
        "seed",
        "minutes",
        "reward first 5",
        "last 8",
        "rise",
        "correct first 5",
        "last 8",
        "rise",
        "held-out before",
        "after",
    )
    print("".join(f"{name:>17}" for name in header), flush=True)
    for seed in SEEDS:
        began = time.monotonic()
        runs[seed] = quickstart_run(home, [f"algorithm.seed={seed}"], worker_environment(), f"seed-{seed}")
        row = [float(seed), (time.monotonic() - began) / 60]
        for name in CURVES[:2]:
            values = list(series(runs[seed], name).values())
            first, last = statistics.fmean(values[:5]), statistics.fmean(values[-8:])
            row += [first, last, last - first]
        held_out = list(series(runs[seed], CURVES[2]).values())
        row += [held_out[0], held_out[-1]]
        print("".join(f"{value:>17.3f}" for value in row), flush=True)
    write_csv(runs, ROOT / "docs" / "quickstart.csv")
    draw(runs, ROOT / "docs" / "pictures" / "quickstart-seeds.png")


def write_csv(runs: dict[int, RunFolder], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("seed", "metric", "step", "value"))
        for seed, folder in runs.items():
            for name in CURVES:
                writer.writerows((seed, name, step, round(value, 6)) for step, value in series(folder, name).items())


def draw(runs: dict[int, RunFolder], path: Path) -> None:
    """Three curves of reward and of its correctness part, held-out correctness as dots."""
    from playwright.sync_api import sync_playwright

    figure = go.Figure()
    for (seed, folder), colour in zip(runs.items(), COLOURS, strict=True):
        for name, dash in ((CURVES[0], "solid"), (CURVES[1], "dot")):
            line = {"color": colour, "dash": dash, "width": 2}
            values = series(folder, name)
            figure.add_scatter(
                x=list(values), y=list(values.values()), line=line, name=f"seed {seed}, {name.split('/')[1]}"
            )
        values = series(folder, CURVES[2])
        marker = {"color": "white", "size": 9, "line": {"color": colour, "width": 2}}
        figure.add_scatter(
            x=list(values),
            y=list(values.values()),
            mode="markers",
            marker=marker,
            name=f"seed {seed}, held-out correct",
        )
    figure.update_layout(
        template="plotly_white",
        width=960,
        height=440,
        xaxis_title="step",
        yaxis_title="reward; share correct",
        margin={"t": 20, "r": 10},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 980, "height": 460})
        page.set_content(figure.to_html(include_plotlyjs=True))
        page.wait_for_selector(".legend")
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
