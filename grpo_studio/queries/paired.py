"""Two runs step by step: what they came to over the steps that both have done, and where they first differ.

Each look reads only steps that are new, and at most so many of them; the caller keeps what is known between looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from grpo_studio.queries.current import first_and_last, marks
from grpo_studio.queries.paired_texts import FirstDifference, completions_at, first_difference, groups_between, in_both
from grpo_studio.queries.steps import LOSS, POINTS, Steps, metric_names, metrics, thinned
from grpo_studio.store.reader import RunReader, Span, current

STEPS_AT_ONCE = 2_000
COMPLETIONS_AT_ONCE = 1_500
PEAK = "memory/peak/"
ALIKE = 0.005
ASIDE = ("evaluate", "save")
"""Phases that are no part of a step: their memory is no matter of the setting that differs."""
REWARD, SECONDS, TOKENS = "reward/mean", "time/step", "throughput/completion_tokens_per_s"
ONE_STEP = (REWARD, SECONDS, TOKENS)


@dataclass
class Side:
    """What was added up of one run over the compared steps."""

    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    last_reward: float | None = None

    def mean(self, name: str) -> float | None:
        count = self.counts.get(name, 0)
        return self.sums[name] / count if count else None

    def peak(self) -> tuple[str, float] | None:
        """The phase with the greatest peak, and that."""
        of_steps = [(phase, value) for phase, value in self.peaks.items() if phase not in ASIDE]
        # What lies between phases holds what the phase before it left: that phase is named where both are alike.
        of_steps.sort(key=lambda item: item[1] * (1 - ALIKE if item[0] == "other" else 1))
        return of_steps[-1] if of_steps else None


@dataclass
class Compared:
    """Both runs over the steps that both have done.

    Args:
        steps: how many of these have a reward in both, or in neither.
        upto: the last compared step; `common` the last that both have done.
        rewards_differ: the first step whose mean rewards are not equal to the last digit.
    """

    upto: int = 0
    common: int = 0
    steps: int = 0
    rewards_differ: int | None = None
    gaps: float = 0.0
    texts_upto: int = 0
    difference: FirstDifference | None = None
    a: Side = field(default_factory=Side)
    b: Side = field(default_factory=Side)
    spans: tuple[tuple[Span, ...], ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all that there is has been compared."""
        return self.upto >= self.common and self._texts_done

    @property
    def _texts_done(self) -> bool:
        return self.difference is not None or self.texts_upto >= self.common

    @property
    def gap(self) -> float | None:
        """Mean absolute difference of the steps' mean rewards."""
        return self.gaps / self.steps if self.steps else None

    @property
    def equal_upto(self) -> int:
        """The last step up to which rewards and completions are equal, as far as they are compared."""
        ends = [self.upto, self.texts_upto]
        ends += [] if self.rewards_differ is None else [self.rewards_differ - 1]
        ends += [] if self.difference is None else [self.difference.step - 1]
        return min(ends)

    def look(self, a: RunReader, b: RunReader) -> None:
        """Take in some of the steps that came since the last look; a resume that supersedes rows begins it anew."""
        spans = (a.spans(), b.spans())
        if spans != self.spans:
            vars(self).update(vars(Compared(spans=spans)))
        ends = [first_and_last(reader, "metric", LOSS) for reader in (a, b)]
        if ends[0] is None or ends[1] is None:
            return
        first = max(ends[0][0], ends[1][0])
        self.common = min(ends[0][1], ends[1][1])
        self.upto, self.texts_upto = max(self.upto, first - 1), max(self.texts_upto, first - 1)
        if self.upto < self.common:
            self._steps(a, b, min(self.common, self.upto + STEPS_AT_ONCE))
        if not self._texts_done:
            self._texts(a, b)

    def _steps(self, a: RunReader, b: RunReader, last: int) -> None:
        found = [_values(reader, self.upto + 1, last) for reader in (a, b)]
        for step in range(self.upto + 1, last + 1):
            values = [one.get(step, {}) for one in found]
            for side, own in zip((self.a, self.b), values, strict=True):
                _add(side, own, first=self.upto == 0 and step == 1)
            self._reward(step, values[0].get(REWARD), values[1].get(REWARD))
        self.upto = last

    def _reward(self, step: int, a: float | None, b: float | None) -> None:
        if a is not None and b is not None:
            self.steps += 1
            self.gaps += abs(a - b)
        if a != b and self.rewards_differ is None:
            self.rewards_differ = step

    def _texts(self, a: RunReader, b: RunReader) -> None:
        begin = self.texts_upto + 1
        per_step = max(1, completions_at(a, begin), completions_at(b, begin))
        last = min(self.common, self.texts_upto + max(1, COMPLETIONS_AT_ONCE // per_step))
        for step, left, right in in_both(groups_between(a, begin, last), groups_between(b, begin, last)):
            self.difference = first_difference(step, left, right)
            if self.difference is not None:
                self.texts_upto = step
                return
        self.texts_upto = last


def compared_to_the_end(a: RunReader, b: RunReader) -> Compared:
    """All steps that both have done, however many looks that takes."""
    compared = Compared()
    compared.look(a, b)
    while not compared.whole:
        compared.look(a, b)
    return compared


def common_steps(a: RunReader | None, b: RunReader | None, points: int = POINTS) -> Steps:
    """Steps to draw both runs at: the same for both, also where only one has done them."""
    ends = [found for reader in (a, b) if reader and (found := first_and_last(reader, "metric", LOSS))]
    if not ends:
        return Steps(0, 0, ())
    first, last = min(end[0] for end in ends), max(end[1] for end in ends)
    return Steps(first, last, tuple(thinned(range(first, last + 1), points)))


def drawn(reader: RunReader | None, shown: Steps) -> pd.DataFrame:
    """Columns reward, seconds and peak (bytes, the greatest of a step's phases) of one run; a row a shown step."""
    if reader is None:
        return pd.DataFrame(
            index=pd.Index(shown.shown, name="step"), columns=["reward", "seconds", "peak"], dtype=float
        )
    aside = [f"{PEAK}{phase}" for phase in ASIDE]
    peaks = [name for name in metric_names(reader, f"{PEAK}*") if name not in aside]
    frame = metrics(reader, [REWARD, SECONDS, *peaks], shown)
    peak = frame[peaks].max(axis=1) if peaks else pd.Series(float("nan"), index=frame.index)
    return pd.DataFrame({"reward": frame[REWARD], "seconds": frame[SECONDS], "peak": peak}, index=frame.index)


def measures_tensors(reader: RunReader) -> bool | None:
    """Whether a run's memory is that of its tensors, and not the resident size of its process; None: no sample yet."""
    newest = reader.rows("SELECT allocated FROM memory_sample ORDER BY id DESC LIMIT 1")
    return newest[0][0] is not None if newest else None


def _values(reader: RunReader, first: int, last: int) -> dict[int, dict[str, float | None]]:
    names = [*ONE_STEP, *metric_names(reader, f"{PEAK}*")]
    found: dict[int, dict[str, float | None]] = {}
    for step, name, value in reader.rows(
        f"SELECT step, name, value FROM metric WHERE name IN ({marks(names)}) AND step BETWEEN ? AND ? "
        f"AND {current(reader)} ORDER BY id",
        [*names, first, last],
    ):
        found.setdefault(step, {})[name] = value
    return found


def _add(side: Side, values: dict[str, float | None], first: bool) -> None:
    """Add a step; the first one of a process also loads and warms up, so its time tells nothing of the others."""
    for name, value in values.items():
        if value is None:
            continue
        if name.startswith(PEAK):
            phase = name.removeprefix(PEAK)
            side.peaks[phase] = max(side.peaks.get(phase, value), value)
        elif name == REWARD:
            side.last_reward = value
        elif not first:
            side.sums[name] = side.sums.get(name, 0.0) + value
            side.counts[name] = side.counts.get(name, 0) + 1
