"""Sampled groups as JSON: one file for each key, written aside and renamed, so that it is whole or not there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from grpo_studio.data import Sample
from grpo_studio.errors import StoreError
from grpo_studio.verifiers.bench.request import SamplingRequest
from grpo_studio.verifiers.bench.samples import SampledGroup


def samples_file(request: SamplingRequest, cache: Path) -> Path:
    """Where the groups of a request are kept."""
    return cache / "samples" / f"{request.key()}.json"


def read_groups(request: SamplingRequest, cache: Path) -> tuple[SampledGroup, ...] | None:
    """The groups that are kept, or None when there are none or the file is damaged: then they are sampled anew."""
    try:
        document = json.loads(samples_file(request, cache).read_text(encoding="utf-8"))
        groups = tuple(group_of(row) for row in document["groups"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    whole = 0 < len(groups) <= request.prompts and all(len(g.completions) == request.per_prompt for g in groups)
    return groups if whole else None


def write_groups(request: SamplingRequest, cache: Path, groups: Sequence[Mapping[str, Any]]) -> None:
    """Keep groups as `group_of` reads them.

    Raises:
        StoreError: the cache cannot be written.
    """
    target = samples_file(request, cache)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=".samples-", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"groups": list(groups)}, file)
            os.replace(aside, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(aside)
            raise
    except OSError as error:
        raise StoreError(
            f"cannot keep the samples in {target.parent}: {error.strerror or error}; "
            "free space there or set GRPO_STUDIO_CACHE to another folder"
        ) from error


def group_of(row: Mapping[str, Any]) -> SampledGroup:
    """A group from plain data. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
    sample = row["sample"]
    completions, tokens = tuple(row["completions"]), tuple(row["tokens"])
    if len(completions) != len(tokens) or not all(isinstance(text, str) for text in completions):
        raise ValueError("the completions are not texts, or their counts of tokens do not fit")
    if not all(isinstance(count, int) for count in tokens):
        raise ValueError("a count of tokens is no number")
    messages = tuple({str(key): str(value) for key, value in message.items()} for message in sample["messages"])
    return SampledGroup(
        Sample(messages, str(sample["question"]), sample["answer"], dict(sample["columns"])), completions, tokens
    )
