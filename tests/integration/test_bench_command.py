"""`bench` and `score` as a person uses them: tables, one JSON document, exit codes, one line of error.

What needs no process of its own runs in this one: only the sampling and one of each command start Python anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from studio_process import as_json, studio

from grpo_studio.bench_command import parse_verifiers
from grpo_studio.commands import run
from grpo_studio.errors import UsageError
from grpo_studio.settings import BUNDLED_REWARDS, Settings
from grpo_studio.verifiers import discover

MINE = """
from grpo_studio.verifiers import Verdict, verifier

@verifier(examples=[("4", {"answer": "4"}, 1.0)], ideal=lambda answer, **_: answer or None)
def naive(completion: str, answer):
    '''The gold is in it.'''
    return float(answer in completion) if answer else Verdict(None, "empty gold")
"""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


Ask = Callable[..., Said]


@pytest.fixture
def ask(settings: Settings, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command in this process, with a home folder of its own."""

    def asked(*arguments: str) -> Said:
        code = run(arguments)
        return Said(code, *capsys.readouterr())

    return asked


@pytest.fixture
def home(settings: Settings) -> Path:
    settings.own_rewards.mkdir(parents=True)
    (settings.own_rewards / "naive.py").write_text(MINE)
    return settings.home


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    answers = ["12", "", "14", "15"]
    path.write_text("\n".join(json.dumps({"prompt": f"Row {n}?", "answer": a}) for n, a in enumerate(answers)))
    return path


def test_gold_check_and_probes_as_text(home: Path, rows: Path) -> None:
    result = studio("bench", "--verifiers", "naive", "--dataset", str(rows), home=home)
    assert result.returncode == 0, result.stderr
    assert "naive: reads 3 of 4 golds (75 %); the gold itself scores the top in 3 of 3" in result.stdout
    assert "row 2 cannot be read: '': empty gold" in result.stdout
    assert [line for line in result.stdout.splitlines() if "PAYS" in line and "all numbers" in line]
    assert "Samples" not in result.stdout


def test_strict_and_json(ask: Ask, home: Path, rows: Path) -> None:
    arguments = ("bench", "--verifiers", "naive,math_numeric", "--dataset", str(rows), "--json")
    said = ask(*arguments)
    assert (said.code, said.json["ok"], said.json["samples"]) == (0, True, None)
    assert [report["readable"] for report in said.json["gold"]] == [3, 3]
    assert {probe["label"] for probe in said.json["probes"] if probe["pays"]} == {"naive"}
    assert ask(*arguments, "--strict").code == 1
    assert ask("bench", "--verifiers", "math_numeric", "--dataset", "builtin:arithmetic", "--strict").code == 0


def test_a_verifier_that_reads_no_gold_at_all_fails_the_job(ask: Ask, rows: Path) -> None:
    rows.write_text('{"prompt": "a", "answer": "words"}\n{"prompt": "b", "answer": "more words"}\n')
    said = ask("bench", "--verifiers", "math_numeric", "--dataset", str(rows), "--json")
    assert (said.code, said.json["ok"]) == (1, False)


def test_probes_that_nothing_could_judge_are_not_called_sound(ask: Ask, rows: Path) -> None:
    rows.write_text('{"prompt": "a", "answer": "words"}\n')
    said = ask("bench", "--verifiers", "math_numeric", "--dataset", str(rows))
    assert "math_numeric could not judge: " in said.out
    assert "none of them pays" not in said.out


