"""An equation that reaches the target with the given numbers."""

from __future__ import annotations

import json
import re
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import after_thinking, inside_answer_tags, last_box, normalise
from grpo_studio.verifiers.equation import Equation, read_equation, solve
from grpo_studio.verifiers.time_bound import OutOfTime, time_bound

_MOST_NUMBERS = 50
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?")
# In prose: a stretch of arithmetic from its first number or bracket to its last.
_OPERATORS = r"\u00d7\u00f7\u00b7\u2217+*/xX-"
_ARITHMETIC = re.compile(rf"[-(\[]*[0-9](?:[()\[\]=.\s0-9{_OPERATORS}]|\\(?:times|cdot|div)(?![A-Za-z]))*[0-9)\]]")
_OPERATOR = re.compile(rf"[\\{_OPERATORS}]")


def check(numbers: list[Any] | None, use_all: bool) -> str | None:
    """The numbers, when they are given here and not by a column."""
    if numbers is not None and _numbers(numbers) is None:
        return f"numbers is {numbers!r:.80}; give from 1 to {_MOST_NUMBERS} of them, or none for those of a column"
    return None


def ideal(answer: Any = None, nums: Any = None, *, numbers: Any = None, use_all: bool = True) -> str | None:
    """A solution found by trying: quick up to five numbers, given up after two seconds."""
    given = _numbers(nums if numbers is None else numbers) or []
    sizes = range(len(given), len(given) - 1 if use_all else 0, -1)
    try:
        with time_bound(2.0):
            for target, size in product(_targets(answer), sizes):
                for chosen in combinations(given, size):
                    if found := solve(chosen, target):
                        return f"<answer>{found} = {target}</answer>"
    except OutOfTime:
        return None
    return None


@verifier(
    examples=[
        ("<answer>(7 + 5) * 2</answer>", {"answer": "24", "numbers": [7, 5, 2]}, 1.0),
        ("<answer>(7 + 5) \u00d7 2 = 24</answer>", {"answer": 24, "numbers": [7, 5, 2]}, 1.0),
        ("7 * 5 - 2 = 33, so the answer is\n\\boxed{2 \\times (5 + 7)}", {"answer": 24, "numbers": [7, 5, 2]}, 1.0),
        ("<answer>12 * 2</answer>", {"answer": "24", "numbers": [7, 5, 2]}, 0.0),
        ("<answer>7 + 5</answer>", {"answer": "12", "numbers": [7, 5, 2]}, 0.0),
        ("<answer>7 + 5</answer>", {"answer": "12", "numbers": [7, 5, 2], "use_all": False}, 1.0),
        ("<answer>9**9**9**9</answer>", {"answer": "24", "numbers": [9, 9, 9, 9]}, 0.0),
        ("<answer>7 + 5</answer>", {"answer": "", "numbers": [7, 5]}, None),
    ],
    check=check,
    ideal=ideal,
    from_columns=("numbers",),
)
def countdown(
    completion: str, answer: Any, nums: Any = None, *, numbers: list[Any] | None = None, use_all: bool = True
) -> Verdict:
    """An equation whose value is the target in `answer` and that uses each number exactly once: 1 or 0.

    The numbers are the param `numbers`, or else those of the column `numbers` or `nums`. With `use_all` off some of
    them may be left out. The equation is what the answer tags hold, or the last box, or the last arithmetic in the last
    line, after the thinking; a tail '= 24' must be true, and so must a chain of them ('= 12*2 = 24'), of which the
    first side counts. + - * / and brackets are known, and a minus in front of a number or a bracket; values are exact.
    Powers and anything else score 0. A gold list holds alternatives.
    """
    targets, given = _targets(answer), _numbers(nums if numbers is None else numbers)
    if not targets:
        shown = "an integer" if isinstance(answer, int) else f"{answer!r:.100}"
        return Verdict(None, f"the gold answer is no target number of a usual size: {shown}")
    if given is None:
        return Verdict(None, "no numbers: give the param 'numbers', or a column 'numbers' or 'nums'")
    try:
        written = _written(completion)
        equation = read_equation(written)
    except ValueError as error:
        return Verdict(0.0, str(error))
    reason = _fault(equation, targets, given, use_all)
    return Verdict(0.0 if reason else 1.0, reason, written)


def _fault(equation: Equation, targets: list[Fraction], given: list[Fraction], use_all: bool) -> str:
    used, allowed = Counter(equation.numbers), Counter(given)
    if extra := list((used - allowed).elements()):
        return f"it uses {extra[0]} more often than it is given"
    if use_all and (left := list((allowed - used).elements())):
        return f"it does not use {left[0]}"
    if equation.value not in targets:
        return f"its value is {equation.value!s:.40}, not {targets[0]}"
    if equation.stated is not None and equation.stated != equation.value:
        return f"it says {equation.stated!s:.40}, but its value is {equation.value!s:.40}"
    return ""


def _written(completion: str) -> str:
    """The text of the equation. Raises ValueError when there is none."""
    text = after_thinking(normalise(completion))
    if text is None:
        raise ValueError("the thinking never ends")
    inside = inside_answer_tags(text)
    if box := last_box(inside):
        if box[1] is None:
            raise ValueError("the box never closes")
        return box[1]
    if inside != text:
        plain = inside.strip(" \t\r\n`.")
        return plain[2:-2] if plain.startswith("**") and plain.endswith("**") else plain
    lines = inside.strip().splitlines()
    found = _ARITHMETIC.findall(lines[-1][-2000:]) if lines else []
    equations = [stretch for stretch in found if _OPERATOR.search(stretch, 1)]
    if not equations:
        raise ValueError("no equation in the last line")
    return str(equations[-1])


def _targets(answer: Any) -> list[Fraction]:
    if isinstance(answer, (list, tuple)):
        return [value for item in answer if (value := _exact(item)) is not None]
    value = _exact(answer)
    return [] if value is None else [value]


def _numbers(value: Any) -> list[Fraction] | None:
    """The numbers of a list, of its JSON text or of text such as '3, 5 and 7'; None when they cannot be read."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = [part for part in re.split(r"[\s,;\[\]()]+|and", value) if part]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= _MOST_NUMBERS:
        return None
    read = [_exact(item) for item in value]
    return None if None in read else [item for item in read if item is not None]


def _exact(value: Any) -> Fraction | None:
    """A number or its text, exactly; None for anything else. A decimal means what it shows: 0.1 is one tenth."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = f"{value:.15g}" if isinstance(value, float) else str(value) if not isinstance(value, int) else ""
    if isinstance(value, int):
        return Fraction(value) if value.bit_length() < 100 else None
    text = text.strip().replace(",", "").replace("\u2212", "-")
    return Fraction(text) if _NUMBER.fullmatch(text) else None
