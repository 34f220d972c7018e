"""What commands print: one JSON document or lines for people on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from grpo_studio import scan_text
from grpo_studio.preflight import CheckReport
from grpo_studio.progress import Progress
from grpo_studio.shown import visible

QUIET_SECONDS = 2.0


def tell(what: str) -> None:
    """What is being done, as a line on stderr."""
    print(visible(what), file=sys.stderr, flush=True)


def progress_line() -> Progress:
    """A progress bar on stderr, where it is a terminal; else a line for each tenth."""
    told = [-1]

    def show(what: str, share: float) -> None:
        tenth = int(share * 10)
        if sys.stderr.isatty():
            bar = "#" * int(share * 30)
            print(f"\r{what} [{bar:<30}] {share:4.0%}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)
        elif tenth != told[0]:
            told[0] = tenth
            print(f"{what} {share:.0%}", file=sys.stderr, flush=True)

    return show


def slow_progress() -> Progress:
    """A progress line for what may be over at once: it says nothing in the first seconds."""
    began, show = time.monotonic(), progress_line()

    def slowly(what: str, share: float) -> None:
        if time.monotonic() - began > QUIET_SECONDS:
            show(what, share)

    return slowly


def print_report(report: CheckReport) -> None:
    """What `check` found, for people."""
    for problem in report.problems:
        print(visible(str(problem)), file=sys.stderr)
    lines = [] if report.scan is None or not report.scan.rows else scan_text.lines_of(report.scan)
    told = "\n".join(lines)
    for note in report.notes:
        if note not in told:
            print(f"note: {visible(note)}")
    print(told, end="\n" * bool(told))
    for name, value in report.derived.items():
        print(f"{name}: {value}")
    print("no problems" if report.ok else f"{len(report.problems)} problems")


def print_summary(summary: dict[str, Any]) -> None:
    """A run in brief, for people."""
    print(f"{summary['run']}: {summary['state']}, step {summary['step']} of {summary['steps']}")
    if summary["reason"]:
        print(summary["reason"])
    print(f"{summary['groups']} groups, {summary['completions']} completions; in {summary['folder']}")
    if pair := summary.get("pair"):
        other = pair["other"] or "not here: it was deleted, never made or not imported"
        print(visible(f"{pair['side']} of a pair that differs in {pair['field']}; the other is {other}"))
    for name, value in summary["metrics"].items():
        print(f"{name:<40} {'-' if value is None else format(value, '.6g')}")


def print_found(options: argparse.Namespace, document: dict[str, Any], lines: Sequence[str], code: int) -> int:
    """Print what a command found, as it was asked for; returns its exit code."""
    if options.json:
        print_json(document)
    elif lines:
        print("\n".join(lines))
    return code


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    print(text.encode("utf-8", "replace").decode())  # data may hold lone surrogates, which no stream takes
