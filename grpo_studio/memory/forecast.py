"""What a forecast says: peak bytes of one device by phase, what they are made of, and what would make it fit. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PARTS = (
    "weights", "adapter", "reference", "gradients", "optimizer", "activations", "logits_and_loss", "kv_cache",
    "vllm_pool", "other", "allocator_reserve",
)  # fmt: skip
"""What memory is taken by, in the order in which bars are stacked. A part that a run has not is 0 or absent."""
PHASES = ("rollout", "reference", "loss", "optimizer", "sync")
"""Phases that a forecast may tell of, in the order of a step; a phase that a run has not is absent."""


@dataclass(frozen=True)
class CardSize:
    """The card that a forecast is held against, and who says so: "this machine", "table of cards" or "asked for"."""

    name: str
    bytes: int
    source: str


@dataclass(frozen=True)
class Change:
    """One or two settings that would bring the peak down.

    Args:
        settings: new values by dotted name, as `--set` takes them.
        keeps: True when the update stays the same but for rounding and time.
        total_bytes: the peak with them.
        fits: whether that fits the card; None without a card.
    """

    settings: Mapping[str, Any]
    keeps: bool
    total_bytes: int
    fits: bool | None


@dataclass(frozen=True)
class Forecast:
    """Peak memory of one device (the fullest, with several) in bytes.

    Args:
        parts_by_phase: for each phase of the run its parts; those of a phase sum to `by_phase` of it.
        largest_micro_batch: for each loss backend the completions in one pass that still fit; 0 when not one does.
            Empty without a card.
        changes: those that fit first, and of them the ones that keep the update; empty when the run fits.
        method: "traced" on fake tensors, or "closed form" when the model's modules could not be traced.
        notes: what a person should know: assumptions, what could not be traced and why.
        prompt_tokens, completion_tokens, micro_batch: what it was made for.
        seconds: what it took; 0 from the cache.
    """

    parts_by_phase: Mapping[str, Mapping[str, int]]
    method: Literal["traced", "closed form"]
    prompt_tokens: int
    completion_tokens: int
    micro_batch: int
    card: CardSize | None = None
    largest_micro_batch: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def by_phase(self) -> dict[str, int]:
        return {phase: sum(parts.values()) for phase, parts in self.parts_by_phase.items()}

    @property
    def peak_phase(self) -> str:
        by_phase = self.by_phase
        return max(by_phase, key=lambda phase: by_phase[phase])

    @property
    def total_bytes(self) -> int:
        return max(self.by_phase.values())

    @property
    def parts(self) -> dict[str, int]:
        """What the greatest phase is made of."""
        return dict(self.parts_by_phase[self.peak_phase])

    @property
    def fits(self) -> bool | None:
        """Whether it fits the card; None without one."""
        return None if self.card is None else self.total_bytes <= self.card.bytes

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, by the names of the contract."""
        return {
            "total_bytes": self.total_bytes,
            "peak_phase": self.peak_phase,
            "by_phase": self.by_phase,
            "parts": self.parts,
            "parts_by_phase": {phase: dict(parts) for phase, parts in self.parts_by_phase.items()},
            "largest_micro_batch": dict(self.largest_micro_batch),
            "card": None if self.card is None else vars(self.card),
            "fits": self.fits,
            "changes": [
                {"set": dict(change.settings), "keeps_update": change.keeps, "total_bytes": change.total_bytes,
                 "fits": change.fits}
                for change in self.changes
            ],
            "method": self.method,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "micro_batch": self.micro_batch,
            "notes": list(self.notes),
            "seconds": self.seconds,
        }  # fmt: skip
