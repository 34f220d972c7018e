"""Sums, peaks and counts over a whole run: exact, yet each look reads only the rows that are new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grpo_studio.queries.current import marks
from grpo_studio.store.reader import RunReader, Span, current


@dataclass
class Totals:
    """What was added up so far, kept by the caller between looks; each look is made inside `reader.snapshot()`.

    A resume that supersedes rows begins it anew.
    """

    names: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    metric: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    group: int = 0
    groups: int = 0
    completions: int = 0

    def look(self, reader: RunReader, names: Sequence[str]) -> None:
        """Take in what came since the last look; afterwards sums and peaks of the named metrics are exact."""
        newest, spans = reader.cursor(), reader.spans()
        anew = spans != self.spans
        known = () if anew else self.names
        # A name that is new to us is read through the index by name; of the others only the rows after the last look.
        rows = self._rows(reader, "name", [name for name in names if name not in known], 0)
        rows += self._rows(reader, "+name", [name for name in names if name in known], self.metric)
        groups, completions = reader.counts(after=0 if anew else self.group)
        # All is read: from here on nothing can fail half way.
        if anew:
            self.spans, self.sums, self.peaks, self.groups, self.completions = spans, {}, {}, 0, 0
        for name, total, peak in rows:
            self.sums[name] = self.sums.get(name, 0.0) + total
            self.peaks[name] = max(self.peaks.get(name, peak), peak)
        self.names, self.metric, self.group = tuple(names), newest.metric, newest.group
        self.groups, self.completions = self.groups + groups, self.completions + completions

    def _rows(self, reader: RunReader, column: str, names: list[str], after: int) -> list[tuple[str, float, float]]:
        """Name, sum and greatest of the rows after an id; names without a value are left out."""
        if not names:
            return []
        found = reader.rows(
            f"SELECT name, sum(value), max(value) FROM metric WHERE {column} IN ({marks(names)}) "
            f"AND {'' if after else '+'}id > ? AND {current(reader)} GROUP BY {column}",
            [*names, after],
        )
        return [(str(name), float(total), float(peak)) for name, total, peak in found if total is not None]
