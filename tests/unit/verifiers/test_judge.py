"""Judging in real child processes: whatever a verifier does costs the item that made it do so, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from child_process import alive, ends

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score

ROOT = Path(__file__).resolve().parents[3]
RULES = '''
import os, sys, time, math
from grpo_studio.verifiers import Verdict, verifier

EXAMPLES = [("fine", {"answer": "1"}, 1.0), ("poor", {"answer": "1"}, 0.0)]

@verifier(examples=EXAMPLES)
def moody(completion: str, answer):
    """Does what its text says."""
    if completion == "raise":
        raise ValueError("cannot read " + completion)
    if completion == "exit":
        sys.exit(0)
    if completion == "leave":
        os._exit(0)
    if completion == "crash":
        os.kill(os.getpid(), 11)
    if completion == "hang":
        while True: pass
    if completion == "hang in C":
        return 9 ** 9 ** 9
    if completion == "memory":
        return len(bytearray(64 * 1024**3))
    if completion == "deep":
        return moody_deep()
    if completion == "print":
        print('{"kind": "ok", "value": 5.0}' * 3000, flush=True)
        os.write(1, b'{"kind": "ok", "value": 5.0}\\n')
        sys.stdin.read()
    if answer == "raise":
        raise KeyError(answer)
    if answer == "hang":
        time.sleep(60)
    if answer is None:
        return None
    return Verdict(1.0, "read " + completion, completion)

def moody_deep():
    return moody_deep()

@verifier(examples=EXAMPLES)
def broken(completion: str):
    """Always raises."""
    raise RuntimeError("not written yet")

@verifier(examples=EXAMPLES)
def stuck(completion: str, answer, log):
    """Always hangs."""
    with open(log, "a") as file:
        file.write("x")
    time.sleep(60)

class Evil(Exception):
    def __repr__(self): raise ValueError("no")
    __str__ = __repr__

class Leaves(Exception):
    def __repr__(self): sys.exit(3)
    __str__ = __repr__

class Slow(Exception):
    def __repr__(self): time.sleep(60)
    __str__ = __repr__

class Text(str):
    def __len__(self): raise ValueError("no")
    __str__ = __getitem__ = __len__

class Half(float):
    def __new__(cls, value, shown=""):
        made = super().__new__(cls, value)
        made.shown = shown
        return made
    def __float__(self): return float.__add__(self, 0.0) if self.shown == "" else float(repr(self.shown))

def throw(error): raise error

fine = poor = 1.0

@verifier(examples=EXAMPLES)
def odd(completion: str):
    """Returns what its text names."""
    return eval(completion)

@verifier(examples=EXAMPLES)
def environment(completion: str):
    """Shows its environment."""
    return Verdict(1.0, ",".join(sorted(os.environ)))

@verifier(examples=EXAMPLES)
def shown(completion: str, answer, prompt: str = "none"):
    """Shows what it was called with."""
    return Verdict(1.0, repr((completion, answer, prompt)))

@verifier(examples=EXAMPLES, check=lambda word: "the word is bad" if word == "bad" else None)
def strict(completion: str, *, word: str):
    """Compares with a word."""
    return float(completion == word)

@verifier(examples=EXAMPLES)
def own_session(completion: str, log):
    """Starts a process in a session of its own."""
    import subprocess
    child = subprocess.Popen(["sleep", "50"], start_new_session=True)
    with open(log, "a") as file:
        file.write(f"{child.pid} ")
    time.sleep(60 if completion == "hang" else 0)
    return 1.0

@verifier(examples=EXAMPLES)
def parent(completion: str):
    """Shows its process id and starts a child."""
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(50)"])
    return Verdict(1.0, f"{os.getpid()} {child.pid}")
'''


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.py").write_text(RULES)
    return folder


@pytest.fixture(scope="module")
def moody(rules: Path) -> Iterator[Judge]:
    with Judge([JudgeRequest("moody")], [rules], time_limit=0.5) as judge:
        yield judge


def once(rules: Path, verifier: str, completions: list[Any], **columns: list[Any]) -> list[Score]:
    with Judge([JudgeRequest(verifier)], [rules], time_limit=0.4) as judge:
        return judge.score(completions, columns)[0]


@pytest.mark.parametrize(
    ("text", "outcome", "reason"),
    [
        ("raise", "error", "ValueError: cannot read raise"),
        ("exit", "error", "SystemExit: 0"),
        ("leave", "error", "exit status 0"),
        ("crash", "error", "signal 11"),
        ("hang", "timeout", "over the time limit of 0.5 s"),
        ("hang in C", "timeout", "over the time limit of 0.5 s"),
        ("memory", "error", "MemoryError"),
        ("deep", "error", "RecursionError"),
    ],
)
def test_trouble_that_the_text_makes_is_zero_and_costs_that_item_only(
    moody: Judge, text: str, outcome: str, reason: str
) -> None:
    [scores] = moody.score(["a", text, "b", "c"], {"answer": ["1"] * 4})
    assert [score.value for score in scores] == [1.0, 0.0, 1.0, 1.0]
    assert scores[1].outcome == outcome
    assert reason in scores[1].reason
    assert scores[2] == Score(1.0, "read b", "b", scores[2].seconds, "ok")


@pytest.mark.parametrize(("gold", "reason"), [("raise", "KeyError"), ("hang", "time limit"), (None, "abstained")])
def test_trouble_that_the_gold_makes_abstains(moody: Judge, gold: str | None, reason: str) -> None:
    [scores] = moody.score(["a", "b", "a"], {"answer": [gold, "1", gold]})
    assert [score.value for score in scores] == [None, 1.0, None]
    assert [score.outcome for score in scores] == ["abstained", "ok", "abstained"]
    assert reason in scores[0].reason


def test_text_that_raises_with_a_gold_that_is_missing_abstains(moody: Judge) -> None:
    [[score]] = moody.score(["raise"], {"answer": [None]})
    assert score.outcome == "abstained"


def test_what_a_verifier_prints_or_reads_cannot_spoil_the_pipe(moody: Judge) -> None:
    [scores] = moody.score(["print", "b"], {"answer": ["1", "1"]})
    assert [score.value for score in scores] == [1.0, 1.0]
    assert [score.reason for score in scores] == ["read print", "read b"]


def test_a_verifier_that_always_raises_abstains(rules: Path) -> None:
    scores = once(rules, "broken", ["a", "b"])
    assert [score.outcome for score in scores] == ["abstained", "abstained"]
    assert "RuntimeError: not written yet" in scores[0].reason


def test_a_verifier_that_always_hangs_abstains_and_is_given_up(rules: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Judge([JudgeRequest("stuck")], [rules], time_limit=0.1) as judge:
        [scores] = judge.score(["a"] * 100, {"answer": list(range(100)), "log": [str(log)] * 100})
    assert {score.value for score in scores} == {None}
    assert "hangs" in scores[-1].reason
    assert 3 <= len(log.read_text()) < 50, "most items are not tried any more"


@pytest.mark.parametrize(
    ("expression", "value", "outcome", "reason"),
    [
        ("1", 1.0, "ok", ""),
        ("Verdict(0.5, 'half')", 0.5, "ok", "half"),
        ("Half(7.0)", 7.0, "ok", ""),
        ("__import__('fractions').Fraction(1, 2)", 0.5, "ok", ""),
        ("None", None, "abstained", "odd abstained"),
        ("Verdict(None, 'no gold')", None, "abstained", "no gold"),
        ("True", None, "wrong_type", "odd returned True (bool); return 1.0 instead"),
        ("Verdict(False)", None, "wrong_type", "odd returned False (bool); return 0.0 instead"),
        ("'1.0'", None, "wrong_type", "odd returned '1.0' (str); return a number"),
        ("[1.0]", None, "wrong_type", "odd returned [1.0] (list)"),
        ("Verdict('1')", None, "wrong_type", "odd returned '1' (str)"),
        ("1j", None, "wrong_type", "odd returned 1j (complex)"),
        ("Evil()", None, "wrong_type", "odd returned (cannot be shown: ValueError) (Evil)"),
        ("Leaves()", None, "wrong_type", "odd returned (cannot be shown: SystemExit) (Leaves)"),
        ("Verdict(1.0, Evil(), Leaves())", 1.0, "ok", "(cannot be shown: ValueError)"),
        ("Verdict(1.0, Text('reason'))", 1.0, "ok", "reason"),
        ("math.nan", None, "non_finite", "odd returned nan"),
        ("Verdict(-math.inf)", None, "non_finite", "odd returned -inf"),
        ("10 ** 400", None, "non_finite", "odd returned inf"),
        ("3.4028235e38", 3.4028235e38, "ok", ""),  # the largest number of 32 bits, rounded
        ("-3.4028235e38", -3.4028235e38, "ok", ""),
        ("3.4028236e38", None, "non_finite", "odd returned 3.4028236e+38, which is too large for a reward"),
        ("Verdict(-1e39)", None, "non_finite", "odd returned -1e+39, which is too large for a reward"),
        ("10 ** 39", None, "non_finite", "odd returned 1e+39"),
        ("Half(1e39)", None, "non_finite", "odd returned 1e+39"),
    ],
)
def test_what_is_returned_is_checked_with_the_verifiers_name(
    odd: Judge, expression: str, value: float | None, outcome: str, reason: str
) -> None:
    [[score]] = odd.score([expression], {})
    assert (score.value, score.outcome) == (value, outcome)
    assert score.reason.startswith(reason)


@pytest.mark.parametrize(
    "expression",
    ["Slow()", "Verdict(1.0, Slow())", "Verdict(1.0, '', Slow())", "Half(math.nan, Slow())", "throw(Slow())"],
)
def test_a_hang_in_printing_a_value_is_killed(rules: Path, expression: str) -> None:
    scores = once(rules, "odd", ["1.0", expression, "2.0"])
    assert [(score.value, score.outcome) for score in scores] == [(1.0, "ok"), (0.0, "timeout"), (2.0, "ok")]


@pytest.mark.parametrize("kind", ["Evil", "Leaves"])
def test_an_exception_that_cannot_be_printed_is_caught(odd: Judge, kind: str) -> None:
    [[score]] = odd.score([f"throw({kind}())"], {})
    assert (score.value, score.outcome) == (0.0, "error")
    assert score.reason.startswith(f"{kind}: (cannot be shown")


@pytest.fixture(scope="module")
def odd(rules: Path) -> Iterator[Judge]:
    with Judge([JudgeRequest("odd")], [rules]) as judge:
        yield judge


def test_long_notes_are_cut_and_lone_surrogates_survive(odd: Judge) -> None:
    [scores] = odd.score(["Verdict(1.0, 'x' * 10**6, '\\ud800' + 'y' * 10**6)"], {})
    assert [len(scores[0].reason), len(scores[0].extracted or "")] == [500, 500]
    assert (scores[0].extracted or "").startswith("?y")


def test_text_with_lone_surrogates_is_judged(moody: Judge) -> None:
    [[score]] = moody.score(["a \ud800"], {"answer": ["\udfff"]})
    assert (score.value, score.extracted) == (1.0, "a ?")


def test_the_environment_holds_no_secret(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    [score] = once(rules, "environment", ["x"])
    allowed = {"PATH", "PYTHONPATH", "LANG", "LC_CTYPE", "LD_LIBRARY_PATH", "TMPDIR"}
    assert set(score.reason.split(",")) <= allowed | {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}


def test_a_verifier_is_called_with_text_and_just_the_columns_it_names(rules: Path) -> None:
    [score] = once(
        rules, "shown", [[{"role": "assistant", "content": "hi"}]], answer=[(1, date(2024, 5, 1))], other=["no"]
    )
    assert score.reason == "('hi', [1, '2024-05-01'], 'none')"
    [score] = once(rules, "shown", [None], answer=[float("inf")], prompt=["p"])
    assert score.reason == "('', inf, 'p')"


def test_a_missing_column_abstains_and_a_short_one_is_an_error(rules: Path) -> None:
    [score] = once(rules, "shown", ["x"])
    assert (score.value, score.reason) == (None, "shown needs a column 'answer'")
    with pytest.raises(VerifierError, match="1 values for 2 completions"):
        once(rules, "shown", ["x", "y"], answer=["1"])


def test_bad_params_abstain_with_the_reason_and_spare_the_other_verifiers(rules: Path) -> None:
    requests = [
        JudgeRequest("strict", {"word": "bad"}),
        JudgeRequest("strict", {"word": 3}),
        JudgeRequest("strict", {"word": "good"}),
    ]
    with Judge(requests, [rules]) as judge:
        bad, wrong_type, good = judge.score(["good", "x"], {})
    assert {score.reason for score in bad} == {"strict: the word is bad"}
    assert {score.value for score in bad + wrong_type} == {None}
    assert [score.value for score in good] == [1.0, 0.0]


def test_an_unknown_verifier_is_refused_at_set_up(rules: Path) -> None:
    with pytest.raises(VerifierError, match="did you mean moody"):
        Judge([JudgeRequest("mody")], [rules])


def test_it_judges_from_threads_that_come_and_go(rules: Path) -> None:
    values: list[float | None] = []
    with Judge([JudgeRequest("moody")], [rules], time_limit=0.4) as judge:

        def work(text: str) -> None:
            [scores] = judge.score([text, "a"], {"answer": ["1", "1"]})
            values.extend(score.value for score in scores)

        for text in ("a", "hang", "a"):
            thread = threading.Thread(target=work, args=(text,))
            thread.start()
            thread.join()
            time.sleep(0.05)  # were the child tied to the thread that started it, it would be dead now
    assert values == [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]


def test_many_completions_in_one_call(moody: Judge) -> None:
    texts = [f"text {number} " + "x" * 3000 for number in range(150)]
    [scores] = moody.score(texts, {"answer": [str(number) for number in range(150)]})
    assert [score.reason.split(" x")[0] for score in scores] == [f"read text {number}" for number in range(150)]


def test_a_child_that_was_killed_between_two_calls_is_replaced(rules: Path) -> None:
    with Judge([JudgeRequest("parent")], [rules]) as judge:
        first, _ = judge.score(["x"], {})[0][0].reason.split()
        os.kill(int(first), signal.SIGKILL)
        second, _ = judge.score(["x"], {})[0][0].reason.split()
    assert first != second


def test_closing_ends_the_child_and_what_its_verifiers_started(rules: Path) -> None:
    with Judge([JudgeRequest("parent")], [rules]) as judge:
        child, grandchild = map(int, judge.score(["x"], {})[0][0].reason.split())
        assert alive(child)
    assert not alive(child)
    assert ends(grandchild)


@pytest.mark.parametrize("how", ["close", "time limit", "stopped"])
def test_what_a_verifier_put_into_a_session_of_its_own_ends_as_well(rules: Path, tmp_path: Path, how: str) -> None:
    log = tmp_path / "pid"
    with Judge([JudgeRequest("own_session")], [rules], time_limit=1.0) as judge:
        completion = "hang" if how == "time limit" else "x"
        [[score]] = judge.score([completion], {"log": [str(log)]})
        left = [int(pid) for pid in log.read_text().split()]
        if how == "stopped":
            assert all(map(alive, left))
            os.kill(judge.pids()[0], signal.SIGSTOP)  # it does not end when it is asked to
        assert score.outcome == ("timeout" if how == "time limit" else "ok")
    assert left
    assert all(map(ends, left))


def test_the_child_dies_with_its_parent_even_by_signal_9(rules: Path, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(
        "import sys, json\nfrom pathlib import Path\n"
        "from grpo_studio.verifiers.judge import Judge, JudgeRequest\n"
        "judge = Judge([JudgeRequest('environment'), JudgeRequest('moody')], [Path(sys.argv[1])], 30)\n"
        "judge.score(['x'], {'answer': ['1']})\n"
        "print(json.dumps(judge.pids()[0]), flush=True)\n"
        "judge.score(['hang in C'], {'answer': ['1']})\n"
    )
    worker = subprocess.Popen(
        [sys.executable, str(script), str(rules)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with worker:
        assert worker.stdout is not None
        child = json.loads(worker.stdout.readline())
        time.sleep(0.2)  # now it hangs in C code, deaf to everything but the kernel
        assert alive(child)
        worker.kill()
    assert ends(child)
