"""Streaming: as many rows as the run needs and no more, mixed, the same in every process, held-out rows kept out."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from grpo_studio import data
from grpo_studio.config import DatasetSettings, RunConfig
from grpo_studio.data import streaming
from grpo_studio.errors import DataError


@pytest.fixture(autouse=True)
def _small_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A buffer of 20 rows, so that a set of some hundred is long."""
    assert streaming.SHUFFLE_BUFFER == 10_000
    monkeypatch.setattr(streaming, "SHUFFLE_BUFFER", 20)


def rows_of(count: int) -> list[dict[str, Any]]:
    return [{"prompt": f"q{number}", "answer": str(number)} for number in range(count)]


def written(folder: Path, rows: list[dict[str, Any]], kind: str = "jsonl") -> str:
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif kind == "csv":
        path.write_text("prompt,answer\n" + "".join(f"{row['prompt']},{row['answer']}\n" for row in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def streamed(source: str, wanted: int | None, **chosen: Any) -> data.DataSplits:
    given = {"source": source, "streaming": True, "held_out": 5, **chosen}
    return data.load(DatasetSettings.model_validate(given), wanted)


def questions(samples: tuple[data.Sample, ...]) -> list[str]:
    return [sample.question for sample in samples]


@pytest.mark.parametrize(
    ("steps", "iterations", "prompts", "wanted"), [(10, 1, 4, 40), (10, 3, 4, 16), (1, 1, 1, 1), (7, 7, 2, 2)]
)
def test_a_run_wants_a_row_for_each_prompt_of_each_batch(
    steps: int, iterations: int, prompts: int, wanted: int
) -> None:
    algorithm = {"steps": steps, "num_iterations": iterations, "prompts_per_step": prompts}
    config = RunConfig.model_validate({"algorithm": algorithm, "dataset": {"streaming": True}})
    assert config.rows_wanted() == wanted
    assert RunConfig.model_validate({"algorithm": algorithm}).rows_wanted() is None


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_no_more_rows_are_read_than_are_wanted_held_out_and_mixed(tmp_path: Path, kind: str) -> None:
    splits = streamed(written(tmp_path, rows_of(500), kind), 30)
    assert (len(splits.train), len(splits.held_out)) == (30, 5)
    assert 30 + 5 <= splits.rows_read <= 30 + 5 + 20
    assert {sample.row for sample in splits.train} <= set(range(1, splits.rows_read + 1))
    assert any(
        f"{splits.rows_read} rows were read" in note and "the rest" in note and "not looked at" in note
        for note in splits.notes
    )


def test_a_damaged_line_past_what_is_read_does_no_harm(tmp_path: Path) -> None:
    path = Path(written(tmp_path, rows_of(100)))
    path.write_text(path.read_text() + "no JSON\n")
    assert len(streamed(str(path), 10).train) == 10
    with pytest.raises(DataError, match="line 101 is not JSON"):
        streamed(str(path), 200)


def test_rows_are_mixed_and_the_same_in_every_process(tmp_path: Path) -> None:
    source = written(tmp_path, rows_of(500))
    first = streamed(source, 40)
    numbers = [sample.row for sample in first.train]
    assert numbers != sorted(numbers)
    assert len(set(numbers)) == 40
    random.seed(99)  # what else a process draws changes nothing
    assert streamed(source, 40) == first


def test_a_longer_run_holds_out_the_same_rows_and_trains_on_the_same_first(tmp_path: Path) -> None:
    source = written(tmp_path, rows_of(500))
    short, long = streamed(source, 15), streamed(source, 200)
    assert short.held_out == long.held_out
    assert long.train[:15] == short.train


def test_held_out_prompts_are_never_trained_on_though_they_come_again(tmp_path: Path) -> None:
    rows = rows_of(60) * 4
    splits = streamed(written(tmp_path, rows), 150)
    asked = set(questions(splits.held_out))
    assert len(asked) == 5
    assert not asked & set(questions(splits.train))
    assert len(splits.train) == 150


def test_another_held_out_seed_holds_out_others(tmp_path: Path) -> None:
    source = written(tmp_path, rows_of(500))
    assert questions(streamed(source, 10).held_out) != questions(streamed(source, 10, held_out_seed=1).held_out)


def test_unusable_rows_are_read_past(tmp_path: Path) -> None:
    rows = [row if number % 2 else {"prompt": "", "answer": "1"} for number, row in enumerate(rows_of(400))]
    splits = streamed(written(tmp_path, rows), 50)
    assert (len(splits.train), len(splits.held_out)) == (50, 5)
    assert splits.dropped == pytest.approx(splits.rows_read / 2, abs=1)


@pytest.mark.parametrize("wanted", [56, 100, 5000])
def test_a_shorter_set_is_gone_over_again_and_says_so(tmp_path: Path, wanted: int) -> None:
    splits = streamed(written(tmp_path, rows_of(60)), wanted)
    assert (len(splits.train), splits.rows_read) == (55, 60)
    assert any(
        f"ends after 60 rows: the run goes over the 55 to train on {wanted / 55:.3g} times" in note
        for note in splits.notes
    )


def test_the_limit_ends_a_stream_too(tmp_path: Path) -> None:
    splits = streamed(written(tmp_path, rows_of(500)), 100, limit=50)
    assert (len(splits.train), splits.rows_read) == (45, 50)
    assert any("dataset.limit ends it after 50" in note for note in splits.notes)


def test_without_a_number_wanted_a_buffer_of_rows_is_trained_on(tmp_path: Path) -> None:
    assert len(streamed(written(tmp_path, rows_of(500)), None).train) == 20


def test_more_rows_than_are_held_are_refused_with_the_number(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"here 2,000,001, and at most 2,000,000 are held; use fewer steps"):
        streamed(written(tmp_path, rows_of(5)), 2_000_001)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no rows"),
        (rows_of(4), "holding out 5 of 4 rows"),
        ([{"prompt": ""}] * 9, "no row has a usable prompt"),
    ],
)
def test_a_stream_with_nothing_to_train_on(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        streamed(written(tmp_path, rows), 10)


def test_a_made_set_is_as_it_was_and_says_that_streaming_changes_nothing() -> None:
    made, plain = streamed("builtin:arithmetic", 10), data.load(DatasetSettings(held_out=5))
    assert made.train == plain.train
    assert any("streaming changes nothing" in note for note in made.notes)


def test_a_buffer_gives_each_item_once_and_near_its_place() -> None:
    given = list(range(300))
    mixed = list(streaming.buffered(given, 30, random.Random(0)))
    assert sorted(mixed) == given
    assert mixed != given
    assert all(item < place + 30 for place, item in enumerate(mixed))


def test_a_buffer_takes_no_more_than_it_must() -> None:
    taken: list[int] = []

    def source() -> Iterator[int]:
        for number in itertools.count():
            taken.append(number)
            yield number

    assert len(list(itertools.islice(streaming.buffered(source(), 10, random.Random(0)), 5))) == 5
    assert len(taken) == 15


def test_progress_can_end_the_reading(tmp_path: Path) -> None:
    source = written(tmp_path, [{**row, "pad": "x" * 300} for row in rows_of(5000)])
    told: list[float] = []

    def progress(what: str, share: float) -> None:
        told.append(share)
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.load(DatasetSettings(source=source), progress=progress)
    assert 0 < told[0] < told[1] <= 1
