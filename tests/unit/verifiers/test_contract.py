from __future__ import annotations

from typing import Any

import pytest

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers import Verdict, text_of, verifier
from grpo_studio.verifiers.contract import REQUIRED, spec_of

ANSWERED = {"role": "assistant", "content": "4"}
EXAMPLES = [("x", {"answer": "x"}, 1.0)]


def test_the_decorator_returns_the_function_itself_with_a_spec() -> None:
    def rule(completion: str, answer: str, prompt: str = "", *, size: int, strict: bool = True) -> Verdict:
        """Says yes.

        More words.
        """
        return Verdict(1.0)

    marked = verifier(examples=EXAMPLES)(rule)
    spec = spec_of(marked)

    assert marked is rule
    assert spec is not None
    assert (spec.name, spec.purpose, spec.path.name) == ("rule", "Says yes.", "test_contract.py")
    assert spec.columns == ("answer", "prompt")
    assert spec.optional_columns == {"prompt"}
    assert spec.params == {"size": REQUIRED, "strict": True}
    assert spec.examples[0].expected == 1.0


def _star(completion: str, *columns: str) -> float:
    return 1.0


def _keywords(completion: str, **others: str) -> float:
    return 1.0


def _wrong_first(text: str) -> float:
    return 1.0


def _nothing() -> float:
    return 1.0


async def _coroutine(completion: str) -> float:
    return 1.0


@pytest.mark.parametrize("function", [_star, _keywords, _wrong_first, _nothing, _coroutine])
def test_a_signature_that_hides_what_it_needs_is_refused(function: Any) -> None:
    with pytest.raises(VerifierError, match=function.__name__):
        verifier(examples=EXAMPLES)(function)


def test_a_verifier_without_examples_is_refused() -> None:
    with pytest.raises(VerifierError, match="no examples"):
        verifier(examples=[])(lambda completion: 1.0)


@pytest.mark.parametrize(
    "example",
    [
        "text",
        ("text", {}),
        ("text", ["answer"], 1.0),
        ("text", {}, "1.0"),
        ("text", {}, float("nan")),
        ("text", {}, [1.0]),
    ],
)
def test_an_example_of_another_form_is_refused_with_its_number(example: Any) -> None:
    with pytest.raises(VerifierError, match="example 2 is"):
        verifier(examples=[*EXAMPLES, example])(lambda completion: 1.0)


def test_all_columns_are_taken_but_those_that_a_param_or_the_completion_hides() -> None:
    def rule(completion: str, answer: str, *, size: int = 1, **columns: Any) -> float:
        return 1.0

    def plain(completion: str, answer: str) -> float:
        return 1.0

    everything, named = (spec_of(verifier(examples=EXAMPLES)(one)) for one in (rule, plain))
    assert everything is not None
    assert named is not None
    names = ["answer", "other", "size", "completion"]
    assert [name for name in names if everything.takes(name)] == ["answer", "other"]
    assert [name for name in names if named.takes(name)] == ["answer"]


def test_a_param_can_be_filled_from_a_column_of_its_name() -> None:
    def rule(completion: str, *, size: int = 1) -> float:
        return 1.0

    filled = spec_of(verifier(examples=EXAMPLES, from_columns=["size"])(rule))
    assert filled is not None
    assert filled.takes("size")
    assert not filled.takes("answer")
    with pytest.raises(VerifierError, match="no param 'width'"):
        verifier(examples=EXAMPLES, from_columns=["width"])(rule)


def test_a_verifier_says_whether_it_runs_code_of_a_model() -> None:
    def rule(completion: str) -> float:
        return 1.0

    quiet, runs = verifier(examples=EXAMPLES), verifier(examples=EXAMPLES, runs_code=True)
    assert [spec.runs_code for mark in (quiet, runs) if (spec := spec_of(mark(rule)))] == [False, True]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([], ""),
        ([ANSWERED], "4"),
        ([{"role": "assistant", "content": ""}, {"role": "tool", "content": "3"}, ANSWERED], "4"),
        ([ANSWERED, {"role": "user", "content": "sure?"}], "4"),
        ([{"role": "user", "content": "4"}], ""),
        ([{"role": "assistant", "content": None, "tool_calls": []}], ""),
        ([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "ab"),
        ([{"type": "thinking", "thinking": "5"}, {"type": "text", "text": "4"}], "4"),
        (ANSWERED, "4"),
        (["a", "b"], "ab"),
        (4, "4"),
    ],
)
def test_text_of_takes_every_form_of_a_completion(value: Any, text: str) -> None:
    assert text_of(value) == text
