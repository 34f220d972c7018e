"""Probes on the Memory page: the list, the table and the chart of one, and the command that makes the next. No gradio.

A probe's file may come from anybody: its numbers are checked by `memory.probes`, its texts are cut here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grpo_studio.devices import visible_gpus
from grpo_studio.errors import UsageError
from grpo_studio.memory.probe_document import BackendResult, ProbeDocument, SweepLine
from grpo_studio.memory.probes import ProbeResult, probe_results
from grpo_studio.plots.figure import tidy
from grpo_studio.plots.probe import PeakLine, peak_figure, shows_card
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.ui import frame, strings
from grpo_studio.ui.live_run import run_name
from grpo_studio.ui.memory_source import Source
from grpo_studio.ui.readable import confined

SAME_LOSS = 1e-6
"""Losses that differ by no more, absolute or of the reference's size, are told to be the same."""
LONGEST = 300
MOST_SWEPT = 65_536
SWEPT_ON_CPU = 32
"""A CPU with much memory would sweep for hours until it runs out."""
REFUSED = (
    "visitors cannot start a probe: it takes this machine's memory and time; "
    "start it in a terminal: python -m grpo_studio probe"
)

Answer = dict[str, Any]


def command_of(source: Source, request: Mapping[str, Any], settings: Settings) -> list[str]:
    """The command's name and arguments: one batch, or a sweep over batch sizes.

    Raises:
        StudioError: the settings cannot work, or others can reach the page.
    """
    if confined(settings):
        raise UsageError(REFUSED)
    kind = request.get("kind")
    if kind not in ("probe", "sweep"):
        raise UsageError(f"{shown(kind)} is nothing that this page can start; give probe or sweep")
    source.valid_config()
    options = _sweep_options(request) if kind == "sweep" else []
    if request.get("anyway") is True:
        options.append("--anyway")
    return ["probe", *source.arguments, *options]


def _sweep_options(request: Mapping[str, Any]) -> list[str]:
    """Up to the size under `to`, else until memory runs out.

    Both number formats are swept on a GPU; a CPU is slow with bfloat16, and keeps to the run's own.
    """
    options = ["--sweep=completions", *(["--dtypes=float32,bfloat16"] if visible_gpus() else [])]
    if request.get("to") is None:
        return options
    to = frame.number_of(request, "to", least=1, most=MOST_SWEPT)
    if to is None:
        raise UsageError(
            f"a sweep up to {shown(request['to'])}; give a whole number from 1 to {MOST_SWEPT:,}, or nothing"
        )
    return [*options, f"--to={to}"]


def usual_end() -> int | None:
    """Up to how many completions a sweep goes unless a person says otherwise; None: until memory runs out."""
    return None if visible_gpus() else SWEPT_ON_CPU


def listed_probes(settings: Settings) -> list[Answer]:
    """One line for each of the newest probes, newest first; a damaged one says what is wrong with it."""
    return [_about(one) for one in probe_results(settings)]


def probe_view(settings: Settings, request: Mapping[str, Any]) -> Answer | None:
    """The table, the chart and the biggest batches of the probe under `probe`; of the newest that can be read
    where none is named or it is gone. None where there is none at all."""
    found = probe_results(settings)
    asked = frame.text_of(request, "probe")
    chosen = next((one for one in found if one.id == asked), None)
    if chosen is None:
        chosen = next((one for one in found if one.document is not None), None)
    if chosen is None:
        return None
    return {"id": chosen.id, "problem": chosen.problem} if chosen.document is None else view_of(chosen.document)


def _about(probe: ProbeResult) -> Answer:
    told = probe.document
    about: Answer = {"id": probe.id, "name": run_name(probe.id), "problem": probe.problem}
    if told is None:
        return about
    return about | {
        "name": shown(told.name, 80),
        "started": told.started,
        "model": shown(told.model, 120),
        "dtype": shown(told.dtype, 20),
        "swept": bool(told.sweep and told.sweep.lines),
    }


