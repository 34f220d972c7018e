"""What holds for every verifier in `rewards/` and any text, each judged in a real process.

Any text in: no exception out, a value in its range or an abstention, and the same again for the same text. And for
those that compare with a gold: a mutation of the right answer's value is never paid.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from grpo_studio.verifiers import discover
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score

REWARDS = Path(__file__).resolve().parents[2] / "rewards"
SPECS = {name: spec for name, spec in discover([REWARDS]).specs.items() if spec.place == "judge"}
# From the lowest to the highest value, of those that are not from 0 to 1.
RANGES = {"repetition_penalty": (-1.0, 0.0), "soft_overlong": (-1.0, 0.0)}
SIGNED = ("wrong_and_long", "ensemble")
PROFILE = settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
FEW = settings(PROFILE, max_examples=2)

PIECES = """
\\boxed{ \\boxed \\fbox{7} } { <think> </think> <answer> </answer> #### answer answer:is The-answer-is final
\\frac{1}{2} \\frac12 \\sqrt{2} \\text{cm} \\left( \\right) \\{ \\} \\pi \\\\ $ % ° = ≈ + - * / ( ) [ ] , . : ; ! ? | _ ^2
0 7 12 -3 1,250 1.250,75 3/8 1e5 1e999 24 ½ 10² １５ − A B (C) D) Option true None nan inf NaN
```python ``` def assert print(1) import {"n":3} "a": null true [[ ]] 答案是 정답은 。 é \u0301 \u200b \ud800 \x00
"""
TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*PIECES.split(), " ", " ", "\n"]),
        st.integers(0, 0x10FFFF).map(chr),  # of all characters, lone surrogates too
        st.integers(0, 10**20).map(str),
    ),
    max_size=25,
).map("".join)


@pytest.fixture(scope="module")
def judges() -> Iterator[dict[str, Judge]]:
    """One judge for each verifier, with the params of its first example."""
    made = {name: Judge([JudgeRequest(name, _split(name)[0])], [REWARDS], time_limit=20.0) for name in SPECS}
    yield made
    for judge in made.values():
        judge.close()


def _split(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The params and the columns of a verifier's first example."""
    spec = SPECS[name]
    values = spec.examples[0].values
    params = {key: value for key, value in values.items() if key in spec.params}
    return params, {key: value for key, value in values.items() if key not in spec.params}


def _scores(judge: Judge, texts: list[str], columns: dict[str, list[Any]]) -> list[Score]:
    [scores] = judge.score(texts, columns)
    return scores


def _holds_for_any_text(name: str, judge: Judge, texts: list[str]) -> None:
    low, high = RANGES.get(name, (-1.0 if name in SIGNED else 0.0, 1.0))
    columns = {key: [value] * len(texts) for key, value in _split(name)[1].items()}
    once, again = _scores(judge, texts, columns), _scores(judge, texts, columns)
    for text, score, repeated in zip(texts, once, again, strict=True):
        assert score.outcome in ("ok", "abstained"), (text, score)
        assert score.value is None or low <= score.value <= high, (text, score)
        assert (score.value, score.reason, score.extracted) == (repeated.value, repeated.reason, repeated.extracted), (
            text
        )


def _texts_near(name: str) -> st.SearchStrategy[list[str]]:
    """Any texts, and the verifier's own examples with some text around or inside them."""
    own = st.sampled_from([str(example.completion) for example in SPECS[name].examples])
    near = st.tuples(TEXTS, own, TEXTS, st.integers(0, 30)).map(lambda t: t[0] + t[1][: t[3]] + t[2] + t[1][t[3] :])
    return st.lists(TEXTS | own | near, min_size=1, max_size=6)


@pytest.mark.parametrize("name", sorted(name for name, spec in SPECS.items() if spec.seconds is None))
@PROFILE
@given(data=st.data())
def test_any_text_gets_a_score_in_range_or_an_abstention(
    name: str, judges: dict[str, Judge], data: st.DataObject
) -> None:
    _holds_for_any_text(name, judges[name], data.draw(_texts_near(name)))


@pytest.mark.parametrize("name", sorted(name for name, spec in SPECS.items() if spec.seconds is not None))
@FEW
@given(data=st.data())
def test_any_code_gets_a_score_in_range_or_an_abstention(
    name: str, judges: dict[str, Judge], data: st.DataObject
) -> None:
    """Each of these starts a process of its own, so there are few."""
    _holds_for_any_text(name, judges[name], data.draw(_texts_near(name)))


@pytest.mark.parametrize("name", sorted(name for name, spec in SPECS.items() if "answer" in spec.columns))
@pytest.mark.parametrize("gold", [None, "", " \n", {}, {"a": 1}, []], ids=repr)
def test_without_a_gold_every_verifier_abstains(name: str, gold: Any, judges: dict[str, Judge]) -> None:
    columns = {key: [value] for key, value in _split(name)[1].items()} | {"answer": [gold]}
    [score] = _scores(judges[name], [str(SPECS[name].examples[0].completion)], columns)
    assert (score.value, score.outcome) == (None, "abstained")
    assert score.reason


