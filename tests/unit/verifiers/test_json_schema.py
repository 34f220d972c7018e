from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file
from grpo_studio.verifiers.judge import Judge, JudgeRequest

REWARDS = Path(__file__).resolve().parents[3] / "rewards"
[SPEC] = load_file(REWARDS / "json_schema.py")
N = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": False}


def score(text: str, schema: dict[str, Any], **params: Any) -> float | None:
    return SPEC.function(text, schema=schema, **params).score


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 3}',
        ' \n{"n":3.0}\n',
        '```json\n{"n": 3}\n```',
        "<think>{}</think>\n" + '{"n": 3}',
        "the prompt opened it</think>```json\n" + '{"n": 3}' + "\n```",
        '{"n": ' + "9" * 4000 + "}",
    ],
)
def test_a_document_that_fits_scores_1(text: str) -> None:
    assert score(text, N) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        '{"n": "3"}',
        '{"n": true}',
        '{"n": 3, "m": 4}',
        '{"n": 3.5}',
        '{"n": NaN}',
        '{"n": 1e400}',
        '{"n": 3, "n": 4}',
        '{"n": 3} {"n": 4}',
        'Sure! {"n": 3}',
        '{"n": 3} Done.',
        "{'n': 3}",
        '<think>{"n": 3}',
        '<think>{"n": 3}</think>',
        "[" * 100_000,
        '{"n": ' + "9" * 5000 + "}",
    ],
)
def test_anything_else_scores_0_with_a_reason(text: str) -> None:
    verdict = SPEC.function(text, schema=N)
    assert verdict.score == 0.0
    assert verdict.reason


def test_tags_inside_a_string_are_data() -> None:
    assert score('{"s": "</think> <think>"}', {"properties": {"s": {"minLength": 10}}}) == 1.0


def test_extract_takes_the_last_document_from_prose() -> None:
    text = 'First {"n": "x"}, better:\n```json\n{"n": 3}\n```\nDone.'
    assert score(text, N) == 0.0
    assert score(text, N, extract=True) == 1.0
    assert score('{"n": 3}, or rather {"n": "x"}', N, extract=True) == 0.0
    assert score("nothing", N, extract=True) == 0.0


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "objekt"}, "'objekt'"),
        ({"properties": 3}, "at properties"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}}, "does not hold"),
        ({"properties": {"a": {"pattern": "["}}}, "regex"),
        ({"$ref": "#"}, "without end"),
        ({"allOf": [{"anyOf": [{"$ref": "#"}]}]}, "without end"),
    ],
)
def test_a_bad_schema_is_one_message_at_set_up(schema: dict[str, Any], message: str) -> None:
    [problem] = problems_of(SPEC, {"schema": schema}, [])
    assert message in problem


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"enum": [{"$ref": "nowhere"}]},
        {"properties": {"$ref": {"type": "string"}, "pattern": {"type": "integer"}}},
        {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
        {"$id": "http://a/b", "$defs": {"c": {"$id": "c", "type": "array"}}, "$ref": "c"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "array"}]},
    ],
)
def test_a_good_schema_is_accepted_and_used(schema: dict[str, Any]) -> None:
    assert problems_of(SPEC, {"schema": schema}, []) == []
    assert score("[[]]", schema) in (0.0, 1.0)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 40 + "!"}),
        ({"patternProperties": {"^(a|a)*$": {}}}, {"a" * 40 + "!": 1}),
    ],
)
def test_a_document_that_is_too_costly_to_check_scores_0(schema: dict[str, Any], value: Any) -> None:
    assert problems_of(SPEC, {"schema": schema}, []) == []
    assert score(json.dumps(value), schema) == 0.0


@pytest.mark.parametrize(
    ("text", "factor", "expected"),
    [
        ("19.99", 0.01, 1.0),
        ("4.35", 0.01, 1.0),
        ("0.07", 0.01, 1.0),
        ("-0.3", 0.1, 1.0),
        ("1e300", 0.1, 1.0),
        ("9" * 4000, 0.1, 1.0),
        ("9" * 4000, 3, 1.0),
        ("0", 7, 1.0),
        ('"text"', 0.01, 1.0),
        ("true", 2, 1.0),
        ("19.995", 0.01, 0.0),
        ("0.075", 0.01, 0.0),
        ("1e-300", 0.01, 0.0),
        ("9" * 4000, 2, 0.0),
        ("7", 2.5, 0.0),
    ],
)
def test_a_multiple_is_one_of_the_decimals_that_are_written(text: str, factor: float, expected: float) -> None:
    assert score(text, {"multipleOf": factor}) == expected
    schema = {"properties": {"a": {"$ref": "#/$defs/m"}}, "$defs": {"m": {"multipleOf": factor}}}
    assert score(f'{{"a": {text}}}', schema) == expected


@pytest.mark.parametrize("text", ["1e-400", "1.00000000000000000001", "0.5"])
def test_what_has_a_fraction_is_no_integer(text: str) -> None:
    assert score(text, {"type": "integer"}) == 0.0


def test_it_works_in_a_judge_process() -> None:
    with Judge([JudgeRequest("json_schema", {"schema": N})], [REWARDS]) as judge:
        [scores] = judge.score(['{"n": 3}', "[" * 100_000, '{"n": "3"}'], {})
    assert [(one.value, one.outcome) for one in scores] == [(1.0, "ok"), (0.0, "ok"), (0.0, "ok")]


@given(st.text(), st.booleans())
def test_any_text_is_scored(text: str, extract: bool) -> None:
    assert score(text, {"type": "object"}, extract=extract) in (0.0, 1.0)
