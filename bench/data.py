"""How long the pre-flight scan of a large data set and the preview of a large file take, and in how much memory.

    python -m bench.data [ROUNDS]

The scan: 100,000 rows in the form of GSM8K, with its gold check and histogram, in a fresh process each time. The
preview: the first prompts of a JSONL of 1 GB, with a warm tokenizer. Both take turns; medians are held against what
they must reach. Prompts are SmolLM2's where it was fetched before (GRPO_STUDIO_CACHE), else the tests' tiny model's.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grpo_studio.catalog import locate
from grpo_studio.config import BUILTIN_MODEL, RunConfig
from grpo_studio.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
ROWS = 100_000
FILE_BYTES = 1_000_000_000
SCAN_SECONDS, SCAN_BYTES, PREVIEW_SECONDS = 20.0, 1.5e9, 1.0
NAMES = ("Natalia", "Weng", "Betty", "Julie", "James", "Albert", "Alexis", "Tina", "Jasper", "Noor", "Emeka", "Mei")
THINGS = (
    "clips",
    "pages",
    "flowers",
    "pizzas",
    "stickers",
    "coins",
    "pencils",
    "lemons",
    "books",
    "marbles",
    "tickets",
)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model, scanned, previewed = _model(Path(folder)), Path(folder) / "rows.jsonl", Path(folder) / "large.jsonl"
        with scanned.open("w", encoding="utf-8") as file:
            file.writelines(_line(number) for number in range(ROWS))
        _write_large(previewed)
        figures: dict[str, list[dict[str, Any]]] = {"scan": [], "preview": []}
        for _ in range(rounds):
            for what, source in (("scan", scanned), ("preview", previewed)):
                figures[what].append(_measured(what, model, source))
        _report(figures, scanned, previewed, model)


def _model(folder: Path) -> str:
    if locate(BUILTIN_MODEL, Settings.from_env().cache).ready:
        return BUILTIN_MODEL
    sys.path.insert(0, str(ROOT / "tests"))
    from tiny_model import make_tiny_model

    return str(make_tiny_model(folder / "tiny"))


def _line(number: int) -> str:
    """A question of the length and the form of GSM8K's, with its worked solution."""
    picker = random.Random(number)
    name, thing, day = picker.choice(NAMES), picker.choice(THINGS), picker.randint(2, 9)
    few, price = picker.randint(3, 60), picker.randint(2, 20)
    question = (
        f"{name} sold {few} {thing} to friends in week {number}, and then {day} times as many in the week after it. "
        f"Every one of the {thing} costs ${price}, and {name} pays a third of what comes in for the stall. "
        f"How many {thing} did {name} sell altogether in both weeks, before any of them were given back?"
    )
    more, total = few * day, few * day + few
    solution = (
        f"{name} sold {few}*{day} = <<{few}*{day}={more}>>{more} {thing} after that.\nIn all {few}+{more} = {total}."
    )
    return json.dumps({"question": question, "answer": f"{solution}\n#### {total}"}) + "\n"


def _write_large(path: Path) -> None:
    lines = "".join(_line(number) for number in range(2000))
    with path.open("w", encoding="utf-8") as file:
        for _ in range(-(-FILE_BYTES // len(lines))):
            file.write(lines)


def _measured(what: str, model: str, source: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.data", what, model, str(source)]
    found = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return figures


def measure(what: str, model: str, source: str) -> None:
    """The work of one fresh process: one line of figures."""
    import psutil

    config = RunConfig.model_validate({"model": {"id": model}, "dataset": {"source": source}})
    settings = Settings.from_env()
    figures = _scan(config, settings) if what == "scan" else _preview(config, settings)
    memory = psutil.Process().memory_info()
    print(json.dumps(figures | {"bytes": getattr(memory, "peak_wset", None) or _peak()}))


def _peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _scan(config: RunConfig, settings: Settings) -> dict[str, Any]:
    from grpo_studio.data_scan import scan

    began = time.perf_counter()
    marks: dict[str, float] = {}
    report = scan(config, settings, lambda what, share: marks.setdefault(what, time.perf_counter() - began))
    seconds = time.perf_counter() - began
    if report.problems or report.lengths is None or report.rows != ROWS:
        raise SystemExit(f"the scan went wrong: {report.problems}")
    begins = dict(_spans(marks, seconds))
    return {
        "seconds": seconds,
        "parts": begins,
        "bars": len(report.lengths.counts),
        "golds": report.golds.reports[0].rows,
    }


def _spans(marks: dict[str, float], end: float) -> Iterator[tuple[str, float]]:
    starts = [*marks.values(), end]
    for what, start, following in zip(marks, starts, starts[1:], strict=False):
        yield what, following - start


def _preview(config: RunConfig, settings: Settings) -> dict[str, Any]:
    from grpo_studio.preview import preview

    preview(config.model_copy(update={"dataset": RunConfig().dataset}), settings)  # warms the tokenizer
    before = _peak()
    began = time.perf_counter()
    shown = preview(config, settings)
    return {"seconds": time.perf_counter() - began, "prompts": len(shown), "more_bytes": _peak() - before}


def _report(figures: dict[str, list[dict[str, Any]]], scanned: Path, previewed: Path, model: str) -> None:
    scans, previews = figures["scan"], figures["preview"]
    seconds = statistics.median(one["seconds"] for one in scans)
    peak = statistics.median(one["bytes"] for one in scans)
    print(f"prompts of {model}; medians of {len(scans)} rounds, each in a process of its own")
    print(f"scan of {ROWS:,} rows ({scanned.stat().st_size / 1e6:.0f} MB), {scans[0]['golds']:,} golds read, histogram")
    for part in scans[0]["parts"]:
        print(f"  {part:<18} {statistics.median(one['parts'][part] for one in scans):6.1f} s")
    print(f"  {'in all':<18} {seconds:6.1f} s   {_held(seconds, SCAN_SECONDS)} {SCAN_SECONDS:.0f} s")
    print(f"  {'peak memory':<18} {peak / 1e6:6.0f} MB  {_held(peak, SCAN_BYTES)} {SCAN_BYTES / 1e6:,.0f} MB")
    shown = statistics.median(one["seconds"] for one in previews)
    more = statistics.median(one["more_bytes"] for one in previews)
    size = previewed.stat().st_size / 1e9
    print(f"preview of {previews[0]['prompts']} prompts of a file of {size:.1f} GB, tokenizer warm")
    print(f"  {'in all':<18} {shown:6.3f} s   {_held(shown, PREVIEW_SECONDS)} {PREVIEW_SECONDS:.0f} s")
    print(f"  {'more memory':<18} {more / 1e6:6.0f} MB")


def _held(found: float, limit: float) -> str:
    return "below" if found < limit else "NOT BELOW"


if __name__ == "__main__":
    if len(sys.argv) == 4:
        measure(*sys.argv[1:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
