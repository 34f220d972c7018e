"""Which numbers and expressions are the same answer. Each row is a kind: mend the reader or the comparison, not the row."""

from __future__ import annotations

import pytest
from math_pairs import boxed, math_equal, score_of_ideal, table

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
    \sqrt{x^2y} ~ |x|\sqrt{y}
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
    \sqrt{x^2} ~ |x|
    \sqrt{x^4} ~ x^2
    \sqrt[3]{x^3} ~ x
    x\sqrt{x} ~ \sqrt{x^3}
    \sqrt{x}\sqrt{y} ~ \sqrt{xy}
    \sqrt{x/y} ~ \frac{\sqrt{xy}}{y}
    \log x^2 ~ 2\log x
    e^{2\ln x} ~ x^2
    \ln|\sec x| + C ~ C - \ln|\cos x|
    \sin(\arctan x) ~ \frac{x}{\sqrt{1+x^2}}
    x + \sqrt{y^2} = 5 ~ x + |y| = 5
    twenty-five ~ 25
    Thirty two ~ 32
    \text{ninety-nine} ~ 99
    forty ~ 40
""")


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_these_are_the_same_answer(answer: str, gold: str) -> None:
    assert math_equal(boxed(answer), gold).score == 1.0
    assert math_equal(boxed(answer), boxed(gold)).score == 1.0


@pytest.mark.parametrize("gold", sorted({gold for _, gold in EQUAL}))
def test_the_gold_in_a_box_deserves_the_full_score(gold: str) -> None:
    assert score_of_ideal(gold) == 1.0
