"""When abstentions pause a run, and what is told of a verifier's troubles."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import CompletionRecord, GroupRecord, ScoreRecord
from grpo_studio.store.writer import RunWriter
from grpo_studio.training.verifier_faults import WINDOW_PROMPTS, AbstentionWatch, FirstTroubles


def group(*scores: ScoreRecord, completions: int = 4) -> GroupRecord:
    """A group whose completions all got the same scores."""
    lost = any(score.value is None and score.weight != 0 for score in scores)
    item = CompletionRecord("t", 3, False, None if lost else 1.0, 0.0, scores)
    return GroupRecord("q", "1", (item,) * completions, None if lost else 1.0, 0.0)


def judged(value: float | None = 1.0, reason: str = "", weight: float = 1.0, name: str = "right") -> ScoreRecord:
    return ScoreRecord(name, value, weight, reason=reason, outcome="ok" if value is not None else "abstained")


GOOD, BAD = group(judged()), group(judged(None, "the grader is away"))


def verdict_after(limit: float | None, *steps: list[GroupRecord], last: bool = False) -> str | None:
    watch = AbstentionWatch(limit)
    for groups in steps:
        watch.add(groups)
    return watch.verdict(last)


def test_one_step_of_enough_prompts_is_enough() -> None:
    reason = verdict_after(0.5, [BAD] * 5 + [GOOD] * 3)
    assert reason is not None
    assert "20 of the last 32 completions (62%) have no reward" in reason
    assert "right abstained on 20, most often: the grader is away" in reason
    assert "limits.abstained above 0.5" in reason


def test_the_share_itself_is_borne() -> None:
    assert verdict_after(0.5, [BAD] * 4 + [GOOD] * 4) is None


def test_one_bad_prompt_of_a_small_step_pauses_nothing() -> None:
    assert verdict_after(0.5, *[[GOOD]] * 6, [BAD], [GOOD], [BAD]) is None


def test_small_steps_are_judged_together() -> None:
    steps = [[BAD]] * (WINDOW_PROMPTS - 1)
    assert verdict_after(0.5, *steps) is None
    assert verdict_after(0.5, *steps, [BAD]) is not None


def test_only_the_newest_steps_count() -> None:
    assert verdict_after(0.5, *[[GOOD] * 8] * 50, [BAD] * 8) is not None
    assert verdict_after(0.5, [BAD] * 8, [GOOD] * 8) is None


def test_a_run_shorter_than_that_is_judged_at_its_end_by_all_it_has() -> None:
    assert verdict_after(0.5, [BAD], [BAD]) is None
    assert verdict_after(0.5, [BAD], [BAD], last=True) is not None
    assert verdict_after(0.5, [BAD], [GOOD], [BAD], last=True) is not None
    assert verdict_after(0.5, [BAD], [GOOD], last=True) is None


@pytest.mark.parametrize("limit", [None, 1.0])
def test_a_run_can_bear_all(limit: float | None) -> None:
    assert verdict_after(limit, [BAD] * 20) is None


def test_with_a_limit_of_zero_one_abstention_is_too_many() -> None:
    assert verdict_after(0.0, [BAD] + [GOOD] * 9) is not None


def test_abstentions_of_weight_zero_do_not_count() -> None:
    assert verdict_after(0.5, [group(judged(), judged(None, "no", weight=0, name="shown_only"))] * 8) is None


def test_the_verifier_that_abstained_most_is_named_with_its_most_frequent_reason() -> None:
    some = group(judged(None, "odd gold", name="strict"), judged(1.0, name="kind"))
    other = group(judged(None, "odd gold", name="strict"), judged(None, "no form", name="kind"))
    third = group(judged(None, "rare", name="strict"), judged(1.0, name="kind"))
    reason = verdict_after(0.5, [some] * 6 + [other] * 2 + [third])
    assert reason is not None
    assert "strict abstained on 36, most often: odd gold" in reason


def test_held_out_rows_are_judged_by_themselves() -> None:
    watch = AbstentionWatch(0.5)
    one_bad, one_good = group(judged(None, "away"), completions=1), group(judged(), completions=1)
    assert watch.verdict_on([one_bad] * 3) is not None
    assert watch.verdict_on([one_bad] * 3 + [one_good] * 3) is None
    assert watch.verdict_on([one_bad] * 6 + [one_good] * 4) is not None
    assert watch.verdict_on([]) is None


def test_each_kind_of_trouble_is_told_once_and_alarms_are_errors(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run.db", attempt=1)
    troubles = FirstTroubles(writer)
    outcomes = {"ok": 1.0, "abstained": None, "timeout": 0.0, "error": 0.0, "wrong_type": None, "non_finite": None}
    groups = [
        group(ScoreRecord("right", value, 1.0, reason=f"why {outcome}", outcome=outcome))
        for outcome, value in outcomes.items()
    ]
    troubles.tell(3, groups)
    troubles.tell(4, groups)
    writer.close()
    with RunReader(tmp_path / "run.db") as reader:
        told = [(event.kind, event.level, event.message) for event in reader.events()]
    assert told == [
        ("verifier_trouble", "warning", "right: first abstention at step 3: why abstained"),
        ("verifier_trouble", "warning", "right: first time-out at step 3: why timeout"),
        ("verifier_trouble", "warning", "right: first error at step 3: why error"),
        ("verifier_trouble", "error", "right: first value of a wrong type at step 3: why wrong_type"),
        ("non_finite_score", "error", "right: first value that is not finite at step 3: why non_finite"),
    ]
