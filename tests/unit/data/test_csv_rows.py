"""CSV: cells stay text, delimiters and encodings are found and told, damage is named by its line."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.data import csv_rows
from grpo_studio.data.files import open_file
from grpo_studio.errors import DataError


def read(folder: Path, content: str | bytes, name: str = "rows.csv") -> tuple[list[Any], list[str]]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    stream = open_file(path)
    return list(stream.rows), stream.notes


def refused(folder: Path, content: str | bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, content)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize(
    "cell",
    [
        "007",
        "1.10",
        "None",
        "N/A",
        "null",
        "true",
        "1e5",
        "-0",
        " padded ",
        "",
        "1,234",
        'say "hi"',
        "NaN",
        "#REF!",
        ' "x"',
        'a, "b", c',
    ],
)
def test_cells_stay_as_they_are_written(tmp_path: Path, cell: str) -> None:
    quoted = '"' + cell.replace('"', '""') + '"'
    assert read(tmp_path, f"prompt,answer\nq,{quoted}\n") == ([{"prompt": "q", "answer": cell}], [])


@pytest.mark.parametrize(
    ("content", "columns", "row"),
    [
        ("question,answer\na,b\n", ("question", "answer"), ("a", "b")),
        ("Frage;Antwort\n1,5 + 2,5?;4\n3,5 + 1?;4,5\n", ("Frage", "Antwort"), ("1,5 + 2,5?", "4")),
        ("\ufeffFrage;Antwort\nWas?;4\n", ("Frage", "Antwort"), ("Was?", "4")),
        ("q\ta\nx, y; z\t4\n", ("q", "a"), ("x, y; z", "4")),
        ("q|a|b\nx|4,5|c;d\n", ("q", "a", "b"), ("x", "4,5", "c;d")),
        ('"a;b","c"\n"1;2","3"\n', ("a;b", "c"), ("1;2", "3")),
        ("sep=;\nq;a\n1,2;3\n", ("q", "a"), ("1,2", "3")),
        ("\n\nq,a\n1,2\n", ("q", "a"), ("1", "2")),
        ("prompt\nonly one\n", ("prompt",), ("only one",)),
        ("prompt\nWhat is 1, 2?\nAnd 3?\n", ("prompt",), ("What is 1, 2?",)),
        ('q,a\n"two\nlines, and ""quotes""",4\n', ("q", "a"), ('two\nlines, and "quotes"', "4")),
        ('q, a\n"x", "y, z"\n', ("q", "a"), ("x", "y, z")),
        ("q,a\r\n1,2\r\n", ("q", "a"), ("1", "2")),
        ("q,a\r1,2\r", ("q", "a"), ("1", "2")),
        ("q,a\r1,2\n3,4\r\n", ("q", "a"), ("1", "2")),
        ("q;a,b;c\n1;2,5;3\n4;5,5;6\n7;8;9\n", ("q", "a,b", "c"), ("1", "2,5", "3")),
        ("q,a\n1\u20282,\x0b\x85\n", ("q", "a"), ("1\u20282", "\x0b\x85")),
    ],
)
def test_delimiters_headers_and_line_ends(
    tmp_path: Path, content: str, columns: tuple[str, ...], row: tuple[str, ...]
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content.encode())
    stream = open_file(path)
    assert stream.columns == columns
    assert next(stream.rows) == dict(zip(columns, row, strict=True))


@pytest.mark.parametrize("name", ["rows.tsv", "rows.csv"])
def test_a_tab_wins_in_a_tsv_file(tmp_path: Path, name: str) -> None:
    rows, _ = read(tmp_path, "q,w\ta,b\n1,2\t3,4\n5,6\t7\n", name)
    assert (rows[0] == {"q,w": "1,2", "a,b": "3,4"}) is (name == "rows.tsv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_with_a_mark(tmp_path: Path, encoding: str) -> None:
    rows, notes = read(tmp_path, "prompt,answer\nMüller 数,\U0001f600\n".encode(encoding))
    assert (rows, notes) == ([{"prompt": "Müller 数", "answer": "\U0001f600"}], [])


def test_windows_1252_is_read_and_told(tmp_path: Path) -> None:
    content = "Schüler,Größe\nÄpfel,5 €\nplain,1\n" + "x,1\n" * 100_000 + "späte,„Zeile“\n"
    rows, notes = read(tmp_path, content.encode("cp1252"))
    assert rows[0] == {"Schüler": "Äpfel", "Größe": "5 €"}
    assert rows[-1] == {"Schüler": "späte", "Größe": "„Zeile“"}
    assert len(notes) == 1
    assert notes[0].startswith("3 lines of")
    assert "not UTF-8 and are read as Windows-1252: lines 1, 2, 100004" in notes[0]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Вопрос;Ответ\nСколько?;4\n", "cp1251"),
        ("问题,答案\n一加一等于几,2\n", "gbk"),
        ("問題,答え\n1たす1は,2\n", "shift-jis"),
        ("question,answer\nСколько будет,4\n", "koi8-r"),
    ],
)
def test_letters_of_another_alphabet_are_not_read_as_nonsense(tmp_path: Path, text: str, encoding: str) -> None:
    line = 2 if text.startswith("question") else 1
    message = refused(tmp_path, text.encode(encoding))
    assert f"line {line} is neither UTF-8 nor Windows-1252" in message
    assert message.endswith("; save the file as UTF-8")


