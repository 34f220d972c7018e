"""What the bench of verifiers judges: rows like those of a training run for the mathematical and the code verifiers,
the verifier's own examples for the others.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio.verifiers import VerifierSpec

BATCH = 512
CODE_BATCH = 64
"""A completion with code costs some processes, so that 512 of them would take a minute a round."""
_STEPS = (
    "First we look at what is given: there are {a} boxes and each of them holds {b} pens.\n",
    "Multiplying, {a} * {b} = <<{a}*{b}={c}>>{c}, so that is what we start from.\n",
    "She gives away 3 of them on Monday, 2.5 times as many on Tuesday, and keeps the rest for $1,250 in sales.\n",
    "That leaves the amount which the question asks for, and we check it once more: {c} - {a} is not {b}.\n",
)


@dataclass(frozen=True)
class Rows:
    """A batch for one verifier; `boxed`: TRL's accuracy_reward has the same job on it."""

    params: Mapping[str, Any]
    completions: list[str]
    columns: dict[str, list[Any]]
    boxed: bool = False


def rows_for(spec: VerifierSpec, number: int) -> Rows:
    """The batch of that round. Each has other rows, so that no answer is remembered from the round before."""
    chance = random.Random(number)
    make = {
        "math_numeric": lambda: _mathematical(chance, _number, "#### {}", boxed=False),
        "math_boxed": lambda: _mathematical(chance, _number, "So the answer is \\boxed{{{}}}.", boxed=True),
        "math_equal": lambda: _mathematical(chance, _expression, "So the answer is $\\boxed{{{}}}$.", boxed=True),
        "code_asserts": lambda: _code(chance, "assert twice({n}) == {twice}\nassert twice(0) == 0"),
    }.get(spec.name)
    return make() if make is not None else _from_examples(spec)


def _mathematical(
    chance: random.Random, draw: Callable[[random.Random], tuple[str, str]], ending: str, *, boxed: bool
) -> Rows:
    """Worked solutions of about 400 characters, half of which end in the gold answer."""
    completions, golds = [], []
    for number in range(BATCH):
        a, b = chance.randrange(2, 99), chance.randrange(2, 99)
        gold, wrong = draw(chance)
        work = "".join(_STEPS).format(a=a, b=b, c=a * b)
        completions.append(work + ending.format(gold if number % 2 else wrong))
        golds.append(gold)
    return Rows({}, completions, {"answer": golds}, boxed)


def _number(chance: random.Random) -> tuple[str, str]:
    gold = chance.randrange(-999, 99999)
    return f"{gold:,}", str(gold + chance.randrange(1, 9))


def _expression(chance: random.Random) -> tuple[str, str]:
    """Answers of the kinds that the MATH data set has."""
    a, b, c = (chance.randrange(2, 60) for _ in range(3))
    kinds = (
        (f"{a}", f"{a + 1}"),
        (f"\\frac{{{a}}}{{{a + b}}}", f"\\frac{{{a + 1}}}{{{a + b}}}"),
        (f"{a}\\sqrt{{{b}}}", f"{a}\\sqrt{{{b + 1}}}"),
        (f"({a}, {b})", f"({b}, {a + 100})"),
        (f"\\frac{{\\pi}}{{{a}}}", f"\\frac{{\\pi}}{{{a + 1}}}"),
        (f"x^2 + {a}x - {b}", f"x^2 + {b + 60}x - {a}"),
        (f"[{a}, {a + b}]", f"({a}, {a + b})"),
        (f"{a}.{c}", f"{a}.{c + 1}"),
    )
    return chance.choice(kinds)


def _code(chance: random.Random, tests: str) -> Rows:
    completions, golds = [], []
    for number in range(CODE_BATCH):
        n = chance.randrange(1, 999)
        body = "return 2 * n" if number % 2 else "return n + 1"
        completions.append(f"We double it.\n```python\ndef twice(n):\n    {body}  # {number}\n```")
        golds.append(tests.format(n=n, twice=2 * n))
    return Rows({}, completions, {"answer": golds})


def _from_examples(spec: VerifierSpec) -> Rows:
    """The examples that share the most common params and columns, repeated."""

    def kind(values: Mapping[str, Any]) -> str:
        params = {name: value for name, value in values.items() if name in spec.params}
        return repr((sorted(params.items()), sorted(set(values) - set(params))))

    common = Counter(kind(example.values) for example in spec.examples).most_common(1)[0][0]
    examples = [example for example in spec.examples if kind(example.values) == common]
    size = CODE_BATCH if spec.seconds is not None else BATCH
    chosen = [examples[place % len(examples)] for place in range(size)]
    names = [name for name in examples[0].values if name not in spec.params]
    return Rows(
        {name: value for name, value in examples[0].values.items() if name in spec.params},
        [str(example.completion) for example in chosen],
        {name: [example.values[name] for example in chosen] for name in names},
    )
