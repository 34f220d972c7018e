"""Data sets: levels, disjoint held-out rows, files, columns, prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_studio import data
from grpo_studio.config import DatasetSettings
from grpo_studio.data.made.arithmetic import LEVELS, OPERATIONS, builtin_rows, parse_levels
from grpo_studio.errors import DataError


def loaded(**settings: Any) -> data.DataSplits:
    return data.load(DatasetSettings.model_validate(settings))


@pytest.mark.parametrize("level", sorted(LEVELS))
def test_every_level_has_train_and_held_out_rows_that_share_no_question(level: int) -> None:
    train, held_out, total = builtin_rows(DatasetSettings(config=str(level), held_out=10_000))

    def canonical(row: Any) -> tuple[Any, ...]:
        left, sign, right = row["prompt"].split()
        return (sign, *(sorted((left, right)) if sign in "+x" else (left, right)))

    assert len(held_out) >= 5
    assert total == len(train) + len(held_out)
    assert len(train) > len(held_out)
    assert not {canonical(row) for row in train} & {canonical(row) for row in held_out}
    for row in train + held_out:
        left, sign, right = row["prompt"].split()
        assert row["answer"] == str(OPERATIONS[sign](int(left), int(right)))


def test_builtin_rows_are_the_same_every_time() -> None:
    assert loaded(config="1-3") == loaded(config="1-3")


@pytest.mark.parametrize(
    ("text", "levels"), [(None, [1]), ("2", [2]), ("1-3", [1, 2, 3]), ("3, 1", [1, 3]), ("1-2,2-3", [1, 2, 3])]
)
def test_levels(text: str | None, levels: list[int]) -> None:
    assert parse_levels(text) == levels


@pytest.mark.parametrize("text", ["0", "6", "easy", "1-", "3-1", "-1", "1-99", "9" * 400, "1;2"])
def test_unknown_levels_are_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(DataError, match="from 1 to 5"):
        parse_levels(text)


def test_unknown_builtin_names_the_known_one() -> None:
    with pytest.raises(DataError, match="builtin:arithmetic"):
        loaded(source="builtin:arithmetics")


def rows_file(folder: Path, rows: list[Any], name: str = "rows.jsonl") -> str:
    path = folder / name
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return str(path)


def test_missing_column_lists_those_found(tmp_path: Path) -> None:
    source = rows_file(tmp_path, [{"text": "1 + 1", "answer": "2"}] * 3)
    with pytest.raises(
        DataError, match=r"no column for the prompt.*columns found: text, answer.*dataset\.columns\.prompt"
    ):
        loaded(source=source)


def test_held_out_rows_depend_on_the_prompts_alone_and_keep_doubles_together(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{number % 50}", "answer": number} for number in range(100)]
    first = loaded(source=rows_file(tmp_path, rows), held_out=10)
    second = loaded(source=rows_file(tmp_path, rows[::-1], "reversed.jsonl"), held_out=10)
    asked = {sample.question for sample in first.held_out}
    assert len(first.held_out) == 10
    assert asked == {sample.question for sample in second.held_out}
    assert not asked & {sample.question for sample in first.train}


def test_answers_keep_their_form(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("prompt,answer\nagent,007\nprice,1.10\nnothing,None\n", encoding="utf-8")
    answers = {sample.question: sample.answer for sample in loaded(source=str(path), held_out=0).train}
    assert answers == {"agent": "007", "price": "1.10", "nothing": "None"}


def test_rows_without_a_usable_prompt_are_dropped_and_counted(tmp_path: Path) -> None:
    prompts = ["fine", "", "  ", None, [], 5, True, [{"role": "user", "content": "chat"}], {"a": 1}]
    splits = loaded(source=rows_file(tmp_path, [{"prompt": prompt, "answer": "1"} for prompt in prompts]), held_out=0)
    assert [sample.question for sample in splits.train] == ["fine", "5", "chat"]
    assert splits.dropped == 6
    assert splits.rows_read == 9


def test_one_system_message_and_the_template_around_the_question(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "old"}, {"role": "user", "content": "2 + 2"}]
    source = rows_file(tmp_path, [{"prompt": chat, "answer": "4"}])
    sample = loaded(source=source, held_out=0, system_prompt="new", prompt_template="What is {prompt}?").train[0]
    assert list(sample.messages) == [
        {"role": "system", "content": "new"},
        {"role": "user", "content": "What is 2 + 2?"},
    ]
    kept = loaded(source=source, held_out=0).train[0]
    assert [message["content"] for message in kept.messages] == ["old", "2 + 2"]


def test_other_columns_reach_the_verifiers_under_their_names(tmp_path: Path) -> None:
    source = rows_file(tmp_path, [{"question": "q", "gold": "4", "tests": ["a"]}])
    settings = {"source": source, "held_out": 0, "columns": {"prompt": "question", "answer": "gold"}}
    assert loaded(**settings).train[0].columns == {"question": "q", "gold": "4", "tests": ["a"], "answer": "4"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.jsonl", '{"prompt": "a"}\n{"prompt":', "line 2"),
        ("list.jsonl", "[1, 2]", "line 1 is list"),
        ("empty.jsonl", "", "no rows"),
        ("object.json", '{"prompt": "a"}', "not a list"),
        ("deep.json", "[" * 100_000, "cannot read"),
        ("rows.parquet", "no parquet", "cannot read"),
        ("rows.xlsx", "x", "unknown kind"),
    ],
)
def test_damaged_files_are_one_clear_error(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        loaded(source=str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["/no/such/file.jsonl", "no such thing", "../../etc/shadow", "/"])
def test_sources_that_are_not_there(source: str) -> None:
    with pytest.raises(DataError):
        loaded(source=source)


def test_holding_out_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="leaves none to train on"):
        loaded(source=rows_file(tmp_path, [{"prompt": "a", "answer": "1"}]), held_out=5)


def test_gsm8k_is_read_and_its_gold_kept(shared_dir: Path) -> None:
    path = shared_dir / "data" / "gsm8k_test.jsonl"
    splits = loaded(source=str(path), columns={"prompt": "question", "answer": "answer"}, held_out=100)
    assert splits.rows_read == 1319
    assert len(splits.held_out) == 100
    assert all("####" in sample.answer for sample in splits.train)


def test_chat_prompts_and_whole_numbers_survive_parquet(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    chat = [{"role": "user", "content": "2 + 2"}]
    table = pyarrow.Table.from_pylist([{"prompt": chat, "answer": 4}, {"prompt": chat, "answer": None}])
    parquet.write_table(table, tmp_path / "rows.parquet")
    samples = loaded(source=str(tmp_path / "rows.parquet"), held_out=0).train
    assert [(sample.question, sample.answer) for sample in samples] == [("2 + 2", 4), ("2 + 2", None)]


def test_without_a_mapped_answer_verifiers_get_none(tmp_path: Path) -> None:
    source = rows_file(tmp_path, [{"prompt": "q", "gold": "1"}])
    splits = loaded(source=source, held_out=0, columns={"prompt": "prompt", "answer": "-"})
    assert "answer" not in splits.train[0].columns


def test_rows_read_counts_the_whole_set(tmp_path: Path) -> None:
    assert loaded(held_out=4).rows_read == 100
    assert (
        loaded(
            source=rows_file(tmp_path, [{"prompt": f"q{n}", "answer": "1"} for n in range(30)]), limit=10, held_out=2
        ).rows_read
        == 30
    )
