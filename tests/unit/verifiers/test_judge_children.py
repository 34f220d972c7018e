"""Several children at once: who hangs waits beside the others, and every item is scored once and for itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from child_process import alive, ends

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers import discover
from grpo_studio.verifiers.judge import Judge, JudgeRequest, Score
from grpo_studio.verifiers.judge_spawn import spawn

ROOT = Path(__file__).resolve().parents[3]
RULES = '''
import os, sys, time
from pathlib import Path
from grpo_studio.verifiers import Verdict, verifier

EXAMPLES = [("fine", {"answer": "1", "log": "/dev/null"}, 1.0)]

def note(log):
    with open(log, "a") as file:
        file.write(f"{os.getpid()} {time.monotonic()}\\n")

@verifier(examples=EXAMPLES)
def told(completion: str, answer, log="/dev/null"):
    """Does what its text says."""
    word, _, number = completion.partition(" ")
    if word in ("hang", "sleep"):
        note(log)
        time.sleep(60 if word == "hang" else float(number))
    if word == "spin":
        while True: pass
    if word == "leave":
        os._exit(3)
    if word == "fork":
        os.fork()
    if word == "abstain" or answer == "unread":
        return None
    return Verdict(1.0, completion, str(answer))

@verifier(examples=EXAMPLES)
def length(completion: str):
    """The length of the text."""
    return len(completion)

@verifier(examples=EXAMPLES, seconds=lambda wait: wait)
def patient(completion: str, *, wait: float = 0.0):
    """Sleeps for as long as its text says."""
    time.sleep(float(completion) if completion != "fine" else 0)
    return 1.0

@verifier(examples=EXAMPLES, warm=lambda log, how: (note(log), WARM[how]()))
def warmed(completion: str, *, log: str, how: str = "well"):
    """Says how often it was warmed up in its process."""
    lines = Path(log).read_text().split("\\n")
    return sum(line.startswith(f"{os.getpid()} ") for line in lines)

WARM = {
    "well": lambda: None, "slowly": lambda: time.sleep(0.5), "raise": lambda: 1 / 0, "hang": lambda: time.sleep(60),
    "leave": lambda: os._exit(5), "exit": lambda: sys.exit(4),
}

@verifier(examples=EXAMPLES, seconds=lambda: "soon")
def vague(completion: str):
    """Does not say how long it takes."""
    return 1.0

@verifier(examples=EXAMPLES)
def everything(completion: str, answer, *, size: int = 1, **columns):
    """Shows what it was called with."""
    return Verdict(1.0, repr((completion, answer, size, sorted(columns.items()))))

@verifier(examples=EXAMPLES)
def spoils(completion: str, answer):
    """Changes the gold that it was given."""
    answer.append(completion)
    return len(answer)

@verifier(examples=EXAMPLES, place="trainer")
def elsewhere(completion: str):
    """Scored on the trainer's device."""
    return 1.0

def ideal(answer, extra):
    if answer == "raise":
        raise KeyError(answer)
    return {"none": None, "number": 5}.get(answer, f"it is {answer}{extra}")

@verifier(examples=EXAMPLES, ideal=ideal)
def known(completion: str, answer, *, extra: str = ""):
    """Ends with the answer."""
    return Verdict(float(completion.endswith(answer)), completion)
