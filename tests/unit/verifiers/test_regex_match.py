from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_studio.verifiers import problems_of
from grpo_studio.verifiers.discovery import load_file
from grpo_studio.verifiers.judge import Judge, JudgeRequest

REWARDS = Path(__file__).resolve().parents[3] / "rewards"
[SPEC] = load_file(REWARDS / "regex_match.py")


@pytest.mark.parametrize(
    ("text", "params", "score"),
    [
        ("cats", {"pattern": "cat"}, 0.0),
        ("a cat.", {"pattern": "cat"}, 1.0),
        ("concat cat", {"pattern": "cat"}, 1.0),
        ("12345", {"pattern": r"\d{4,}"}, 1.0),
        ("(x)", {"pattern": r"\("}, 1.0),
        ("A CAT", {"pattern": "(?i)cat"}, 1.0),
        ("A CAT", {"pattern": "cat", "flags": "i"}, 1.0),
        ("a cat", {"pattern": "cat # comment", "flags": "x"}, 1.0),
        ("dogs", {"pattern": "cat|dog"}, 0.0),
        ("a\nb", {"pattern": "a.b", "match": "full", "flags": "s"}, 1.0),
        ("a b c", {"pattern": "a", "match": "full"}, 0.0),
        ("abab", {"pattern": r"(ab)\1"}, 1.0),
        ("\u4ef7\u683c5\u5143", {"pattern": r"\d+\u5143"}, 1.0),
        ("\u5171\u67095\u4e2a", {"pattern": r"\d+"}, 1.0),
        ("\u7b54\u3048\u306f5\u3067\u3059", {"pattern": "5"}, 1.0),
        ("\ub2f5\uc740 5\uc785\ub2c8\ub2e4", {"pattern": "5"}, 1.0),
        ("\u4ef7\u683c15\u5143", {"pattern": "5\u5143"}, 0.0),
        ("\u5171\u670950\u4e2a", {"pattern": "5"}, 0.0),
        ("\u4ef7cats\u5143", {"pattern": "cat"}, 0.0),
        ("\u00e9t\u00e9", {"pattern": "t"}, 0.0),
        ("x[", {"pattern": "[[a]", "match": "search"}, 1.0),
    ],
)
def test_match_modes(text: str, params: dict[str, Any], score: float) -> None:
    assert problems_of(SPEC, params, []) == []
    assert SPEC.function(text, **params).score == score


@pytest.mark.parametrize(
    "params",
    [{"pattern": "[unclosed"}, {"pattern": "a)(b"}, {"pattern": "a", "flags": "q"}, {"pattern": "a", "match": "no"}],
)
def test_a_bad_setting_is_one_message_at_set_up(params: dict[str, Any]) -> None:
    assert len(problems_of(SPEC, params, [])) == 1


@pytest.mark.parametrize("pattern", ["((a+)+)+$", r"((\w*)*)*=", "((a|a|a)+)+b"])
def test_a_pattern_that_backtracks_for_ever_on_a_short_text_is_refused_at_set_up(pattern: str) -> None:
    [problem] = problems_of(SPEC, {"pattern": pattern, "match": "search"}, [])
    assert "takes over 0.5 s on 19 characters" in problem


def test_off_the_main_thread_such_a_pattern_is_left_to_the_judge() -> None:
    params = {"pattern": "((a+)+)+$", "match": "search"}
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(problems_of, SPEC, params, []).result() == []
    with Judge([JudgeRequest("regex_match", params)], [REWARDS]) as judge:
        [[score]] = judge.score(["a"], {})
    assert (score.value, "takes over 0.5 s" in score.reason) == (None, True)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 40 + "!"),
        ("(a|a)*$", "a" * 40 + "!"),
        (r"(\w+\s?)*$", "word " * 20 + "!"),
        ("(.*)*x", "y" * 60),
    ],
)
def test_a_text_on_which_a_pattern_backtracks_for_ever_scores_0(pattern: str, text: str) -> None:
    assert problems_of(SPEC, {"pattern": pattern}, []) == []
    verdict = SPEC.function(text, pattern=pattern)
    assert (verdict.score, verdict.reason) == (0.0, "the pattern took longer than 0.5 s on this text")


def test_such_a_text_costs_no_judge_process_and_no_other_item() -> None:
    with Judge([JudgeRequest("regex_match", {"pattern": "(a+)+$"})], [REWARDS], time_limit=5.0) as judge:
        [scores] = judge.score(["aaa", "a" * 40 + "!", "b aa"], {})
    assert [(score.value, score.outcome) for score in scores] == [(1.0, "ok"), (0.0, "ok"), (1.0, "ok")]


@given(
    st.text(alphabet="ab 1.", max_size=12), st.sampled_from(["a+b", r"\d", "^a.*b$", "(a|b)+ ", r"\bb", "[^a]", "a??b"])
)
def test_searching_means_what_it_means_in_python(text: str, pattern: str) -> None:
    assert SPEC.function(text, pattern=pattern, match="search").score == float(re.search(pattern, text) is not None)
    assert SPEC.function(text, pattern=pattern, match="full").score == float(re.fullmatch(pattern, text) is not None)
