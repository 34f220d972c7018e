"""Made-up evaluations of a sample run, written through the real RunWriter: held-out rows that are learned by and by.

`PYTHONPATH=.:tests python tests/sample_evaluations.py HOME` makes a finished run with them in HOME/runs.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from sample_run import HOSTILE, HOSTILE_PROMPT, SampleRun

from grpo_studio.store.records import CompletionRecord, GroupRecord, ScoreRecord

ROWS, SAMPLES = 60, 4


def held_out_groups(skill: float, rows: int = ROWS, samples: int = SAMPLES, seed: int = 0) -> list[GroupRecord]:
    """Greedy groups, then sampled ones: row n is solved by luck that grows with `skill`. Row 0 holds hostile text,
    row 1 a long one, row 2 is not judged, and the last two are equal."""
    luck = random.Random(seed)
    greedy = [_group(place, rows, (_completion(place, luck.random() < skill),), "eval") for place in range(rows)]
    sampled = [
        _group(place, rows, tuple(_completion(place, luck.random() < skill) for _ in range(samples)), "eval_sampled")
        for place in range(rows if samples else 0)
    ]
    return [*greedy, *sampled]


def add_evaluation(run: SampleRun, step: int, groups: list[GroupRecord]) -> None:
    """Record it as the run's own, with the metric that charts draw."""
    rewards = [group.reward_mean for group in groups if group.split == "eval" and group.reward_mean is not None]
    with run.writer.transaction():
        run.writer.groups(step, groups)
        run.writer.metrics(step, {"eval/reward": sum(rewards) / len(rewards)})


def _group(place: int, rows: int, made: tuple[CompletionRecord, ...], split: str) -> GroupRecord:
    left = 10 + (place if place < rows - 1 else place - 1)
    rewards = [one.reward for one in made if one.reward is not None]
    mean = sum(rewards) / len(rewards) if rewards else None
    prompt = HOSTILE_PROMPT if place == 0 else f"What is {left} + 7? Reply with the number only."
    return GroupRecord(prompt, str(left + 7), made, mean, None, split)


def _completion(place: int, right: bool) -> CompletionRecord:
    text = HOSTILE if place == 0 else "many words " * 900 if place == 1 else f"the answer is {17 + place + (not right)}"
    if place == 2:
        numeric = ScoreRecord("math_numeric", None, 1.0, 0.001, "the gold cannot be read", outcome="abstained")
        return CompletionRecord(text, 9, False, None, None, (numeric,))
    numeric = ScoreRecord("math_numeric", float(right), 1.0, 0.001, "equal to the gold" if right else "differs from it")
    bare = ScoreRecord("bare_number", 0.0, 0.5, 0.001, "text around the number <b>bold</b>")
    return CompletionRecord(text, 9, place == 1, float(right), None, (numeric, bare))


def main() -> None:
    run = SampleRun(Path(sys.argv[1]))
    run.begin()
    run.advance(20)
    for step, skill in ((0, 0.25), (10, 0.45), (20, 0.7)):
        add_evaluation(run, step, held_out_groups(skill, seed=step))
    run.end("run_finished", "all steps done")
    print(run.folder.run_id)


if __name__ == "__main__":
    main()
