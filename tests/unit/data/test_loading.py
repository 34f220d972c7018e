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
    with pytest.raises(DataError, match=r"no row has a usable prompt; set dataset\.columns\.prompt"):
        loaded(source=rows_file(tmp_path, [{"prompt": "", "answer": "1"}] * 5))


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


@pytest.mark.parametrize("read", [data.load, data.head, data.read_rows])
def test_an_empty_file_holds_no_rows(tmp_path: Path, read: Any) -> None:
    with pytest.raises(DataError, match="holds no rows"):
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
