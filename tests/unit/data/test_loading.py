"""A whole data set read, mapped and split: what is counted, left out, kept apart, and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_studio import data
from grpo_studio.config import DatasetSettings
from grpo_studio.data.sources import kind_of
from grpo_studio.errors import ColumnError, DataError


def loaded(**settings: Any) -> data.DataSplits:
    return data.load(DatasetSettings.model_validate(settings))


def rows_file(folder: Path, rows: list[Any], name: str = "rows.jsonl") -> str:
    path = folder / name
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return str(path)


def questions(count: int) -> list[dict[str, str]]:
    return [{"prompt": f"q{number}", "answer": str(number)} for number in range(count)]


def test_rows_are_split_and_keep_their_numbers_and_order(tmp_path: Path) -> None:
    splits = loaded(source=rows_file(tmp_path, questions(100)), held_out=10)
    assert (len(splits.train), len(splits.held_out), splits.rows_read, splits.dropped) == (90, 10, 100, 0)
    for part in (splits.train, splits.held_out):
        numbers = [sample.row for sample in part]
        assert numbers == sorted(numbers)
        assert [sample.question for sample in part] == [f"q{number - 1}" for number in numbers]


def test_rows_without_a_usable_prompt_are_left_out_and_counted(tmp_path: Path) -> None:
    prompts = ["fine", "", "  ", None, [], 5, True, [{"role": "user", "content": "chat"}], {"a": 1}]
    splits = loaded(source=rows_file(tmp_path, [{"prompt": prompt, "answer": "1"} for prompt in prompts]), held_out=0)
    assert [(sample.question, sample.row) for sample in splits.train] == [("fine", 1), ("5", 6), ("chat", 8)]
    assert (splits.dropped, splits.rows_read) == (6, 9)


def test_unusable_rows_take_no_place_among_the_held_out(tmp_path: Path) -> None:
    rows = [{"prompt": " " * number, "answer": "1"} for number in range(50)] + questions(20)
    splits = loaded(source=rows_file(tmp_path, rows), held_out=10)
    assert (len(splits.held_out), len(splits.train), splits.dropped) == (10, 10, 50)


def test_a_data_set_without_any_usable_prompt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ColumnError, match=r"\(column prompt, 5 rows in all\) the prompt is empty; set dataset\.columns"
    ):
        loaded(source=rows_file(tmp_path, [{"prompt": "", "answer": "1"}] * 5))


ASSISTANT_LAST = [{"role": "user", "content": "1 + 1"}, {"role": "assistant", "content": "2"}]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        (ASSISTANT_LAST, "ends with a message of the assistant, not with a question; end each chat with the user's"),
        ([{"role": "tool", "content": "5"}, ASSISTANT_LAST[0]], "of a tool .*; leave messages of tools out"),
        ([{"role": "wizard", "content": "5"}], "the role 'wizard'.*; name the roles system, user and assistant"),
        (None, "the prompt is missing; set dataset.columns.prompt to the column of the question"),
    ],
)
def test_the_first_rows_fault_is_told_when_no_row_can_be_asked(
    tmp_path: Path, prompt: Any, says: str, streaming: bool
) -> None:
    source = rows_file(tmp_path, [{"messages": prompt, "gold": "1"}] * 3)
    with pytest.raises(
        ColumnError, match=rf"no row has a usable prompt: in row 1 of .*column messages.*{says}"
    ) as caught:
        loaded(source=source, streaming=streaming, columns={"prompt": "messages"})
    assert caught.value.field == "dataset.columns.prompt"


@pytest.mark.parametrize("streaming", [False, True])
def test_pictures_beside_the_prompt_stop_nothing_and_as_the_gold_they_do(tmp_path: Path, streaming: bool) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {
        "question": ["a", "b"],
        "solution": ["1", "2"],
        "answer": [b"\xff", None],
        "image": [{"bytes": b"\xff"}] * 2,
    }
    source = str(tmp_path / "rows.parquet")
    parquet.write_table(pyarrow.table(columns), source)
    base = {"source": source, "held_out": 0, "streaming": streaming}
    splits = loaded(**base, columns={"answer": "solution"})
    assert [sample.answer for sample in sorted(splits.train, key=lambda sample: sample.row)] == ["1", "2"]
    assert any("'image.bytes'" in note for note in splits.notes)
    for role, column in (("answer", "answer"), ("answer", "image.bytes"), ("prompt", "image.bytes")):
        with pytest.raises(
            ColumnError, match="holds binary data that is no text, first in row 1; set dataset"
        ) as caught:
            loaded(**base, columns={"answer": "solution"} | {role: column})
        assert caught.value.field == f"dataset.columns.{role}"
    parquet.write_table(pyarrow.table({"question": ["a"], "answer": [b"\xff"]}), source)
    with pytest.raises(ColumnError, match=r"for the gold answer holds binary data.*or to - when there is none"):
        loaded(**base)


def test_an_instruction_with_its_input_in_another_column_is_asked_about(tmp_path: Path) -> None:
    rows = [{"instruction": f"Add {n}", "input": "" if n % 2 else "3", "output": "1"} for n in range(4)]
    source = rows_file(tmp_path, rows)
    with pytest.raises(ColumnError, match=r"in input \(such as '3'\).*; write both into one column, or set") as caught:
        loaded(source=source, held_out=0)
    assert caught.value.field == "dataset.columns.prompt"
    splits = loaded(source=source, held_out=0, columns={"prompt": "instruction"})
    assert any("the model does not see input" in note for note in splits.notes)
    assert loaded(source=rows_file(tmp_path, [row | {"input": ""} for row in rows]), held_out=0).notes == ()


@pytest.mark.parametrize(
    ("more", "told"),
    [({"choices": ["1", "2"]}, "choices"), ({"Context": "c"}, "Context"), ({"context": " "}, None), ({"id": 5}, None)],
)
def test_columns_that_may_belong_to_the_question_are_told(tmp_path: Path, more: dict[str, Any], told: str) -> None:
    source = rows_file(tmp_path, [row | more for row in questions(4)])
    notes = loaded(source=source, held_out=0).notes
    assert [note.partition("does not see ")[2].partition(":")[0] for note in notes] == ([told] if told else [])


def test_a_chat_as_libraries_write_it_into_csv_is_a_chat(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "It's \\frac"}, {"role": "user", "content": "say \"x\",\n'y'"}]
    path = tmp_path / "rows.csv"
    path.write_text('prompt,answer\n"' + str(chat).replace('"', '""') + '",1\n', newline="")
    sample = loaded(source=str(path), held_out=0).train[0]
    assert list(sample.messages) == chat


def test_the_limit_uses_the_first_rows_and_counts_all(tmp_path: Path) -> None:
    splits = loaded(source=rows_file(tmp_path, questions(30)), limit=10, held_out=2)
    assert (splits.rows_read, len(splits.train), len(splits.held_out)) == (30, 8, 2)
    assert max(sample.row for sample in splits.train + splits.held_out) == 10


def test_a_made_set_is_counted_whole() -> None:
    assert loaded(held_out=4).rows_read == 100


def test_head_reads_no_more_than_it_gives(tmp_path: Path) -> None:
    path = Path(rows_file(tmp_path, questions(300)))
    path.write_text(path.read_text() + "\nno JSON")
    assert [row["prompt"] for row in data.head(DatasetSettings(source=str(path)), 3)] == ["q0", "q1", "q2"]
    with pytest.raises(DataError, match="line 301"):
        data.head(DatasetSettings(source=str(path)), 301)


@pytest.mark.parametrize("source", ["/no/such/file.jsonl", "no such thing", "../../etc/shadow", "/", "a/b/c", ""])
def test_sources_that_are_not_there(source: str) -> None:
    settings = DatasetSettings.model_construct(**DatasetSettings().model_dump() | {"source": source})
    for read in (data.load, data.head):
        with pytest.raises(DataError) as caught:
            read(settings)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", [data.load, data.head])
def test_an_empty_file_holds_no_rows(tmp_path: Path, read: Any) -> None:
    with pytest.raises(DataError, match="holds no rows; "):
        read(DatasetSettings(source=rows_file(tmp_path, [])))


def test_a_column_to_be_asked_for_stops_the_reading(tmp_path: Path) -> None:
    with pytest.raises(ColumnError) as caught:
        loaded(source=rows_file(tmp_path, [{"first": "1 + 1", "second": "2"}] * 3))
    assert caught.value.field == "dataset.columns.prompt"


def test_without_a_gold_column_verifiers_get_none(tmp_path: Path) -> None:
    source = rows_file(tmp_path, [{"prompt": "q", "gold": "1"}])
    splits = loaded(source=source, held_out=0, columns={"prompt": "prompt", "answer": "-"})
    assert "answer" not in splits.train[0].columns


def test_gsm8k_is_read_and_its_gold_kept(shared_dir: Path) -> None:
    splits = loaded(source=str(shared_dir / "data" / "gsm8k_test.jsonl"), held_out=100)
    assert (splits.rows_read, len(splits.held_out), splits.dropped) == (1319, 100, 0)
    assert all("####" in sample.answer for sample in splits.train)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("builtin:arithmetic", "builtin"), ("builtin:", "builtin"), ("reasoning_gym:basic_arithmetic", "reasoning_gym"),
        ("rows.jsonl", "file"), ("rows.JSONL.GZ", "file"), ("alice/rows.csv", "file"), ("/", "file"),
        ("alice/sums", "hub"), ("alice/sums.v2", "hub"), ("alice/csv", "hub"),
    ],
)  # fmt: skip
def test_what_a_source_means(source: str, kind: str) -> None:
    assert kind_of(source) == kind
