"""Which answers are the same. Each row is a kind: mend the reader or the comparison, not the row."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers import discover
from grpo_studio.verifiers.discovery import problems_of

ROOT = Path(__file__).resolve().parents[3]
SPEC = discover([ROOT / "rewards"]).get("math_equal")
math_equal = SPEC.function


def table(text: str) -> list[tuple[str, str]]:
    """The pairs of a text of lines 'completion ~ gold'."""
    return [(left.strip(), right.strip()) for left, right in (line.split(" ~ ") for line in text.strip().splitlines())]


def boxed(text: str) -> str:
    return f"So it is \\boxed{{{text}}}."


EQUAL = table(r"""
    1/2 ~ 0.5
    \dfrac{1}{2} ~ 1/2
    \frac{-1}{2} ~ -\frac{1}{2}
    \frac12 ~ 0.5
    \frac1{72} ~ 1/72
    \frac{1}2 ~ .5
    \frac 3 8 ~ $\frac{3}{8}$
    6/8 ~ \frac{3}{4}
    0.\overline{3} ~ \frac13
    0.1\overline{6} ~ 1/6
    +5 ~ 5
    5. ~ 5
    007 ~ 7
    2.50 ~ 2.5
    2\frac{1}{2} ~ 2.5
    2\frac12 ~ 5/2
    2 1/2 ~ \frac{5}{2}
    -3 1/2 ~ -3.5
    3½ ~ 3.5
    0.30000000000000004 ~ 0.3
    1.4142135623730951 ~ \sqrt{2}
    1,250 ~ 1250
    1{,}250 ~ 1250
    10,\!000 ~ 10000
    11,\! 111 ~ 11111
    12\ 000 ~ 12000
    1 250 000 ~ 1250000
    12,34,567 ~ 1234567
    \$1,250.50 ~ 1250.5
    6.02 \times 10^{23} ~ 6.02e23
    9.0\times 10^{-3} ~ 0.009
    1e-5 ~ 10^{-5}
    2^{10} ~ 1024
    7^{100} ~ 7^{100}
    (-1)^{99999999999} ~ -1
    (5) ~ 5
    2+2=4 ~ 4
    = 5 ~ 5
    four ~ 4
    \text{three} ~ 3
    \frac{\sqrt{7}}{5} ~ \sqrt{7}/5
    5\sqrt{3} ~ $5\sqrt(3)$
    \sqrt3 ~ \sqrt{3}
    \sqrt 2 ~ 2^{1/2}
    \sqrt{12} ~ 2\sqrt{3}
    \sqrt[3]{8} ~ 2
    2*sqrt(3) ~ 2\sqrt{3}
    2√3 ~ 2\sqrt{3}
    \frac{1}{\sqrt{2}} ~ \frac{\sqrt{2}}{2}
    2\pi ~ 2 π
    \pi/2 ~ \frac{\pi}{2}
    \frac{3\pi}{2} ~ 1.5\pi
    \ln 4 ~ 2\ln 2
    \log_2 8 ~ 3
    \log 100 ~ 2
    \ln 5 ~ \log 5
    2+\frac{1}{\mathrm{e}} ~ 2+\frac{1}{e}
    \sin 30^\circ ~ 1/2
    \sin(\pi/6) ~ 0.5
    60^\circ ~ \pi/3
    \arctan 1 ~ \frac{\pi}{4}
    e^{i\pi} ~ -1
    \frac{1}{1+i} ~ \frac{1-i}{2}
    (1+i)^2 ~ 2i
    |{-3}| ~ 3
    \lfloor 3.7 \rfloor ~ 3
    \binom{5}{2} ~ 10
    5! ~ 120
    \gcd(12,18) ~ 6
    7 \mod 3 ~ 1
    \sum_{k=1}^{3} k ~ 6
    \sum_{i=1}^{4} i^2 ~ 30
    x^2-1 ~ (x-1)(x+1)
    \frac{x^2-1}{x-1} ~ x+1
    3x^2y ~ 3yx^2
    x**2 ~ x²
    \frac{2x+4}{2} ~ x+2
    \sin^2 x + \cos^2 x ~ 1
    \sin 2x ~ 2\sin x\cos x
    \sin^{-1} x ~ \arcsin x
    \sqrt{1/k} ~ \frac{1}{\sqrt{k}}
    \sqrt{x^2y} ~ x\sqrt{y}
    \ln(xy) ~ \ln x + \ln y
    e^{x+y} ~ e^x e^y
    \left|x-1\right| ~ |1-x|
    n! ~ n \cdot (n-1)!
    (-1)^n ~ \cos(n\pi)
    \sum_{k=1}^{n} k ~ \frac{n(n+1)}{2}
    \frac{\pi}{6} + 2\pi k ~ 2k\pi + \frac{\pi}{6}
    1/2x ~ \frac{x}{2}
    1/(2x) ~ 1/2x
    x_1+x_2 ~ x_{2}+x_1
    \theta + 1 ~ 1 + θ
    x=4 ~ 4
    4 ~ x = 4
    4=x ~ x = 4
    2x+1 ~ y=2x+1
    f(x)=2x+1 ~ 2x+1
    P(A) = 3/8 ~ \frac{3}{8}
    a+b=5 ~ 5
    AB = CD = 5 ~ 5
    \frac{NO}{BO} = 2 ~ 2
    \angle ABC = 60^\circ ~ 60
    \text{Area} = 9 ~ 9
    Area = 9 ~ 9
    \text{the answer is } 5 ~ 5
    A = \pi r^2 = 9\pi ~ 9\pi
    \frac{a}{1-r} = \frac{2}{1/2} = 4 ~ 4
    \sqrt{2} \approx 1.41 ~ \sqrt{2}
    x^2 + y^2 = 25 ~ y^2+x^2=25
    2x+4y=6 ~ x+2y=3
    2x - y + 1 = 0 ~ y = 2x+1
    x+y>3 ~ 3<x+y
    27, 64 ~ 27 and 64
    3, 1, 2 ~ $1, 2, 3$
    1, 2, and 3 ~ 3,2,1
    5 \text{ and } 7 ~ 7, 5
    x=1 \text{ or } x=2 ~ 2, 1
    x = 1, 2 ~ \{1,2\}
    x_1 = 2, x_2 = 1 ~ 1, 2
    \pm 3 ~ 3, -3
    x = 2 \pm \sqrt{3} ~ 2-\sqrt{3}, 2+\sqrt{3}
    x=\frac{-b\pm\sqrt{b^2-4ac}}{2a} ~ \frac{-b\pm\sqrt{b^2-4ac}}{2a}
    \frac{3}{4} \text{ or } 0.75 ~ 3/4
    1, 2, 2 ~ 1, 2
    100,200,300 ~ 100, 200, 300
    \{2,1\} ~ $\{1,2\}$
    {2, 1} ~ \{1,2\}
    \{5\} ~ 5
    \{1,1,2\} ~ \{1,2\}
    (1,5) ~ (1,5)
    \left(\frac{1}{2}, 3\right) ~ (0.5, 3)
    (1,250) ~ (1, 250)
    \langle 1,2,3 \rangle ~ (1,2,3)
    (x,y) = (1,2) ~ (1,2)
    x=1, y=2 ~ (1,2)
    y=2, x=1 ~ x=1, y=2
    x=1, y=2 ~ (x,y)=(1,2)
    (1, 2), (3, 4) ~ (3,4),(1,2)
    (5,2),(7,2) ~ p=5,q=2;p=7,q=2
    \begin{pmatrix} 1 \\ 2 \end{pmatrix} ~ (1,2)
    \begin{pmatrix} 0.5 & 2 \\ 3 & 4 \end{pmatrix} ~ \begin{bmatrix} \frac12 & 2 \\ 3 & 4 \end{bmatrix}
    2\begin{pmatrix} 1 & 2 \end{pmatrix} ~ \begin{pmatrix} 2 & 4 \end{pmatrix}
    x \in [2,5] ~ [2,5]
    2 \le x \le 5 ~ [2,5]
    x>3 ~ (3,\infty)
    3 < x ~ x > 3
    x \ge 2 ~ [2, \infty)
    0 < f(x) < 1 ~ (0,1)
    (3,\infty) \cup (-\infty, 1) ~ (-\infty,1)\cup(3,\infty)
    x<1 \text{ or } x>3 ~ (-\infty,1)\cup(3,\infty)
    x \neq 2 ~ (-\infty, 2) \cup (2, \infty)
    \mathbb{R} \setminus \{2\} ~ x \ne 2
    [1,5] \cap [2,7] ~ [2,5]
    \{x \mid x > 3\} ~ (3,\infty)
    all real numbers ~ \mathbb{R}
    (-\infty, \infty) ~ \mathbb{R}
    no solution ~ \emptyset
    \varnothing ~ \{\}
    -\infty ~ - infinity
    60^\circ ~ 60
    60° ~ 60
    45 degrees ~ 45^{\circ}
    35\% ~ $35\%$
    35\% ~ 35
    35\% ~ 0.35
    35 percent ~ 35\%
    -35\% ~ -0.35
    12.5\% ~ \frac{1}{8}
    3500\% ~ 35
    9\text{ cm} ~ 9
    9 cm ~ 9 centimeters
    9 cm^2 ~ 9 \text{ square cm}
    60 km/h ~ 60 \text{ kilometers per hour}
    15 m ~ 15
    12 apples ~ 12
    5\sqrt{2}\text{ meters} ~ 5\sqrt{2}
    \$9 ~ 9
    18 dollars ~ $18
    $18$ ~ 18
    5\text{ million} ~ 5,000,000
    5 dozen ~ 60
    -4^\circ C ~ -4
    1011_2 ~ 1011_{2}
    1011 ~ 1011_2
    04:30 ~ 4:30
    4:30 p.m. ~ 4:30
    3 : 4 ~ 3:4
    \text{C: more than ten} ~ C
    (C) ~ C
    \textbf{(C)} ~ C
    C) 12 ~ C
    C ~ \text{(C)}
    more than ten ~ C: more than ten
    \textbf{(B) } 5 ~ 5
    \text{Yes} ~ yes
    No solutions ~ no solution
    DNE ~ does not exist
    Even ~ even
    \text{Monday} ~ Monday
    \\frac{1}{2} ~ \frac{1}{2}
    \left( 3, \frac{\pi}{2} \right) ~ (3,\frac{\pi}{2})
