"""The gold check: which golds a verifier reads, and whether the gold itself gets the top score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench_rows import folder_of, row

from grpo_studio.config import DatasetSettings, RewardSettings
from grpo_studio.data import Sample
from grpo_studio.errors import DataError, VerifierError
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers.bench import gold_check, read_bench_rows, try_it
from grpo_studio.verifiers.bench.judging import ROWS_AT_ONCE

STRICT = """
def ideal(answer, **_):
    return f"={answer}" if str(answer).isdecimal() else None

@verifier(examples=[("=4", {"answer": "4"}, 1.0)], ideal=ideal)
def strict(completion: str, answer):
    '''The gold after an equals sign; 13 brings no luck.'''
    if not str(answer).isdecimal():
        return Verdict(None, f"{answer!r} is no number")
    return Verdict(float(completion == f"={answer}" and str(answer) != "13"), "as told")
"""
OTHERS = """
@verifier(examples=[("4", {"answer": "4"}, 1.0), ("5", {"answer": "4"}, 0.0)])
def no_ideal(completion: str, answer):
    '''The gold stands in it.'''
    return None if not answer else float(str(answer) in completion)

@verifier(examples=[("abc", {}, 1.0)])
def short(completion: str, prompt: str = "", completion_tokens: int = 0):
    '''Short, whatever the gold.'''
    return float(len(completion) < 10)

@verifier(examples=[("4", {"answer": "4"}, 0.0)], ideal=lambda answer, **_: str(answer))
def punishes(completion: str, answer):
    '''Nothing for the gold, less for all else.'''
    return 0.0 if completion == str(answer) else -1.0

@verifier(examples=[("4", {"answer": "4"}, 1.0)], ideal=lambda answer, **_: str(answer))
def stumbles(completion: str, answer):
    '''Raises on one gold, hangs on another.'''
    if answer == "7":
        raise ValueError("no sevens")
    while answer == "8":
        pass
    return 1.0
