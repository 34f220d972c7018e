"""What is recorded about one group: plain values, no tensors."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ScoreRecord:
    """One verifier's judgement of one completion; `value` None means that it abstained."""

    verifier: str
    value: float | None
    weight: float
    seconds: float = 0.0
    reason: str = ""
    extracted: str | None = None
    outcome: str = "ok"


@dataclass(frozen=True)
class CompletionRecord:
    """One sampled completion; `reward` None means that a verifier of non-zero weight abstained."""

    text: str
    tokens: int
    truncated: bool
    reward: float | None
    advantage: float | None
    scores: tuple[ScoreRecord, ...] = field(default=())


@dataclass(frozen=True)
class GroupRecord:
    """One prompt and the completions sampled for it; `split` is "train" or "eval"."""

    prompt: str
    answer: str | None
    completions: tuple[CompletionRecord, ...]
    reward_mean: float | None
    reward_std: float | None
    split: str = "train"


@dataclass(frozen=True)
class AttemptStart:
    """Where an attempt begins: after `from_step` steps, from `checkpoint` (a name below checkpoints/)."""

    attempt: int = 1
    from_step: int = 0
    checkpoint: str | None = None


@dataclass(frozen=True)
class MemorySample:
    """Bytes in use at a moment; `allocated` and `reserved` are None where the device keeps no count (CPU)."""

    ts: float
    step: int
    phase: str
    device: str
    allocated: int | None
    reserved: int | None
    rss: int | None
