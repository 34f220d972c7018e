from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers import discover, problems_of

RULE = """
from typing import Literal
from grpo_studio.verifiers import verifier

def check(size, mode, ratio):
    return "size is 13" if size == 13 else None

@verifier(examples=[("x", {{"answer": "x"}}, 1.0)], check=check)
def {name}(completion: str, answer: str, *, size: int, mode: Literal["a", "b"] = "a", ratio: float = 0.5):
    "Says yes."
    return 1.0
"""


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_files_are_found_by_path_and_underscores_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "one.py", RULE.format(name="one"))
    write(tmp_path, "_shared.py", "raise RuntimeError")
    registry = discover([tmp_path, tmp_path, tmp_path / "not_there"])
    assert list(registry.specs) == ["one"]
    assert registry.specs["one"].path == tmp_path / "one.py"
    assert registry.failures == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def broken(:", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit: 3 (line 1)"),
        ("\n1 / 0", "ZeroDivisionError: division by zero (line 2)"),
        ("class Odd(BaseException): pass\nraise Odd", "Odd (line 2)"),
        ("x = 1", "no function marked with @verifier"),
        ("from grpo_studio.verifiers import verifier\n@verifier(examples=[])\ndef f(completion): ...", "no examples"),
    ],
)
def test_a_file_that_fails_is_listed_and_breaks_nothing_else(tmp_path: Path, text: str, message: str) -> None:
    bad = write(tmp_path, "bad.py", text)
    write(tmp_path, "good.py", RULE.format(name="good"))
    registry = discover([tmp_path])
    assert list(registry.specs) == ["good"]
    [failure] = registry.failures
    assert failure.path == bad
    assert message in failure.message


def test_loading_prints_nothing_to_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "loud.py", "print('hello')" + RULE.format(name="loud"))
    assert list(discover([tmp_path]).specs) == ["loud"]
    assert capsys.readouterr().out == ""


def test_the_second_verifier_of_a_name_is_refused_and_both_paths_are_named(tmp_path: Path) -> None:
    first = write(tmp_path / "a", "same.py", RULE.format(name="rule"))
    second = write(tmp_path / "b", "same.py", RULE.format(name="rule"))
    registry = discover([first.parent, second.parent])
    assert registry.specs["rule"].path == first
    [failure] = registry.failures
    assert str(first) in failure.message
    assert str(second) in failure.message


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "math_numeric.py", RULE.format(name="math_numeric"))
    with pytest.raises(VerifierError) as error:
        discover([tmp_path]).get("math_numric")
    assert str(error.value) == "no verifier 'math_numric'; did you mean math_numeric?"


@pytest.mark.parametrize(
    ("params", "columns", "parts"),
    [
        ({"size": 3}, ["answer"], []),
        ({"size": 3, "ratio": 1, "mode": "b"}, ["answer", "other"], []),
        ({}, ["answer"], ["needs the param 'size'"]),
        ({"size": 3, "sise": 4}, ["answer"], ["no param 'sise'; it takes: size, mode, ratio"]),
        ({"size": "3"}, ["answer"], ["'size' is '3'; it must be int"]),
        ({"size": True}, ["answer"], ["must be int"]),
        ({"size": 3, "mode": "c"}, ["answer"], ["'mode' is 'c'"]),
        ({"size": 3, "ratio": float("nan")}, ["answer"], ["'ratio' is nan"]),
        ({"size": 13}, ["answer"], ["size is 13"]),
        ({"size": 3}, ["solution"], ["needs a column 'answer'; the data has: solution"]),
        ({"size": None, "extra": 1}, [], ["'extra'", "'size' is None", "column 'answer'"]),
    ],
)
def test_all_problems_of_a_use_are_found(
    tmp_path: Path, params: dict[str, Any], columns: list[str], parts: list[str]
) -> None:
    write(tmp_path, "rule.py", RULE.format(name="rule"))
    problems = problems_of(discover([tmp_path]).get("rule"), params, columns)
    assert len(problems) == len(parts)
    for problem, part in zip(problems, parts, strict=True):
        assert part in problem
