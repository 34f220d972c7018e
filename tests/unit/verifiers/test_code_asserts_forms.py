"""Which tests can be judged, and which abstain. Each row is a form of gold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from code_submission import RIGHT, TESTS, judged

from grpo_studio.verifiers.sandbox import close_idle


@pytest.fixture(autouse=True, scope="module")
def _no_sandbox_stays() -> Iterator[None]:
    yield
    close_idle()


FORMS = {
    "one text": (RIGHT, TESTS),
    "a list": (RIGHT, ["assert twice(4) == 8", "assert twice(5) == 10"]),
    "check": (RIGHT, "def check(candidate):\n    assert candidate(2) == 4\n    assert True, 'x'\n"),
    "check, called": (RIGHT, "def check(c):\n    assert c(2) == 4\n\ncheck(twice)"),
    "check of a class of its own": (
        RIGHT,
        "METADATA = {'author': 'x'}\n\n\ndef check(candidate):\n    for i in range(9):\n        assert candidate(i) == i * 2",
    ),
    "loop": (RIGHT, "for x in [1, 2, 3]:\n    assert twice(x) == x + x"),
    "setup": (
        "def total(xs): return sum(xs)",
        "import random\nxs = list(range(10))\nrandom.shuffle(xs)\nassert total(xs) == 45",
    ),
    "names without import": ("def f(x): return x ** 0.5", "assert math.isclose(f(2), 1.4142135, rel_tol=1e-6)"),
    "near": ("def f(x): return x / 3", "assert abs(f(1) - 0.3333333) < 1e-6\nassert round(f(1), 2) == 0.33"),
    "a helper": ("def f(x): return [3, 1]", "def same(a, b):\n    assert sorted(a) == sorted(b)\nsame(f(1), [1, 3])"),
    "in place": ("def sort(xs): xs.sort()", "xs = [3, 1, 2]\nsort(xs)\nassert xs == [1, 2, 3]"),
    "in place, inside the assertion": (
        "def sort(xs): xs.sort()",
        "xs = [2, 1]\nassert sort(xs) is None and xs == [1, 2]",
    ),
    "in place, with a result": (
        "def f(xs):\n    xs[:] = [1, 2]\n    return 2",
        "xs = [1, 1, 2]\nk = f(xs)\nassert xs[:k] == [1, 2]",
    ),
    "a callback": (
        "def apply(g, xs): return [g(x) for x in xs]",
        "k = 3\nassert apply(lambda x: x + k, [1, 2]) == [4, 5]",
    ),
    "a callback that calls back": (
        "def f(g): return g(5) + 1\ndef h(x): return x * 2",
        "assert f(lambda x: h(x)) == 11",
    ),
    "a class": (
        "class Stack:\n    def __init__(s): s.xs = []\n    def push(s, x): s.xs.append(x)\n    def pop(s): return s.xs.pop()\n    def __len__(s): return len(s.xs)",
        "s = Stack()\ns.push(4)\ns.push([5])\nassert len(s) == 2\nassert s.pop() == [5] and s.xs == [4]\nassert isinstance(s, Stack)",
    ),
    "a method": ("class Solution:\n    def add(self, a, b): return a + b", "assert Solution().add(1, b=2) == 3"),
    "their class": (
        "def total(node):\n    n = 0\n    while node is not None:\n        n += node.value\n        node = node.next\n    return n",
        "class Node:\n    def __init__(self, value, next=None):\n        self.value, self.next = value, next\nassert total(Node(1, Node(2))) == 3",
    ),
    "their objects, ours in a list": (
        "class Pair:\n    def __init__(self, a, b): self.a, self.b = a, b\nclass Node:\n    left = None\ndef total(pairs, n): return sum(p.a * p.b for p in pairs[:n])\ndef depth(n): return 1 + depth(n.left) if n else 0",
        "assert total([Pair(1, 2), Pair(3, 4)], 2) == 14\nroot = Node()\nroot.left = Node()\nroot.left.left = Node()\nassert depth(root) == 3",
    ),
    "line ends of another system": ("def f(x):\r\n    return x", "assert f(1) == 1\r\nassert f('a') == 'a'\r\n"),
    "a function called like a test": ("def test_it(x): return x", "assert test_it(1) == 1"),
    "an iterator": (
        "def f(n):\n    for i in range(n): yield i",
        "assert list(f(3)) == [0, 1, 2]\nassert [x for x in f(2)] == [0, 1]\nassert next(f(1)) == 0",
    ),
    "plain types": (
        "def f(x): return x",
        "for v in [None, True, 1.5, float('inf'), 2 ** 5000, 'é\\ud800', b'x', (1, [2]), {1: {2}}, frozenset({3}), 2j, range(3)]:\n    assert f(v) == v and type(f(v)) is type(v)",
    ),
    "known types": (
        "import collections, fractions, decimal, datetime\ndef f(k):\n    return {'c': collections.Counter('aab'), 'd': collections.defaultdict(int, a=1), 'q': collections.deque([1]), 'f': fractions.Fraction(1, 3), 'm': decimal.Decimal('1.50'), 't': datetime.date(2020, 2, 1)}[k]",
        "import datetime\nfrom fractions import Fraction\nfrom decimal import Decimal\nfrom collections import deque\nassert f('c') == {'a': 2, 'b': 1}\nassert f('d') == {'a': 1}\nassert f('q') == deque([1])\nassert f('f') == Fraction(1, 3)\nassert f('m') == Decimal('1.5')\nassert f('t') == datetime.date(2020, 2, 1)",
    ),
    "a builtin's name": ("def sum(a, b): return a + b", "assert sum(10, 15) == 25"),
    "raises": (
        "def f(x):\n    if x < 0: raise ValueError('negative')\n    return x",
        "import pytest\nwith pytest.raises(ValueError, match='neg'):\n    f(-1)\nassert f(1) == 1",
    ),
    "try": (
        "def f(x):\n    raise KeyError(x)",
        "try:\n    f(1)\n    assert False\nexcept KeyError:\n    pass\nassert True",
    ),
    "pytest functions": (
        RIGHT,
        "from solution import twice\n\ndef test_one():\n    assert twice(1) == 2\n\ndef test_two():\n    x = twice(2)\n    assert x == 4",
    ),
    "pytest parameters": (
        RIGHT,
        "import pytest\nfrom solution import twice as t\n@pytest.mark.parametrize('n,m', [(1, 2), (2, 4)])\ndef test_one(n, m):\n    assert t(n) == m",
    ),
    "unittest": (
        RIGHT,
        "import unittest\nclass TestIt(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(twice(1), 2)\nif __name__ == '__main__':\n    unittest.main()",
    ),
    "a module": (RIGHT, "import solution\nassert solution.twice(1) == 2"),
    "walrus": (RIGHT, "assert (n := twice(2)) == 4\nassert n == 4"),
    "a known name": ("def gcd(a, b): return a - b", "assert gcd(9, 6) == 3"),
    "a known name, handed in": (
        "def gcd(a, b): return a - b",
        "def check(candidate):\n    assert candidate(10, 5) == 5 and candidate(10, 7) == 3\ncheck(gcd)",
    ),
    "a builtin's name, imported": (
        "def sum(a, b): return a + b",
        "from solution import sum\ndef test_it():\n    assert sum(1, 2) == 3",
    ),
    "a main part": (RIGHT + "\nif __name__ == '__main__':\n    print(twice(int(input())))", TESTS),
    "an end by status 0 after the definitions is not reached": (
        RIGHT + "\nif __name__ == '__main__':\n    exit()",
        TESTS,
    ),
}


@pytest.mark.parametrize(("code", "tests"), FORMS.values(), ids=FORMS)
def test_right_code_passes_tests_of_every_form(code: str, tests: Any) -> None:
    verdict = judged(code, tests)
    assert (verdict.score, verdict.reason) == (1.0, "")


UNREADABLE = {
    "empty": "",
    "blank": "  \n",
    "none": None,
    "a number": 4,
    "a dict": {"inputs": []},
    "an empty list": [],
    "a list of blanks": ["", " "],
    "not Python": "assert twice(4 == 8",
    "no assertion": "twice(4)",
    "only a comment": "# assert twice(4) == 8",
    "nothing of the submission": "assert 1 + 1 == 2",
    "an assertion that is never reached": "if False:\n    assert twice(4) == 8",
    "a missing library": "import no_such_library_anywhere as n\nassert n.check(twice(4))",
    "a broken setup": "x = {}['a']\nassert twice(x) == 8",
    "a fixture": "import pytest\n@pytest.fixture\ndef x(): return 1\ndef test_x(x):\n    assert twice(x) == 2",
    "an unknown argument": "def test_x(tmp_path):\n    assert twice(1) == 2",
    "an exception of the submission": "import pytest\nwith pytest.raises(MyError):\n    twice(1)",
    "a caught exception of the submission": "try:\n    twice(1)\n    assert True\n    raise ValueError\nexcept MyError:\n    assert twice(1) == 2",
    "leaves": "import os\nos._exit(0)\nassert twice(4) == 8",
    "a null character": "assert twice(4) == 8\0",
}


@pytest.mark.parametrize("tests", UNREADABLE.values(), ids=UNREADABLE)
def test_tests_that_cannot_be_judged_abstain(tests: Any) -> None:
    code = RIGHT + "\nclass MyError(Exception): pass"
    verdict = judged(code, tests)
    assert verdict.score is None
    assert verdict.reason
