"""Which sizes a sweep tries, when it ends, and how long it says that it will take."""

from __future__ import annotations

import pytest

from grpo_studio.errors import UsageError
from grpo_studio.memory.probe_document import BackendResult
from grpo_studio.memory.sweep_plan import (
    Axis,
    Frozen,
    SweepAsked,
    expected_bytes,
    next_size,
    planned_line,
    spoken,
)


def sizes(most: int, first: int, to: int) -> list[int]:
    """All sizes that are tried where `most` is the largest that fits."""
    tried: list[tuple[int, bool]] = []
    while (x := next_size(tried, first, to)) is not None:
        tried.append((x, x <= most))
    return [x for x, _ in tried]


@pytest.mark.parametrize(
    ("most", "first", "to", "tried"),
    [
        (1000, 1, 8, [1, 2, 4, 8]),
        (1000, 1, 6, [1, 2, 4, 6]),
        (1000, 32, 20, [20]),
        (5, 1, 1000, [1, 2, 4, 8, 6, 5]),
        (7, 1, 1000, [1, 2, 4, 8, 6, 7]),
        (4, 1, 1000, [1, 2, 4, 8, 6, 5]),
        (20, 1, 1000, [1, 2, 4, 8, 16, 32, 24, 20]),
        (0, 1, 1000, [1]),
        (0, 32, 1000, [32, 16, 8]),
        (1, 1, 1000, [1, 2]),
    ],
    ids=[
        "doubles",
        "to-the-end",
        "end-before-first",
        "halfway",
        "halfway-up",
        "power",
        "two-steps",
        "none",
        "first-too-large",
        "one",
    ],
)
def test_sizes_double_and_then_close_in(most: int, first: int, to: int, tried: list[int]) -> None:
    assert sizes(most, first, to) == tried


def test_peaks_are_expected_on_a_line_through_what_was_measured() -> None:
    assert expected_bytes([], 4, held=100) == 0
    assert expected_bytes([(1, 150)], 4, held=100) == 300
    assert expected_bytes([(1, 150), (2, 170)], 4, held=100) == 210
    assert expected_bytes([(1, 150), (2, 150)], 64, held=100) == 150
    assert expected_bytes([(1, 90)], 4, held=100) == 90


FROZEN = Frozen(completions=8, micro_batch=4, prompt_tokens=60, completion_tokens=40)
MEASURED = BackendResult(
    backend="full",
    seconds=8.0,
    peak_bytes=1400,
    peak_by_phase={"loss": 1400, "optimizer": 1100},
    held={"weights": 1000},
)  # 100 bytes a completion, 10 ms a token


@pytest.mark.parametrize(
    ("asked", "limit", "largest", "seconds"),
    [
        (SweepAsked("completions", 4), None, 4, 5 + 3 * 0.01 * 100 * (1 + 2 + 4)),
        (SweepAsked("completions", 64), 1850, 8, 5 + 3 * 0.01 * 100 * (1 + 2 + 4 + 8 + 2 * 8)),
        (SweepAsked("completions", 4), 1850, 4, 5 + 3 * 0.01 * 100 * (1 + 2 + 4)),
        (SweepAsked("completions"), 900, 1, 5 + 3 * 0.01 * 100 * 3),
        (SweepAsked("tokens", 64), None, 64, 5 + 3 * 0.01 * 4 * (60 + 32 + 60 + 64)),
    ],
    ids=["asked", "limit", "asked-below-limit", "nothing-fits", "tokens"],
)
def test_a_line_takes_what_its_passes_take(asked: SweepAsked, limit: int | None, largest: int, seconds: float) -> None:
    planned = planned_line(MEASURED, FROZEN, asked, "cpu", limit, start=5.0)
    assert planned.largest == largest
    assert planned.seconds == pytest.approx(seconds)


def test_a_gpu_needs_fewer_passes() -> None:
    asked = SweepAsked("completions", 4)
    on = {kind: planned_line(MEASURED, FROZEN, asked, kind, None, 0.0).seconds for kind in ("cpu", "cuda")}
    assert on["cuda"] == pytest.approx(on["cpu"] * 2 / 3)


@pytest.mark.parametrize("axis", ["completions", "tokens"])
@pytest.mark.parametrize("to", [0, -1, (1 << 20) + 1])
def test_sizes_that_cannot_be_are_refused(axis: Axis, to: int) -> None:
    with pytest.raises(UsageError, match=rf"--to is {to}; give 1 to 1,048,576 {axis}"):
        SweepAsked(axis, to)


@pytest.mark.parametrize("minutes", [0.0, -3.0, float("nan"), float("inf"), 1e9])
def test_times_that_cannot_be_are_refused(minutes: float) -> None:
    with pytest.raises(UsageError, match="--minutes is"):
        SweepAsked("tokens", 8, minutes=minutes)


def test_times_are_spoken_for_people() -> None:
    assert [spoken(seconds) for seconds in (0.4, 40, 720, 12600)] == ["0 s", "40 s", "12 min", "3.5 h"]
