"""What a probe found, as it lies in probe.json and as `probe --json` prints it. Bounded: a file's text is hostile."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_BYTES = 1 << 60
OUT_OF_MEMORY = "out of memory"
"""How the error of a backend begins that the device's memory was too small for: a data point, not a fault."""

Text = Annotated[str, Field(max_length=500)]
Line = Annotated[str, Field(max_length=2000)]
Bytes = Annotated[int, Field(ge=0, le=MOST_BYTES)]
Count = Annotated[int, Field(ge=0, le=1 << 40)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class _Part(BaseModel):
    """Keys that this program does not know are kept out; numbers are numbers and finite."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class BackendResult(_Part):
    """One loss backend on the frozen batch; what is None was not reached.

    Args:
        grad_relative_difference: norm of the difference to the reference backend's gradient, over that one's norm.
        peak_by_phase: `reference` (passes without gradient), `loss` and `optimizer`, with all that lies there then.
        peak_bytes: the greatest of them.
        held: bytes by kind that outlast a step: weights, gradients (while there), optimizer.
        against_reference: peak over the reference backend's.
        forecast_bytes: the forecast for this batch without the allocator's reserve; None when there is none.
    """

    backend: Text
    loss: Finite | None = None
    grad_norm: Finite | None = None
    grad_relative_difference: Finite | None = None
    peak_bytes: Bytes | None = None
    peak_by_phase: Annotated[dict[Text, Bytes], Field(max_length=16)] = {}
    held: Annotated[dict[Text, Bytes], Field(max_length=16)] = {}
    seconds: Seconds | None = None
    against_reference: Finite | None = None
    forecast_bytes: Bytes | None = None
    error: Line | None = None

    @property
    def out_of_memory(self) -> bool:
        return self.error is not None and self.error.startswith(OUT_OF_MEMORY)


class SweepPoint(_Part):
    """One size that fitted: `x` completions in one pass, or tokens of each completion."""

    x: Count
    peak_bytes: Bytes
    seconds: Seconds


class SweepLine(_Part):
    """One backend in one number format, from small to large.

    Args:
        ended_by: "memory" ran out, the "limit" of memory or context would be passed, the size "asked" for is reached,
            or an "error".
        end_x: the size that did not fit, or the largest that was tried.
        largest: the largest that fitted; None when not one did.
    """

    backend: Text
    dtype: Text
    points: Annotated[list[SweepPoint], Field(max_length=64)]
    ended_by: Literal["memory", "limit", "asked", "error"]
    end_x: Count | None = None
    largest: Count | None = None
    reason: Line | None = None


class Sweep(_Part):
    axis: Literal["completions", "tokens"]
    lines: Annotated[list[SweepLine], Field(max_length=64)]


class BatchFacts(_Part):
    """What was sampled. Tokens are means; groups are shares of all, as in a run's metrics."""

    prompts: Count
    group_size: Count
    prompt_tokens_mean: Finite
    completion_tokens_mean: Finite
    truncated: Finite | None = None
    reward_mean: Finite | None = None
    reward_std: Finite | None = None
    mixed: Finite | None = None
    all_good: Finite | None = None
    all_bad: Finite | None = None


class ProbeDocument(_Part):
    """Everything that one probe found.

    Args:
        started: seconds since the epoch.
        config: the settings as nested plain values.
        prompt_tokens, completion_tokens: the batch's widths, to which shorter ones are padded.
        completions: of the whole step; `micro_batch` of them in one pass.
        card_bytes: memory of the card, or of the machine on a CPU.
        measured: what peaks count, "tensors" on a CPU, "allocator" on a GPU.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,99}$")]
    name: Text
    started: Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
    config: dict[str, Any]
    model: Text
    dtype: Text
    adapter: Text
    device: Text
    card_bytes: Bytes | None = None
    measured: Literal["tensors", "allocator"] = "tensors"
    prompt_tokens: Count
    completion_tokens: Count
    completions: Count
    micro_batch: Count
    batch: BatchFacts | None = None
    backends: Annotated[list[BackendResult], Field(max_length=16)]
    reference_backend: Text | None = None
    sweep: Sweep | None = None
    notes: Annotated[list[Line], Field(max_length=64)] = []

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return self.model_dump(mode="json")
