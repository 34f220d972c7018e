"""What is odd in rows: counted by kind, with the numbers of the rows."""

from __future__ import annotations

from typing import Any

from grpo_studio.config import ColumnSettings, DatasetSettings
from grpo_studio.data import Sample, map_columns, to_sample
from grpo_studio.data.row_numbers import listed_rows
from grpo_studio.data.scan import Finding, RowScan, kinds_in_words, sample_findings

SETTINGS = DatasetSettings(source="rows.jsonl")
USER = {"role": "user", "content": "1 + 1?"}


def scanned(prompts: list[Any], answers: list[Any] | None = None) -> tuple[RowScan, dict[str, Finding]]:
    rows = [{"prompt": prompt, "answer": "1"} for prompt in prompts]
    for row, answer in zip(rows, answers or (), strict=False):
        row["answer"] = answer
    scan = RowScan(SETTINGS, map_columns([{"prompt": "a", "answer": "1"}], ColumnSettings(), "rows.jsonl"))
    for number, row in enumerate(rows, start=1):
        scan.add(number, row)
    return scan, {f"{finding.kind}{'!' * finding.unusable}": finding for finding in scan.findings()}


def sampled(*questions: tuple[str, Any]) -> list[Sample]:
    rows = [{"prompt": question, "answer": gold} for question, gold in questions]
    mapping = map_columns(rows, ColumnSettings(), "rows.jsonl")
    samples = [to_sample(row, SETTINGS, mapping, number) for number, row in enumerate(rows, start=1)]
    return [sample for sample in samples if sample is not None]


def found(train: list[Sample], held_out: list[Sample] | None = None) -> dict[str, Finding]:
    mapping = map_columns([{"prompt": "a", "answer": "1"}], ColumnSettings(), "rows.jsonl")
    return {finding.kind: finding for finding in sample_findings(train, held_out or [], mapping)}


def test_rows_without_a_prompt_are_counted_by_kind_and_number() -> None:
    scan, findings = scanned(["fine", None, "", "  ", [], {"a": 1}, "fine, too"])
    assert (scan.rows, scan.unusable.count, scan.unusable.rows) == (7, 5, [2, 3, 4, 5, 6])
    assert findings["missing_prompt!"].rows == (2,)
    assert findings["empty_prompt!"].rows == (3, 4, 5)
    assert findings["prompt_not_text!"].rows == (6,)
    assert str(findings["empty_prompt!"]) == "3 of 7 rows have an empty prompt (rows 3, 4, 5)"
    assert kinds_in_words(scan.findings()) == "no prompt (1), an empty prompt (3), a prompt that is no text (1)"


def test_doubtful_rows_are_told_after_those_that_cannot_be_used() -> None:
    scan, findings = scanned([5, {"a": 1}, "text"])
    assert scan.unusable.rows == [2]
    assert [(finding.kind, finding.rows) for finding in scan.findings()] == [
        ("prompt_not_text", (2,)),
        ("number_prompt", (1,)),
        ("mixed_types", (2, 3)),
    ]
    assert findings["number_prompt"].example == "the prompt is the number 5, read as text"


def test_odd_chats_are_counted() -> None:
    tool = {"role": "assistant", "content": "", "tool_calls": [{"name": "f"}]}
    scan, findings = scanned(
        [
            [USER],
            [{"role": "wizard", "content": "a"}, USER],
            [USER, {"role": "assistant", "content": "2"}],
            [USER, tool, USER],
        ]
    )
    assert scan.unusable.rows == [2, 3, 4]
    assert (findings["odd_role!"].rows, findings["assistant_last!"].rows, findings["tool_calls!"].rows) == (
        (2,),
        (3,),
        (4,),
    )
    assert "wizard" in findings["odd_role!"].example


def test_only_the_first_ten_rows_are_named_and_all_are_counted() -> None:
    _, findings = scanned([None] * 25)
    finding = findings["missing_prompt!"]
    assert (finding.count, finding.rows) == (25, tuple(range(1, 11)))
    assert str(finding) == "25 of 25 rows have no prompt (rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)"
    assert finding.as_dict()["rows"] == list(range(1, 11))


def test_a_column_that_mixes_types_names_the_rows_of_the_rare_one() -> None:
    _, findings = scanned([f"q{number}" for number in range(6)], ["7", "8", 9, "10", "11", True])
    mixed = findings["mixed_types"]
    assert "answer" in mixed.message
    assert (mixed.count, mixed.rows) == (2, (3, 6))
    assert "mixed_types" not in scanned(["a", "b"], ["1", "2"])[1]


def test_a_sound_set_has_no_findings() -> None:
    assert scanned(["a", "b"])[1] == {}
    assert found(sampled(("a", "1"), ("b", "2")), sampled(("c", "3"))) == {}


def test_prompts_that_come_twice_are_told_apart_by_their_golds() -> None:
    findings = found(sampled(("a", "1"), ("b", "2"), ("a", "1"), ("a", "3"), ("b", 2)))
    assert findings["duplicate_prompt"].rows == (3, 5)
    assert findings["duplicate_other_gold"].rows == (4,)
    assert findings["duplicate_other_gold"].example == "rows 1 and 4, 1 and 3"


def test_a_held_out_question_in_another_writing_is_told() -> None:
    train, held_out = sampled(("What is 1 + 1?", "2"), ("Why?", "so")), sampled(("what is 1 + 1", "2"), ("How?", "so"))
    finding = found(train, held_out)["held_out_overlap"]
    assert (finding.count, finding.rows) == (1, (1,))
    assert finding.example == "held-out row 1 and training row 1"
    assert finding.message.startswith("1 of 2 held-out rows ask what a training row asks")


def test_missing_golds_are_counted_over_both_sides() -> None:
    findings = found(sampled(("a", None), ("b", "2"), ("c", 0)), sampled(("d", "")))
    assert findings["missing_gold"].count == 2
    assert findings["missing_gold"].message == "2 of 4 rows have no gold answer"


def test_no_gold_is_missing_where_none_is_mapped() -> None:
    mapping = map_columns([{"prompt": "a"}], ColumnSettings(answer="-"), "rows.jsonl")
    assert sample_findings(sampled(("a", None)), [], mapping) == []


def test_rows_are_listed_for_people() -> None:
    assert listed_rows([5]) == "row 5"
    assert listed_rows([5, 1204]) == "rows 5, 1204"
    assert listed_rows([1, 2, 3, 4, 5, 6]) == "rows 1, 2, 3, 4, 5, ..."
    assert listed_rows([1, 2], 12) == "rows 1, 2, ..."
