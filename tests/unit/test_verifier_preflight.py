"""What `check` says about the rewards of a run before anything is loaded: real files, real judges, real rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reward_checks import add_verifier, check_rewards

from grpo_studio.gold_preflight import _row_seconds, spread
from grpo_studio.preflight import CheckReport
from grpo_studio.settings import Settings

HEAD = "from grpo_studio.verifiers import verifier\n\n\n"
Check = Callable[..., CheckReport]


@pytest.fixture
def add(settings: Settings) -> Callable[[str, str], Path]:
    """Put a verifier file into the home folder."""
    return lambda name, source: add_verifier(settings, name, source)


@pytest.fixture
def checked(settings: Settings, tmp_path: Path, tiny_model: Path) -> Check:
    """Check rewards against rows with these golds."""

    def run(rewards: list[dict[str, Any]], golds: list[Any] | None = None, **columns: Any) -> CheckReport:
        return check_rewards(settings, tiny_model, tmp_path / "rows.jsonl", rewards, golds, **columns)

    return run


def messages(report: CheckReport) -> dict[str, str]:
    return {problem.field: problem.message for problem in report.problems}


def test_a_sound_reward_has_neither_problem_nor_note(checked: Check) -> None:
    report = checked([{"verifier": "math_numeric"}])
    assert (report.problems, report.notes) == ([], [])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def (:\n", "SyntaxError: invalid syntax"),
        (HEAD + "import nowhere_at_all\n", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def mine(completion):\n    return 1.0\n", "defines no function marked with @verifier"),
        (HEAD + "@verifier(examples=[('a', {}, 1.0)])\nasync def mine(completion):\n    return 1.0\n", "must be a plain function"),
        (HEAD + "@verifier(examples=[])\ndef mine(completion):\n    return 1.0\n", "has no examples"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_load_is_named(
    checked: Check, add: Callable[[str, str], Path], source: str, message: str
) -> None:
    add("mine", source)
    found = messages(checked([{"verifier": "mine"}]))
    assert found["rewards.0.verifier"].startswith("mine.py cannot be used: ")
    assert message in found["rewards.0.verifier"]


def test_a_broken_file_that_the_run_does_not_name_is_a_note(checked: Check, add: Callable[[str, str], Path]) -> None:
    add("other", "def (:\n")
    report = checked([{"verifier": "math_numeric"}])
    assert report.ok
    assert [note for note in report.notes if note.startswith("other.py in rewards/ cannot be used: SyntaxError")]


def test_a_name_that_two_files_define_is_refused(checked: Check, add: Callable[[str, str], Path]) -> None:
    twice = HEAD + "@verifier(examples=[('a', {}, 1.0)])\ndef twice(completion):\n    return 1.0\n"
    add("first", twice)
    add("second", twice)
    report = checked([{"verifier": "twice"}])
    assert "second.py cannot be used: verifier 'twice' of" in messages(report)["rewards.0.verifier"]
    assert report.problems[0].fix == "rename one of them"


def test_an_argument_that_no_column_provides_is_named(checked: Check, add: Callable[[str, str], Path]) -> None:
    add("mine", HEAD + "@verifier(examples=[('a', {'tests': 1}, 1.0)])\ndef mine(completion, tests):\n    return 1.0\n")
    assert "mine needs a column 'tests'" in messages(checked([{"verifier": "mine"}]))["rewards.0.params"]


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("[1.0]", "list"),
        ("'1.0'", "str"),
        ("float('nan')", "nan"),
        ("float('inf')", "inf"),
        ("True", "bool"),
        ("None", "None"),
    ],
)
def test_what_a_verifier_may_not_return_is_found_before_the_run(
    checked: Check, add: Callable[[str, str], Path], returned: str, told: str
) -> None:
    add("mine", HEAD + f"@verifier(examples=[('a', {{}}, 1.0)])\ndef mine(completion):\n    return {returned}\n")
    report = checked([{"verifier": "mine"}])
    assert told in messages(report)["rewards.0.verifier"]


def test_given_columns_need_no_column_of_the_data(checked: Check, add: Callable[[str, str], Path]) -> None:
    source = "@verifier(examples=[('a', {'prompt': 'q', 'completion_tokens': 1}, 1.0)])\n"
    add(
        "mine",
        HEAD + source + "def mine(completion, prompt, completion_tokens):\n    return float(completion_tokens)\n",
    )
    assert checked([{"verifier": "mine"}]).problems == []
    report = checked([{"verifier": "mine"}], completion_tokens=7)
    [note] = report.notes
    assert "the column completion_tokens is passed to verifiers as dataset_completion_tokens" in note
    assert "the completion's length in tokens" in note


def test_no_readable_gold_is_a_problem(checked: Check) -> None:
    report = checked([{"verifier": "math_numeric"}], golds=["about a dozen"] * 30)
    [problem] = report.problems
    assert problem.field == "dataset.columns.answer"
    assert "can read the gold of none of the 30 rows looked at, such as 'about a dozen'" in problem.message


def test_a_gold_of_several_fields_asks_for_one(checked: Check) -> None:
    [problem] = checked([{"verifier": "math_numeric"}], golds=[{"value": 12, "unit": "m"}] * 8).problems
    assert "field" in problem.message


def test_some_unreadable_golds_are_counted_with_their_rows(checked: Check) -> None:
    golds: list[Any] = ["12"] * 30
    golds[4] = golds[20] = "about a dozen"
    report = checked([{"verifier": "math_numeric"}], golds=golds)
    assert report.ok
    [note] = report.notes
    assert note.startswith("math_numeric cannot read the gold of 2 of the 30 rows looked at (rows 5, 21)")


@pytest.mark.parametrize("gold", [12, 12.0, -3, 0, ["12", "twelve"], "12"])
def test_golds_of_every_type_that_can_be_read_are_no_problem(checked: Check, gold: Any) -> None:
    report = checked([{"verifier": "math_numeric"}], golds=[gold] * 8)
    assert (report.problems, report.notes) == ([], [])


def test_missing_golds_are_counted_over_all_rows(checked: Check) -> None:
    report = checked([{"verifier": "math_numeric"}], golds=["12"] * 30 + [None, ""] * 5)
    assert report.ok
    assert "10 of 40 rows have no gold answer; math_numeric abstains on them" in report.notes
    assert checked([{"verifier": "math_numeric"}], golds=[None] * 8).problems[0].field == "dataset.columns.answer"


def test_an_unreadable_gold_of_weight_zero_stops_nothing(checked: Check) -> None:
    report = checked(
        [{"verifier": "math_numeric", "weight": 0}, {"verifier": "length_range", "params": {"maximum": 9}}],
        golds=["?"] * 8,
    )
    assert "dataset.columns.answer" not in messages(report)
    assert any(note.startswith("math_numeric cannot read the gold of 8 of the 8 rows") for note in report.notes)


def test_a_part_of_an_ensemble_is_checked_as_well(checked: Check, add: Callable[[str, str], Path]) -> None:
    add("broken", "def (:\n")
    found = messages(checked([{"verifier": "ensemble", "params": {"parts": [{"verifier": "broken"}]}}]))
    assert found["rewards.0.verifier"].startswith("broken.py cannot be used: SyntaxError")
    add(
        "tests",
        HEAD + "@verifier(examples=[('a', {'tests': 1}, 1.0)])\ndef tests(completion, tests):\n    return 1.0\n",
    )
    found = messages(checked([{"verifier": "ensemble", "params": {"parts": [{"verifier": "tests"}]}}]))
    assert "tests, a part of ensemble, needs a column 'tests'" in found["rewards.0.params"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": "/nowhere/model"}, "there is no folder or file /nowhere/model"),
        ({"model": "builtin:smollm2-135m-instruct"}, "writes text and scores none"),
        ({}, "needs the param 'model'"),
        ({"model": "{writes}"}, "it is no sequence-classification model (its config says LlamaForCausalLM)"),
        ({"model": "{writes}", "batch_size": 0}, "batch_size is 0"),
        ({"model": "{writes}", "scale": "tanh"}, "param 'scale' is 'tanh'"),
    ],
)
def test_a_reward_model_is_looked_for_before_the_run(
    checked: Check, tiny_model: Path, params: dict[str, Any], message: str
) -> None:
    params = {name: str(tiny_model) if value == "{writes}" else value for name, value in params.items()}
    report = checked([{"verifier": "reward_model", "params": params}])
    assert any(message in problem.message for problem in report.problems), report.problems


def test_the_sandbox_in_force_is_noted_when_code_is_run(checked: Check) -> None:
    tests = ["assert double(2) == 4"]
    report = checked([{"verifier": "code_asserts"}], golds=[tests] * 8)
    assert any(note.startswith("code_asserts runs code in a sandbox: ") for note in report.notes), report
    assert not any("sandbox" in note for note in checked([{"verifier": "math_numeric"}]).notes)


def test_rows_looked_at_are_from_all_over_the_data() -> None:
    assert spread(range(1000), 200)[:3] == [0, 5, 10]
    assert len(spread(range(1001), 200)) <= 200
    assert spread([3, 4], 200) == [3, 4]


def test_how_long_a_row_takes_is_known_without_the_start_of_the_judge() -> None:
    assert _row_seconds([(0, 10.0), (128, 20.0), (200, 20.72)]) == pytest.approx(0.01)
    assert _row_seconds([(0, 10.0), (50, 20.0)]) == pytest.approx(0.2)
    assert _row_seconds([(0, 10.0)]) == 0
