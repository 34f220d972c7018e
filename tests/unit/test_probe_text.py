"""What people read of a probe: the table, the sentence on the losses, the sweep with the biggest batch."""

from __future__ import annotations

import pytest

from grpo_studio.memory.probe_document import BackendResult, ProbeDocument, Sweep, SweepLine, SweepPoint
from grpo_studio.memory.probe_text import lines_of, verdict


def result(backend: str, loss: float | None, peak: int | None, **more: float) -> BackendResult:
    return BackendResult(backend=backend, loss=loss, peak_bytes=peak, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([result("liger", -0.5000004, 90)], "Same loss to 1e-6: the memory is saved, not the work."),
        ([result("liger", -0.5, 110)], "Same loss to 1e-6; no memory is saved here."),
        (
            [result("trl", -0.5, 110), result("liger", -0.5, 90)],
            "Same loss to 1e-6: the memory is saved, not the work.",
        ),
        ([result("liger", -0.502, 90)], "Losses differ by up to 0.002."),
        ([result("liger", None, None)], None),
        ([], None),
    ],
    ids=["saved", "not-saved", "one-saves", "apart", "no-result", "alone"],
)
def test_the_sentence_says_no_more_than_was_measured(others: list[BackendResult], told: str | None) -> None:
    assert verdict([result("full", -0.5, 100), *others], "full") == told


def test_without_a_reference_nothing_is_said() -> None:
    assert verdict([result("full", None, None), result("liger", 1.0, 9)], None) is None


def probed(backends: list[BackendResult], sweep: Sweep | None = None, notes: tuple[str, ...] = ()) -> list[str]:
    document = ProbeDocument(
        id="20260101-120000-a-abcd", name="a", started=1.7e9, config={}, model="a/\x1b[31mb", dtype="float32", adapter="lora",
        device="CPU, 2 cores", prompt_tokens=60, completion_tokens=40, completions=8, micro_batch=4, backends=backends,
        reference_backend="full", sweep=sweep, notes=list(notes),
    )  # fmt: skip
    return list(lines_of(document))


def test_the_table_holds_a_row_for_each_backend() -> None:
    full = BackendResult(
        backend="full", loss=-0.623649, grad_norm=2.5, grad_relative_difference=0.0, peak_bytes=2_713_000_000, seconds=8.25,
        against_reference=1.0, forecast_bytes=2_700_000_000,
    )  # fmt: skip
    liger = full.model_copy(
        update={
            "backend": "liger",
            "grad_relative_difference": 1.9e-6,
            "peak_bytes": 2_501_000_000,
            "against_reference": 0.92,
        }
    )
    lost = BackendResult(backend="trl", loss=-0.6, error="out of memory: killed by signal 9")
    lines = probed([full, lost, liger], notes=("hostile \x1b[0m note",))
    assert lines[0] == r"a/\x1b[31mb in float32 with lora on CPU, 2 cores: 8 completions in passes of 4, 60 + 40 tokens"
    assert lines[2].split() == ["backend", "loss", "grad", "norm", "apart", "peak", "against", "forecast", "time"]
    assert lines[3].split() == ["full", "-0.623649", "2.5", "0.0e+00", "2.7", "GB", "-", "2.7", "GB", "8.25", "s"]
    assert lines[4] == "trl      out of memory: killed by signal 9"
    assert lines[5].split() == [
        "liger",
        "-0.623649",
        "2.5",
        "1.9e-06",
        "2.5",
        "GB",
        "-8",
        "%",
        "2.7",
        "GB",
        "8.25",
        "s",
    ]
    assert lines[-2:] == [r"note: hostile \x1b[0m note", "kept as probe 20260101-120000-a-abcd"]
    assert all(line.isprintable() for line in lines)


def test_the_sweep_ends_with_the_biggest_batches() -> None:
    def line(backend: str, largest: int, ended_by: str, reason: str | None = None) -> SweepLine:
        points = [SweepPoint(x=x, peak_bytes=x * 10**9, seconds=x / 2) for x in (1, largest)]
        return SweepLine(
            backend=backend,
            dtype="float32",
            points=points,
            ended_by=ended_by,
            end_x=2 * largest,
            largest=largest,
            reason=reason,  # type: ignore[arg-type]
        )

    none = SweepLine(backend="trl", dtype="float32", points=[], ended_by="error", reason="it broke")
    lines = probed(
        [result("full", 1.0, 9)],
        Sweep(axis="completions", lines=[line("full", 4, "memory"), line("liger", 12, "asked"), none]),
    )
    told = "\n".join(lines)
    assert "full   float32   1: 1.0 GB in 0.5 s, 4: 4.0 GB in 2 s" in told
    assert "liger  float32         12 (3.0 x full), the end that was asked for at 24" in told
    assert "full   float32          4, memory ran out at 8" in told
    assert "trl    float32          -, ended by an error: it broke" in told
