"""Which sizes a sweep tries, and how long that will take: said before it begins, by the probe's figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from grpo_studio.errors import UsageError
from grpo_studio.memory.probe_document import BackendResult

Axis = Literal["completions", "tokens"]
FIRST = {"completions": 1, "tokens": 32}
LARGEST = 1 << 20
BISECTIONS = 2
"""Sizes tried between the largest that fitted and the smallest that did not."""
MINUTES = 10.0
MOST_MINUTES = 7 * 24 * 60.0
COUNTED_PASSES = {"cpu": 3.0, "cuda": 2.0}
"""Passes a point: one that is timed and one for the peak, in which a CPU counts tensors: about twice the time."""


@dataclass(frozen=True)
class SweepAsked:
    """What a sweep is asked for. `to` None: up to the memory; `minutes` is refused to be passed unless `anyway`."""

    axis: Axis
    to: int | None = None
    dtypes: tuple[str, ...] = ()
    minutes: float = MINUTES
    anyway: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that cannot be.

        Raises:
            UsageError: one of them.
        """
        if self.to is not None and not 1 <= self.to <= LARGEST:
            raise UsageError(f"--to is {self.to}; give 1 to {LARGEST:,} {self.axis}")
        if not 0 < self.minutes <= MOST_MINUTES:
            raise UsageError(f"--minutes is {self.minutes:g}; give more than 0, and at most {MOST_MINUTES:,.0f}")


@dataclass(frozen=True)
class Frozen:
    """Sizes of the frozen batch: completions in all and in one pass, tokens that each side is padded to."""

    completions: int
    micro_batch: int
    prompt_tokens: int
    completion_tokens: int

    def tokens(self, axis: Axis, x: int) -> int:
        """Tokens in one pass at size `x`."""
        if axis == "completions":
            return x * (self.prompt_tokens + self.completion_tokens)
        return self.micro_batch * (self.prompt_tokens + x)


@dataclass(frozen=True)
class PlannedLine:
    """The largest size that one backend is expected to reach, and the seconds until it has."""

    largest: int
    seconds: float


def next_size(tried: Sequence[tuple[int, bool]], first: int, to: int) -> int | None:
    """The size to try after those, each with whether it fitted: doubled until one does not, then halfway between.

    None when there is nothing left to try.
    """
    fitted = max((x for x, fits in tried if fits), default=0)
    failed = [x for x, fits in tried if not fits]
    if not failed:
        return min(first, to) if not fitted else min(2 * fitted, to) if fitted < to else None
    since = len(tried) - 1 - next(place for place, (_, fits) in enumerate(tried) if not fits)
    middle = (fitted + min(failed)) // 2
    return middle if since < BISECTIONS and fitted < middle < min(failed) else None


def expected_bytes(points: Sequence[tuple[int, int]], x: int, held: int) -> int:
    """Peak at size `x`, in a line through the last two points (size, peak), or from what is held through the only one.

    0 when there is no point yet.
    """
    if not points:
        return 0
    (x0, y0), (x1, y1) = points[-2:] if len(points) > 1 else ((0, min(held, points[0][1])), points[0])
    return y1 if x1 == x0 else int(y1 + max(0.0, (y1 - y0) / (x1 - x0)) * (x - x1))


def planned_line(
    result: BackendResult, frozen: Frozen, asked: SweepAsked, device: str, limit: int | None, start: float
) -> PlannedLine:
    """What a line of this backend will take.

    Args:
        device: "cpu" or "cuda".
        limit: bytes that the device has; None: unknown.
        start: seconds until a process has loaded the model.
    """
    largest = asked.to or LARGEST
    at_limit = False
    per_unit, fixed = _bytes(result, frozen, asked.axis)
    if limit is not None and per_unit > 0 and (most := int(max(0.0, limit - fixed) / per_unit)) < largest:
        largest, at_limit = max(1, most), True
    sizes = [min(FIRST[asked.axis], largest)]
    while sizes[-1] < largest:
        sizes.append(min(2 * sizes[-1], largest))
    sizes += [largest] * BISECTIONS * at_limit
    each = (result.seconds or 0.0) / (frozen.completions * (frozen.prompt_tokens + frozen.completion_tokens))
    passes = COUNTED_PASSES[device] * sum(frozen.tokens(asked.axis, x) for x in sizes)
    return PlannedLine(largest, start + each * passes)


def _bytes(result: BackendResult, frozen: Frozen, axis: Axis) -> tuple[float, float]:
    """Bytes that one more completion, or token of each, takes, and those that are there without any."""
    held = sum(result.held.values())
    more = max(0, result.peak_by_phase.get("loss", 0) - held)
    if axis == "completions":
        return more / frozen.micro_batch, held
    per_token = more / (frozen.prompt_tokens + frozen.completion_tokens)
    return per_token, held + per_token * frozen.prompt_tokens


def spoken(seconds: float) -> str:
    """Seconds for a person: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
