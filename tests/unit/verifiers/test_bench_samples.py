"""What rewards make of sampled groups: spread, outcomes, kinds of groups and the verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_rows import folder_of, row, weighted

from grpo_studio.verifiers.bench import SampledGroup, SampleReport, sample_report
from grpo_studio.verifiers.bench.judging import ROWS_AT_ONCE
from grpo_studio.verifiers.bench.samples import histogram
from grpo_studio.verifiers.bench.verdict import Counts, Trouble, percent, verdict_of, wilson

VERIFIERS = """
@verifier(examples=[("4", {"answer": "4"}, 1.0)])
def right(completion: str, answer):
    '''It is the gold.'''
    if completion == "raise":
        raise ValueError("cannot judge this")
    return Verdict(None, "no gold") if answer is None else float(completion == answer)

@verifier(examples=[("abc", {}, 1.0)])
def short(completion: str, prompt: str, completion_tokens: int):
    '''One token.'''
    return float(completion_tokens == 1 and prompt.endswith("?"))

@verifier(examples=[("1", {}, 1.0)], place="trainer")
def by_trainer(completion: str):
    '''Scored elsewhere.'''
    return None
"""


@pytest.fixture(scope="module")
def rewards_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory, VERIFIERS)


def group(*texts: str, answer: str | None = "4", tokens: int = 1) -> SampledGroup:
    return SampledGroup(row("2 + 2?", answer), texts, (tokens,) * len(texts))


def report(rewards_dir: Path, groups: list[SampledGroup], names: str = "right", **weights: float) -> SampleReport:
    return sample_report(weighted(names, **weights), groups, [rewards_dir])


def test_groups_by_kind_and_the_spread_of_each_reward(rewards_dir: Path) -> None:
    groups = [group("4", "5", "4"), group("4", "4", "4"), group("5", "5", "5"), group("4", "5", "5", answer=None)]
    found = report(rewards_dir, groups, "right short", short=0.5)
    assert (found.groups, found.mixed, found.all_good, found.all_bad, found.unjudged) == (4, 1, 1, 1, 1)
    right, short = found.rewards
    assert (right.label, right.weight, right.mean, right.minimum, right.maximum) == ("right", 1.0, 5 / 9, 0.0, 1.0)
    assert right.outcomes == {"ok": 9, "abstained": 3}
    assert (right.histogram[0], right.histogram[-1]) == ((0.0, 0.1, 4), (0.9, 1.0, 5))
    assert (short.mean, short.std, short.histogram) == (1.0, 0.0, ((1.0, 1.0, 12),))
    assert (found.total.minimum, found.total.maximum, found.total.outcomes) == (0.5, 1.5, {"ok": 9, "abstained": 3})
    assert right.seconds_max >= right.seconds_median > 0


def test_an_abstention_counts_only_with_a_weight(rewards_dir: Path) -> None:
    groups = [group("4", "5", answer=None)] * 2
    assert report(rewards_dir, groups, "right short").unjudged == 2
    assert report(rewards_dir, groups, "right short", right=0.0).all_good == 2


def test_one_scored_completion_makes_no_group(rewards_dir: Path) -> None:
    assert report(rewards_dir, [group("4")]).unjudged == 1


def test_it_is_judged_in_parts_that_change_nothing_and_a_progress_that_raises_ends_it(rewards_dir: Path) -> None:
    texts = ["4"] * ROWS_AT_ONCE + ["5"] * 3
    calls: list[tuple[int, int]] = []
    found = sample_report(weighted("right"), [group(*texts)], [rewards_dir], progress=lambda *at: calls.append(at))
    assert calls == [(0, len(texts)), (ROWS_AT_ONCE, len(texts)), (len(texts), len(texts))]
    assert found.rewards[0].histogram[0][2] == 3
    assert found.rewards[0].outcomes == {"ok": len(texts)}

    def stop(done: int, wanted: int) -> None:
        if done:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        sample_report(weighted("right"), [group(*texts)], [rewards_dir], progress=stop)


def test_no_groups_at_all(rewards_dir: Path) -> None:
    found = report(rewards_dir, [])
    assert (found.groups, found.level, found.total.histogram) == (0, "bad", ())


def test_a_verifier_that_cannot_judge_is_what_the_verdict_is_about(rewards_dir: Path) -> None:
    found = report(rewards_dir, [group("4", "5", answer=None)] * 3 + [group("4", "5")] * 2)
    assert found.level == "bad"
    assert found.verdict.startswith("right cannot judge 60 % of the completions: no gold;")


def test_errors_are_counted_and_told(rewards_dir: Path) -> None:
    found = report(rewards_dir, [group("4", "raise")] * 5)
    assert found.rewards[0].outcomes == {"ok": 5, "error": 5}
    assert "right fails on 50 % of the completions: ValueError: cannot judge this" in found.verdict


def test_groups_that_differ_in_form_alone_are_told(rewards_dir: Path) -> None:
    one = SampledGroup(group("").sample, ("5", "6", "7", "8"), (1, 1, 2, 2))
    found = report(rewards_dir, [one] * 20, "right short")
    assert (found.mixed, found.level) == (20, "fair")
    assert "right gives every completion 0" in found.verdict


def test_what_only_a_run_can_score_is_left_out_and_named(rewards_dir: Path) -> None:
    found = report(rewards_dir, [group("4", "5")] * 20, "right by_trainer")
    assert (found.mixed, found.level) == (20, "good")
    assert found.verdict.endswith("Without by_trainer, which only a run can score")


def test_a_histogram_counts_every_value_once() -> None:
    values = [0.0, 0.1, 0.25, 0.25, 0.9999, 1.0]
    bins = histogram(values)
    assert sum(count for _, _, count in bins) == len(values)
    assert bins[-1][2] == 2
    assert histogram([]) == ()
    assert histogram([0.1 + 0.2, 0.3]) == ((0.3, 0.1 + 0.2, 2),)
    assert sum(count for _, _, count in histogram([-1.7e308, 0.0, 1.7e308])) == 3


@pytest.mark.parametrize(
    ("counts", "level", "words"),
    [
        (Counts(mixed=2, all_good=0, all_bad=48, unjudged=0), "bad", "96 % of groups would teach nothing: the task is too hard"),
        (Counts(mixed=2, all_good=48, all_bad=0, unjudged=0), "bad", "too easy"),
        (Counts(mixed=0, all_good=0, all_bad=8, unjudged=0), "bad", "100 % of groups would teach nothing"),
        (Counts(mixed=3, all_good=30, all_bad=30, unjudged=0), "bad", "some questions are too easy and others too hard"),
        (Counts(mixed=40, all_good=5, all_bad=5, unjudged=0), "good", "80 % of groups would teach something"),
        (Counts(mixed=3, all_good=0, all_bad=1, unjudged=0), "fair", "too few samples to tell"),
        (Counts(mixed=0, all_good=0, all_bad=2, unjudged=0), "fair", "too few samples to tell"),
        (Counts(mixed=16, all_good=0, all_bad=48, unjudged=0), "fair", "75 % of the sampling is for nothing; those groups are all bad"),
        (Counts(mixed=16, all_good=48, all_bad=0, unjudged=0), "fair", "rather easy"),
        (Counts(mixed=16, all_good=24, all_bad=24, unjudged=0), "fair", "some all good and some all bad"),
        (Counts(mixed=1, all_good=0, all_bad=9, unjudged=0), "fair", "90 % of groups would probably teach nothing"),
        (Counts(mixed=0, all_good=0, all_bad=0, unjudged=9), "bad", "nothing can be said"),
    ],
)  # fmt: skip
def test_the_verdict_follows_from_the_counts(counts: Counts, level: str, words: str) -> None:
    text, found = verdict_of(counts, [], [])
    assert (found, words in text) == (level, True), text


def test_little_trouble_does_not_hide_the_groups() -> None:
    text, level = verdict_of(Counts(40, 5, 5, 0), [Trouble("a", 0.1, "slow", True)], [])
    assert (level, "slow" in text) == ("good", False)


def test_the_interval_is_wilsons() -> None:
    low, high = wilson(8, 10)  # checked against the table of Brown, Cai and DasGupta (2001)
    assert (round(low, 3), round(high, 3)) == (0.49, 0.943)
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == 1.0


def test_nearly_all_is_not_all() -> None:
    assert [percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == ["0 %", "under 1 %", "50 %", "over 99 %", "100 %"]
