"""Programs judged by what they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.verifiers import Verdict, discover
from grpo_studio.verifiers.sandbox import FORCE_VARIABLE

code_stdin = discover([Path(__file__).resolve().parents[3] / "rewards"]).get("code_stdin").function

TRIPLE = "print(3 * int(input()))"
CASES = [{"input": "5\n", "output": "15\n"}, {"input": "-1\n", "output": "-3\n"}]


@pytest.fixture(autouse=True, params=["bubblewrap", "limits"])
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE_VARIABLE, request.param)


def judged(code: str, tests: Any, **params: Any) -> Verdict:
    verdict = code_stdin(f"```python\n{code}\n```", tests, **params)
    assert isinstance(verdict, Verdict)
    return verdict


@pytest.mark.parametrize(
    "tests",
    [
        CASES,
        json.dumps(CASES),
        {"inputs": ["5", "-1"], "outputs": ["15", "-3"]},
        json.dumps({"inputs": ["5\n"], "outputs": ["15\n"]}),
        {"inputs": [["5"]], "outputs": [["15"]]},
        {"input": "5", "output": 15},
        [{"input": 5, "output": 15}],
        [{"input": "5\r\n", "output": "15 \r\n\r\n"}],
    ],
)
def test_right_programs_pass_golds_of_every_form(tests: Any) -> None:
    assert judged(TRIPLE, tests).score == 1.0
    assert judged("print(3 * int(input()) + 1)", tests).score == 0.0


@pytest.mark.parametrize(
    "tests",
    [
        None,
        "",
        "[]",
        [],
        {},
        "15",
        4,
        [{"input": "5"}],
        [{"input": "5", "output": ""}],
        [{"input": "5", "output": " \n"}],
        [*CASES, {"input": "5", "output": None}],
        {"inputs": ["5"], "outputs": []},
        {"inputs": ["5"]},
        {"fn_name": "triple", "inputs": [[5]], "outputs": [15]},
        ["15"],
    ],
)
def test_tests_that_say_nothing_abstain(tests: Any) -> None:
    verdict = judged(TRIPLE, tests)
    assert verdict.score is None
    assert verdict.reason


@pytest.mark.parametrize(
    ("code", "output", "expected"),
    [
        ("print('1  ')\nprint()", "1", 1.0),
        ("print('1\\n\\n2')", "1\n\n2", 1.0),
        ("print('1\\n2')", "1\n\n2", 0.0),
        ("print(' 1')", "1", 0.0),
        ("print('\\n1')", "1", 0.0),
        ("print(1, 2)", "1  2", 0.0),
        ("print(1)", "1\n2", 0.0),
        ("print('1\\n2')", "1", 0.0),
        ("print('YES')", "Yes", 0.0),
        ("print(1.0)", "1", 0.0),
        ("pass", "1", 0.0),
        ("import sys\nsys.stdout.write('1')\nsys.exit(0)", "1", 1.0),
        ("import sys\nsys.stdout.write('1')\nsys.exit()", "1", 1.0),
        ("print(1)\nexit()", "1", 1.0),
        ("print(1)\nquit(0)\nprint(2)", "1", 1.0),
        ("def main():\n    print(1)\n    exit(0)\nmain()", "1", 1.0),
        ("print(1)\nexit(3)", "1", 0.0),
        ("print(1)\nquit('failed')", "1", 0.0),
        ("print(1)\nraise SystemExit(3)", "1", 0.0),
        ("print(1)\n1 / 0", "1", 0.0),
        ("import os\nos.write(1, b'1')\nos._exit(0)", "1", 1.0),
        ("import os\nprint(1, flush=True)\nos.kill(os.getpid(), 9) or os.abort()", "1", 0.0),
        ("import sys\nprint(1, file=sys.stderr)", "1", 0.0),
        ("import atexit\natexit.register(print, 1)", "1", 1.0),
        ("import threading\nthreading.Thread(target=print, args=(1,)).start()", "1", 1.0),
        ("import subprocess\nsubprocess.run(['echo', '1'])", "1", 1.0),
        ("if __name__ == '__main__':\n    print(1)", "1", 1.0),
        ("import sys\nsys.setrecursionlimit(10**6)\nf = lambda n: n and f(n - 1) + 1\nprint(f(5000))", "5000", 1.0),
        ("print('é\\u4e2d')", "é中", 1.0),
        ("print(1", "1", 0.0),
        ("import sys\nsys.stdout.buffer.write(b'\\xff1')", "1", 0.0),
        ("import sys\nsys.stdout = None\nprint(1)", "1", 0.0),
        ("class S(str):\n    def __eq__(self, o): return True\nprint(S('2'))", "1", 0.0),
    ],
)
def test_what_counts_as_the_same_output(code: str, output: str, expected: float) -> None:
    verdict = judged(code, [{"input": "", "output": output}])
    assert verdict.score == expected, verdict.reason
    assert verdict.reason or verdict.score == 1.0


@pytest.mark.parametrize(
    ("printed", "wanted", "tolerance", "expected"),
    [
        ("0.30000000000000004", "0.3", None, 0.0),
        ("0.30000000000000004", "0.3", 1e-6, 1.0),
        ("1000001 x", "1000000 x", 1e-5, 1.0),
        ("1000001 y", "1000000 x", 1e-5, 0.0),
        ("0.31", "0.3", 1e-6, 0.0),
        ("0.3 0.3", "0.3", 1e-6, 0.0),
        ("nan", "0.3", 1e-6, 0.0),
        ("inf", "0.3", 1e-6, 0.0),
    ],
)
def test_numbers_are_near_only_when_asked(printed: str, wanted: str, tolerance: float | None, expected: float) -> None:
    tests = [{"input": "", "output": wanted}]
    assert judged(f"print({printed!r})", tests, tolerance=tolerance).score == expected


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nprint(sys.stdin.read().upper(), end='')",
        "import sys\nfor line in sys.stdin: print(line.upper(), end='')",
        "import sys\nprint(sys.stdin.buffer.read().decode().upper())",
        "print(open(0).read().upper())",
        "try:\n    while True: print(input().upper())\nexcept EOFError: pass",
    ],
)
def test_every_way_to_read_the_input(code: str) -> None:
    assert judged(code, [{"input": "a\nb\n", "output": "A\nB\n"}]).score == 1.0


def test_a_large_input_and_output_pass() -> None:
    text = "\n".join(map(str, range(60000)))
    code = "import sys\nprint(sys.stdin.read())"
    assert judged(code, [{"input": text, "output": text}]).score == 1.0
    assert judged("print(1)", [{"input": text, "output": "1"}]).score == 1.0


def test_a_hang_keeps_the_tests_before_it() -> None:
    code = "n = int(input())\nwhile n == 3: pass\nprint(n)"
    tests = [{"input": str(n), "output": str(n)} for n in (1, 2, 3, 4)]
    verdict = judged(code, tests, partial=True, seconds=0.6)
    assert verdict.score == 0.5
    assert "time limit" in verdict.reason
    assert judged(code, tests, seconds=0.6).score == 0.0


def test_an_endless_output_is_cut() -> None:
    verdict = judged("while True: print('z' * 100000)", [{"input": "", "output": "z"}], seconds=20.0)
    assert verdict.score == 0.0
    assert "printed more" in verdict.reason


def test_a_wait_for_more_input_is_the_end_of_it() -> None:
    verdict = judged("input()\ninput()\nprint(1)", [{"input": "1\n", "output": "1"}])
    assert verdict.score == 0.0
    assert "EOFError" in verdict.reason


def test_nothing_is_carried_from_one_test_to_the_next() -> None:
    code = "import builtins\nprint(getattr(builtins, 'seen', 0))\nbuiltins.seen = 1"
    assert judged(code, [{"input": "", "output": "0"}] * 2).score == 1.0


@pytest.mark.parametrize(
    "leave",
    [
        "open('left', 'w').close()",
        "os.makedirs('left/deep'); open('left/deep/file', 'w').close()",
        "os.symlink('/', 'left')",
        "os.makedirs('left/deep'); open('left/deep/file', 'w').close(); os.chmod('left/deep', 0); os.chmod('left', 0)",
        "open(os.environ['HOME'] + '/left', 'w').close()",
        "open('.left', 'w').close()\ntry:\n    os.chmod('.', 0o500)\nexcept OSError:\n    pass",
    ],
)
def test_each_test_begins_in_an_empty_folder(leave: str) -> None:
    code = f"import os\nprint(len([name for name in os.listdir('.') if 'left' in name]))\n{leave}"
    verdict = judged(code, [{"input": "", "output": "0"}] * 3)
    assert verdict.score == 1.0, verdict.reason


@pytest.mark.parametrize("after", ["Output:\n```\n15\n```", "```text\n15\n```", "Run:\n```bash\npython x.py\n```"])
def test_output_that_is_shown_after_the_program_is_no_program(after: str) -> None:
    assert code_stdin(f"```python\n{TRIPLE}\n```\n{after}", CASES).score == 1.0
    assert code_stdin(f"```python\nprint(1)\n```\n{after}", CASES).score == 0.0


def test_what_cannot_be_cleared_away_is_no_fault_of_the_program() -> None:
    """Something that it left running takes away and makes files while the folder is cleared."""
    busy = "while True:\n        open('left', 'w').close()\n        os.unlink('left')"
    code = f"import os\nif os.fork() == 0:\n    os.closerange(0, 64)\n    {busy}\nprint(3 * int(input()))"
    tests = [{"input": str(n), "output": str(3 * n)} for n in range(8)]
    verdict = judged(code, tests, seconds=20.0)
    assert verdict.score == 1.0, verdict.reason


def test_no_code_is_no_answer() -> None:
    assert code_stdin("```text\n15\n```", CASES).score == 0.0
    assert code_stdin("", CASES).score == 0.0
