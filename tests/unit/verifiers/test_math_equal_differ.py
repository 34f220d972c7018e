"""Which answers differ. Each row is a kind: mend the reader or the comparison, not the row."""

from __future__ import annotations

import pytest
from math_pairs import boxed, math_equal, score_of_ideal, table

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
    \sqrt{x^2} ~ x
    x ~ \sqrt{x^2}
    (x^2)^{1/2} ~ x
    \sqrt{x^6} ~ x^3
    \sqrt{x^2y} ~ x\sqrt{y}
    \sqrt{x^2y^2} ~ xy
    \sqrt{(a-b)^2} ~ a-b
    \sqrt[4]{x^4} ~ x
    \frac{x}{\sqrt{x^2}} ~ 1
    \ln x ~ \ln|x|
    \ln|x| + C ~ \ln x + C
    \arctan x + \arctan(1/x) ~ \pi/2
    x + \sqrt{y^2} = 5 ~ x + y = 5
    twenty-five ~ 15
    twenty-five ~ 20
    9元 ~ 8
    9元 ~ $9
    9円 ~ 9元
    5米 ~ 5厘米
    3万 ~ 3
    3倍 ~ 3
    3割 ~ 3
    3个半 ~ 3
    第3 ~ 3
    \textcolor{red}{5} ~ red
    \textcolor{red}{5} ~ 6
    1,2,\ldots,10 ~ 1,2,\dots,11
    1,2,\ldots,10 ~ 1,2,10
    1,2,... ~ 1,2
    x>1 or x<3 ~ (1,3)
    x>1 and x<3 ~ (-\infty,3)\cup(1,\infty)
    x>1 and x<3 ~ [1,3]
    x>1 and y<3 ~ (1,3)
    x<1 and x>3 ~ (1,3)
    \begin{align*} A &= 2+3 \\ &= 6 \end{align*} ~ 6
    \begin{aligned} x &= 5 \\ y &= 6 \end{aligned} ~ 6
""")


@pytest.mark.parametrize(("answer", "gold"), UNEQUAL)
def test_these_differ(answer: str, gold: str) -> None:
    verdict = math_equal(boxed(answer), gold)
    assert verdict.score == 0.0
    assert verdict.reason


@pytest.mark.parametrize("gold", sorted({gold for _, gold in UNEQUAL}))
def test_the_gold_in_a_box_deserves_the_full_score(gold: str) -> None:
    assert score_of_ideal(gold) == 1.0