'''


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.py").write_text(RULES)
    return folder


def outcomes(scores: Sequence[Score]) -> list[str]:
    return [score.outcome for score in scores]


def test_items_that_hang_wait_at_the_same_time_and_all_others_are_scored(rules: Path, tmp_path: Path) -> None:
    limit, log = 3.0, tmp_path / "log"
    texts = [f"text {number}" for number in range(512)]
    places = (3, 4, 500)
    for place in places:
        texts[place] = "hang"
    with Judge([JudgeRequest("told")], [rules], time_limit=limit) as judge:
        [scores] = judge.score(texts, {"answer": list(range(512)), "log": [str(log)] * 512})
        pids = judge.pids()
    assert [place for place, score in enumerate(scores) if score.outcome == "timeout"] == list(places)
    others = [score for place, score in enumerate(scores) if place not in places]
    assert [(score.value, score.extracted) for score in others] == [
        (1.0, str(place)) for place in range(512) if place not in places
    ]
    began = [float(line.split()[1]) for line in log.read_text().splitlines()]
    assert len(began) == 3, "an item that hangs is tried once"
    assert max(began) < min(began) + limit, "the last one began while the first still had its time"
    assert not any(map(alive, pids))


def test_more_items_hang_than_there_is_room_for(rules: Path) -> None:
    texts = ["spin" if number % 4 == 0 else f"text {number}" for number in range(40)]
    with Judge([JudgeRequest("told")], [rules], time_limit=0.3) as judge:
        [scores] = judge.score(texts, {"answer": ["1"] * 40})
    assert outcomes(scores) == ["timeout" if text == "spin" else "ok" for text in texts]
    assert [score.reason for score in scores if score.outcome == "ok"] == [text for text in texts if text != "spin"]


def test_items_that_are_only_slow_are_scored(rules: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    texts = ["sleep 0.5" if number % 3 == 0 else f"text {number}" for number in range(20)]
    with Judge([JudgeRequest("told")], [rules], time_limit=20.0) as judge:
        [scores] = judge.score(texts, {"answer": ["1"] * 20, "log": [str(log)] * 20})
    assert [(score.outcome, score.reason) for score in scores] == [("ok", text) for text in texts]


def test_what_an_ended_child_had_not_yet_said_is_judged_again(rules: Path) -> None:
    texts = [f"text {number}" for number in range(60)]
    texts[20] = texts[41] = "leave"
    with Judge([JudgeRequest("told")], [rules]) as judge:
        [scores] = judge.score(texts, {"answer": ["1"] * 60})
    assert [score.reason for place, score in enumerate(scores) if place not in (20, 41)] == [
        text for text in texts if text != "leave"
    ]
    for place in (20, 41):
        assert (scores[place].value, scores[place].outcome) == (0.0, "error")
        assert "exit status 3" in scores[place].reason


@pytest.mark.parametrize(
    ("text", "outcome"), [("hang", "timeout"), ("leave", "error"), ("abstain", "abstained"), ("fork", "ok")]
)
def test_trouble_of_one_verifier_leaves_the_other_alone(rules: Path, text: str, outcome: str) -> None:
    requests = [JudgeRequest("told"), JudgeRequest("length"), JudgeRequest("told")]
    with Judge(requests, [rules], time_limit=0.5) as judge:
        first, lengths, third = judge.score(["a", text, "bb"], {"answer": ["1"] * 3})
    assert [score.value for score in lengths] == [1.0, float(len(text)), 2.0]
    assert outcomes(first) == outcomes(third) == ["ok", outcome, "ok"]


def test_a_gold_that_one_verifier_cannot_read_abstains_there_only(rules: Path) -> None:
    with Judge([JudgeRequest("told"), JudgeRequest("length")], [rules], time_limit=0.5) as judge:
        told, lengths = judge.score(["hang", "a"], {"answer": ["unread", "unread"]})
    assert outcomes(told) == ["abstained", "abstained"]
    assert [score.value for score in lengths] == [4.0, 1.0]


def test_a_verifier_that_says_how_long_it_takes_is_given_that_time(rules: Path) -> None:
    with Judge([JudgeRequest("patient", {"wait": 1.5}), JudgeRequest("patient")], [rules], time_limit=0.4) as judge:
        long, short = judge.score(["1.2", "0", "0"], {})
    assert outcomes(long) == ["ok", "ok", "ok"]
    assert outcomes(short) == ["timeout", "ok", "ok"]


def test_warm_runs_once_in_each_child_before_its_items(rules: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Judge([JudgeRequest("warmed", {"log": str(log)})], [rules]) as judge:
        [scores] = judge.score(["a"] * 30, {})
        [again] = judge.score(["a"], {})
    assert {score.value for score in [*scores, *again]} == {1.0}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "warmed: its hook 'warm' failed: ZeroDivisionError: division by zero"),
        ("exit", "warmed: its hook 'warm' failed: SystemExit: 4"),
        ("leave", "warmed cannot be made ready in a judge process: the judge process ended (exit status 5)"),
        ("hang", "warmed cannot be made ready in a judge process: it is not ready within 2 s"),
    ],
)
def test_a_verifier_that_does_not_get_ready_abstains_and_spares_the_others(
    rules: Path, tmp_path: Path, how: str, reason: str
) -> None:
    bad = JudgeRequest("warmed", {"log": str(tmp_path / "log"), "how": how})
    with Judge([JudgeRequest("length"), bad], [rules], start_limit=2.0) as judge:
        good, scores = judge.score(["a", "bb"], {})
    assert [score.value for score in good] == [1.0, 2.0]
    assert {(score.value, score.reason) for score in scores} == {(None, reason)}


def test_a_child_that_is_still_starting_is_waited_for_when_no_other_can_be_started(
    rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def at_most_one(module: str, *arguments: Any) -> subprocess.Popen[bytes]:
        started.append(module)
        if len(started) > 1:
            raise BlockingIOError("Resource temporarily unavailable")
        return spawn(module, *arguments)

    registry = discover([rules])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    monkeypatch.setattr("grpo_studio.verifiers.judge_process.spawn", lambda *given, keep: at_most_one(*given, keep))
    request = JudgeRequest("warmed", {"log": str(tmp_path / "log"), "how": "slowly"})
    with Judge([request], [rules], specs=[registry.get("warmed")]) as judge:
        [scores] = judge.score(["a"] * 30, {})
        assert judge.unable() == {}
    assert len(started) == 4, "three others could not be started"
    assert {score.value for score in scores} == {1.0}


def test_a_hook_that_says_no_number_of_seconds_is_named(rules: Path) -> None:
    with Judge([JudgeRequest("vague")], [rules]) as judge:
        [[score]] = judge.score(["a"], {})
    assert score.reason.startswith("vague: its hook 'seconds' failed: ValueError")


def test_all_columns_go_to_a_verifier_that_asks_for_them(rules: Path) -> None:
    columns: dict[str, list[Any]] = {"answer": ["1"], "b": [[2]], "size": [5], "completion": ["no"], "prompt": ["p"]}
    with Judge([JudgeRequest("everything"), JudgeRequest("length")], [rules]) as judge:
        [[score], [length]] = judge.score(["text"], columns)
    assert score.reason == "('text', '1', 1, [('b', [2]), ('prompt', 'p')])"
    assert length.value == 4.0


def test_a_verifier_that_changes_its_gold_changes_it_for_nobody_else(rules: Path) -> None:
    with Judge([JudgeRequest("spoils"), JudgeRequest("spoils")], [rules]) as judge:
        first, second = judge.score(["a", "b"], {"answer": [["x"], ["x"]]})
    assert {score.value for score in first + second} == {2.0}


def test_a_verifier_of_the_trainer_is_refused_by_name(rules: Path) -> None:
    with pytest.raises(VerifierError, match="elsewhere is scored by the trainer"):
        Judge([JudgeRequest("elsewhere")], [rules])


def test_the_ideal_completion_is_made_and_judged(rules: Path) -> None:
    requests = [JudgeRequest("known"), JudgeRequest("known", {"extra": "."}), JudgeRequest("told")]
    with Judge(requests, [rules]) as judge:
        plain, dotted, without = judge.score_ideal({"answer": ["7", "none", "raise", "number"], "log": ["x"] * 4})
    assert (plain[0].value, plain[0].reason) == (1.0, "it is 7")
    assert (dotted[0].value, dotted[0].reason) == (0.0, "it is 7.")
    assert outcomes(plain[1:]) == ["abstained"] * 3
    assert "cannot read the gold" in plain[1].reason
    assert "cannot be made: KeyError: 'raise'" in plain[2].reason
    assert "is 5; it must be text or None" in plain[3].reason
    assert {score.reason for score in without} == {"told does not say what its ideal completion is"}


def test_each_completion_may_have_a_request_of_its_own(rules: Path) -> None:
    with Judge([JudgeRequest("length"), JudgeRequest("told")], [rules], time_limit=0.4) as judge:
        scores = judge.score_each([1, 0, 1], ["a", "bbb", "hang"], {"answer": ["1", "2", "unread"]}, blame=False)
    assert [(score.value, score.outcome) for score in scores] == [(1.0, "ok"), (3.0, "ok"), (0.0, "timeout")]


def test_nothing_at_all_is_judged_without_a_child(rules: Path) -> None:
    with Judge([JudgeRequest("length")], [rules]) as judge:
        assert judge.score([], {}) == [[]]
        assert judge.pids() == []


def test_a_fork_of_the_judging_process_leaves_its_children_alone(rules: Path, tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(
        "import os, sys\nfrom pathlib import Path\n"
        "from grpo_studio.verifiers.judge import Judge, JudgeRequest\n"
        "judge = Judge([JudgeRequest('length')], [Path(sys.argv[1])])\n"
        "judge.score(['a'], {})\n"
        "before = judge.pids()\n"
        "fork = os.fork()\n"
        "if not fork:\n"
        "    other = judge.score(['bb'], {})[0][0].value\n"
        "    mine = judge.pids()\n"
        "    judge.close()\n"
        "    os._exit(0 if other == 2.0 and set(mine).isdisjoint(before) else 1)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])\n"
        "same = judge.score(['ccc'], {})[0][0].value == 3.0 and judge.pids() == before\n"
        "judge.close()\n"
        "sys.exit(0 if same and status == 0 else 1)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script), str(rules)], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.returncode == 0


def test_an_interrupted_call_leaves_no_child_and_the_next_one_is_right(rules: Path) -> None:
    with Judge([JudgeRequest("told")], [rules], time_limit=30.0) as judge:
        judge.score(["a"], {"answer": ["1"]})
        [child] = judge.pids()
        with pytest.raises(TimeoutError), interrupted_after(0.5):
            judge.score(["hang"], {"answer": ["1"]})
        assert ends(child)
        [[score]] = judge.score(["next"], {"answer": ["1"]})
    assert score.reason == "next"


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the main thread, as a signal's handler may at any point of a call."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