def test_dashes_and_single_letters_are_western(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, "q\n————————\n¿Qué? «año» ÀÉ ñandú\n".encode("cp1252"))
    assert [row["q"] for row in rows] == ["————————", "¿Qué? «año» ÀÉ ñandú"]


def test_rows_of_empty_cells_are_none(tmp_path: Path) -> None:
    rows, notes = read(tmp_path, 'q,a,,\n1,2,,\n,,,\n,"",,\n,3,,\n,,,\n')
    assert [(row["q"], row["a"]) for row in rows] == [("1", "2"), ("", "3")]
    assert "3 rows without any value are left out: lines 3, 4, 6" in notes
    assert read(tmp_path, 'q\nx\n""\n')[0] == [{"q": "x"}, {"q": ""}]  # one empty prompt is told as such


@pytest.mark.parametrize(
    ("before", "header", "line"),
    [("# made by me\n", "question,answer", 2), ("My sums;;\n;;\n", "Frage;Antwort;Punkte", 3)],
)
def test_a_header_below_a_title_is_found(tmp_path: Path, before: str, header: str, line: int) -> None:
    message = refused(tmp_path, f"{before}{header}\n" + "x,1\n" * 3)
    assert f"seems to be line {line} (" in message
    assert message.endswith("; remove the lines before it")


def test_neither_utf8_nor_windows_1252(tmp_path: Path) -> None:
    message = refused(tmp_path, b"a,b\n1,2\n3,\x81\n")
    assert "line 3 is neither UTF-8 nor Windows-1252 (byte 3 of the line is 0x81); save the file as UTF-8" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q,a\n1,2\n3,4,5\n", "line 3 has 3 cells, the header has 2; put a cell that holds a comma in double quotes"),
        ('q,a\n"x\ny",2\n3,4,5\n', "line 4 has 3 cells"),
        ('q;a\n1;2\n3;4\n5;6\n"a;b";c;d\n', "line 5 has 3 cells.*holds a semicolon"),
        ('q,a\n1,2\n3,"open\n4,5\n6,7\n', "line 3: the quote that opens at column 3 is never closed"),
        ('q,a\n"x\n1",2\n"y\nz","never\n', "line 5: the quote that opens at column 4 is never closed"),
        ('q,a\r1,2\r3,"open\r4,5\r', "line 3: the quote that opens at column 3"),
        (
            'q,a\n1,"open\n2,"y"\n',
            r"line 2: text follows the closing quote \(line 3\) of a cell that opens at column 3",
        ),
        ('q,a\n"a "b" c",2\n', r"line 2: text follows the closing quote .*write a quote inside a quoted cell twice"),
        ('q,a\n"say \\"hi\\"",2\n', "line 2: text follows the closing quote"),
        ("q,a\n1,2\n\0\0\0\0\n", "line 3 holds NUL bytes"),
        ("q,a,q\n1,2,3\n", r"names 'q' twice \(columns 1 and 3\); rename one of them"),
        ("q, q \n1,2\n", "names 'q' twice"),
        (";;;\nq;a\n", "is empty; name the columns there"),
        ('{"q": 1}\n{"q": 2}\n', r"holds JSON, not CSV; rename it to \.jsonl"),
        ('[{"q": 1}]\n', "holds JSON, not CSV"),
    ],
)
def test_damage_is_named_by_its_line(tmp_path: Path, content: str, message: str) -> None:
    assert re.search(message, refused(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "first", "note"),
    [
        (
            "q,a,b\n1\n2,3\n",
            {"q": "1", "a": None, "b": None},
            "2 rows have fewer cells than the header has.*lines 2, 3",
        ),
        ("q,a\n1,2,\n3,4,,\n", {"q": "1", "a": "2"}, "2 rows end in empty cells that have no column.*lines 2, 3"),
        (",q,a\n0,1,2\n", {"column_1": "0", "q": "1", "a": "2"}, "without a name; they are column_1"),
        ("column_2,,a\n0,1,2\n", {"column_2": "0", "column_2_": "1", "a": "2"}, "column_2_"),
        (" q , a\n1,2\n", {"q": "1", "a": "2"}, "blanks around column names .*' q ', ' a'"),
        ("17,3.5\n1,2\n", {"17": "1", "3.5": "2"}, r"only numbers \(17, 3.5\): is it a row\?"),
        ("q;a\n1;2\n", {"q": "1", "a": "2"}, "parted by a semicolon"),
        ('q,a\n1, "2"\n3, "4"\n', {"q": "1", "a": "2"}, "blanks before quoted cells"),
    ],
)
def test_what_is_told_of_odd_tables(tmp_path: Path, content: str, first: dict[str, Any], note: str) -> None:
    rows, notes = read(tmp_path, content)
    assert rows[0] == first
    assert re.search(note, "\n".join(notes))


def test_only_a_header_is_no_row(tmp_path: Path) -> None:
    assert read(tmp_path, "prompt,answer\n") == ([], [])


def test_a_quote_that_never_closes_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST", 1 << 20)
    with (tmp_path / "rows.csv").open("wb") as file:
        file.write(b'q,a\n1,2\n3,"')
        file.write((b"x" * 999 + b"\n") * 20_000)
    stream = open_file(tmp_path / "rows.csv")
    assert len(list(itertools.islice(stream.rows, 1))) == 1
    with pytest.raises(DataError, match="line 3: the quote that opens at column 3 is never closed"):
        list(stream.rows)
    assert stream.share is not None
    assert stream.share() < 0.2
