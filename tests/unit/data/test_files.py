"""Local files: what may be opened at all, how much of them is read, and one line for what may not."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grpo_studio.data.files import open_file, suffix_of
from grpo_studio.data.sources import LOCAL_SUFFIXES
from grpo_studio.errors import DataError

ROW = b'{"prompt": "1 + 1", "answer": "2"}\n'


def packed(content: bytes) -> bytes:
    """By gzip, the same at any time: tests are named after it."""
    return gzip.compress(content, mtime=0)


def refused(path: Path) -> str:
    """The message with which a file is refused, at its opening or while its rows are read: always one line."""
    with pytest.raises(DataError) as caught:
        list(open_file(path).rows)
    message = str(caught.value)
    assert message.isprintable()
    return message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.jsonl", ROW),
        ("rows.ndjson", ROW),
        ("ROWS.JSONL", ROW),
        ("rows.json", b"[" + ROW + b"]"),
        ("rows.csv", b"prompt,answer\n1 + 1,2\n"),
        ("rows.tsv", b"prompt\tanswer\n1 + 1\t2\n"),
        ("rows.jsonl.gz", packed(ROW)),
        ("rows.json.gz", packed(b"[" + ROW + b"]")),
        ("rows.csv.gz", packed(b"prompt,answer\n1 + 1,2\n")),
        ("rows.tsv.gz", packed(b"prompt\tanswer\n1 + 1\t2\n")),
        ("rows.ndjson.gz", packed(ROW)),
    ],
)
def test_each_kind_gives_the_same_row(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert name.lower().endswith(LOCAL_SUFFIXES)
    stream = open_file(path)
    assert list(stream.rows) == [{"prompt": "1 + 1", "answer": "2"}]
    assert stream.share is not None
    assert stream.share() == 1.0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.jsonl", ROW * 100_000),
        ("rows.json", b"[" + b",".join([ROW] * 100_000) + b"]"),
        ("rows.csv", b"prompt,answer\n" + b"1 + 1,2\n" * 300_000),
        ("rows.jsonl.gz", gzip.compress(b"".join(b'{"prompt": "%d"}\n' % (n * n) for n in range(300_000)), 1, mtime=0)),
    ],
)
def test_three_rows_cost_three_rows(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content + b"\xff")  # what lies behind is damaged, and no one looks at it
    stream = open_file(path)
    assert len(list(itertools.islice(stream.rows, 3))) == 3
    assert stream.share is not None
    assert 0 < stream.share() < 0.3


def test_the_share_grows_to_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROW * 50_000)
    stream = open_file(path)
    assert stream.share is not None
    shares = [stream.share() for number, _ in enumerate(stream.rows) if number % 5000 == 0]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1] <= stream.share() == 1.0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.xlsx", b"PK\x03\x04", "unknown kind.*save the table as CSV"),
        ("rows.txt", b"1 + 1", r"unknown kind; rename it by what it holds: \.csv"),
        ("rows.csv.zip", b"PK\x03\x04", "unknown kind; unpack it"),
        ("rows.feather", b"ARROW1", "unknown kind; write it as Parquet"),
        ("rows.pkl", b"\x80\x04", "unknown kind; write the rows as Parquet or JSON Lines"),
        ("rows", b"1 + 1", r"unknown kind; .*\.jsonl, .*\.parquet"),
        ("rows.parquet.gz", packed(b"PAR1"), "unknown kind"),
        ("table.csv", b"PK\x03\x04rest", "zip archive or a spreadsheet.*; save the table as CSV"),
        ("old.csv", b"\xd0\xcf\x11\xe0rest", "old spreadsheet"),
        ("rows.jsonl", b"PAR1rest", r"is a Parquet file; rename it to end in \.parquet"),
        ("rows.jsonl", packed(ROW), r"packed with gzip; rename it to end in \.gz"),
        ("rows.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"),
        ("rows.parquet", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"),
        ("rows.csv", b"\n<!DOCTYPE html><html>", "web page"),
        ("rows.jsonl.gz", ROW, "cannot read .*rows.jsonl.gz: .*gzip"),
        ("rows.jsonl.gz", packed(random.Random(0).randbytes(5000))[:3000], "cut off or damaged"),
        ("rows.csv.gz", packed(ROW)[:-9] + b"x" * 9, "cannot read|cut off or damaged"),
        ("rows.jsonl", "ä".encode("utf-16-le") * 99, "UTF-16 .*without a byte order mark.*; save it as UTF-8"),
        ("rows.csv", "prompt;answer\n1;2".encode("utf-16-be"), "UTF-16"),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert re.search(message, refused(path))


def test_a_folder_of_save_to_disk_says_what_to_write_instead(tmp_path: Path) -> None:
    for name in ("data-00000-of-00001.arrow", "state.json", "dataset_info.json"):
        (tmp_path / name).write_bytes(b"{}")
    assert "is a folder that save_to_disk wrote; write the data set with to_parquet" in refused(tmp_path)


def test_a_folder_proposes_its_data_files(tmp_path: Path) -> None:
    assert "is a folder; give a file that ends in .jsonl" in refused(tmp_path)
    inner = tmp_path / "data"
    inner.mkdir()
    for name in ("train-0.parquet", "test.jsonl.gz", "README.md"):
        (inner / name).write_bytes(b"")
    (tmp_path / "rows.csv").write_bytes(b"")
    message = refused(tmp_path)
    assert message.endswith(
        f"; give one of its files: {tmp_path}/rows.csv, {inner}/test.jsonl.gz, {inner}/train-0.parquet"
    )


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    (tmp_path / "round.jsonl").symlink_to(tmp_path / "round.jsonl")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.json"))
        for name in ("pipe.jsonl", "zero.csv", "s.json"):
            assert "a device, a pipe or a socket; give a file" in refused(tmp_path / name)
    assert "is a link to" in refused(tmp_path / "gone.jsonl")
    assert "round.jsonl" in refused(tmp_path / "round.jsonl")
    assert "a device" in refused(Path("/dev/null"))


@pytest.mark.parametrize(
    "name",
    ["a\0b.jsonl", "x" * 10_000 + ".jsonl", "x/" * 3000 + "a.csv", "no\nsuch\x1b[31m.jsonl", "\u202egnp.csv", ""],
)
def test_odd_names_are_one_short_line(name: str) -> None:
    assert len(refused(Path("/no/such") / name)) < 600


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Give up the rights of root, which may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROW)
    path.chmod(0)
    with as_somebody_else():
        assert "permission denied" in refused(path)


def test_a_file_that_goes_away_while_it_is_read_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROW)
    stream = open_file(path)
    path.unlink()
    with pytest.raises(DataError, match="there is no file"):
        list(stream.rows)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.json"])
@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\xff\xfe"])
def test_an_empty_file_holds_no_rows(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert list(open_file(tmp_path / name).rows) == []


def test_suffixes() -> None:
    found = [suffix_of(Path(name)) for name in ("a.jsonl", "b.v2.CSV.GZ", "c.parquet.gz", "gz", ".jsonl")]
    assert found == [".jsonl", ".csv", ".gz", "", ""]


def test_gsm8k_is_read_as_it_is(shared_dir: Path) -> None:
    path = shared_dir / "data" / "gsm8k_test.jsonl"
    stream = open_file(path)
    assert list(stream.rows) == [json.loads(line) for line in path.read_text().splitlines()]
    assert stream.notes == []
