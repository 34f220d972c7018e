"""A real, tiny run reaches a limit: it saves a checkpoint and stops with the reason. By the worker, in this process."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from studio_process import as_json, tiny_train, wait_for

from grpo_studio import worker
from grpo_studio.checkpoints import read_checkpoint
from grpo_studio.config import RunConfig
from grpo_studio.run_facts import state_of
from grpo_studio.settings import Settings
from grpo_studio.spending import exhausted, spent
from grpo_studio.stopping import Outcome
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.reader import RunReader
from grpo_studio.store.writer import RunWriter
from grpo_studio.training import limits
from grpo_studio.training.limits import LimitWatch
from grpo_studio.worker_end import ending_of

TOKENS = 60


def tiny_config(model: Path, **limited: float) -> RunConfig:
    """12 steps of 8 completions of at most 6 tokens."""
    return RunConfig.model_validate(
        {
            "model": {"id": str(model)},
            "dataset": {"held_out": 0, "prompt_template": "{prompt}"},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {"steps": 12, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 6},
            "limits": limited,
        }
    )


@pytest.fixture(scope="module")
def limited(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Outcome]:
    """A run that was allowed 60 tokens, and how its attempt ended."""
    home = tmp_path_factory.mktemp("limited")
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRPO_STUDIO_HOME", str(home))
        patch.setenv("GRPO_STUDIO_CACHE", str(home / "cache"))
        patch.setenv("HF_HUB_OFFLINE", "1")  # as the worker sets it for itself
        patch.setenv("TORCHDYNAMO_DISABLE", "1")
        folder = create_run(Settings.from_env().runs_dir, tiny_config(tiny_model, tokens=TOKENS), "limited")
        writer = RunWriter(folder.database, attempt=1)
        try:
            return folder, worker._run(folder, writer)
        finally:
            writer.close()
            signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def folder(limited: tuple[RunFolder, Outcome]) -> RunFolder:
    return limited[0]


def tokens_by_step(folder: RunFolder) -> list[int]:
    with RunReader(folder.database) as reader:
        rows = reader.rows(
            "SELECT sum(c.tokens) FROM completion c JOIN prompt_group g ON g.id = c.group_id "
            "WHERE g.split = 'train' GROUP BY g.step ORDER BY g.step"
        )
    return [int(row[0]) for row in rows]


def test_it_stops_after_the_step_that_reached_the_limit_and_says_so(limited: tuple[RunFolder, Outcome]) -> None:
    folder, outcome = limited
    steps = tokens_by_step(folder)
    assert sum(steps[:-1]) < TOKENS <= sum(steps)
    end = ending_of(outcome)
    assert (end.kind, end.level, end.exit_code) == ("run_stopped", "info", 0)
    assert re.fullmatch(
        rf"the limit of 60 tokens is reached after step {len(steps)} \([0-9.e-]+ hours, {sum(steps)} tokens\); "
        "raise limits.tokens and resume",
        end.message,
    )


def test_it_has_saved_a_whole_checkpoint_of_that_step(folder: RunFolder) -> None:
    step = len(tokens_by_step(folder))
    assert read_checkpoint(folder.checkpoints / f"checkpoint-{step}").step == step


def test_a_resume_is_refused_until_the_limit_is_raised(folder: RunFolder, tiny_model: Path) -> None:
    with RunReader(folder.database) as reader:
        used = spent(reader)
    assert used.tokens == sum(tokens_by_step(folder))
    assert "resume with limits.tokens above" in str(exhausted(tiny_config(tiny_model, tokens=TOKENS), used))
    assert exhausted(tiny_config(tiny_model, tokens=used.tokens + 1), used) is None


def test_the_next_attempt_begins_with_what_this_one_has_spent(folder: RunFolder, tiny_model: Path) -> None:
    used = sum(tokens_by_step(folder))
    assert LimitWatch(tiny_config(tiny_model, tokens=used + 1), folder.database).verdict(9) is None
    assert LimitWatch(tiny_config(tiny_model, tokens=used), folder.database).verdict(9) is not None


def test_hours_go_by_the_monotonic_clock_from_what_was_spent_before(
    folder: RunFolder, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunReader(folder.database) as reader:
        before = spent(reader).seconds
    now = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(limits.time, "time", lambda: -1e9)
    watch = LimitWatch(tiny_config(tiny_model, hours=1), folder.database)
    now[0] += 3599 - before
    assert watch.verdict(5) is None
    now[0] += 1
    assert str(watch.verdict(6)).startswith("the limit of 1 hour is reached after step 6")


def test_without_a_limit_nothing_is_read(tmp_path: Path, tiny_model: Path) -> None:
    assert LimitWatch(tiny_config(tiny_model), tmp_path / "no.db").verdict(1) is None


@pytest.mark.slow
def test_several_processes_stop_after_the_same_step(tiny_model: Path, tmp_path: Path) -> None:
    more = ("scale.processes=2", "scale.strategy=ddp", "algorithm.steps=50", f"limits.tokens={TOKENS}")
    result = tiny_train(tiny_model, tmp_path, *(part for one in more for part in ("--set", one)))
    folder = RunFolder(tmp_path / "runs" / as_json(result)["run"])
    wait_for(lambda: state_of(folder).ended, limit=300, what="the end of the run")
    steps, state = tokens_by_step(folder), state_of(folder)
    assert state.state == "stopped"
    assert state.reason.startswith(f"the limit of 60 tokens is reached after step {len(steps)} (")
    assert read_checkpoint(folder.checkpoints / f"checkpoint-{len(steps)}").step == len(steps)
