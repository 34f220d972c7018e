"""A scan as `check` prints it for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.data_scan import ScanReport, scan
from grpo_studio.scan_text import BARS, lines_of
from grpo_studio.settings import Settings


@pytest.fixture
def report(tiny_model: Path, tmp_path: Path, settings: Settings) -> ScanReport:
    """Thirty rows of growing length, one without a prompt, one with a gold that cannot be read."""
    rows = [{"prompt": "x " * number, "answer": str(number)} for number in range(1, 31)]
    rows[4]["prompt"], rows[9]["answer"] = "", "about ten"
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    raw = {
        "model": {"id": str(tiny_model)},
        "dataset": {"source": str(path), "held_out": 2, "too_long": "leave_out"},
        "algorithm": {"max_completion_length": 470},
    }
    return scan(RunConfig.model_validate(raw), settings)


def test_rows_golds_and_lengths_are_told(report: ScanReport) -> None:
    lines = lines_of(report)
    assert lines[0].startswith("data: 30 rows were looked at")
    assert "  1 of 30 rows have an empty prompt (row 5): the prompt is empty" in lines
    assert "golds: math_numeric can read 28 of 29 looked at" in lines
    assert any(line.startswith("  not row 10: ") for line in lines)
    [lengths] = [line for line in lines if line.startswith("prompts in tokens: ")]
    assert lengths.endswith("room for 42 of a context of 512")


def test_bars_hold_all_rows_and_the_room_is_marked_once(report: ScanReport) -> None:
    assert report.lengths is not None
    lines = lines_of(report)
    place = next(number for number, line in enumerate(lines) if line.startswith("prompts in tokens"))
    below = lines[place + 1 :]
    marks = [line for line in below if "longer prompts do not fit" in line]
    bars = [line for line in below if line not in marks]
    assert len(marks) == 1
    assert len(bars) <= BARS
    assert sum(int(bar.split()[-1]) for bar in bars) == 29
    assert int(marks[0].split()[0]) == report.lengths.room
    assert all("#" in bar for bar in bars if bar.split()[-1] != "0")


def test_what_could_not_be_read_has_no_bars(tmp_path: Path, tiny_model: Path, settings: Settings) -> None:
    raw = {"model": {"id": str(tiny_model)}, "dataset": {"source": str(tmp_path / "none.jsonl")}}
    report = scan(RunConfig.model_validate(raw), settings)
    assert report.lengths is None
    assert lines_of(report) == ["data: 0 rows were looked at, 0 to train on, 0 held out, 0 left out"]
