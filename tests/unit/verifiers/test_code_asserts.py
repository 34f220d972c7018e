"""What passes and what does not when code is judged by tests. Each row is a kind."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from code_submission import RIGHT, TESTS, code_asserts, judged

from grpo_studio.verifiers.sandbox import FORCE_VARIABLE, close_idle


@pytest.fixture(autouse=True, scope="module", params=["bubblewrap", "limits"])
def _level(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FORCE_VARIABLE, request.param)
        yield
        close_idle()


FAKED = {
    "leaves while loading": "import sys\ndef twice(n): return 0\nsys.exit(0)",
    "leaves hard while loading": "import os\ndef twice(n): return 0\nos._exit(0)",
    "leaves in the call": "import sys\ndef twice(n): sys.exit(0)",
    "leaves hard in the call": "import os\ndef twice(n): os._exit(0)",
    "leaves the second time": "import os\nseen = []\ndef twice(n):\n    if seen: os._exit(0)\n    seen.append(n)\n    return 8",
    "kills itself": "import os, signal\ndef twice(n): os.kill(os.getpid(), signal.SIGKILL)",
    "ends by atexit": "import atexit, os\natexit.register(lambda: os._exit(0))\ndef twice(n): return 0",
    "a hook for exceptions": "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\ndef twice(n): return 0",
    "equal to everything": "class Yes:\n    def __eq__(self, o): return True\n    __hash__ = None\ndef twice(n): return Yes()",
    "an int equal to everything": "class Yes(int):\n    def __eq__(self, o): return True\n    __hash__ = None\ndef twice(n): return Yes(0)",
    "a class equal to everything": "class M(type):\n    def __eq__(self, o): return True\n    __hash__ = None\nclass Yes(metaclass=M): pass\ndef twice(n): return Yes",
    "a replaced builtin": "import builtins\nbuiltins.abs = builtins.bool = builtins.len = lambda *a: 0\ndef twice(n): return 0",
    "shadows what the tests use": "def __counted__(line): raise SystemExit\n__statement__ = __counted__\ndef twice(n): return 0",
    "reads its own file": "import re\ns = open(__file__).read()\ndef twice(n): return 8 if n == 4 else -2 if 'twice' in s else 0",
    "reads the command line": "import re\ns = open('/proc/self/cmdline').read()\nassert '== 8' in s\ndef twice(n): return 2 * n",
    "prints a record": "print('loaded 2 passed', flush=True)\ndef twice(n): return 0",
    "replaces write": "import os\nw = os.write\nos.write = lambda f, d: w(f, d.replace(b'i0;', b'i8;'))\ndef twice(n): return 0",
    "raises AssertionError": "def twice(n): raise AssertionError",
    "a generator": "def twice(n): yield 2 * n",
    "nothing": "",
    "not Python": "def twice(n) return 2 * n",
    "another name": "def double(n): return 2 * n",
    "a coroutine": "async def twice(n): return 2 * n",
    "closes all files": "import os\nos.closerange(0, 1000)\ndef twice(n): return 2 * n",
}
SEARCHES = """
import gc, os, re, sys, zlib
def found():
    frame = sys._getframe()
    while frame:
        yield from list(frame.f_locals.values()) + list(frame.f_globals.values())
        frame = frame.f_back
    yield from gc.get_objects()
    for pid in range(1, 5000):
        for name in ("environ", "cmdline"):
            try:
                yield open(f"/proc/{pid}/{name}", "rb").read(1000000)
            except OSError:
                pass
answer = 0
for value in found():
    try:
        digits = re.findall("[0-9]{6}", repr(value)[:100000])
    except BaseException:
        continue
    for part in digits:
        if zlib.crc32(part.encode()) == CHECKSUM:
            answer = int(part)
def twice(n):
    return answer
