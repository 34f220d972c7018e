"""Parquet: values as they are, what JSON cannot say as plain text, damage as one line."""

from __future__ import annotations

import datetime
import decimal
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from grpo_studio.data.files import open_file
from grpo_studio.errors import DataError


def read(folder: Path, **columns: Any) -> list[Any]:
    parquet.write_table(pa.table(columns), folder / "rows.parquet")
    return list(open_file(folder / "rows.parquet").rows)


DAY = datetime.datetime(2024, 1, 31, 12, 30)
CHAT = [{"role": "user", "content": "1 + 1"}, {"role": "assistant", "content": None}]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (pa.array([7]), 7),
        (pa.array([2**64 - 1], pa.uint64()), 2**64 - 1),
        (pa.array([0.1]), 0.1),
        (pa.array([0.1], pa.float32()), 0.1),
        (pa.array([True]), True),
        (pa.array(["007"]), "007"),
        (pa.array(["x"], pa.large_string()), "x"),
        (pa.array(["x"]).dictionary_encode(), "x"),
        (pa.array([None], pa.null()), None),
        (pa.array([None], pa.float32()), None),
        (pa.array([float("nan")]), "NaN"),
        (pa.array([float("-inf")], pa.float32()), "-Infinity"),
        (pa.array([decimal.Decimal("1.10")]), "1.10"),
        (pa.array([decimal.Decimal("-0.0000001000")]), "-0.0000001000"),
        (pa.array([decimal.Decimal("12345678901234567890.50")]), "12345678901234567890.50"),
        (pa.array([datetime.date(2024, 1, 31)]), "2024-01-31"),
        (pa.array([DAY]), "2024-01-31 12:30:00"),
        (pa.array([DAY], pa.timestamp("us", "UTC")), "2024-01-31 12:30:00Z"),
        (pa.array([1], pa.int64()).cast(pa.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
        (pa.array([10**17], pa.int64()).cast(pa.timestamp("us")), "5138-11-16 09:46:40"),
        (pa.array([datetime.time(1, 2, 3, 450000)]), "01:02:03.45"),
        (pa.array([datetime.timedelta(days=1, seconds=1)]), "1 day, 0:00:01"),
        (pa.array([b"M\xc3\xbcller"]), "Müller"),
        (pa.array([b"ab"], pa.binary(2)), "ab"),
        (pa.array([b"ab"], pa.binary_view()), "ab"),
        (pa.array(['{"a": 1.10}'], pa.json_()), '{"a": 1.10}'),
        (pa.array([b"0123456789abcdef"], pa.uuid()), "30313233-3435-3637-3839-616263646566"),
        (pa.array([CHAT]), CHAT),
        (pa.array([["a", None]]), ["a", None]),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [1, 2]),
        (pa.array([{"ground_truth": decimal.Decimal("1.50"), "style": "rule"}]), {"ground_truth": "1.50", "style": "rule"}),
        (pa.array([[{"day": DAY, "raw": b"x", "f": [0.5]}, None]]), [{"day": "2024-01-31 12:30:00", "raw": "x", "f": [0.5]}, None]),
        (pa.array([[("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int64())), {"a": 1, "b": None}),
        (pa.array([[("a", DAY)]], pa.map_(pa.string(), pa.timestamp("us"))), {"a": "2024-01-31 12:30:00"}),
        (pa.array([[("a", decimal.Decimal("1.10"))]], pa.map_(pa.string(), pa.decimal128(5, 2))), {"a": "1.10"}),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)  # fmt: skip
def test_values(tmp_path: Path, column: pa.Array, value: Any) -> None:
    missing = pa.nulls(1, column.type)
    rows = read(tmp_path, a=pa.chunked_array([column, missing]))
    assert rows == [{"a": value}, {"a": None}]
    assert type(rows[0]["a"]) is type(value)


def test_nested_columns_keep_their_rows_over_batches(tmp_path: Path) -> None:
    days = [
        [{"role": "user", "day": DAY.date() + datetime.timedelta(n)}] * (n % 4) if n % 7 else None for n in range(3000)
    ]
    expected = [day and [turn | {"day": turn["day"].isoformat()} for turn in day] for day in days]
    assert [row["turns"] for row in read(tmp_path, turns=days)] == expected


def test_rows_are_read_in_batches_and_the_share_grows(tmp_path: Path) -> None:
    table = pa.table({"prompt": [f"q{n}" for n in range(20_000)], "n": range(20_000)})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=3000)
    stream = open_file(tmp_path / "rows.parquet")
    assert stream.columns == ("prompt", "n")
    assert stream.share is not None
    assert list(itertools.islice(stream.rows, 3)) == [{"prompt": f"q{n}", "n": n} for n in range(3)]
    assert 0 < stream.share() < 0.01
    assert [row["n"] for row in stream.rows] == list(range(3, 20_000))
    assert stream.share() == 1.0


def test_no_rows(tmp_path: Path) -> None:
    assert read(tmp_path, prompt=pa.array([], pa.string())) == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"when": pa.array([3 * 10**18]).cast(pa.timestamp("us"))}, "column 'when' .*cannot be read: value out of range"),
        ({"m": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))}, "column 'm'.*holds a key twice"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_read_name_their_column(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, **columns)


def test_binary_values_that_are_no_text_are_left_out_and_told(tmp_path: Path) -> None:
    png = b"\x89PNG"
    columns = {
        "prompt": ["x"] * 1100,
        "raw": [png if n in (70, 1099) else b"text" for n in range(1100)],
        "images": [[{"bytes": png, "path": "a.png"}] * 2] * 2 + [None] * 1098,
    }
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    stream = open_file(tmp_path / "rows.parquet")
    rows = list(stream.rows)
    assert rows[0] == {"prompt": "x", "raw": "text", "images": [{"bytes": None, "path": "a.png"}] * 2}
    assert [number for number, row in enumerate(rows, 1) if row["raw"] is None] == [71, 1100]
    assert stream.unreadable == {"images.bytes": 1, "raw": 71}
    assert [note.split(" of ")[0] for note in stream.notes] == ["'images.bytes'", "'raw'"]
    assert stream.notes[0].endswith("in 2 rows, which is left out: rows 1, 2")
    assert stream.notes[1].endswith("in 2 rows, which is left out: rows 71, 1100")


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="two columns named 'a'; rename one"):
        open_file(tmp_path / "rows.parquet")


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    read(tmp_path, prompt=[f"{n * n} and more" for n in range(5000)])
    whole = path.read_bytes()
    half = len(whole) // 2
    damaged = {
        "is empty .0 bytes.": b"",
        "cannot read .*; it is cut off or no Parquet file": whole[:half],
        "cannot read .*rows.parquet": whole[:200] + bytes(400) + whole[600:],
        "cannot read .* no Parquet file": b"no parquet",
        "cannot read": b"PAR1PAR1",
    }
    for message, content in damaged.items():
        path.write_bytes(content)
        with pytest.raises(DataError, match=message) as caught:
            list(open_file(path).rows)
        assert str(caught.value).isprintable()