"""


@pytest.fixture(scope="module")
def rewards_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory, STRICT, OTHERS)


def sample(answer: Any) -> Sample:
    return row("How many?", answer)


def reward(name: str, **params: Any) -> RewardSettings:
    return RewardSettings(verifier=name, params=params)


def test_unreadable_rows_are_listed_with_number_gold_and_reason(rewards_dir: Path) -> None:
    samples = [sample(answer) for answer in ("4", "", None, "13", {"value": 4}, 5)]
    [report] = gold_check([reward("strict")], samples, [rewards_dir])
    assert (report.rows, report.readable, report.unreadable_count) == (6, 3, 3)
    assert [(row.row, row.gold) for row in report.unreadable] == [(2, ""), (3, "None"), (5, "{'value': 4}")]
    assert all("is no number" in row.reason for row in report.unreadable)
    assert (report.ideal_checked, report.ideal_right) == (3, 2)
    assert [(row.row, row.gold) for row in report.ideal_wrong] == [(4, "13")]
    assert "scores 0, below 1: as told" in report.ideal_wrong[0].reason


def test_the_lists_are_cut_and_the_counts_are_not(rewards_dir: Path) -> None:
    samples = [sample("x" * 1000)] * 7 + [sample("13")] * 4
    [report] = gold_check([reward("strict")], samples, [rewards_dir], shown=3)
    assert (report.readable, len(report.unreadable), report.unreadable_count) == (4, 3, 7)
    assert (report.ideal_checked - report.ideal_right, len(report.ideal_wrong)) == (4, 3)
    assert len(report.unreadable[0].gold) == 200


def test_rows_go_by_the_numbers_they_had(rewards_dir: Path) -> None:
    [report] = gold_check([reward("strict")], [sample("x"), sample("1"), sample("y")], [rewards_dir], numbers=(3, 5, 9))
    assert [row.row for row in report.unreadable] == [3, 9]


def test_without_an_ideal_an_accepted_example_tells_whether_the_gold_is_read(rewards_dir: Path) -> None:
    [report] = gold_check([reward("no_ideal")], [sample("9"), sample(""), sample("4")], [rewards_dir])
    assert (report.readable, report.ideal_checked) == (2, 0)
    assert [row.row for row in report.unreadable] == [2]


def test_a_verifier_that_looks_at_the_text_alone_reads_no_gold(rewards_dir: Path) -> None:
    [report] = gold_check([reward("short")], [sample(None)], [rewards_dir])
    assert not report.reads_gold
    assert (report.readable, report.unreadable_count, report.unreadable) == (0, 0, ())


def test_the_top_of_a_punishment_is_nothing(rewards_dir: Path) -> None:
    [report] = gold_check([reward("punishes")], [sample("4"), sample("5")], [rewards_dir])
    assert (report.ideal_checked, report.ideal_right) == (2, 2)


def test_a_gold_that_breaks_the_verifier_is_unreadable_and_costs_no_other_row(rewards_dir: Path) -> None:
    samples = [sample("6"), sample("7"), sample("8"), sample("9")]
    [report] = gold_check([reward("stumbles")], samples, [rewards_dir], time_limit=0.5)
    assert [row.row for row in report.unreadable] == [2, 3]
    assert "no sevens" in report.unreadable[0].reason
    assert (report.readable, report.ideal_right) == (2, 2)


def test_several_rewards_are_reported_in_their_order_and_progress_ends_at_all(rewards_dir: Path) -> None:
    seen: list[tuple[int, int]] = []
    rewards = [reward("short"), reward("strict"), RewardSettings(verifier="no_ideal", name="mine")]
    reports = gold_check(rewards, [sample("4")] * 3, [rewards_dir], progress=lambda *at: seen.append(at))
    assert [report.label for report in reports] == ["short", "strict", "mine"]
    assert seen == [(0, 6), (3, 6), (6, 6)]


def test_a_progress_that_raises_ends_the_check(rewards_dir: Path) -> None:
    calls: list[tuple[int, int]] = []

    def progress(done: int, wanted: int) -> None:
        calls.append((done, wanted))
        if done:
            raise InterruptedError

    rows = [sample("4")] * (ROWS_AT_ONCE + 1)
    with pytest.raises(InterruptedError):
        gold_check([reward("strict"), reward("no_ideal")], rows, [rewards_dir], progress=progress)
    assert calls == [(0, 2 * len(rows)), (ROWS_AT_ONCE, 2 * len(rows))]


def test_no_rows_and_an_unknown_verifier(rewards_dir: Path) -> None:
    [report] = gold_check([reward("strict")], [], [rewards_dir])
    assert (report.rows, report.readable) == (0, 0)
    with pytest.raises(VerifierError, match="strict"):
        gold_check([reward("strickt")], [sample("4")], [rewards_dir])


def test_the_numeric_golds_of_a_real_data_set_are_read(shared_dir: Path) -> None:
    settings = DatasetSettings(source=str(shared_dir / "data" / "gsm8k_test.jsonl"), limit=300)
    settings = settings.model_copy(update={"columns": settings.columns.model_copy(update={"prompt": "question"})})
    rows = read_bench_rows(settings)
    [report] = gold_check([reward("math_numeric")], rows.samples, [BUNDLED_REWARDS])
    assert (report.readable, report.ideal_checked, report.ideal_right) == (300, 300, 300)


def test_rows_without_a_prompt_are_left_out_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "answer": 1}\n{"prompt": "", "answer": 2}\n{"prompt": "c", "answer": 3}\n')
    rows = read_bench_rows(DatasetSettings(source=str(path)))
    assert rows.numbers == (1, 3)
    assert [row.answer for row in rows.samples] == [1, 3]
    assert read_bench_rows(DatasetSettings(source=str(path), limit=2)).numbers == (1,)
    columns = DatasetSettings().columns.model_copy(update={"answer": "gold"})
    with pytest.raises(DataError, match="no column 'gold'"):
        read_bench_rows(DatasetSettings(source=str(path), columns=columns))


def test_held_out_rows_are_checked_too() -> None:
    rows = read_bench_rows(DatasetSettings(source="builtin:arithmetic", held_out=10))
    assert (
        len(rows.samples) == len(read_bench_rows(DatasetSettings(source="builtin:arithmetic", held_out=0)).samples) + 10
    )


def test_one_text_is_tried(rewards_dir: Path) -> None:
    score = try_it(reward("strict"), [rewards_dir], "=5", {"answer": "4"})
    assert (score.value, score.reason, score.outcome) == (0.0, "as told", "ok")
    assert try_it(reward("stumbles"), [rewards_dir], "x", {"answer": "7"}).outcome == "abstained"
    assert try_it(reward("strict"), [rewards_dir], "x", {}).value is None