"""


def test_what_is_expected_is_nowhere_to_be_found() -> None:
    search = SEARCHES.replace("CHECKSUM", str(zlib.crc32(b"271828")))
    verdict = judged(search, "assert twice(1) == 271828", seconds=10.0)
    assert verdict.score == 0.0
    assert "does not hold" in verdict.reason
    assert judged(f"given = '271828'\n{search}", "assert twice(1) == 271828", seconds=10.0).score == 1.0


ELSEWHERE = {
    "numbers near each other": (
        "class E:\n    def __sub__(s, o): return 0.0\ndef f(x): return E()",
        "assert abs(f(1) - 3.0) < 1e-6",
    ),
    "a shadowed abs": ("abs = lambda x: 0\ndef f(x): return 9", "assert abs(f(1) - 3.0) < 1e-6"),
    "a shadowed isclose": (
        "import math\nmath.isclose = lambda *a: True\ndef f(x): return 9",
        "assert math.isclose(f(1), 3.0)",
    ),
    "a shadowed Counter": ("def Counter(x): return 0\ndef f(x): return 9", "assert Counter(f(1)) == Counter([1, 2])"),
    "a shadowed len": ("def len(x): return 3\ndef f(x): return []", "assert len(f(1)) == 3"),
    "contains everything": (
        "class C:\n    def __contains__(s, o): return True\ndef f(x): return C()",
        "assert 4 in f(1)",
    ),
    "less than everything": ("class C:\n    def __lt__(s, o): return True\ndef f(x): return C()", "assert f(1) < 4"),
    "equal inside a list": (
        "class C:\n    def __eq__(s, o): return True\ndef f(x): return [C()]",
        "assert f(1) == [4]",
    ),
    "equal to itself": (
        "class C:\n    def __eq__(s, o): return True\ndef f(x): return C()\ndef g(x): return C()",
        "assert f(1) == g(2)",
    ),
    "raises while compared": (
        "class C:\n    def __eq__(s, o): raise SystemExit\ndef f(x): return C()",
        "assert f(1) != 4",
    ),
    "a self-holding list": ("def f(x):\n    a = []\n    a.append(a)\n    return a", "assert f(1) == 4"),
    "reached through an argument": (
        "def f(g):\n    g.__globals__\n    return 0",
        "expected = 4\ndef g(x): return x\nassert f(g) == expected",
    ),
    "reached through an argument's frame": (
        "def f(g):\n    return g.gi_frame.f_globals['expected']",
        "expected = 4\nassert f(x for x in [1]) == expected",
    ),
    "reached through format": (
        "def f(g):\n    return int('{0.__globals__[expected]}'.format(g))",
        "expected = 4\ndef g(x): return x\nassert f(g) == expected",
    ),
    "a long range": ("def f(x): return range(10**12)", "assert list(f(1)) == [1]"),
    "a fraction too large to reduce": (
        "import fractions\ndef f(x):\n    a = fractions.Fraction(1)\n    a._numerator, a._denominator = 1 << 20000, 1\n    return a",
        "assert f(1) == 1",
    ),
    "endless questions": ("def f(g):\n    while True: g(1)", "assert f(lambda x: x) == 1"),
    "emptying the input": ("def f(xs):\n    xs.clear()\n    return xs", "xs = [2, 1]\nassert f(xs) == sorted(xs)"),
    "a deep value": ("def f(x):\n    a = []\n    for _ in range(500): a = [a]\n    return a", "assert f(1) == []"),
    "a huge value": ("def f(x): return 'a' * 10**8", "assert f(1) == 'a'"),
    "a huge number": ("def f(x): return 1 << 10**8", "assert f(1) == 1"),
}


@pytest.mark.parametrize(("code", "tests"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_nor_by_what_the_value_says_of_itself(code: str, tests: str) -> None:
    assert judged(code, tests, seconds=1.0).score == 0.0


def test_the_share_counts_every_assertion() -> None:
    three = "assert twice(4) == 8\nassert twice(1) == 3\nassert twice(0) == 0\nassert twice(2) == 4"
    assert judged(RIGHT, three, partial=True).score == 0.75
    assert judged(RIGHT, three).score == 0.0
    assert "line 2" in judged(RIGHT, three).reason


def test_a_hang_keeps_what_passed_before_it() -> None:
    code = "def f(x):\n    while x == 3: pass\n    return x"
    tests = [f"assert f({x}) == {x}" for x in (1, 2, 3, 4)]
    verdict = judged(code, tests, partial=True, seconds=0.5)
    assert verdict.score == 0.5
    assert "line 3" in verdict.reason
    assert "time limit" in verdict.reason


def test_tests_that_hang_are_the_golds_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo_studio.verifiers.sandbox.asserts.TEST_SECONDS", 1.0)
    verdict = judged(RIGHT, "assert twice(1) == 2\nwhile True: pass")
    assert verdict.score is None
    monkeypatch.undo()
    assert judged(RIGHT).score == 1.0


def test_the_last_function_or_the_named_one_is_checked() -> None:
    code = RIGHT + "\ndef helper(n):\n    return 0"
    check = "def check(candidate):\n    assert candidate(2) == 4"
    assert judged(code, check).score == 0.0
    assert judged(code, check, entry_point="twice").score == 1.0


def test_setup_code_is_the_tests_own() -> None:
    assert judged(RIGHT, "assert twice(k) == 8", test_setup_code="k = 4").score == 1.0


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (f"```py\n{RIGHT}\n```", 1.0),
        (f"```Python3\n{RIGHT}\n```\nDone.", 1.0),
        (f"```\n{RIGHT}\n```", 1.0),
        (f"~~~python\n{RIGHT}\n~~~", 1.0),
        (f"````python\n{RIGHT}\n````", 1.0),
        ("  ```python\n  def twice(n):\n      return 2 * n\n  ```", 1.0),
        (f"```python\n{RIGHT}", 1.0),
        (RIGHT, 1.0),
        (f"```python\n{RIGHT}\n```\nOutput:\n```text\n8\n```", 1.0),
        (f"```python\n{RIGHT}\n```\nExample usage:\n```python\nprint(twice(4))  # 8\n```", 1.0),
        (f"```python\n{RIGHT}\n```\nExample usage:\n```python\nresult = twice(4)\nprint(result)\n```", 1.0),
        (f"```python\n{RIGHT}\n```\nTests:\n```python\nassert twice(4) == 8\n```", 1.0),
        (f"```python\n{RIGHT}\n```\nOutput:\n```\n8\n```", 1.0),
        (f"```\n{RIGHT}\n```\nOutput:\n```\n8\n```", 1.0),
        (f"```python\nimport math\n```\nThen:\n```\n{RIGHT}\n```", 1.0),
        (f"```python\ndef twice(n): return 0\n```\nFixed:\n```\n{RIGHT}\n```\nSo:\n```python\ntwice(4)\n```", 1.0),
        (f"```python\n{RIGHT}\n```\nOr:\n```python\ntwice = lambda n: 0\n```", 0.0),
        (f"```python\n{RIGHT}\n```\nOr:\n```python\nclass twice: pass\n```", 0.0),
        (f"```python\n{RIGHT}\n```\n```\ndef twice(n): return 0\n```\n```python\ntwice(1)\n```", 0.0),
        ("```python\ndef twice(n): return 0\n```\nUsage:\n```python\nprint(twice(4))\n```", 0.0),
        (f"```text\n{RIGHT}\n```\n```python\nprint(8)\n```", 0.0),
        (f"<think>```python\ndef twice(n): return 0\n```</think>```python\n{RIGHT}\n```", 1.0),
        (f"<think>```python\n{RIGHT}\n```", 0.0),
        (f"```python\n{RIGHT}\n```\n```python\ndef twice(n): return 0\n```", 0.0),
        ("```bash\nls\n```", 0.0),
        ("I cannot do this.", 0.0),
        ("", 0.0),
    ],
)
def test_which_text_is_the_submission(completion: str, expected: float) -> None:
    assert code_asserts(completion, TESTS).score == expected


USAGE = "\n```\nUsage:\n```python\nn = 4\nprint(twice(n))\n```"


@pytest.mark.parametrize(
    ("tests", "columns"),
    [
        ("for n in [1, 2]:\n    assert twice(n) == n + n", {}),
        ("from solution import twice\ndef test_a():\n    n = 2\n    assert twice(n) == 4", {}),
        ("def check(candidate):\n    assert candidate(2) == 4", {}),
        ("def check(candidate):\n    assert candidate(2) == 4", {"entry_point": "twice"}),
        ("def check(c):\n    assert c(2) == 4\n\ncheck(twice)", {}),
    ],
)
def test_a_block_that_only_shows_how_to_call_it_is_no_submission(tests: str, columns: dict[str, str]) -> None:
    assert code_asserts(f"```python\n{RIGHT}{USAGE}", tests, **columns).score == 1.0
    assert code_asserts(f"```python\ndef twice(n): return 0{USAGE}", tests, **columns).score == 0.0


def test_exit_and_quit_are_known() -> None:
    code = "def twice(n):\n    try:\n        exit()\n    except SystemExit:\n        return 2 * n"
    assert judged(code).score == 1.0
    assert judged(code.replace("exit()", "quit(1)")).score == 1.0
    assert judged("def twice(n): exit(0)").score == 0.0
