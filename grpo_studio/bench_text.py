"""The bench's reports as lines of text for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grpo_studio.verifiers.bench import BenchRows, GoldReport, ProbeResult, RewardSpread, SampleReport
from grpo_studio.verifiers.bench.given import cut
from grpo_studio.verifiers.bench.verdict import percent

ROWS_SHOWN = 10


def lines_of(
    golds: Sequence[GoldReport],
    rows: BenchRows,
    place: int,
    probes: Sequence[ProbeResult],
    samples: SampleReport | None,
) -> list[str]:
    """All that was found, in the order in which it was looked for; `place` is the row of the probes, from 0."""
    sample = rows.samples[place]
    lines = ["Gold check", *(line for report in golds for line in _gold(report)), ""]
    lines += [f"Exploit probes, on row {rows.numbers[place]}: {cut(sample.question, 80)}", *_probes(probes)]
    if samples is not None:
        lines += ["", f"Samples: {samples.groups} groups", *_samples(samples)]
    return lines


def _gold(report: GoldReport) -> Iterator[str]:
    if not report.reads_gold:
        yield f"  {report.label}: reads no gold"
        return
    share = percent(report.readable / report.rows) if report.rows else "0 %"
    line = f"  {report.label}: reads {report.readable} of {report.rows} golds ({share})"
    if report.ideal_checked:
        line += f"; the gold itself scores the top in {report.ideal_right} of {report.ideal_checked}"
    yield line
    for what, found, count in (
        ("cannot be read", report.unreadable, report.unreadable_count),
        ("gets too little", report.ideal_wrong, report.ideal_checked - report.ideal_right),
    ):
        for row in found[:ROWS_SHOWN]:
            yield f"    row {row.row} {what}: {row.gold!r}: {row.reason}"
        if count > ROWS_SHOWN:
            yield f"    and {count - ROWS_SHOWN} more"


def _probes(probes: Sequence[ProbeResult]) -> Iterator[str]:
    names = list(dict.fromkeys(result.probe for result in probes))
    width = max(len(name) for name in names)
    for name in names:
        mine = [result for result in probes if result.probe == name]
        shown = "  ".join(f"{result.label} {_value(result.score.value)}{'!' if result.pays else ''}" for result in mine)
        yield f"  {'PAYS' if any(result.pays for result in mine) else '    '}  {name:<{width}}  {shown}"
    notes = dict.fromkeys(result.note for result in probes if result.pays and result.note)
    yield from (f"  note: {note}" for note in notes)
    unjudged = {result.label: result.score.reason for result in probes if result.score.value is None}
    yield from (f"  {label} could not judge: {reason}" for label, reason in unjudged.items())
    paying = sum(result.pays for result in probes)
    if len(unjudged) == len({result.label for result in probes}):
        return
    yield f"  {paying} scores are paid to texts that solve nothing (marked !)" if paying else "  none of them pays"


def _samples(report: SampleReport) -> Iterator[str]:
    width = max(len(spread.label) for spread in (*report.rewards, report.total))
    heads = ("weight", "mean", "std", "min", "max", "median ms", "max ms")
    yield f"  {'':<{width}}" + "".join(f"{head:>11}" for head in heads) + "  outcomes"
    for spread in (*report.rewards, report.total):
        yield (
            f"  {spread.label:<{width}}" + "".join(f"{cell:>11}" for cell in _cells(spread)) + f"  {_outcomes(spread)}"
        )
    yield (
        f"  groups: {report.mixed} mixed, {report.all_good} all good, {report.all_bad} all bad, "
        f"{report.unjudged} not judged"
    )
    yield f"Verdict ({report.level}): {report.verdict}"


def _cells(spread: RewardSpread) -> list[str]:
    values = (spread.weight, spread.mean, spread.std, spread.minimum, spread.maximum)
    times = (1000 * spread.seconds_median, 1000 * spread.seconds_max)
    return [_value(value) for value in values] + [f"{time:.2f}" for time in times]


def _outcomes(spread: RewardSpread) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(spread.outcomes.items()))


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
