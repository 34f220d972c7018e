"""JSON Lines and JSON: numbers as they are written, every damaged line by its number, lists read in pieces."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.data.files import open_file
from grpo_studio.errors import DataError


def read(folder: Path, content: str | bytes, name: str = "rows.jsonl") -> tuple[list[Any], list[str]]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    stream = open_file(path)
    return list(stream.rows), stream.notes


def refused(folder: Path, content: str | bytes, name: str = "rows.jsonl") -> str:
    with pytest.raises(DataError) as caught:
        read(folder, content, name)
    assert str(caught.value).isprintable()
    return str(caught.value)


SAME = [
    "1",
    "-7",
    "0",
    "1.5",
    "-0.0",
    "1e+16",
    "1e-05",
    "0.1",
    "12345678901234567890",
    "true",
    "null",
    '"007"',
    '"NaN"',
]
KEPT = ["1.10", "1.0E5", "1E5", "1e5", "1e-5", "-0", "0.10", "12345678901234567890.0", "1E400", "NaN", "-Infinity", "9" * 5000]  # fmt: skip


@pytest.mark.parametrize("written", SAME)
@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_values_that_python_writes_alike_are_values(tmp_path: Path, written: str, form: str) -> None:
    text = f'{{"a": {written}}}'
    rows, notes = read(tmp_path, text if form == "jsonl" else f"[{text}]", f"rows.{form}")
    assert json.dumps(rows[0]["a"]) == written
    assert notes == []


@pytest.mark.parametrize("written", KEPT)
@pytest.mark.parametrize(
    ("name", "around"),
    [("a.jsonl", '{"x": 1}\n%s\n'), ("a.json", '[{"x": 1},\n%s]'), ("b.json", '{"data": [\n{},%s]}')],
)
def test_numbers_of_another_form_are_the_text_that_was_written(
    tmp_path: Path, written: str, name: str, around: str
) -> None:
    rows, notes = read(tmp_path, around % f'{{"a": {written}}}', name)
    assert rows[1] == {"a": written}
    assert any("keep the form in which they were written" in note and note.endswith(" 2") for note in notes)


def test_numbers_inside_lists_and_objects_are_numbers(tmp_path: Path) -> None:
    rows, notes = read(tmp_path, '{"a": [1.10, {"b": 1E5, "c": -0}], "d": {"e": [Infinity]}, "f": "x"}')
    assert rows == [{"a": [1.1, {"b": 100000.0, "c": 0}], "d": {"e": [math.inf]}, "f": "x"}]
    assert all(type(value) is float for value in (rows[0]["a"][0], rows[0]["d"]["e"][0]))
    assert notes == []


def test_the_note_counts_and_names_the_first_lines(tmp_path: Path) -> None:
    _, notes = read(tmp_path, '{"a": 1.10}\n' * 7 + '{"a": 1}\n')
    assert len(notes) == 1
    assert notes[0].startswith("numbers of 7 rows")
    assert notes[0].endswith("lines 1, 2, 3, 4, 5 and more")


GOOD = '{"prompt": "q"}\n'


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ('{"prompt": ', "is not JSON: expecting value at column 12 .*; mend or remove that line$"),
        ('{"prompt": "q"', "is not JSON: expecting ',' delimiter"),
        ("{'prompt': 'q'}", "expecting property name enclosed in double quotes at column 2"),
        ('{"prompt": "q"} {"prompt": "r"}', "more text follows the object at column 17"),
        ('{"a": 1},', "more text follows the object at column 9"),
        ('{"a": "x\ty"}', "invalid control character at column 9"),
        ('{"a": 007}', "is not JSON"),
        ("plain text", "is not JSON: expecting value at column 1 .it starts plain text."),
        ("[1, 2]", r"is a list, not an object of columns \(\[1, 2\]\); write one object a line"),
        ('"text"', "is a text, not an object"),
        ("5", "is a number, not an object"),
        ("1.10", "is a number, not an object"),
        ("null", "is null, not an object"),
        ("true", "is true, not an object"),
        ('{"a": 1, "b": 2, "a": 3}', 'the key "a" stands twice in one object'),
        ('{"a": [{"r": 1, "r": 1}]}', 'the key "r" stands twice'),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": ' + "[" * 150 + "]" * 150 + "}", r"nested too deeply \(more than 100 levels\)"),
        ("\0\0\0\0", "holds NUL bytes"),
        ('{"a": "x\0"}', "holds NUL bytes"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: str, message: str) -> None:
    assert re.search(rf"rows\.jsonl line 17 .*{message}", refused(tmp_path, GOOD * 15 + "\n" + bad + "\n" + GOOD))


def test_line_17302(tmp_path: Path) -> None:
    message = refused(tmp_path, GOOD * 17_301 + '{"prompt": "q"\n' + GOOD * 10)
    assert message.startswith(f"{tmp_path}/rows.jsonl line 17302 is not JSON: ")


def test_rows_before_a_bad_line_are_given(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(GOOD * 3 + "oops")
    assert len(list(itertools.islice(open_file(tmp_path / "rows.jsonl").rows, 3))) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": "M\xfcller"}\n', r"line 1 is not UTF-8 \(byte 9 of the line is 0xfc\); save the file as UTF-8"),
        (GOOD.encode() * 2 + b'{"a": "\xe4\xf6"}', "line 3 is not UTF-8"),
        (b'[\n{"a": 1},\n{"a": 2}\n]', r"line 1 is not JSON: .*one list of all objects goes into a \.json file"),
        (b"{'a': 1}\n", "as Python prints it: write each row with json.dumps"),
        (b'{"a": 1},\n{"a": 2}', "line 1 is not JSON: .*; leave out the comma at the end of each line"),
        (b'[{"a": 1}]\n[{"a": 2}]\n', "line 1 is a list, not an object .*around a list of messages"),
        (b'[{"a": 1}, {"a": 2}]', r"is one JSON list, not one object a line; rename it to end in \.json"),
        (b'{\n "a": 1\n}\n', "write each object in one line"),
        (b"prompt,answer\n1,2\n", r"a table goes into a \.csv file"),
        (b'\xff\xfe{\x00"\x00\x00\xd8', "near line 1 is not utf-16"),
    ],
)
def test_whole_files_of_another_kind(tmp_path: Path, content: bytes, message: str) -> None:
    assert re.search(message, refused(tmp_path, content))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n \n"])
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, end: str) -> None:
    texts = ["Müller", "数学", "\U0001f600", "line\u2028separator\x85\x0b"]
    content = end.join(json.dumps({"a": text}, ensure_ascii=False) for text in texts) + end
    rows, notes = read(tmp_path, content.encode(encoding))
    assert ([row["a"] for row in rows], notes) == (texts, [])
    listed = json.dumps([{"a": text} for text in texts], ensure_ascii=False, indent=1).replace("\n", end)
    assert read(tmp_path, listed.encode(encoding), "a.json") == (rows, [])


def test_marks_inside_a_file_of_joined_files(tmp_path: Path) -> None:
    assert len(read(tmp_path, GOOD.encode("utf-8-sig") * 3)[0]) == 3


def test_lines_end_alike_wherever_a_piece_of_the_file_ends(tmp_path: Path) -> None:
    rows = [{"a": "x" * size} for size in (262_130, 262_131, 262_132, 5, 524_271)]
    for end in ("\n", "\r\n", "\r"):
        assert read(tmp_path, end.join(map(json.dumps, rows)))[0] == rows


def test_a_very_long_line_and_one_that_never_ends(tmp_path: Path) -> None:
    assert len(read(tmp_path, json.dumps({"a": "x" * 3_000_000}))[0][0]["a"]) == 3_000_000
    with (tmp_path / "rows.jsonl").open("wb") as file:
        file.write(GOOD.encode())
        file.truncate(1 << 40)  # a hole: no disk is used
    with pytest.raises(DataError, match="line 2 is longer than 64 MiB"):
        list(open_file(tmp_path / "rows.jsonl").rows)


def test_half_a_surrogate_pair_is_replaced_and_told(tmp_path: Path) -> None:
    content = r'{"a": "x\ud800y", "b": [{"\udc00": "\ud83d\ude00"}]}' + "\n" + r'{"a": "\ud83d\ude00"}'
    rows, notes = read(tmp_path, content)
    assert rows == [{"a": "x\ufffdy", "b": [{"\ufffd": "\U0001f600"}]}, {"a": "\U0001f600"}]
    assert [
        note for note in notes if note.startswith("1 rows hold half a surrogate pair") and "line 1" in note
    ] == notes


# JSON: one list


@pytest.mark.parametrize(
    ("content", "rows", "note"),
    [
        ('[{"a": 1}, {"b": 2}]', [{"a": 1}, {"b": 2}], None),
        (" \n[ ] ", [], None),
        ('{"data": [{"a": 1}], "version": "1", "columns": ["a"]}', [{"a": 1}], "'data'; other keys are left out"),
        ('{"train": [{"a": 1}], "test": []}', [{"a": 1}], "'train'"),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}], "JSON Lines"),
        ('\n\n{"a": 1}\n\n{"a": 2}', [{"a": 1}, {"a": 2}], "JSON Lines"),
    ],
)
def test_forms_of_a_json_file(tmp_path: Path, content: str, rows: list[Any], note: str | None) -> None:
    found, notes = read(tmp_path, content, "rows.json")
    assert found == rows
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}', r"is one object \(keys: a\), not a list of objects; give a list of objects"),
        ('{"a": {"0": 1}, "b": {"0": 2}}', r"keys: a, b.*orient='records'"),
        ('{"a": ["x"], "b": ["y"]}', "not a list of objects"),
        ('{"train": [{"a": 1}], "test": [{"a": 2}]}', r"several lists of rows \(train, test\); give each a file"),
        ('{\n"data": [{"a": 1},\n]}', "line 3 is not JSON"),
        ('{\n"a": 1\n}\n{\n"a": 2\n}\n{oops', "line 7 is not JSON: item 3: expecting property name"),
        ('{\n"a": 1\n}\n{\n"a": 2\n}\n[3]', r"item 3 \(line 7\) is a list"),
        ('{\n"a": 1\n}\noops', "line 4 is not JSON: more text follows the first object"),
        ("{}", r"is one object \(without keys\)"),
        ('[\n{"a": 1},\n[2]\n]', r"item 2 \(line 3\) is a list"),
        ('[{"a": 1}, null]', r"item 2 \(line 1\) is null"),
        ("[1.10]", r"item 1 \(line 1\) is a number"),
        ('[\n{"a": 1},\n{"a": 2\n]', r"line 4 is not JSON: item 2: expecting ',' delimiter"),
        ('[\n{"a": 1}\n{"a": 2}\n]', r"line 3 is not JSON: a comma is missing before '{'"),
        ('[\n{"a": 1},\n', "line 3 is not JSON: item 2: expecting value"),
        ('[\n{"a": 1}\n', "line 3 is not JSON: it ends inside its list"),
        ('[{"a": 1},\n{"a": "never closed]', "line 2 is not JSON: item 2: unterminated string"),
        ('[{"a": 1},\n]', "line 1 is not JSON: a comma follows the last item of the list"),
        ('[{"a": 1}]\n[{"a": 2}]', "holds more after its list ends"),
        ('[] {"a": 1}', "holds more after its list ends"),
        ('[{"a": 1, "a": 2}]', 'line 1 is not JSON: item 1: the key "a" stands twice'),
        ('[\n{"a": ' + "[" * 100_000, r"cannot read .*item 1 \(line 2\) is nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ('{"data": [' + '{"a": ' * 100_000, "nested too deeply"),
        ('"text"', "is not a list of objects: it starts"),
        ("prompt,answer", "is not a list of objects: it starts prompt,answer"),
        ("007", "is not a list"),
    ],
)
def test_json_that_is_no_list_of_objects(tmp_path: Path, content: str, message: str) -> None:
    assert re.search(message, refused(tmp_path, content, "rows.json"))


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
@pytest.mark.parametrize("between", ["", " ", "\n", "\n\n \n"])
@pytest.mark.parametrize("indent", [None, 2])
def test_one_object_after_the_other(tmp_path: Path, name: str, between: str, indent: int | None) -> None:
    rows = [{"a": n, "b": ["}{", {"c": "x" * 300_000}]} for n in range(3)]
    found, notes = read(tmp_path, between.join(json.dumps(row, indent=indent) for row in rows), name)
    assert found == rows
    lines = indent is None and "\n" in between
    assert len(notes) == (not lines or name == "rows.json")
    assert lines or "one object after the other" in notes[0]


def test_a_json_file_that_is_not_utf8_says_the_line(tmp_path: Path) -> None:
    content = b"[" + b'{"a": "1"},\n' * 50_000 + b'{"a": "M\xfcller"}]'
    assert "line 50001 is not UTF-8" in refused(tmp_path, content, "rows.json")


def test_items_longer_than_a_piece_and_lines_far_down(tmp_path: Path) -> None:
    rows = [{"a": "x\\\n\u00e9" * 200_000}, *({"a": str(n)} for n in range(30_000)), {"b": [["y" * 900_000]]}]
    text = json.dumps(rows, indent=1, ensure_ascii=False)
    assert read(tmp_path, text, "rows.json")[0] == rows
    line = text[:-2].count("\n") + 2
    message = refused(tmp_path, text[:-2] + ',\n{"oops"}]', "rows.json")
    assert f"line {line} is not JSON: item 30003: expecting ':' delimiter" in message
