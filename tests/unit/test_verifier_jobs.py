"""Work of the Verifiers page in the background: begun once, cancelled while it waits or judges, told when it fails."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.settings import Settings
from grpo_studio.ui.jobs import AT_ONCE, Job, Jobs
from grpo_studio.ui.verifiers_bench import BenchActions


def test_a_key_begins_one_job_however_often_it_comes() -> None:
    jobs, calls = Jobs(), []

    def work(job: Job) -> dict[str, Any]:
        calls.append(1)
        return {"answer": 42}

    for _ in range(3):
        answer = jobs.begin("key-1234", "gold", work)
    while answer["state"] == "running":
        answer = jobs.progress("key-1234")
    assert (answer["result"], len(calls)) == ({"answer": 42}, 1)
    assert jobs.progress("another-key") == {"unknown": True}


def test_a_job_that_waits_or_works_can_be_cancelled() -> None:
    jobs, release = Jobs(), threading.Event()

    def work(job: Job) -> dict[str, Any]:
        with jobs.turn(job):
            while not release.wait(0.01):
                job.report("judging")
        return {}

    keys = [f"key-{number:04}" for number in range(AT_ONCE + 1)]
    for key in keys:
        jobs.begin(key, "gold", work)
    assert jobs.progress(keys[-1])["message"] == "waiting"
    for key in reversed(keys):
        answer = jobs.cancel(key)
        while answer["state"] == "running":
            answer = jobs.progress(key)
        assert answer["state"] == "cancelled"


def test_a_job_that_fails_says_why() -> None:
    jobs = Jobs()

    def work(job: Job) -> dict[str, Any]:
        raise VerifierError("the gold\nis gone")

    answer = jobs.begin("key-1234", "gold", work)
    while answer["state"] == "running":
        answer = jobs.progress("key-1234")
    assert (answer["state"], answer["message"]) == ("failed", "the gold is gone")


# The bench

SLOW = '''import time
from grpo_studio.verifiers import verifier


@verifier(examples=[("yes", {"answer": "1"}, 1.0)])
def slow(completion, answer):
    """It takes its time."""
    time.sleep(0.02)
    return 1.0
'''


def ended(bench: BenchActions, answer: dict[str, Any]) -> dict[str, Any]:
    while answer["state"] == "running":
        answer = bench.verifiers_bench_progress({"key": "key-1234"})
    return answer


def begun(bench: BenchActions, kind: str, source: Path, verifier: str) -> dict[str, Any]:
    data = {"dataset": {"source": str(source), "held_out": 0}, "rewards": [{"verifier": verifier}]}
    return bench.verifiers_bench_begin({"key": "key-1234", "kind": kind, "data": data})


def test_probes_without_a_row_say_what_to_do(settings: Settings, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "", "answer": "1"}\n')
    bench = BenchActions(settings)
    answer = ended(bench, begun(bench, "probes", rows, "math_numeric"))
    assert answer["state"] == "failed"
    assert answer["message"].startswith("no row has a usable prompt: in row 1 of ")


def test_a_gold_check_that_is_cancelled_gives_up_its_turn_between_parts(settings: Settings, tmp_path: Path) -> None:
    settings.own_rewards.mkdir(parents=True, exist_ok=True)
    (settings.own_rewards / "slow.py").write_text(SLOW)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "a", "answer": "1"}\n' * 20_000)
    bench = BenchActions(settings)
    answer = begun(bench, "gold", rows, "slow")
    while answer["message"] != "judging" or not answer["done"]:
        answer = bench.verifiers_bench_progress({"key": "key-1234"})
        assert answer["state"] == "running", answer
    bench.verifiers_bench_cancel({"key": "key-1234"})
    assert ended(bench, answer)["state"] == "cancelled"
