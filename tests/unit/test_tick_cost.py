"""A tick of a long run costs what one of a short run costs: counted in SQLite's own steps, never in seconds."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sample_run import SampleRun

from grpo_studio.settings import Settings
from grpo_studio.store import reader as reader_module
from grpo_studio.store.schema import open_for_reading, open_for_writing
from grpo_studio.store.writer import RunWriter
from grpo_studio.ui.live import LiveActions

STEPS, GROUPS, COMPLETIONS = 20_000, 2, 2
METRICS = (
    "reward/mean", "reward/std", "reward/math_numeric/mean", "reward/bare_number/mean", "group/mixed", "policy/kl",
    "verifier/math_numeric/abstained", "memory/peak/loss", "memory/peak/rollout", "time/step", "optim/loss",
)  # fmt: skip
ROWS = re.compile(r"\bSCAN (metric|completion|prompt_group|phase_time|memory_sample|g|c)\b")
OPERATIONS = 1_000
"""How many of SQLite's virtual machine's operations one count stands for."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a run of 20,000 steps, resumed once."""
    path = tmp_path_factory.mktemp("long") / "run.db"
    db = open_for_writing(path)
    db.execute("BEGIN")
    superseded = 12_099
    steps = [(1, step) for step in range(1, superseded + 1)] + [(2, step) for step in range(12_001, STEPS + 1)]
    db.executemany(
        "INSERT INTO metric(attempt, step, name, value, ts) VALUES (?, ?, ?, ?, ?)",
        ((a, s, name, s / STEPS, float(s)) for a, s in steps for name in METRICS),
    )
    db.executemany(
        "INSERT INTO metric(attempt, step, name, value, ts) VALUES (?, ?, 'eval/reward', 0.5, ?)",
        ((a, s, float(s)) for a, s in steps if s % 10 == 0),
    )
    db.executemany(
        "INSERT INTO prompt_group(attempt, step, split, prompt, reward_mean, reward_std) VALUES (?, ?, 'train', ?, 0.5, 0.1)",
        ((a, s, f"prompt {s % 97}") for a, s in steps for _ in range(GROUPS)),
    )
    db.execute(
        "INSERT INTO completion(attempt, group_id, idx, text, tokens, truncated, reward, advantage) "
        f"SELECT attempt, id, value, 'text', 3, 0, 1.0, 0.5 FROM prompt_group, (SELECT 0 AS value UNION SELECT {COMPLETIONS - 1})"
    )
    db.executemany(
        "INSERT INTO phase_time(attempt, step, phase, seconds) VALUES (?, ?, ?, 1.0)",
        ((a, s, phase) for a, s in steps for phase in ("rollout", "loss")),
    )
    db.executemany(
        "INSERT INTO memory_sample(attempt, ts, step, phase, device, rss) VALUES (?, ?, ?, 'loss', 'cpu', ?)",
        ((a, float(s), s, s) for a, s in steps for _ in range(2)),
    )
    db.execute("COMMIT")
    db.close()
    return path


@pytest.fixture
def run(settings: Settings, recorded: Path) -> Iterator[SampleRun]:
    run = SampleRun(settings.home, steps=STEPS + 10)
    run.prepare()
    run.writer.close()
    run.folder.database.unlink()
    run.folder.database.write_bytes(recorded.read_bytes())
    run.writer = RunWriter(run.folder.database, attempt=2)
    run.writer.attempt_began(12_000, "checkpoint-12000", "goes on")
    run.writer.event("training_started", "first step begins")
    run.now = STEPS
    yield run
    run.writer.close()


class Watch:
    """What SQLite was asked, and how much it did."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.work = 0

    def count(self) -> int:
        self.work += 1
        return 0

    def scans(self, database: Path) -> list[str]:
        """Statements of which SQLite says that it reads a growing table, or one of its indices, from end to end."""
        with open_for_reading(database) as db:
            plans = {
                statement: [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {statement}")]
                for statement in dict.fromkeys(self.statements)
                if statement.startswith(("SELECT", "WITH"))
            }
        return [statement for statement, plan in plans.items() if any(_whole(step, statement) for step in plan)]


def _whole(step: str, statement: str) -> bool:
    newest_only = "ORDER BY id DESC LIMIT 1" in statement
    first_only = re.match(r"SELECT (max|min)\((id|name)\)|WITH RECURSIVE t\(name\)", statement)
    return ROWS.search(step) is not None and not newest_only and not first_only


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    watch = Watch()

    def opened(path: Path) -> sqlite3.Connection:
        connection = open_for_reading(path)
        connection.set_trace_callback(watch.statements.append)
        connection.set_progress_handler(watch.count, OPERATIONS)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(reader_module, "open_for_reading", opened)
        yield watch


def test_a_tick_with_nothing_new_does_next_to_nothing(
    run: SampleRun, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveActions(settings)
    cursor = live.live_tick({})["cursor"]
    with watched(monkeypatch) as watch:
        assert live.live_tick({"cursor": cursor}) == {"cursor": cursor}
    assert watch.scans(run.folder.database) == []
    assert watch.work <= 2


def test_a_step_costs_the_points_that_are_drawn_and_not_the_run(
    run: SampleRun, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveActions(settings)
    first = live.live_tick({})
    assert first["charts"]["facts"]["groups"] == STEPS * GROUPS
    assert first["charts"]["facts"]["completions"] == STEPS * GROUPS * COMPLETIONS
    run.advance()
    with watched(monkeypatch) as watch:
        news = live.live_tick({"cursor": first["cursor"]})
    assert news["strip"]["step"] == STEPS + 1
    assert {"charts", "groups", "memory"} <= set(news)
    assert watch.scans(run.folder.database) == []
    assert watch.work <= 500


def test_a_group_opens_at_the_same_cost_anywhere(
    run: SampleRun, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveActions(settings)
    with watched(monkeypatch) as watch:
        strips = live.live_step({"step": 15_000})
        live.live_group({"group": strips["groups"][0]["id"]})
    assert watch.scans(run.folder.database) == []
    assert watch.work <= 150
