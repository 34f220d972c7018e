"""The process that samples groups for the bench: `python -m grpo_studio.training.sample_groups PARENT_PID`.

One JSON document a line, on duplicates of fd 0 and 1 that no library writes to:
in   {"config", "prompts", "per_prompt", "cache"}
out  {"kind": "progress", "message", "done", "wanted"}, {"kind": "group", "group": {"sample", "completions", "tokens"}},
     at last {"kind": "done"} or {"kind": "failed", "message"}
Prompts, template and sampling are those of a run at its start, by transformers whatever the rollout engine is.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grpo_studio import data
from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import DataError, StudioError
from grpo_studio.verifiers.lifeline import die_with_parent
from grpo_studio.verifiers.plain_data import plain

Tell = Callable[[str, int, int], None]
"""What is being done, completions done, completions wanted."""


def main() -> None:
    """Answer one request."""
    die_with_parent(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print goes to the log
    request = json.loads(sys.stdin.buffer.readline())

    def send(kind: str, **what: Any) -> None:
        answers.write(json.dumps({"kind": kind, **what}, default=plain) + "\n")

    def tell(message: str, done: int, wanted: int) -> None:
        send("progress", message=message, done=done, wanted=wanted)

    try:
        config = RunConfig.model_validate(request["config"])
        for group in sample_groups(config, Path(request["cache"]), request["prompts"], request["per_prompt"], tell):
            send("group", group=group)
    except Exception as error:
        traceback.print_exc()
        send("failed", message=_told(error))
        sys.exit(1)
    send("done")


def sample_groups(
    config: RunConfig, cache: Path, prompts: int, per_prompt: int, tell: Tell
) -> Iterator[dict[str, Any]]:
    """Load what a run would, sample, and yield one group a prompt as plain data.

    Raises:
        StudioError: the data or the model cannot be used.
    """
    tell("reading the data set", 0, prompts * per_prompt)
    samples = chosen(data.load(config.dataset, config.rows_wanted()).train, prompts, config.algorithm.seed)
    wanted = len(samples) * per_prompt
    tell("loading the libraries", 0, wanted)
    from grpo_studio.training.sampler import Sampler

    sampler = Sampler(config, cache, lambda message: tell(message, 0, wanted))
    rows = [sample for sample in samples for _ in range(per_prompt)]
    sampled: list[tuple[str, int]] = []
    for place, sample in enumerate(samples):
        end = (place + 1) * per_prompt
        while len(sampled) < end:
            tell(f"sampled {len(sampled)} of {wanted} completions", len(sampled), wanted)
            sampled += sampler.complete(rows[len(sampled) :])
        group = sampled[end - per_prompt : end]
        texts, tokens = [text for text, _ in group], [count for _, count in group]
        yield {"sample": asdict(sample), "completions": texts, "tokens": tokens}
    tell(f"sampled {len(sampled)} of {wanted} completions", len(sampled), wanted)


def chosen(samples: Sequence[Sample], prompts: int, seed: int) -> list[Sample]:
    """That many rows with different prompts, drawn by the seed; all of them when there are fewer.

    Raises:
        DataError: there is none.
    """
    distinct = list({json.dumps(sample.messages): sample for sample in samples}.values())
    if not distinct:
        raise DataError("the data set holds no row with a prompt; map the column that holds it")
    return random.Random(seed).sample(distinct, min(prompts, len(distinct)))


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, StudioError) else f"{type(error).__name__}: {text[:300]}".rstrip(": ")


if __name__ == "__main__":
    main()