""")

UNEQUAL = table(r"""
    0.33 ~ $\frac{1}{3}$
    0.333333 ~ 1/3
    3.14 ~ \pi
    22/7 ~ \pi
    1.414 ~ \sqrt{2}
    3 1/2 ~ 31/2
    3\frac12 ~ 3/2
    4 ~ -4
    17 ~ 7
    1,250 ~ 1, 2, 50
    1.250,75 ~ 1250.75
    0,5 ~ 0.5
    0.1 ~ 0.10000001
    1000000.4 ~ 1000000
    100000000000000.4 ~ 100000000000000
    \frac{1}{3^{70}} ~ $\frac{1}{3^{71}}$
    \frac{1}{900!} ~ $\frac{1}{901!}$
    0.0000003 ~ 0.0000004
    10^{-400} ~ 0
    10^{5000}+1 ~ 10^{5000}
    e^{200}+1 ~ e^{200}
    e^{-200} ~ 0
    7^{100} ~ 7^{101}
    x + 10^{-60} ~ x
    2+\frac{1}{\mathrm{e}} ~ $2-\frac{1}{\mathrm{e}}$
    5 ~ $5\sqrt(3)$
    5\sqrt(3) ~ 5
    \sqrt(3) ~ 3
    2\sqrt{3} ~ 2
    2\sqrt{3} ~ 3
    5\foo{3} ~ 5
    \foo{3} ~ 3
    2+\foo{5} ~ 2
    4! ~ 4
    4!! ~ 24
    3 4 ~ 12
    3 4 ~ 34
    3 - 1 ~ 31
    (3 ~ 3
    |3 ~ 3
    \frac{1}{0} ~ 2/0
    0/0 ~ 1
    0^0 ~ 1
    (-1)^{99999999999} ~ 1
    x ~ y
    x ~ X
    x1 ~ x
    x_1 ~ x_2
    x+1 ~ x-1
    x^2 ~ x^3
    5m ~ 5
    |x| ~ x
    -x ~ |x|
    (x+1)^{50} ~ (x+1)^{51}
    (x+y)^2 ~ x^2+y^2
    \sqrt{x+y} ~ \sqrt{x}+\sqrt{y}
    \sin x ~ x
    (-1)^n ~ 1
    (-1)^{n+m} ~ 1
    \cos(n\pi) ~ (-1)^{n+1}
    n! ~ n
    20 - x ~ |x-20|
    \max(x,100) ~ 100
    a - b ~ b - a
    a^b ~ b^a
    \frac{a}{b} ~ \frac{b}{a}
    1/2x ~ 2x
    1 + 2i ~ 1 - 2i
    y=4 ~ x=4
    x=5 ~ x=4
    2x=8 ~ 4
    2x=8 ~ x=4
    x^2=4 ~ 4
    x^2=16 ~ \pm 4
    5=4 ~ 4
    2+2=5 ~ 5
    x = 3+4 = 8 ~ 8
    f(x)=2x ~ g(x)=2x
    x+y=5 ~ x+y=6
    y=2x+1 ~ y=2x-1
    2x > 4 ~ x > 2
    x+y>3 ~ x+y<3
    x+y>3 ~ x+y\ge 3
    27 ~ 27 and 64
    64 ~ 27 and 64
    3, 4, 5 ~ 3, 4
    3 ~ 3, 4
    5 or 6 ~ 5
    12 ~ 1, 2
    2, 3 ~ 2, 2, 3
    \pm 3 ~ 3
    3 ~ \pm 3
    2 \pm 1 ~ 2
    \{1,2,3\} ~ \{1,2\}
    \{1,2\} ~ (1,2)
    (5,1) ~ (1,5)
    (2,1) ~ 1, 2
    [1,2] ~ (1,2)
    [1,2) ~ (1,2]
    (1,2,3) ~ (1,2)
    x=2, y=1 ~ x=1, y=2
    x=1, y=2 ~ (2,1)
    \begin{pmatrix} 1 & 2 \end{pmatrix} ~ \begin{pmatrix} 1 & 3 \end{pmatrix}
    \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix} ~ (1,2,3,4)
    2\begin{pmatrix} 1 & 2 \end{pmatrix} ~ \begin{pmatrix} 2 & 5 \end{pmatrix}
    x \ge 3 ~ (3,\infty)
    x \ne 2 ~ (-\infty,2)
    x<1 \text{ or } x>3 ~ (1,3)
    [1,5] \cap [2,7] ~ [2,6]
    \infty ~ -\infty
    \infty ~ 0
    no solution ~ 0
    \emptyset ~ \{0\}
    3500\% ~ 35\%
    350\% ~ 35
    9 cm ~ 9 m
    9 cm^2 ~ 9 cm
    50 cents ~ $50
    20^\circ C ~ 20^\circ F
    5 million ~ 5
    5 tenths ~ 5
    at least 5 ~ 5
    5 or more ~ 5
    5 remainder 2 ~ 5
    5 to 7 ~ 5
    not 5 ~ 5
    5 squared ~ 5
    1011_2 ~ 11
    1011_2 ~ 1011_3
    1:30 ~ 4:30
    4:30 p.m. ~ 4:30 a.m.
    3:4 ~ 4:3
    D ~ C
    C or D ~ C
    A: 5 ~ C
    \text{C: more} ~ D
    blue ~ lube
    even ~ odd
    not even ~ even
    Yes ~ No
    undefined ~ 0
    \sum_{k=1}^{3} k ~ 5
    \int_0^1 x dx ~ 1
