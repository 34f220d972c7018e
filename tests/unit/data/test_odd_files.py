"""Every odd data set that the cases list, through `check` end to end: the setting that is blamed, and what is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.preflight import CheckReport, check
from grpo_studio.settings import Settings

Content = str | bytes | Callable[[Path], None] | None


@dataclass(frozen=True)
class Case:
    """A file, the settings it is used with, and what `check` says: `where` is the setting, None a note."""

    name: str
    content: Content
    where: str | None
    says: str
    dataset: Mapping[str, Any] = field(default_factory=dict)
    algorithm: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    reward: Mapping[str, Any] = field(
        default_factory=lambda: {"verifier": "regex_match", "params": {"pattern": "a", "match": "search"}}
    )

    def __str__(self) -> str:
        return f"{self.name}: {self.says[:40]}"


def lines(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def sums(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"prompt": f"What is {number} + 1?", "answer": str(number + 1), **more} for number in range(count)]


def prompts(*values: Any) -> list[dict[str, Any]]:
    return [{"prompt": value, "answer": "1"} for value in values]


def questions(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"question": f"What is {number} + 1?", **more} for number in range(count)]


def said(*turns: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in turns]


def nested(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = [{"meta": {"a": f"q{number}", "b": "x"}, "reward": {"gold": str(number)}} for number in range(8)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


LONG = "abc xyz " * 200
GERMAN = "Frage;Antwort\n" + "".join(f"Wie viel ist {number} + 1?;{number + 1}\n" for number in range(8))
MATH = {"verifier": "math_numeric"}
FOUR = {"prompts_per_step": 4}
BROKEN_AT = 17_302
CASES = [
    # B1: no column called prompt
    Case("other.jsonl", lines(*[{"id": n, "body": "x"} for n in range(4)]), "dataset.columns.prompt", "columns found: id, body"),
    Case("typo.jsonl", lines(*sums(8)), "dataset.columns.prompt", "no column 'promt'", {"columns": {"prompt": "promt"}}),
    # B2: which column is the gold
    Case("two.jsonl", lines(*questions(8, answer="1", solution="2")), "dataset.columns.answer", "2 columns that could be the gold answer: answer (such as '1'), solution (such as '2')", reward=MATH),
    Case("unread.jsonl", lines(*questions(8, answer="about a dozen")), "dataset.columns.answer", "can read the gold of none of the 8 rows", reward=MATH),
    Case("no_gold.jsonl", lines(*questions(8)), "rewards.0.params", "needs a column 'answer'", reward=MATH),
    Case("reserved.jsonl", lines(*sums(8, completion="x")), None, "the column completion is passed to verifiers as dataset_completion"),
    Case("some_gold.jsonl", lines(*sums(6), {"prompt": "x", "answer": None}), None, "1 of 7 rows have no gold answer; math_numeric abstains on them", reward=MATH),
    # B4: too few rows, or none
    Case("three.jsonl", lines(*sums(3)), "algorithm.prompts_per_step", "a step needs 4 different prompts, 3 are left to train on: the data set has 3 rows", {"held_out": 0}, FOUR),
    Case("three.jsonl", lines(*sums(6)), "algorithm.prompts_per_step", "3 are left to train on: 6 rows less 3 held out", {"held_out": 3}, FOUR),
    Case("three.jsonl", lines(*sums(5), *prompts(None, "")), "algorithm.prompts_per_step", "7 rows less 2 held out, 2 without a usable prompt", algorithm=FOUR),
    Case("same.jsonl", lines(*prompts(*["same"] * 8)), "algorithm.prompts_per_step", "8 rows less 7 that repeat a prompt", {"held_out": 0}),
    Case("held.jsonl", lines(*sums(3)), "dataset", "leaves none to train on", {"held_out": 5}),
    Case("empty.jsonl", "", "dataset.source", "holds no rows"),
    Case("blank.jsonl", "\n \n\n", "dataset.source", "holds no rows"),
    Case("empty.csv", "", "dataset.source", "holds no rows"),
    Case("header.csv", "prompt,answer\n", "dataset.source", "holds no rows"),
    Case("empty.json", "[]", "dataset.source", "holds no rows"),
    Case("empty.parquet", b"", "dataset.source", "is empty"),
    Case("limit.jsonl", lines(*sums(8)), "dataset.limit", "3 rows less 2 held out", {"limit": 3}),
    # B5: null, empty, non-text prompts
    Case("null.jsonl", lines(*sums(7), *prompts(None)), None, "1 of 8 rows have no usable prompt (row 8): no prompt (1); they are left out"),
    Case("null.jsonl", lines(*sums(7), *prompts(None)), "dataset.unusable", "1 of 8 rows have no usable prompt (row 8)", {"unusable": "stop"}),
    Case("odd.jsonl", lines(*sums(5), *prompts("", [], {"a": 1}, " \t")), "dataset.unusable", "4 of 9 rows have no usable prompt (rows 6, 7, 8, 9): an empty prompt (3), a prompt that is no text (1)", {"unusable": "stop"}),
    Case("all.jsonl", lines(*prompts(None, "", [])), "dataset", "no row has a usable prompt"),
    Case("number.jsonl", lines(*sums(7), *prompts(5)), None, "1 of 8 rows have a number as the prompt, read as text (row 8)"),
    Case("half.jsonl", lines(*sums(7)) + '{"prompt": "\\ud83d", "answer": "1"}\n', None, "row 8"),
    Case("escape.jsonl", lines(*sums(7), *prompts("a\x1b[31mb")), None, "control characters in the prompt (row 8)"),
    # B8 and odd chats
    Case("roles.jsonl", lines(*sums(6), *prompts(said(("wizard", "a"), ("user", "b")), said(("user", "b"), ("assistant", "c")))), "dataset.unusable", "rows 7, 8): messages of an unknown role (1), the assistant as the last to speak (1)", {"unusable": "stop"}),
    Case("tools.jsonl", lines(*sums(7), *prompts([{"role": "assistant", "content": "", "tool_calls": [{"id": 1}]}, {"role": "user", "content": "b"}])), None, "tool calls left in the prompt (1); they are left out"),
    Case("systems.jsonl", lines(*sums(7), *prompts(said(("system", "a"), ("system", "b"), ("user", "c")))), None, "1 of 8 rows have several system messages, made one (row 8)"),
    # B10: prompts that are longer than the context
    Case("long.jsonl", lines(*sums(7), *prompts(LONG)), "dataset.too_long", "1 of 8 prompts (row 8) have more than 312 tokens: the context of 512 less 200 for a completion"),
    Case("long.jsonl", lines(*sums(7), *prompts(LONG)), None, "1 of 8 prompts (row 8) have more than 312 tokens and are left out", {"too_long": "leave_out"}),
    Case("long.jsonl", lines(*prompts(*[f"{LONG}{n}" for n in range(8)])), "algorithm.prompts_per_step", "0 are left to train on: 8 rows less 8 too long", {"too_long": "leave_out"}),
    Case("fine.jsonl", lines(*sums(8)), "algorithm.max_completion_length", "the model's context of 512 must hold the prompt too", algorithm={"max_completion_length": 512}),
    # B11: streaming a file
    Case("stream.jsonl", lines(*sums(40)), None, "ends after 40 rows, 4 of them are trained on", {"streaming": True}),
    Case("stream.jsonl", lines(*sums(10_100)), None, "the data set is streamed: 4 rows to train on and its first 10,000 rows as they stand", {"streaming": True}),
    # Files
    Case("broken.jsonl", lines(*sums(5)) * 3460 + '{"prompt": "cut\n', "dataset.source", "line 17301 is not JSON"),
    Case("broken.jsonl", lines(*sums(1)) * (BROKEN_AT - 1) + "{'prompt': 1}\n" + lines(*sums(1)), "dataset.source", f"line {BROKEN_AT} is not JSON"),
    Case("array.jsonl", "[1, 2]\n", "dataset.source", "line 1"),
    Case("folder.jsonl", Path.mkdir, "dataset.source", "is a folder"),
    Case("gone.jsonl", None, "dataset.source", "there is no file"),
    Case("table.xlsx", "x", "dataset.source", "unknown kind"),
    Case("object.json", '{"prompt": "a"}', "dataset.source", "not a list of objects"),
    Case("deep.json", "[" * 100_000, "dataset.source", "nested too deeply"),
    Case("binary.jsonl", bytes(range(256)), "dataset.source", "line 1"),
    Case("cut.parquet", b"PAR1" + b"x" * 100, "dataset.source", "not a parquet file"),
    Case("nested.parquet", nested, "dataset.columns.prompt", "meta.a"),
    Case("frage.csv", "\ufeff" + GERMAN, None, "parted by a semicolon"),
    Case("latin.csv", GERMAN.replace("Wie viel", "Größe").encode("latin-1"), None, "read as Windows-1252"),
    Case("mixed.jsonl", lines(*sums(6), {"prompt": "x", "answer": 7}, {"prompt": "y", "answer": True}), None, "the column answer holds text in 6, whole number in 1, true or false in 1 of 8 rows (rows 7, 8)"),
    # Golds and prompts that contradict each other
    Case("twice.jsonl", lines(*sums(8), {"prompt": "What is 0 + 1?", "answer": "5"}), None, "1 rows repeat the prompt of an earlier row with another gold (row 9)", {"held_out": 0}),
    Case("again.jsonl", lines(*prompts("What is 1 + 1?", "what is 1 + 1", "WHAT IS 1 + 1", "What is  1 + 1?!")), None, "2 of 2 held-out rows ask what a training row asks"),
    # Settings
    Case("fine.jsonl", lines(*sums(8)), "dataset.prompt_template", "no place for the question", {"prompt_template": "none"}),
    Case("fine.jsonl", lines(*sums(8)), "model.trust_remote_code", "never run here", model={"trust_remote_code": True}),
    Case("fine.jsonl", lines(*sums(8)), "model.chat_template", "", model={"chat_template": "{{ raise_exception('no') }}"}),
]  # fmt: skip


def checked(case: Case, folder: Path, model: Path, settings: Settings) -> CheckReport:
    path = folder / case.name
    if isinstance(case.content, bytes):
        path.write_bytes(case.content)
    elif isinstance(case.content, str):
        path.write_text(case.content, encoding="utf-8")
    elif case.content is not None:
        case.content(path)
    algorithm = {"steps": 2, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 200}
    raw = {
        "model": {"id": str(model), **case.model},
        "dataset": {"source": str(path), "held_out": 2, **case.dataset},
        "rewards": [case.reward],
        "algorithm": {**algorithm, **case.algorithm},
    }
    return check(raw, settings)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_told_before_anything_is_loaded(case: Case, tmp_path: Path, tiny_model: Path, settings: Settings) -> None:
    report = checked(case, tmp_path, tiny_model, settings)
    if case.where is None:
        assert report.ok, report.problems
        assert any(case.says in note for note in report.notes), report.notes
        return
    [problem] = report.problems
    assert problem.field.startswith(case.where), problem
    assert case.says in problem.message, problem
    assert problem.fix
    assert "\n" not in str(problem)


@pytest.mark.parametrize(
    ("name", "content", "mapping"),
    [
        ("rows.jsonl", lines(*sums(8)), ("prompt", "answer", "text")),
        ("gsm8k.jsonl", lines(*questions(8, answer="It is <<1=1>>1.\n#### 1")), ("question", "answer", "gsm8k")),
        ("frage.csv", "\ufeff" + GERMAN, ("Frage", "Antwort", "text")),
    ],
)
def test_a_set_that_is_sound_is_mapped_without_a_word(
    name: str, content: str, mapping: tuple[str, str, str], tmp_path: Path, tiny_model: Path, settings: Settings
) -> None:
    report = checked(Case(name, content, None, "", reward=MATH), tmp_path, tiny_model, settings)
    assert report.problems == []
    assert report.scan is not None
    assert tuple(report.scan.as_dict()["mapping"].values()) == mapping
    assert report.derived["dataset_rows"] == 8
    assert [gold.readable for gold in report.scan.golds.reports] == [8]
