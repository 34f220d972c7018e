"""A probe's result for people: the table of backends, what it says, the sweep with its biggest batches. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grpo_studio.disk import sized
from grpo_studio.memory.probe_document import BackendResult, ProbeDocument, Sweep, SweepLine
from grpo_studio.memory.sweep_plan import spoken
from grpo_studio.shown import visible

SAME = 1e-6
ENDS = {
    "memory": "memory ran out", "limit": "stopped by a limit", "asked": "the end that was asked for",
    "error": "ended by an error",
}  # fmt: skip
NONE = "-"
HEAD = (
    ("backend", "<8"), ("loss", ">12"), ("grad norm", ">10"), ("apart", ">8"), ("peak", ">9"), ("against", ">8"),
    ("forecast", ">9"), ("time", ">8"),
)  # fmt: skip


def lines_of(document: ProbeDocument) -> Iterator[str]:
    """All lines of a probe."""
    yield visible(
        f"{document.model} in {document.dtype}"
        + ("" if document.adapter == "none" else f" with {document.adapter}")
        + f" on {document.device}: {document.completions} completions in passes of {document.micro_batch}, "
        f"{document.prompt_tokens} + {document.completion_tokens} tokens"
    )
    yield ""
    yield " ".join(f"{name:{form}}" for name, form in HEAD)
    yield from (_row(one, document.reference_backend) for one in document.backends)
    if sentence := verdict(document.backends, document.reference_backend):
        yield ""
        yield sentence
    if document.sweep is not None:
        yield ""
        yield from _sweep_lines(document.sweep)
    yield ""
    yield from (f"note: {visible(note)}" for note in document.notes)
    yield f"kept as probe {document.id}"


def verdict(results: Sequence[BackendResult], reference: str | None) -> str | None:
    """What the losses say: how far the backends' are from the reference's, and whether one saves memory."""
    known = [one for one in results if one.loss is not None]
    base = next((one for one in known if one.backend == reference), None)
    others = [one for one in known if one is not base]
    if base is None or base.loss is None or not others:
        return None
    apart = max(abs((one.loss or 0.0) - base.loss) for one in others) / max(1.0, abs(base.loss))
    if apart > SAME:
        return f"Losses differ by up to {apart:.1g}."
    peaks = [one.peak_bytes for one in others if one.peak_bytes is not None]
    saves = base.peak_bytes is not None and peaks and min(peaks) < base.peak_bytes
    return "Same loss to 1e-6" + (": the memory is saved, not the work." if saves else "; no memory is saved here.")


def _row(one: BackendResult, reference: str | None) -> str:
    if one.error is not None and one.peak_bytes is None:
        return f"{one.backend:<8} {visible(one.error)}"
    against = NONE
    if one.against_reference is not None and one.backend != reference:
        against = f"{100 * (one.against_reference - 1):+.0f} %"
    cells = [
        _number(one.loss, ">12.6g"),
        _number(one.grad_norm, ">10.4g"),
        _number(one.grad_relative_difference, ">8.1e"),
        f"{_size(one.peak_bytes):>9}",
        f"{against:>8}",
        f"{_size(one.forecast_bytes):>9}",
        f"{NONE if one.seconds is None else f'{one.seconds:.3g} s':>8}",
    ]
    return f"{one.backend:<8} {' '.join(cells)}" + (f"  {visible(one.error)}" if one.error else "")


def _sweep_lines(sweep: Sweep) -> Iterator[str]:
    unit = "completions in one pass" if sweep.axis == "completions" else "tokens of each completion"
    yield f"peak by {unit}"
    yield from (_points(line) for line in sweep.lines)
    yield ""
    yield f"biggest batch, in {unit}" if sweep.axis == "completions" else "longest completions, in tokens"
    yield from (_biggest(line, sweep.lines) for line in sweep.lines)


def _points(line: SweepLine) -> str:
    told = ", ".join(f"{point.x:,}: {sized(point.peak_bytes)} in {_time(point.seconds)}" for point in line.points)
    return f"  {line.backend:<6} {line.dtype:<9} {told or 'nothing fitted'}"


def _biggest(line: SweepLine, lines: Sequence[SweepLine]) -> str:
    base = next((one for one in lines if one.backend == "full" and one.dtype == line.dtype), None)
    times = ""
    if base is not None and base is not line and base.largest and line.largest and line.ended_by != "error":
        times = f" ({line.largest / base.largest:.1f} x full)"
    ended = ENDS[line.ended_by] + ("" if line.end_x is None else f" at {line.end_x:,}")
    reason = f": {visible(line.reason)}" if line.reason else ""
    largest = NONE if line.largest is None else f"{line.largest:,}"
    return f"  {line.backend:<6} {line.dtype:<9} {largest:>8}{times}, {ended}{reason}"


def _number(value: float | None, form: str) -> str:
    return f"{NONE:>{form[1:].partition('.')[0]}}" if value is None else format(value, form)


def _size(count: int | None) -> str:
    return NONE if count is None else sized(count)


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else spoken(seconds)