def view_of(probe: ProbeDocument) -> Answer:
    """Everything of one probe that the page draws."""
    reference = next((one for one in probe.backends if one.backend == probe.reference_backend), None)
    return {
        "id": probe.id,
        "problem": None,
        "model": shown(probe.model, 120),
        "dtype": shown(probe.dtype, 20),
        "adapter": shown(probe.adapter, 20),
        "device": shown(probe.device, 80),
        "card_bytes": probe.card_bytes,
        "measured": probe.measured,
        "prompt_tokens": probe.prompt_tokens,
        "completion_tokens": probe.completion_tokens,
        "completions": probe.completions,
        "micro_batch": probe.micro_batch,
        "reference": None if reference is None else shown(reference.backend, 20),
        "rows": [_row(one, reference) for one in probe.backends],
        "loss": loss_verdict(probe.backends, reference),
        "notes": [_line_of(note) for note in probe.notes[:20]],
        "sweep": _sweep(probe),
    }


def loss_verdict(rows: Sequence[BackendResult], reference: BackendResult | None) -> Answer | None:
    """{"same", "difference", "saves"}: how far losses lie apart, and whether memory is saved; None with fewer than two.

    The difference is the greatest to the reference's loss: absolute where that is under 1, else relative to it.
    """
    if reference is None or reference.loss is None:
        return None
    others = [row for row in rows if row is not reference and row.loss is not None]
    if not others:
        return None
    size = max(1.0, abs(reference.loss))
    difference = max(abs((row.loss or 0.0) - reference.loss) / size for row in others)
    peaks = [row.peak_bytes for row in others if row.peak_bytes]
    saves = bool(peaks and reference.peak_bytes and min(peaks) < reference.peak_bytes)
    return {"same": difference <= SAME_LOSS, "difference": tidy(difference, 3), "saves": saves}


def _row(one: BackendResult, reference: BackendResult | None) -> Answer:
    against = None if reference is None or one is reference else _ratio(one.peak_bytes, reference.peak_bytes)
    return {
        "backend": shown(one.backend, 20),
        "reference": one is reference,
        "loss": tidy(one.loss, 9),
        "grad_norm": tidy(one.grad_norm),
        "gradient": tidy(one.grad_relative_difference, 3),
        "peak": one.peak_bytes or None,
        "against": None if against is None else tidy(against - 1, 4),
        "time": None if reference is None else tidy(_ratio(one.seconds, reference.seconds), 4),
        "seconds": tidy(one.seconds, 4),
        "by_phase": {shown(phase, 30): size for phase, size in one.peak_by_phase.items()},
        "forecast": one.forecast_bytes,
        "memory": one.out_of_memory,
        "error": None if one.error is None else _line_of(one.error),
    }


def _sweep(probe: ProbeDocument) -> Answer | None:
    if probe.sweep is None or not probe.sweep.lines:
        return None
    words = strings.load()["memory"]
    drawn = [_line(one, words) for one in probe.sweep.lines]
    highest = max((peak for one in drawn for _, peak in one.points), default=0.0)
    lines = zip(probe.sweep.lines, drawn, strict=True)
    return {
        "axis": probe.sweep.axis,
        "figure": peak_figure(drawn, probe.card_bytes or None, f"probe {probe.id}", words["chart"]),
        "card_shown": shows_card(highest, probe.card_bytes or None),
        "biggest": [_biggest(one, line.name) for one, line in lines],
    }


def _line(told: SweepLine, words: Mapping[str, Any]) -> PeakLine:
    points = sorted((float(one.x), float(one.peak_bytes)) for one in told.points)
    backend, dtype = shown(told.backend, 20), shown(told.dtype, 20)
    name = f"{words['backends'].get(backend, backend)}, {words['dtypes'].get(dtype, dtype)}"
    return PeakLine(name, backend, dtype, points, told.end_x if told.ended_by == "memory" else None)


def _biggest(told: SweepLine, name: str) -> Answer:
    """The biggest batch of a line; it is the end of what fits only where memory ended it."""
    return {
        "name": name,
        "backend": shown(told.backend, 20),
        "largest": told.largest,
        "end": told.ended_by,
        "end_x": told.end_x,
        "reason": None if told.reason is None else _line_of(told.reason),
    }


def _line_of(text: str) -> str:
    """A line of the program or of a file; its fix, which stands after `; `, goes on after a colon."""
    return shown(text.replace("; ", ": "), LONGEST)


def _ratio(value: float | None, reference: float | None) -> float | None:
    return value / reference if value and reference else None
