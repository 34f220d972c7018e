"""Which equations, lists, sets, units and words are the same answer. Each row is a kind: mend the reader or the comparison, not the row."""

from __future__ import annotations

import pytest
from math_pairs import boxed, math_equal, score_of_ideal, table

EQUAL = table(r"""
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
    9元 ~ 9
    9 원 ~ 9
    9元 ~ 9块
    9\text{円} ~ 9
    3個 ~ 3
    5개 ~ 5
    3万 ~ 30000
    2亿元 ~ 200000000
    5米 ~ 5 m
    5時間 ~ 5 hours
    60度 ~ 60^\circ
    \textcolor{red}{5} ~ 5
    {\color{red} 5} ~ 5
    x + \textcolor{blue}{y} ~ x + y
    \textcolor{red}{\text{Yes}} ~ yes
    {\bf 5} ~ 5
    1, 2, \ldots, 10 ~ 1,2,\dots,10
    1,2,...,n ~ 1, 2, \cdots, n
    1,2,... ~ 1,2,\ldots
    x>1 and x<3 ~ (1,3)
    x>1 \text{ and } x \le 3 ~ 1 < x \le 3
    1 < x \land x < 3 ~ (1,3)
    x<1 and x>3 ~ (-\infty,1)\cup(3,\infty)
    \{x \mid x>1 \text{ and } x<3\} ~ (1,3)
    \begin{aligned} x &= 5 \end{aligned} ~ 5
    \begin{align*} A &= 2+3 \\ &= 5 \end{align*} ~ 5
    \begin{aligned} x &= 5 \\ y &= 6 \end{aligned} ~ (x,y)=(5,6)
""")


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_these_are_the_same_answer(answer: str, gold: str) -> None:
    assert math_equal(boxed(answer), gold).score == 1.0
    assert math_equal(boxed(answer), boxed(gold)).score == 1.0


@pytest.mark.parametrize("gold", sorted({gold for _, gold in EQUAL}))
def test_the_gold_in_a_box_deserves_the_full_score(gold: str) -> None:
    assert score_of_ideal(gold) == 1.0
