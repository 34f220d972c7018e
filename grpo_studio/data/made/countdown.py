"""The built-in data set `builtin:countdown`: numbers, and a target to reach with each of them once.

A row is {prompt, answer, nums, target, level, equation}: `answer` is the target as text, `equation` one solution. It
is made backwards: numbers are drawn and joined at random, and what comes out is the target, so each can be solved.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from pydantic import field_validator, model_validator

from grpo_studio.config import BUILTIN_PREFIX, DatasetSettings
from grpo_studio.data.made.params import may_be_held_out, quoted, read_params, refuse_config, whole_numbers
from grpo_studio.data.rows import Row
from grpo_studio.data.splitting import Numbered
from grpo_studio.declaration import Section, setting
from grpo_studio.errors import DataError

COUNTDOWN = f"{BUILTIN_PREFIX}countdown"
COUNTDOWN_COLUMNS = ("prompt", "answer", "nums", "target", "level", "equation")
FEWEST, MOST = 2, 6
_MISSES = 20_000
"""So many draws in a row without a new question mean that there are no more."""
_RARE = 4
"""How much likelier a product or quotient is taken than a sum where it is possible, which is seldom."""
Part = tuple[int, str]


class CountdownParams(Section):
    numbers: str = setting(
        "3-4", "Numbers", f"How many numbers a question gives, from {FEWEST} to {MOST}, such as 4 or 3-4.", main=True
    )
    smallest_number: int = setting(1, "Smallest number", "The smallest number that is given.", ge=1, le=10_000)
    largest_number: int = setting(99, "Largest number", "The largest number that is given.", main=True, ge=1, le=10_000)
    smallest_target: int = setting(10, "Smallest target", "The smallest target.", ge=1, le=1_000_000)
    largest_target: int = setting(99, "Largest target", "The largest target.", main=True, ge=1, le=1_000_000)
    size: int = setting(
        10_000, "Size", "How many questions, those that are held out among them.", main=True, ge=1, le=1_000_000
    )
    seed: int = setting(0, "Seed", "Another seed: other questions, of which none is held out elsewhere.", ge=0)

    @field_validator("numbers", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value

    @model_validator(mode="after")
    def _fits(self) -> CountdownParams:
        counts = whole_numbers(self.numbers)
        if counts is None or not FEWEST <= counts[0] <= counts[-1] <= MOST:
            raise ValueError(
                f"numbers is {quoted(self.numbers)}; give counts from {FEWEST} to {MOST}, such as 4 or 3-4"
            )
        for what in ("number", "target"):
            low, high = getattr(self, f"smallest_{what}"), getattr(self, f"largest_{what}")
            if low > high:
                raise ValueError(f"smallest_{what} is {low} and largest_{what} {high}; swap them")
        return self

    @property
    def counts(self) -> list[int]:
        """How many numbers a question may give."""
        return whole_numbers(self.numbers) or []


def countdown_rows(settings: DatasetSettings) -> Iterator[tuple[Row, bool]]:
    """The rows in their fixed order, and whether each is held out; no two have the same numbers and target.

    A hash of the question and `held_out_seed` says which could ever be held out: no run trains on those, so that none
    trains on what another is tested on.

    Raises:
        DataError: the settings cannot work, or there are fewer questions than `size` asks for.
    """
    params = read_params(CountdownParams, settings)
    refuse_config(settings)
    if settings.held_out >= params.size:
        raise DataError(
            f"holding out {settings.held_out} of {params.size} rows leaves none to train on; "
            f"set dataset.held_out to {params.size // 5} or less"
        )
    return _rows(params, settings)


def split_countdown(settings: DatasetSettings) -> tuple[list[Numbered], list[Numbered], int]:
    """Train and held-out rows with their numbers, and how many there are in all.

    Raises:
        DataError: as `countdown_rows`.
    """
    rows = [(number, row, out) for number, (row, out) in enumerate(countdown_rows(settings), start=1)]
    train = [(number, row) for number, row, out in rows if not out]
    return train[: settings.limit], [(number, row) for number, row, out in rows if out], len(rows)


def _rows(params: CountdownParams, settings: DatasetSettings) -> Iterator[tuple[Row, bool]]:
    wanted = {True: settings.held_out, False: params.size - settings.held_out}
    found = {True: 0, False: 0}
    for nums, target, equation in _questions(params):
        out = may_be_held_out(settings, f"{sorted(nums)} {target}")
        found[out] += 1
        if found[out] <= wanted[out]:
            yield _row(nums, target, equation), out
        if all(found[side] >= wanted[side] for side in wanted):
            return
    if not found[False] or "size" in params.model_fields_set:
        held_out = min(found[True], settings.held_out)
        raise DataError(
            f"{settings.source} finds only {found[False]} questions to train on and {found[True]} to hold out, not "
            f"{wanted[False]} and {wanted[True]}; widen its ranges"
            + (f", or hold out {held_out} of {held_out + found[False]} rows" if found[False] else "")
        )


def _questions(params: CountdownParams) -> Iterator[tuple[list[int], int, str]]:
    """Numbers, a target and a solution, until there are no new ones."""
    draw = random.Random(f"countdown {params.seed}")
    counts, bound = params.counts, 10 * params.largest_target
    seen: set[tuple[int, ...]] = set()
    misses = 0
    while misses < _MISSES:
        misses += 1
        nums = [draw.randint(params.smallest_number, params.largest_number) for _ in range(draw.choice(counts))]
        made = _joined(draw, nums, bound)
        if made is None or not params.smallest_target <= made[0] <= params.largest_target:
            continue
        key = (*sorted(nums), -made[0])
        if key not in seen:
            seen.add(key)
            misses = 0
            # The numbers stand in the order in which they were drawn, of which the joining took no notice.
            yield nums, made[0], made[1].removeprefix("(").removesuffix(")")


def _joined(draw: random.Random, nums: list[int], bound: int) -> Part | None:
    """A random expression of all numbers; each step is a whole number from 1 to the bound, or there is none."""
    parts: list[Part] = [(number, str(number)) for number in nums]
    while len(parts) > 1:
        left = parts.pop(draw.randrange(len(parts)))
        right = parts.pop(draw.randrange(len(parts)))
        steps = _steps(left, right, bound)
        if not steps:
            return None
        parts.append(draw.choice(steps))
    return parts[0]


def _steps(left: Part, right: Part, bound: int) -> list[Part]:
    (a, x), (b, y) = left, right
    steps = [(a + b, f"({x} + {y})")] if a + b <= bound else []
    if a > b:
        steps.append((a - b, f"({x} - {y})"))
    if a > 1 < b and a * b <= bound:
        steps += [(a * b, f"({x} * {y})")] * _RARE
    if b > 1 and a % b == 0:
        steps += [(a // b, f"({x} / {y})")] * _RARE
    return steps


def _row(nums: list[int], target: int, equation: str) -> Row:
    listed = ", ".join(map(str, nums[:-1])) + f" and {nums[-1]}"
    return {
        "prompt": f"Use the numbers {listed} to write an equation that gives {target}. Each number must be used "
        "exactly once; + - * / and brackets are allowed.",
        "answer": str(target),
        "nums": nums,
        "target": target,
        "level": _level(nums, target),
        "equation": equation,
    }


def _level(nums: list[int], target: int) -> int:
    """1 and up: two more for each number, and one more where sums and differences alone do not reach the target."""
    reached = {0}
    for number in nums:
        reached = {total + signed for total in reached for signed in (number, -number)}
    return 2 * (len(nums) - FEWEST) + (1 if target in reached else 2)
