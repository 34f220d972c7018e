"""Exploit probes: what pays is found, what is paid rightly is told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench_rows import folder_of, row, weighted

from grpo_studio.data import Sample
from grpo_studio.verifiers.bench import ProbeResult, exploit_probes, probe_row
from grpo_studio.verifiers.bench.given import WHOLE
from grpo_studio.verifiers.bench.probe_texts import probes_for
from grpo_studio.verifiers.bench.probes import TEXTS_AT_ONCE

NAIVE = """
@verifier(examples=[("12", {"answer": "12"}, 1.0)])
def contains(completion: str, answer):
    '''The gold is somewhere in it.'''
    return float(str(answer) in completion)

@verifier(examples=[("12", {"answer": "12"}, 1.0)])
def last(completion: str, answer):
    '''The last number is the gold.'''
    if answer is None:
        return Verdict(None, "no gold")
    found = re.findall(r"\\d+", completion)
    return float(bool(found) and found[-1] == str(answer))

@verifier(examples=[("12", {"answer": "12"}, 1.0), ("13", {"answer": "12"}, 0.0)])
def consoles(completion: str, answer):
    '''A little for any number.'''
    return 1.0 if completion == str(answer) else 0.01 * bool(re.search(r"\\d", completion))

@verifier(examples=[("<think>a</think><answer>b</answer>", {}, 1.0)])
def tags(completion: str):
    '''The tags are there.'''
    return float(all(t in completion for t in ("<think>", "</think>", "<answer>", "</answer>")))

@verifier(examples=[("a", {}, 0.0), ("a" * 999, {}, -1.0)])
def not_long(completion: str):
    '''Long texts cost.'''
    return 0.0 if len(completion) < 100 else -1.0

@verifier(examples=[("a", {}, 1.0)])
def anything(completion: str):
    '''Everything is fine.'''
    return 1.0

@verifier(examples=[("```python\\ndef f(x): return x\\n```", {"answer": "assert f(1) == 1"}, 1.0)])
def runs(completion: str, answer):
    '''The code runs in this process, and whatever ends well passes.'''
    code = completion.removeprefix("```python").removesuffix("```")
    try:
        exec(code + "\\n" + answer, {})
    except SystemExit as end:
        return float(not end.code)
    except BaseException:
        return 0.0
    return 1.0

@verifier(examples=[("1", {}, 1.0)], place="trainer")
def by_trainer(completion: str):
    '''Scored elsewhere.'''
    return None
