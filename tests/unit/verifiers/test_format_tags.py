from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file

[SPEC] = load_file(Path(__file__).resolve().parents[3] / "rewards" / "format_tags.py")


def score(text: str, **params: Any) -> float | None:
    return SPEC.function(text, **params).score


@pytest.mark.parametrize(
    "text",
    [
        "<think>a</think><answer>5</answer>",
        "<think>\nlong\n\nwork\n</think>\n\n<answer>\n5\n</answer>\n",
        " \t\n<think>a</think> <answer>5</answer>\r\n",
        "\ufeff<think>a</think><answer>5</answer>\u200b",
        "<think>1 < 2 and <b>bold</b> </thinking></think><answer>x</answer>",
        "a chain that the prompt began\n</think>\n<answer>5</answer>",
        "(thinking aloud) a < b\n</think>\n<answer>5</answer>",
        "<b>bold</b> [1] thinker\n</think>\n<answer>5</answer>",
        "<thinker> is a name\n</think>\n<answer>5</answer>",
        "<think>e\u0301</think><answer>\u2801</answer>",
        "<think>\u3131</think><answer>\ud55c</answer>",
    ],
)
def test_the_wanted_form_in_any_white_space_scores_1(text: str) -> None:
    assert score(text) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "<think>a</think>",
        "<answer>5</answer>",
        "<answer>5</answer><think>a</think>",
        "<think>a<answer>5</answer></think>",
        "<think>a</think><answer>5",
        "<think>a</think><answer>1</answer><answer>5</answer>",
        "<think>a</think></think><answer>5</answer>",
        "<think>a</think><answer>5</answer></answer>",
        "<think><think>a</think><answer>5</answer>",
        "<think>I will write <answer> next</think><answer>5</answer>",
        "<think>a</think> so <answer>5</answer>",
        "Sure!\n<think>a</think><answer>5</answer>",
        "<think>a</think><answer>5</answer>\nI hope this helps.",
        "< think >a</think><answer>5</answer>",
        "<Think>a</think><answer>5</answer>",
        "<THINKING>a</think><answer>5</answer>",
        "\n<think/>a</think><answer>5</answer>",
        "<think a</think><answer>5</answer>",
        "[think]a</think><answer>5</answer>",
        "&lt;think&gt;a</think><answer>5</answer>",
        "<think>\u3164</think><answer>5</answer>",
        "<think>\u2800 \u115f</think><answer>5</answer>",
        "<think>\ufe0f\u034f</think><answer>5</answer>",
        "<think>a</think><answer>\uffa0</answer>",
        "<think>a</think>\u3164<answer>5</answer>",
        "<think></think><answer>5</answer>",
        "<think> \n\u200b</think><answer>5</answer>",
        "<think>a</think><answer> </answer>",
        "</think><answer>5</answer>",
        "<Think>a</Think><answer>5</answer>",
        "<think>a</think><answer>5</answer>\n<think>b</think><answer>5</answer>",
    ],
)
def test_any_departure_scores_0_and_says_which(text: str) -> None:
    verdict = SPEC.function(text)
    assert verdict.score == 0.0
    assert verdict.reason


def test_opened_says_who_writes_the_first_tag() -> None:
    whole, rest = "<think>a</think><answer>5</answer>", "a</think><answer>5</answer>"
    assert [score(whole, opened=how) for how in ("either", "no", "yes")] == [1.0, 1.0, 0.0]
    assert [score(rest, opened=how) for how in ("either", "no", "yes")] == [1.0, 0.0, 1.0]


def test_what_the_last_tag_holds_is_extracted() -> None:
    assert SPEC.function("<think>a</think><answer> 5 </answer>").extracted == "5"


@pytest.mark.parametrize("opened", ["either", "yes", "no"])
@pytest.mark.parametrize("tags", [["think", "answer"], ["plan"], ["a-b", "c:d", "e.f"]])
def test_its_own_ideal_completion_scores_1(tags: list[str], opened: str) -> None:
    assert SPEC.ideal is not None
    text = SPEC.ideal(answer="12", tags=tags, opened=opened)
    assert text is not None
    assert "12" in text
    assert score(text, tags=tags, opened=opened) == 1.0


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([], "at least one"),
        (["<think>"], "write 'think'"),
        (["think", "think"], "twice"),
        ([""], "not the name of a tag"),
        ([3], "not the name of a tag"),
    ],
)
def test_bad_tags_are_one_message_at_set_up(tags: list[Any], message: str) -> None:
    [problem] = problems_of(SPEC, {"tags": tags}, [])
    assert message in problem


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "x", " ", "\n"]), max_size=12))
def test_it_agrees_with_the_plain_statement_of_the_rule(pieces: list[str]) -> None:
    text = "".join(pieces)
    marks = [piece for piece in pieces if piece.startswith("<")]
    squeezed = "".join(text.split())
    filled = squeezed.strip("x") if marks[:1] == ["</think>"] else squeezed
    whole = {"<think>x</think><answer>x</answer>", "</think><answer>x</answer>"}
    shrunk = filled
    while "xx" in shrunk:
        shrunk = shrunk.replace("xx", "x")
    opened = shrunk == "</think><answer>x</answer>" and squeezed.startswith("x") and squeezed.endswith(">")
    assert score(text) == float((shrunk in whole and marks[:1] == ["<think>"]) or opened)
