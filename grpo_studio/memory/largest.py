"""The biggest micro-batch that fits a card, for each loss backend. Pure."""

from __future__ import annotations

from grpo_studio.memory.phase_bytes import peak, phases
from grpo_studio.memory.plan import Measured, Plan

MOST = 65_536
"""The greatest value of memory.micro_batch."""


def largest_micro_batches(plan: Plan, measured: Measured) -> dict[str, int]:
    """Completions in one pass that fit, by backend; 0 when not one does. Empty without a card.

    Sampling holds all completions of a step at once whatever the micro-batch: when that alone is too much it is 0.
    """
    if plan.card is None:
        return {}
    return {backend: largest_micro_batch(plan, measured, backend) for backend in measured.backends}


def largest_micro_batch(plan: Plan, measured: Measured, backend: str) -> int:
    """The same for one backend; 0 without a card, or when there are no parts for the backend."""
    if plan.card is None or backend not in measured.backends:
        return 0
    room = plan.card.bytes

    def fits(micro_batch: int) -> bool:
        return peak(phases(plan, measured, backend, micro_batch)) <= room

    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= MOST and fits(high):
        low, high = high, high * 2
    high = min(high, MOST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
