"""A verifier is held to its own examples, and whatever is wrong with it has a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_studio.verifiers import discover
from grpo_studio.verifiers.judge_examples import check_examples

HEAD = "import math, os, sys, time\nfrom grpo_studio.verifiers import Verdict, verifier\n"
TWO = "[('a', {'answer': '1'}, 1.0), ('b', {'answer': '1'}, 0.0)]"


def problems(folder: Path, text: str, limit: float = 5.0) -> list[str]:
    path = folder / "rule.py"
    path.write_text(HEAD + text)
    return check_examples(path, [folder], limit)


def rule(returned: str, examples: str = TWO, decorator: str = "") -> str:
    return f"@verifier(examples={examples}{decorator})\ndef rule(completion, answer='', *, size: int = 1):\n    'Says so.'\n    {returned}\n"


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("return [1.0]", "rule: example 1: rule returned [1.0] (list); return a number, None or a Verdict"),
        ("return '1.0'", "rule: example 1: rule returned '1.0' (str); return a number, None or a Verdict"),
        ("return math.nan", "rule: example 1: rule returned nan, which is not a finite number"),
        ("return math.inf", "rule: example 1: rule returned inf, which is not a finite number"),
        ("return True", "rule: example 1: rule returned True (bool); return 1.0 instead"),
        ("return None", "rule returned None for all of its examples: it judges nothing (rule abstained)"),
        ("pass", "rule returned None for all of its examples: it judges nothing (rule abstained)"),
        ("raise ValueError('two\\nlines')", "rule: example 1 raised or ended its process: ValueError: two lines"),
        ("os._exit(3)", "rule: example 1 raised or ended its process: the judge process ended (exit status 3)"),
        ("while True: pass", "rule: example 1 hangs: over the time limit of 0.5 s"),
        ("return 0.25", "rule: example 1: expected 1, got 0.25"),
    ],
)
def test_each_kind_of_wrong_verifier_is_named_in_one_line(tmp_path: Path, returned: str, message: str) -> None:
    found = problems(tmp_path, rule(returned), limit=0.5)
    assert found[0] == message
    assert all("\n" not in problem for problem in found)


def test_the_example_that_fails_is_told_by_number_with_its_reason(tmp_path: Path) -> None:
    text = rule("return Verdict(1.0, 'always')", "[('a', {}, 1), ('b', {}, 0.5), ('c', {}, None)]")
    assert problems(tmp_path, text) == [
        "rule: example 2: expected 0.5, got 1 (always)",
        "rule: example 3: expected None (abstain), got 1 (always)",
    ]


def test_a_verifier_that_keeps_its_word_has_no_problem(tmp_path: Path) -> None:
    examples = "[('aa', {'size': 2}, 1), ('aa', {'answer': 'x'}, 0), ('', {'answer': None}, None)]"
    text = rule("return None if answer is None else float(len(completion) == size)", examples)
    assert problems(tmp_path, text) == []


def test_all_verifiers_of_a_file_are_held_to_their_word(tmp_path: Path) -> None:
    text = rule("return 1.0", "[('a', {}, 1)]") + rule("return 0.0", "[('a', {}, 1)]").replace("def rule", "def other")
    assert problems(tmp_path, text) == ["other: example 1: expected 1, got 0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def broken(:", "SyntaxError: invalid syntax (line 3)"),
        ("x = 1", "defines no function marked with @verifier"),
        ("sys.exit('bye')", "SystemExit: bye (line 3)"),
        (rule("return 1.0", "[('a', {'gold': 1}, 1)]"), "example 1 gives 'gold', which the verifier does not take"),
        (rule("return 1.0").replace("answer=''", "answer, prompt"), "example 1 lacks 'prompt'"),
        (rule("return 1.0", "[('a', {'size': 'big'}, 1)]"), "param 'size' is 'big'; it must be int"),
        (rule("return 1.0", decorator=", warm=lambda size: 1 / 0"), "its hook 'warm' failed: ZeroDivisionError"),
        (rule("return 1.0", decorator=", check=lambda size: 'never fits'"), "rule: never fits"),
    ],
)
def test_a_file_or_a_use_that_cannot_work_is_named(tmp_path: Path, text: str, message: str) -> None:
    found = problems(tmp_path, text)
    assert found
    assert message in found[0]


def test_a_verifier_of_the_trainer_is_not_run(tmp_path: Path) -> None:
    assert problems(tmp_path, rule("return 0.5", decorator=", place='trainer'")) == []


def test_a_spec_is_checked_as_well(tmp_path: Path) -> None:
    (tmp_path / "rule.py").write_text(HEAD + rule("return True"))
    assert len(check_examples(discover([tmp_path]).get("rule"), [tmp_path])) == 2
