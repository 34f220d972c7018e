"""The quick look at a data set: columns with their kinds and samples, the guess, what must be asked, what is renamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import DatasetSettings
from grpo_studio.data.look import look
from grpo_studio.errors import DataError


def seen(folder: Path, *rows: dict[str, Any], **settings: Any) -> dict[str, Any]:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    found = look(DatasetSettings.model_validate({"source": str(path), **settings}))
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()  # a page can be sent all of it
    return found


def test_a_real_data_set(shared_dir: Path) -> None:
    found = look(DatasetSettings(source=str(shared_dir / "data" / "gsm8k_train.jsonl")))
    mapping = found["mapping"]
    assert [column["name"] for column in mapping["columns"]] == ["question", "answer"]
    assert (mapping["prompt"], mapping["answer"], mapping["gold_form"]) == ("question", "answer", "gsm8k")
    assert mapping["guessed"] == {"prompt": True, "answer": True}
    assert mapping["gold_samples"] == ["72", "10", "5"]
    assert (found["ask"], found["notes"], mapping["renamed"]) == (None, [], {})


@pytest.mark.parametrize(
    ("values", "kind", "sample"),
    [
        (["a", "b"], "text", "a"),
        ([None, " ", "b"], "text", "b"),
        ([1, 2.5, None], "number", "1"),
        ([True, False], "truth value", "True"),
        ([1, True], "mixed", "1"),
        (["1", 1], "mixed", "1"),
        ([[1], []], "list", "[1]"),
        ([{"a": 1}], "mapping", "{'a': 1}"),
        ([[{"role": "user", "content": "q"}]], "chat", "[{'content': 'q', 'role': 'user'}]"),
        ([json.dumps([{"role": "user", "content": "q"}])], "chat", '[{"role": "user", "content": "q"}]'),
        ([None, None], "empty", ""),
        (["a\n\x00b\u202e; c"], "text", "a \\x00b\\u202e;c"),
        (["<b>x</b>"], "text", "<b>x</b>"),
    ],
)
def test_kinds_and_samples(tmp_path: Path, values: list[Any], kind: str, sample: str) -> None:
    found = seen(tmp_path, *({"prompt": "q", "value": value} for value in values))
    [column] = [column for column in found["mapping"]["columns"] if column["name"] == "value"]
    assert (column["kind"], column["sample"]) == (kind, sample)


def test_long_samples_are_cut(tmp_path: Path) -> None:
    rows = {"prompt": "x" * 10_000, "many": list(range(10_000)), "deep": {"a": ["y" * 10_000] * 100}}
    found = seen(tmp_path, rows)
    assert all(len(column["sample"]) <= 120 for column in found["mapping"]["columns"])


def test_fields_of_mappings_are_columns_to_choose(tmp_path: Path) -> None:
    row = {"prompt": [{"role": "user", "content": "q"}], "reward_model": {"ground_truth": "7", "style": "rule"}}
    found = seen(tmp_path, row)
    listed = [(column["name"], column["kind"], column["nested"]) for column in found["mapping"]["columns"]]
    assert listed == [
        ("prompt", "chat", False),
        ("reward_model", "mapping", False),
        ("reward_model.ground_truth", "text", True),
        ("reward_model.style", "text", True),
    ]
    assert (found["mapping"]["answer"], found["mapping"]["gold_samples"]) == ("reward_model.ground_truth", ["7"])


def test_what_must_be_asked(tmp_path: Path) -> None:
    found = seen(tmp_path, {"question": "q", "answer": "1", "solution": "2", "completion": "c"})
    assert found["ask"]["field"] == "dataset.columns.answer"
    assert "2 columns that could be the gold answer" in found["ask"]["message"]
    mapping = found["mapping"]
    assert (mapping["prompt"], mapping["answer"]) == ("question", None)
    assert mapping["answer_candidates"] == ["answer", "solution"]
    assert mapping["guessed"] == {"prompt": True, "answer": False}
    assert (mapping["renamed"], found["notes"]) == ({}, []), "names follow from the choice, which is still open"


def test_a_choice_is_no_guess(tmp_path: Path) -> None:
    columns = {"prompt": "question", "answer": "solution"}
    found = seen(tmp_path, {"question": "q", "answer": "1", "solution": "2"}, columns=columns)
    assert found["mapping"]["guessed"] == {"prompt": False, "answer": False}
    assert found["mapping"]["renamed"] == {"answer": "dataset_answer"}
    assert found["notes"] == [
        "the column answer is passed to verifiers as dataset_answer: a run gives its own 'answer' (the gold answer)"
    ]


def test_no_known_prompt_still_shows_the_columns(tmp_path: Path) -> None:
    found = seen(tmp_path, {"sentence": "q", "n": 1})
    assert found["ask"]["field"] == "dataset.columns.prompt"
    assert [column["name"] for column in found["mapping"]["columns"]] == ["sentence", "n"]
    assert found["mapping"]["guessed"] == {"prompt": False, "answer": False}


def test_odd_names_are_titled_safely_and_stay_themselves(tmp_path: Path) -> None:
    long = "n" * 10_000
    found = seen(tmp_path, {"prompt": "q", "": 1, long: 2, "a\nb\x00; c": 3})
    columns = found["mapping"]["columns"]
    assert [column["name"] for column in columns] == ["prompt", long, "a\nb\x00; c"]
    assert all(len(column["title"]) <= 60 for column in columns)
    assert columns[2]["title"] == "a b\\x00;c"
    assert found["notes"] == ["a column without a name cannot be chosen"]


def test_hundreds_of_columns_are_listed_in_part(tmp_path: Path) -> None:
    found = seen(tmp_path, {"prompt": "q", **{f"c{number}": number for number in range(900)}})
    assert len(found["mapping"]["columns"]) == 200
    assert found["notes"] == ["the first 200 of 901 columns are listed; any other can be set by its name"]


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "q", "answer": "1"}\n' * 300 + "no JSON\n")
    assert look(DatasetSettings(source=str(path)))["mapping"]["answer"] == "answer"


def test_sources_that_are_made_in_place() -> None:
    mapping = look(DatasetSettings(source="builtin:arithmetic"))["mapping"]
    assert (mapping["prompt"], mapping["answer"]) == ("prompt", "answer")


def test_a_source_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        look(DatasetSettings(source=str(tmp_path / "none.jsonl")))
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError):
        look(DatasetSettings(source=str(tmp_path / "empty.jsonl")))


def test_rows_that_cannot_be_asked_are_told(tmp_path: Path) -> None:
    answered = [{"role": "user", "content": "1 + 1"}, {"role": "assistant", "content": "2"}]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": answered}) + "\n" + json.dumps({"messages": answered}))
    notes = look(DatasetSettings(source=str(path)))["notes"]
    assert [
        note for note in notes if note.startswith("none of the first 2 rows has a usable prompt: in row 1 the chat")
    ]
