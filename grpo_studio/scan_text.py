"""A scan as lines for people: what was found, the golds, and how long the prompts are. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grpo_studio.data.lengths import PromptLengths, histogram_of
from grpo_studio.data.row_numbers import SHOWN, listed_rows
from grpo_studio.data_scan import ScanReport

BARS = 16
WIDTH = 40


def lines_of(report: ScanReport) -> list[str]:
    """The lines that `check` prints."""
    what = "the first rows of a stream were" if report.sampled else f"{report.rows:,} rows were"
    lines = [
        f"data: {what} looked at, {report.train_rows:,} to train on, {report.held_out_rows:,} held out, "
        f"{report.left_out:,} left out"
    ]
    for finding in report.findings:
        example = f": {finding.example}" if finding.example else ""
        lines.append(f"  {finding}{example}")
    for gold in report.golds.reports:
        lines.append(f"golds: {gold.label} can read {gold.readable:,} of {gold.rows:,} looked at")
        if bad := gold.rows - gold.readable:
            where = listed_rows([row.row for row in gold.unreadable], bad, SHOWN)
            lines.append(f"  not {where}: {gold.unreadable[0].reason}")
    return lines if report.lengths is None else lines + list(_histogram(report.lengths))


def _histogram(lengths: PromptLengths) -> Iterator[str]:
    yield (
        f"prompts in tokens: median {lengths.median:,}, 95 of 100 up to {lengths.p95:,}, longest {lengths.longest:,}"
        + ("" if lengths.room is None else f"; room for {lengths.room:,} of a context of {lengths.context:,}")
    )
    edges, counts = histogram_of(lengths, BARS)
    yield from _bars(edges, counts, lengths.room)


def _bars(edges: Sequence[int], counts: Sequence[int], room: int | None) -> Iterator[str]:
    """One line for each bar, and one where the room ends when that lies among them."""
    if not counts:
        return
    wide, most = len(f"{edges[-1]:,}"), max(counts)
    marked = room is None or room < edges[0]
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        bar = "#" * max(round(WIDTH * count / most), 1 if count else 0)
        yield f"  {low:>{wide},} {bar:<{WIDTH}} {count:,}"
        if not marked and room is not None and room < high:
            marked = True
            yield f"  {room:>{wide},} {'-' * WIDTH} longer prompts do not fit"
