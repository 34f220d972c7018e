"""What was measured of two runs, as plain data and as one sentence for people."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from grpo_studio.disk import sized
from grpo_studio.queries.paired import SECONDS, TOKENS, Compared, Side

ALIKE = 0.02
"""Two times or memories that differ by less than this share are told as the same."""


def as_dict(compared: Compared) -> dict[str, Any]:
    """The measured difference: `steps` are those that both runs have done."""
    return {
        "steps": compared.common,
        "sentence": sentence(compared),
        "equal_upto": compared.equal_upto,
        "rewards_differ": compared.rewards_differ,
        "reward_gap": _finite(compared.gap),
        "first_difference": None if compared.difference is None else asdict(compared.difference),
        "compared_upto": compared.texts_upto,
        "sides": [_side(compared.a), _side(compared.b)],
    }


def sentence(compared: Compared) -> str:
    """What A is against B, in memory, time and rewards, over the steps that both have done."""
    if compared.common == 0 or compared.upto == 0:
        return "No step is done by both yet."
    parts = [part for part in (_memory(compared), _time(compared), _rewards(compared)) if part]
    told = f"A {', '.join(parts)}" if parts else "A and B are alike"
    return f"{told} over {_count(compared.upto)}; {_equality(compared)}."


def _memory(compared: Compared) -> str:
    a, b = compared.a.peak(), compared.b.peak()
    if a is None or b is None or b[1] <= 0:
        return ""
    where = f" in {a[0]}" if a[0] == b[0] else ""
    both = f"({sized(int(a[1]))}{where or f' in {a[0]}'} against {sized(int(b[1]))}{'' if where else f' in {b[0]}'})"
    share = a[1] / b[1] - 1
    if abs(share) < ALIKE:
        return f"uses as much memory at its peak {both}"
    return f"uses {abs(share):.0%} {'more' if share > 0 else 'less'} memory at its peak {both}".replace("%", " %")


def _time(compared: Compared) -> str:
    a, b = compared.a.mean(SECONDS), compared.b.mean(SECONDS)
    if a is None or b is None or a <= 0 or b <= 0:
        return ""
    both = f"({a:.3g} s against {b:.3g} s)"
    if abs(a / b - 1) < ALIKE:
        return f"takes as long for a step {both}"
    if a < b:
        return f"takes {1 - a / b:.0%} less time for a step {both}".replace("%", " %")
    return f"takes {a / b:.3g} times as long for a step {both}"


def _rewards(compared: Compared) -> str:
    if compared.gap is None:
        return ""
    if compared.gap == 0:
        return "and has the same rewards" if compared.difference else ""
    return f"and its rewards differ by {compared.gap:.2g} on average"


def _equality(compared: Compared) -> str:
    """Up to where both are the same, and what comes first after it."""
    equal = compared.equal_upto
    found = compared.difference
    if found is not None and found.kind == "prompts" and found.step - 1 <= equal:
        return f"the prompts differ from step {found.step} on"
    if found is not None and found.kind == "size" and found.step - 1 <= equal:
        return f"the groups have other sizes from step {found.step} on"
    if equal >= compared.common:
        return f"rewards and completions are equal to the last digit in all {_count(compared.common)}"
    differs = found is not None or compared.rewards_differ is not None
    if differs and equal < 1:
        return "they differ from step 1 on"
    told = f"rewards and completions are equal to the last digit up to step {equal}"
    return told if differs else f"{told}, as far as they are compared"


def _count(steps: int) -> str:
    return f"{steps:,} step{'s' if steps != 1 else ''}"


def _side(side: Side) -> dict[str, Any]:
    peak = side.peak()
    return {
        "reward": _finite(side.last_reward),
        "seconds": _finite(side.mean(SECONDS)),
        "tokens_per_s": _finite(side.mean(TOKENS)),
        "peak_bytes": None if peak is None else _finite(peak[1]),
        "peak_phase": None if peak is None else peak[0],
        "peak_by_phase": {phase: _finite(value) for phase, value in side.peaks.items()},
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