def test_a_model_is_sampled_judged_and_kept(home: Path, rows: Path, tiny_model: Path) -> None:
    arguments = (
        "bench", "--preset", "quickstart", "--dataset", str(rows), "--model", str(tiny_model), "--prompts", "2",
        "--group-size", "3", "--set", "dataset.held_out=0", "--json",
    )  # fmt: skip
    result = studio(*arguments, home=home)
    assert result.returncode == 0, result.stderr
    assert "loading" in result.stderr
    report = as_json(result)["samples"]
    assert (report["groups"], sum(report["total"]["outcomes"].values())) == (2, 6)
    assert report["verdict"]
    again = studio(*arguments, home=home)
    assert as_json(again)["samples"]["rewards"][0]["mean"] == report["rewards"][0]["mean"]
    assert "loading" not in again.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--verifiers", "math_numerik"], 2, "did you mean math_numeric"),
        (["--verifiers", "math_numeric:toleranze=1"], 2, "did you mean tolerance"),
        (["--verifiers", "math_numeric:tolerance"], 2, "has no '='"),
        (["--verifiers", "math_numeric:tolerance=much"], 1, "must be float"),
        (["--verifiers", "math_numeric,math_numeric"], 1, "is taken by reward 1"),
        (["--verifiers", "regex_match"], 1, "needs the param 'pattern'"),
        (["--verifiers", "regex_match:pattern=[a"], 1, "not a regular expression"),
        (["--preset", "quickstrat"], 2, "did you mean quickstart"),
        (["--dataset", "/no/rows.jsonl"], 1, "there is no file"),
        (["--set", "algorithm.stepz=1"], 2, "did you mean steps"),
        (["--set", "dataset.columns.prompt=question"], 1, "has no column 'question'"),
        (["--model", "/no/model"], 1, "there is no folder or file /no/model"),
        (["--prompts", "0"], 1, "0 prompts cannot be sampled"),
        (["--group-size", "1"], 1, "groups of 1 completions"),
        (["--prompts", "many"], 2, "invalid int value"),
        (["--no-such"], 2, "unrecognized"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(ask: Ask, rows: Path, arguments: list[str], code: int, words: str) -> None:
    given = [] if "--dataset" in arguments else ["--dataset", str(rows)]
    said = ask("bench", *given, *arguments)
    lines = [line for line in said.err.splitlines() if not line.startswith("reading the golds")]
    assert (said.code, len(lines)) == (code, 1), said.err
    assert words in lines[0]


def test_a_row_limit_or_few_rows_are_no_problem_here(ask: Ask, rows: Path) -> None:
    said = ask("bench", "--dataset", str(rows), "--set", "dataset.limit=1", "--json")
    assert [report["rows"] for report in said.json["gold"]] == [1]


def test_verifiers_with_their_params_on_one_line() -> None:
    specs = discover([BUNDLED_REWARDS]).specs
    parsed = parse_verifiers(
        r"math_numeric:tolerance=0.1, regex_match:pattern=a{1,b}:[0-9],\d:match=full,math_boxed", specs
    )
    assert parsed == [
        {"verifier": "math_numeric", "params": {"tolerance": 0.1}},
        {"verifier": "regex_match", "params": {"pattern": r"a{1,b}:[0-9],\d", "match": "full"}},
        {"verifier": "math_boxed", "params": {}},
    ]
    nested = parse_verifiers(
        "ensemble:parts=[{verifier: math_numeric, weight: 3}, {verifier: format_tags}],math_numeric", specs
    )
    assert [one["verifier"] for one in nested] == ["ensemble", "math_numeric"]
    assert nested[0]["params"]["parts"][0] == {"verifier": "math_numeric", "weight": 3}
    with pytest.raises(UsageError, match="no verifier ''"):
        parse_verifiers("", specs)


def case(**changes: object) -> str:
    row = {"id": 1, "reward": "math_numeric", "completion": "It is 4", "answer": "4", "params": {}, "expected": 1.0}
    return json.dumps({**row, **changes})


@pytest.mark.parametrize(
    ("content", "code", "last"),
    [
        ((case() + "\n").encode(), 0, "1 passed, 0 failed"),
        (b"\xef\xbb\xbf" + case().encode(), 0, "1 passed, 0 failed"),
        (f"{case()}\r\n\r\n{case()}\r\n".encode(), 0, "2 passed, 0 failed"),
        (f"{case()}\n{case(completion='5')}".encode(), 1, "1 passed, 1 failed"),
        (f"{case(answer='')}\n{case(answer=None, expected=None)}".encode(), 1, "1 passed, 1 failed"),
        (b"not json\n" + case().encode(), 1, "1 passed, 1 failed"),
        (case().encode() + b'\n{"id": "\xe9"}', 1, "1 passed, 1 failed"),
        (case(expected=float("nan")).encode(), 1, "0 passed, 1 failed"),
        (case(expected=float("inf")).encode(), 1, "0 passed, 1 failed"),
        (case(id="\ud800", expected=0).encode(), 1, "0 passed, 1 failed"),
        (case(reward="no_such").encode(), 1, "0 passed, 1 failed"),
        (case(params={"tolerance": "x"}).encode(), 1, "0 passed, 1 failed"),
    ],
)  # fmt: skip
def test_score_counts_odd_lines_as_failures(ask: Ask, tmp_path: Path, content: bytes, code: int, last: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(content)
    said = ask("score", "--cases", str(path))
    assert (said.code, said.out.splitlines()[-1], said.err) == (code, last, "")
    document = ask("score", "--cases", str(path), "--json").json
    assert f"{document['passed']} passed, {document['failed']} failed" == last


@pytest.mark.parametrize("content", [None, b"", b"\n \r\n"])
def test_score_without_a_single_case_is_an_error(ask: Ask, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "cases.jsonl"
    if content is not None:
        path.write_bytes(content)
    for given in (path, tmp_path):
        said = ask("score", "--cases", str(given))
        assert (said.code, said.out, len(said.err.splitlines())) == (1, "", 1)


def test_failures_of_one_id_are_told_apart_by_their_lines(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{case(completion='5')}\n\n{case(completion='6', expected=None)}")
    lines = ask("score", "--cases", str(path)).out.splitlines()
    assert lines[0].startswith("line 1, 1: math_numeric: expected 1, got 0")
    assert lines[1].startswith("line 3, 1: math_numeric: expected an abstention, got 0")
