"""Where in a text its answer stands, and that looking from the end finds the same as reading it all."""

from __future__ import annotations

import random
import time

import pytest

from grpo_studio.verifiers.answer_text import (
    after_thinking,
    inside_answer_tags,
    last_box,
    last_statement,
    normalise,
)
from grpo_studio.verifiers.numbers import last_reading, readings


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("１５", "15"),
        ("٣٦", "36"),
        ("−6–7", "-6-7"),
        ("3½", "3 1/2"),
        ("３½", "3 1/2"),
        ("10²³", "10^23"),
        ("x⁻²", "x^-2"),
        ("１½²", "1 1/2^2"),
        ("1{,}250", "1,250"),
        ("1\\,250\\!000", "1,250,000"),
        ("11,\\! 111,\\! 100", "11,111,100"),
        ("11\\! 111", "11,111"),
        ("(1,\\,234)", "(1,\\,234)"),
        ("1,\\! 23", "1,\\! 23"),
        ("a\\,b {,}25", "a\\,b {,}25"),
        ("1\u066b5", "1.5"),
        ("\u200b3\u00ad6", "36"),
        ("3\u00a06", "3 6"),
        ("It’s é 答", "It’s é 答"),
        ("e\u0301", "é"),
        ("plain {2} \\frac", "plain {2} \\frac"),
    ],
)
def test_look_alikes_have_one_spelling(text: str, plain: str) -> None:
    assert normalise(text) == plain


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("7", "7"),
        ("<think>8</think>7", "7"),
        ("<think>8</think>9<think>8</think>7", "7"),
        ("8</think>7", "7"),
        ("<THINKING>8</Thinking> 7", " 7"),
        ("<think>7", None),
        ("8</think>9<think>7", None),
        ("<<2+2=4>>7", "<<2+2=4>>7"),
    ],
)
def test_only_what_follows_the_thinking_counts(text: str, after: str | None) -> None:
    assert after_thinking(text) == after


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("7", "7"),
        ("a<answer>7</answer>b", "7"),
        ("<answer>8</answer><ANSWER>7</ANSWER>", "7"),
        ("<answer>7", "7"),
        ("<answer></answer>7", ""),
        ("7</answer>", "7</answer>"),
    ],
)
def test_answer_tags_are_unwrapped(text: str, inside: str) -> None:
    assert inside_answer_tags(text) == inside


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("none", None),
        ("\\boxed{1} \\boxed{2}", (10, "2")),
        ("\\boxed{\\frac{1}{2}}", (0, "\\frac{1}{2}")),
        ("\\boxed{\\{1\\}}", (0, "\\{1\\}")),
        ("\\boxed{\\boxed{2} 3}", (7, "2")),
        ("{{{\\boxed{2}", (3, "2")),
        ("\\boxed{42}}", (0, "42")),
        ("\\boxed{}", (0, "")),
        ("\\boxed{1} \\boxed{2", (10, None)),
        ("\\boxed{1\\}", (0, None)),
        ("\\boxed", (0, None)),
        ("\\boxed 7", (0, "7")),
        ("\\boxed  {7}", (0, "7")),
        ("\\fbox{7}", (0, "7")),
        ("\\boxedx{7}", None),
        ("boxed{7}", None),
        ("\\\\boxed{7}", None),
        ("\\\\\\boxed{7}", (2, "7")),
        ("\\boxed{1} \\\\boxed{7}", (0, "1")),
    ],
)
def test_the_last_box(text: str, box: tuple[int, str | None] | None) -> None:
    assert last_box(text) == box


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("She has 7", None),
        ("#### 7", "7"),
        ("#### 7\n#### 8", "8"),
        ("#### 7 #### 8", "7 #### 8"),
        ("#### 7\n##### 8", "7"),
        ("#### 7\n#### Step 8", "7"),
        ("#### 7\n#### 8. Check", "7"),
        ("#### 7\n####", ""),
        ("####\n7", "7"),
        ("####\n\n- 7 apples", "7 apples"),
        ("####\nSo 7", ""),
        ("####\n7. So", ""),
        ("Answer:\n- 7", "7"),
        ("Answer:\n-7", "-7"),
        ("Answer: - 7", "- 7"),
        ("The answer is 5! = 120. So", "5! = 120"),
        ("The answer is 5! So 6", "5"),
        ("The answer is 7. So 8", "7"),
        ("answer is 7 #### 8", "8"),
        ("#### 8\nso the answer is 7", "7"),
        ("The answer is 7. The answer is clear.", "7"),
        ("The answer to the answer is 7", "7"),
        ("Answer: 7." + " word" * 40 + " the answer is near", "7"),
        ("final\n answer  7", "7"),
        ("\\boxed{7} answer: 8", "8"),
        ("answer: 8 \\boxed{7}", "7"),
        ("answer: 8 \\boxed{7", ""),
        ("İ answer: 7", "7"),
        ("İİİİİİİİİİİİ the answer is 7", "7"),
        ("’ the answer is 7’", "7’"),
        ("答案是7, answer", "7, answer"),
        ("the answer is 8, 答案是7", "7"),
    ],
)
def test_the_last_statement(text: str, stated: str | None) -> None:
    found = last_statement(text)
    assert (found.text if found else None) == stated


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("none", None),
        ("", None),
        ("7", "7"),
        ("She has 7", "7"),
        ("She has 5-3=2 pens", "2"),
        ("She has 3 3/4 of all the cups that are here", "3 3/4"),
        ("12 dollars = 1200 cents", "1200"),
        ("\\frac{3}{8} of all of them", "\\frac{3}{8}"),
        ("of the \\frac\n{3}{8}", "\\frac\n{3}{8}"),
        ("it has 7 of them in x_1 and more", "7"),
        ("we have 7, and the x_1 or H2 is more", "7"),
        ("so we have 6.02 x 10^23 of them", "6.02 x 10^23"),
        ("they have -$5 left over", "-$5"),
        ("word " * 100 + "7", "7"),
        ("7" + " word" * 100, "7"),
        ("7" + "é" * 200, "7"),
    ],
)
def test_the_last_number(text: str, last: str | None) -> None:
    found = last_reading(text)
    assert (found.text if found else None) == last
    assert found == (readings(text)[-1] if readings(text) else None)


def test_the_end_of_a_text_reads_as_in_the_whole() -> None:
    """1,500 texts from pieces of prose and numbers: `last_reading` is the last of `readings`."""
    pick = random.Random(4)
    prose = "7 12 1,250 -3 $ 5. .5 % / + - = x * ^ 10^ e5 \\frac{1}{2} \\frac \\times \\approx { } ( ) x_ H so has cm dollars é \n , ."
    pieces = prose.split(" ")
    for _ in range(1500):
        text = "".join(pick.choice(pieces) + pick.choice(["", " ", " "]) for _ in range(pick.randrange(1, 30)))
        whole = readings(text)
        assert last_reading(text) == (whole[-1] if whole else None), text


@pytest.mark.parametrize(
    "text",
    ["#####\n", "####a\n", "\\\\boxed", "\\boxedx", "\\boxed ", "\\fbox{", "answer\n", "answer: x\n", "final answer ", "İanswer", "<think></think>", "</answer>", "½²", "٣", "–", "1x", "a 1 b "],
)  # fmt: skip
def test_every_scan_is_linear(text: str) -> None:
    """About 200 kB each; a quadratic scan takes minutes."""
    long = text * (200_000 // len(text))
    began = time.process_time()
    plain = normalise(long)
    after_thinking(plain)
    inside_answer_tags(plain)
    last_statement(plain)
    last_reading(plain)
    assert time.process_time() - began < 1.5