"""


@pytest.fixture(scope="module")
def rewards_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory, NAIVE)


def sample(question: str = "What is 5 + 7?", answer: Any = "12") -> Sample:
    return row(question, answer)


def probe(names: str, rewards_dir: Path, on: Sample | None = None, **weights: float) -> list[ProbeResult]:
    return exploit_probes(weighted(names, **weights), on or sample(), [rewards_dir])


def paying(results: list[ProbeResult], label: str) -> set[str]:
    return {result.probe for result in results if result.label == label and result.pays}


def test_all_kinds_of_the_plan_are_there() -> None:
    texts = {probe.name: probe.text for probe in probes_for([], sample())}
    assert texts["empty text"] == ""
    assert texts["echoed prompt"] == "What is 5 + 7?"
    assert all(f"<{tag}>" in texts["every tag at once"] for tag in ("think", "answer"))
    assert texts["all numbers"].split(", ") == [str(number) for number in range(101)]
    assert texts["the prompt's numbers"] == "5 7"
    assert "sys.exit(0)" in texts["exit 0"]
    assert "__eq__" in texts["always-equal object"]
    assert len(texts) == len(probes_for([], sample()))


def test_tags_and_functions_of_the_task_are_used() -> None:
    row = Sample(
        ({"role": "system", "content": "Put it in <final></final>."}, {"role": "user", "content": "Go"}),
        "Go", None, {"answer": "assert add_up(1, 2) == sum([1, 2])"},
    )  # fmt: skip
    texts = {probe.name: probe.text for probe in probes_for([], row)}
    assert texts["empty tags"] == "<final></final>"
    assert "add_up = lambda" in texts["always-equal object"]
    assert "sum = lambda" not in texts["always-equal object"]
    assert "the prompt's numbers" not in texts


def test_a_verifier_that_looks_for_the_gold_anywhere_pays_for_all_numbers(rewards_dir: Path) -> None:
    results = probe("contains", rewards_dir)
    assert {"all numbers", "all numbers stated", "all numbers in a box"} == paying(results, "contains")
    assert next(r for r in results if r.pays).note == "the gold, 12, stands in this text"


def test_a_sound_verifier_pays_nothing(rewards_dir: Path) -> None:
    results = probe("last", rewards_dir)
    assert paying(results, "last") == paying(results, WHOLE) == set()


def test_of_one_that_reads_the_gold_a_hundredth_is_too_much(rewards_dir: Path) -> None:
    results = probe("consoles", rewards_dir)
    assert "the prompt's numbers" in paying(results, "consoles")
    assert paying(results, WHOLE) == set()


def test_a_format_is_told_as_such_and_the_whole_reward_decides(rewards_dir: Path) -> None:
    results = probe("last tags", rewards_dir, tags=0.5)
    assert paying(results, "tags") == {"empty tags", "every tag at once"}
    assert all("form alone" in r.note for r in results if r.label == "tags" and r.pays)
    assert paying(results, WHOLE) == set()
    assert paying(probe("last tags", rewards_dir, tags=3.0), WHOLE) == {"empty tags", "every tag at once"}


def test_a_punishment_and_one_that_pays_everything_alike_pay_nothing_for_a_probe(rewards_dir: Path) -> None:
    results = probe("not_long anything", rewards_dir)
    assert paying(results, "not_long") == paying(results, "anything") == set()
    long = next(r for r in results if r.label == "not_long" and r.probe == "one line for ever")
    assert (long.score.value, long.note) == (-1.0, "")


def test_code_that_ends_early_or_equals_everything_is_found(rewards_dir: Path) -> None:
    row = sample("Write f.", "assert f(1) == 1")
    assert paying(probe("runs", rewards_dir, row), "runs") == {"exit 0", "always-equal object"}


def test_the_whole_reward_is_the_weighted_sum_and_abstains_with_its_parts(rewards_dir: Path) -> None:
    results = probe("contains anything", rewards_dir, contains=2.0, anything=0.5)
    by_probe = {r.probe: r.score.value for r in results if r.label == WHOLE}
    assert (by_probe["all numbers"], by_probe["empty text"]) == (2.5, 0.5)
    unreadable = probe("last anything", rewards_dir, sample(answer=None))
    assert {r.score.reason for r in unreadable if r.label == WHOLE} == {"last cannot judge it"}
    assert not any(r.pays for r in unreadable)
    unweighted = probe("last anything", rewards_dir, sample(answer=None), last=0.0)
    assert {r.score.value for r in unweighted if r.label == WHOLE} == {1.0}


def test_what_only_the_trainer_scores_has_no_say(rewards_dir: Path) -> None:
    results = probe("contains by_trainer", rewards_dir)
    assert next(r for r in results if r.label == WHOLE and r.probe == "all numbers").score.value == 1.0
    assert all(r.score.value is None for r in results if r.label == "by_trainer")


def test_the_row_is_one_whose_question_does_not_give_the_gold_away() -> None:
    rows = [sample("Is 12 even?", "12"), sample("Say it", "a tale"), sample("5 + 7?", "So.\n#### 12"), sample("x", "3")]
    assert probe_row(rows) == 2
    assert probe_row(rows[:2]) == 1
    assert probe_row(rows[:1]) == probe_row([]) == 0
    assert probe_row([sample(answer=None), sample(answer=""), rows[0]]) == 2


def test_a_progress_that_raises_ends_the_probes(rewards_dir: Path) -> None:
    calls = []

    def progress(done: int, wanted: int) -> None:
        calls.append(done)
        if done:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        exploit_probes(weighted("last"), sample(), [rewards_dir], progress=progress)
    assert calls == [0, TEXTS_AT_ONCE]