WRITTEN = {
    "math_numeric": ("#### {}", "The answer is {}.", "so it is {}", "\\boxed{{{}}}"),
    "math_boxed": ("\\boxed{{{}}}", "\\boxed{{1}} no, $\\boxed{{{}}}$."),
    "math_equal": ("\\boxed{{{}}}", "\\boxed{{1}} no, $\\boxed{{{}}}$."),
    "exact_match": ("{}", "<answer>{}</answer>"),
}


@st.composite
def _value_and_mutation(draw: st.DrawFn) -> tuple[str, str]:
    """A number, as it is written, and another: a sign, a digit, a place or a part is different."""
    whole = draw(st.integers(-(10**6), 10**6))
    decimals = draw(st.sampled_from(["", "", ".5", ".25", ".125", "/7", "/300"]))
    right = f"{whole}{decimals}"
    digits = str(abs(whole))
    at = draw(st.integers(0, len(digits) - 1))
    wrong = draw(
        st.sampled_from(
            [
                right[1:] if whole < 0 else f"-{right}",
                f"{whole + draw(st.sampled_from([1, -1, 10, 100]))}{decimals}",
                f"{'-' * (whole < 0)}{digits[:at] + digits[at + 1 :] or '0'}{decimals}",
                f"{'-' * (whole < 0)}{digits[:at] + digits[at] + digits[at:]}{decimals}",
                f"{whole}0{decimals}",
                f"{right}1",
                f"{right}0001" if "." in right else f"{right}1",  # below the 15 digits of floating-point noise
                f"{whole}.0001" if not decimals else f"{whole}",
            ]
        )
    )
    assume(Fraction(right) != Fraction(wrong))
    return right, wrong


@pytest.mark.parametrize("name", sorted(WRITTEN))
@PROFILE
@given(pairs=st.lists(_value_and_mutation(), min_size=4, max_size=12), form=st.integers(0, 9))
def test_a_mutated_number_is_never_paid(
    name: str, judges: dict[str, Judge], pairs: list[tuple[str, str]], form: int
) -> None:
    forms = WRITTEN[name]
    template = forms[form % len(forms)]
    golds = [right for right, _ in pairs]
    right_scores = _scores(judges[name], [template.format(right) for right, _ in pairs], {"answer": golds})
    wrong_scores = _scores(judges[name], [template.format(wrong) for _, wrong in pairs], {"answer": golds})
    for pair, right, wrong in zip(pairs, right_scores, wrong_scores, strict=True):
        assert (right.value, wrong.value) == (1.0, 0.0), (template, pair, right, wrong)


@PROFILE
@given(
    gold=st.sampled_from("ABCDEFGHIJ"),
    chosen=st.sampled_from("ABCDEFGHIJ"),
    form=st.sampled_from(
        ["{}", "({})", "The answer is {}.", "**{}**", "\\boxed{{\\text{{{}}}}}", "{}) this one", "Answer: {}"]
    ),
)
def test_another_letter_is_never_paid(judges: dict[str, Judge], gold: str, chosen: str, form: str) -> None:
    [score] = _scores(judges["multiple_choice"], [form.format(chosen)], {"answer": [gold]})
    assert score.value == (1.0 if gold == chosen else 0.0)


@PROFILE
@given(
    numbers=st.permutations([7, 5, 2]),
    signs=st.tuples(*[st.sampled_from("+-*")] * 2),
    wrong=st.sampled_from([1, 3, 4, 6, 8, 57, 75]),
    at=st.integers(0, 2),
)
def test_an_equation_with_another_number_or_value_is_never_paid(
    judges: dict[str, Judge], numbers: list[int], signs: tuple[str, str], wrong: int, at: int
) -> None:
    """The numbers of the first example are 7, 5 and 2."""
    target = _calculated(numbers, signs)
    mutated = [*numbers[:at], wrong, *numbers[at + 1 :]]
    right = f"<answer>({numbers[0]} {signs[0]} {numbers[1]}) {signs[1]} {numbers[2]}</answer>"
    other = f"<answer>({mutated[0]} {signs[0]} {mutated[1]}) {signs[1]} {mutated[2]}</answer>"
    golds = [target, _calculated(mutated, signs), target + 1]
    scores = _scores(judges["countdown"], [right, other, right], {"answer": golds, "numbers": [[7, 5, 2]] * 3})
    assert [score.value for score in scores] == [1.0, 0.0, 0.0]


def _calculated(numbers: list[int], signs: tuple[str, str]) -> int:
    steps = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
    return steps[signs[1]](steps[signs[0]](numbers[0], numbers[1]), numbers[2])