""")


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_these_are_the_same_answer(answer: str, gold: str) -> None:
    assert math_equal(boxed(answer), gold).score == 1.0
    assert math_equal(boxed(answer), boxed(gold)).score == 1.0


@pytest.mark.parametrize(("answer", "gold"), UNEQUAL)
def test_these_differ(answer: str, gold: str) -> None:
    verdict = math_equal(boxed(answer), gold)
    assert verdict.score == 0.0
    assert verdict.reason


@pytest.mark.parametrize(
    ("completion", "gold", "expected"),
    [
        ("First \\boxed{11}, no: \\boxed{13}", "13", 1.0),
        ("First \\boxed{11}, no: \\boxed{13}", "11, 13", 0.0),
        ("\\boxed{1} and \\boxed{2}", "1, 2", 0.0),
        ("\\boxed{13} and then \\boxed{4", "13", 0.0),
        ("\\boxed{}", "5", 0.0),
        ("<think>perhaps \\boxed{8}</think> \\boxed{9}", "9", 1.0),
        ("<think>perhaps \\boxed{9}</think> hm", "9", 0.0),
        ("<think>\\boxed{9}", "9", 0.0),
        ("<answer>\\boxed{6}</answer>", "6", 1.0),
        ("\\boxed{\\boxed{5}}", "5", 1.0),
        ("\\boxed 7", "7", 1.0),
        ("答案是 \\boxed{１５}。", "15", 1.0),
        ("\\boxed{−6}", "-6", 1.0),
        ("The answer is 12.", "12", 1.0),
        ("**Final answer:** $\\frac{3}{8}$", "0.375", 1.0),
        ("The answer is C.", "C", 1.0),
        ("#### -4\n", "-4", 1.0),
        ("The answer is 3. No: the answer is 4.", "4", 1.0),
        ("The answer is not 5", "5", 0.0),
        ("so $x=3$, and thus $y = 4$", "4", 1.0),
        ("thus \\[ x = \\frac{1}{2} \\]", "0.5", 1.0),
        ("<answer>42</answer>", "42", 1.0),
        ("42", "42", 1.0),
        ("It costs $5 and not quite $7 in all", "7", 0.0),
        ("I tried 3, 4, 5.\nThen I gave up.", "5", 0.0),
        ("", "5", 0.0),
    ],
)
def test_which_part_of_a_completion_is_its_answer(completion: str, gold: str, expected: float) -> None:
    assert math_equal(completion, gold).score == expected


def test_threads_do_not_disturb_each_other() -> None:
    def judge(pair: tuple[str, str]) -> float | None:
        value: float | None = math_equal(boxed(pair[0]), pair[1]).score
        return value

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(judge, EQUAL * 2)) == {1.0}
        assert set(pool.map(judge, UNEQUAL * 2)) == {0.0}


def test_with_strict_box_only_a_box_counts() -> None:
    assert math_equal("The answer is 12.", "12", strict_box=True).score == 0.0
    assert math_equal("\\boxed{12}", "12", strict_box=True).score == 1.0


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        (4, "4", "5"),
        (4.0, "4", "4.1"),
        (0.5, "\\frac12", "2"),
        (True, "True", "False"),
        (["4", "four score"], "four score", "five"),
        ([None, "4"], "4", "5"),
        (["\\frac{1}{2}", "\\frac{1}{3}"], "1/3", "1/4"),
        ("  4 \n", "4", "5"),
        ("He earns 40*25=<<40*25=1000>>1,000.\n#### 1,250", "1250", "1000"),
        ("We add and get $\\boxed{\\frac{\\sqrt{7}}{5}}$ as asked.", "\\sqrt{7}/5", "7/5"),
        ("The answer is $x = 3$.", "3", "4"),
        ("$x=1$ or $x=2$", "2, 1", "2"),
        ("$\\{1,2\\}$.", "\\{2,1\\}", "\\{2\\}"),
        ("7^{7^{7^{7^{7}}}}", "7^{7^{7^{7^{7}}}}", "7"),
        ("\\int_0^1 f(t)\\,dt", "\\int_0^1 f(t) dt", "\\int_0^2 f(t) dt"),
        ("是", "是", "否"),
    ],
)
def test_gold_of_every_form(gold: Any, right: str, wrong: str) -> None:
    assert math_equal(boxed(right), gold).score == 1.0
    assert math_equal(boxed(wrong), gold).score == 0.0


@pytest.mark.parametrize(
    "gold",
    [
        None,
        "",
        "   ",
        {},
        {"answer": "4"},
        [],
        [[]],
        float("nan"),
        float("inf"),
        10**500,
        "???",
        "$$",
        "\\boxed{}",
        "\\frac{1}{",
        "We first add the numbers one by one and then we look at the table that was given in the text of the question "
        "and find that there is more than one way to read it which makes it hard.",
        "x" * 5000,
    ],
    ids=lambda gold: f"{gold!r:.20}",
)
def test_a_gold_that_is_no_answer_abstains_with_its_reason(gold: Any) -> None:
    verdict = math_equal("\\boxed{4}", gold)
    assert verdict.score is None
    assert "gold" in verdict.reason
    assert SPEC.ideal is not None
    assert SPEC.ideal(gold, **SPEC.params) is None


@pytest.mark.parametrize("gold", sorted({gold for _, gold in EQUAL + UNEQUAL}))
def test_the_gold_in_a_box_deserves_the_full_score(gold: str) -> None:
    assert SPEC.ideal is not None
    ideal = SPEC.ideal(gold, **SPEC.params)
    assert ideal is not None
    assert math_equal(ideal, gold).score == 1.0


def test_what_was_read_and_why_it_is_wrong_are_said() -> None:
    verdict = math_equal("\\boxed{x = 5}", "$x = 4$")
    assert (verdict.score, verdict.extracted) == (0.0, "x = 5")
    assert "x = 4" in verdict.reason
    assert math_equal("\\boxed{ \\frac{1}{2} }", "0.5").extracted == "\\frac{1}{2}"
    assert "false" in math_equal("\\boxed{2+2=5}", "5").reason
    assert "costly" in math_equal("\\boxed{9^{9^{9}}}", "5").reason


def test_a_tolerance_is_relative_and_of_numbers_only() -> None:
    assert math_equal("\\boxed{3.14}", "\\pi", tolerance=0.001).score == 1.0
    assert math_equal("\\boxed{3.1}", "\\pi", tolerance=0.001).score == 0.0
    assert math_equal("\\boxed{(99.9, 2)}", "(100, 2)", tolerance=0.01).score == 1.0
    assert math_equal("\\boxed{1.0001x}", "x", tolerance=0.01).score == 0.0
    assert problems_of(SPEC, {"tolerance": 1.5}, ["answer"]) == [
        "math_equal: tolerance is 1.5; it must be at least 0 and below 1"
    ]


def test_every_gsm8k_gold_matches_itself_and_not_the_next() -> None:
    path = ROOT.parent / "shared" / "data" / "gsm8k_test.jsonl"
    if not path.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{path} is missing")
        pytest.skip(f"{path} is missing")
    golds = [json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()]
    values = [gold.rpartition("####")[2].strip() for gold in golds]
    assert len(golds) == 1319
    for at, gold in enumerate(golds):
        following = values[(at + 1) % len(values)]
        assert math_equal(boxed(values[at]), gold).score == 1.0
        if values[at] != following:
            assert math_equal(boxed(following), gold).score == 0.0
