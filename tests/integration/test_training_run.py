"""A GRPO run of a tiny random model through command line, dispatcher and worker; its rows read back."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from studio_process import as_json, studio, tiny_train

from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def run(home: Path, tiny_model: Path) -> dict[str, Any]:
    """A finished run: 3 steps of 2 prompts x G = 4, with a reference model and a verifier that always abstains."""
    (home / "rewards").mkdir()
    (home / "rewards" / "letters.py").write_text(
        "from grpo_studio.verifiers import verifier\n\n\n"
        "@verifier(examples=[('ab', {}, 0.2), ('', {}, 0.0)])\n"
        "def letters(completion: str) -> float:\n"
        "    'Share of ten characters.'\n"
        "    return min(len(completion), 10) / 10\n\n\n"
        "@verifier(examples=[('ab', {}, None)])\n"
        "def undecided(completion: str) -> None:\n"
        "    'Never judges.'\n"
        "    return None\n"
    )
    result = tiny_train(
        tiny_model, home,
        "--set", "rewards=[{verifier: letters, weight: 2}, {verifier: undecided, weight: 0}, {verifier: math_numeric, weight: 0.5}]",
        "--set", "algorithm.beta=0.04", "--set", "evaluation.every=2", "--set", "memory.micro_batch=4", "--wait",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return as_json(result)


@pytest.fixture
def reader(home: Path, run: dict[str, Any]) -> Any:
    with RunReader(RunFolder(home / "runs" / run["run"]).database) as reader:
        yield reader


def test_it_ends_finished_and_the_sums_agree(run: dict[str, Any]) -> None:
    assert (run["state"], run["step"], run["steps"]) == ("finished", 3, 3)
    assert run["groups"] == 3 * 2
    assert run["completions"] == run["groups"] * 4


def test_show_gives_the_same_later(home: Path, run: dict[str, Any]) -> None:
    assert as_json(studio("show", run["run"], "--json", home=home)) == run


def test_every_named_metric_of_this_path_is_there(run: dict[str, Any]) -> None:
    expected = {
        "reward/mean", "reward/std", "reward/letters/mean", "reward/math_numeric/mean", "group/mixed", "group/all_good", "group/all_bad",
        "group/effective_batch", "advantage/abs_mean", "completion/length_mean", "completion/truncated", "policy/kl", "policy/entropy",
        "policy/clip_low", "policy/clip_high", "policy/ratio_mean", "verifier/undecided/abstained", "verifier/letters/timeout",
        "verifier/letters/error", "optim/loss", "optim/grad_norm", "optim/lr", "time/rollout", "time/score", "time/reference", "time/loss",
        "time/optimizer", "time/evaluate", "time/step", "memory/peak/rollout", "memory/peak/loss", "throughput/completion_tokens_per_s",
        "eval/reward", "eval/letters/mean",
    }  # fmt: skip
    assert expected <= set(run["metrics"])
    assert run["metrics"]["verifier/undecided/abstained"] == 8
    assert run["metrics"]["policy/ratio_mean"] == pytest.approx(1.0)


def test_groups_are_recorded_whole(reader: RunReader) -> None:
    groups = reader.rows(
        "SELECT id, step, prompt, answer, reward_mean, reward_std FROM prompt_group WHERE split = 'train' ORDER BY id"
    )
    assert [step for _, step, *_ in groups] == [1, 1, 2, 2, 3, 3]
    for group_id, _, prompt, answer, mean, deviation in groups:
        assert prompt.startswith("What is ")
        assert answer.lstrip("-").isdecimal()
        rows = reader.rows(
            "SELECT idx, text, tokens, truncated, reward, advantage FROM completion WHERE group_id = ? ORDER BY idx",
            (group_id,),
        )
        assert [row[0] for row in rows] == [0, 1, 2, 3]
        assert all(1 <= row[2] <= 12 for row in rows)
        rewards = [row[4] for row in rows]
        assert mean == pytest.approx(statistics.fmean(rewards), abs=1e-6)
        assert deviation == pytest.approx(statistics.stdev(rewards), abs=1e-6)


def test_advantages_are_those_of_the_group(reader: RunReader) -> None:
    """TRL's formula: (reward - mean) / (sample deviation + 1e-4)."""
    rows = reader.rows(
        "SELECT c.reward, g.reward_mean, g.reward_std, c.advantage FROM completion c JOIN prompt_group g ON g.id = c.group_id "
        "WHERE split = 'train'"
    )
    assert len(rows) == 24
    for reward, mean, deviation, advantage in rows:
        assert advantage == pytest.approx((reward - mean) / (deviation + 1e-4), abs=1e-3)


def test_scores_add_up_to_the_reward_and_abstentions_are_kept(reader: RunReader) -> None:
    rows = reader.rows(
        "SELECT c.id, c.reward, sum(s.value * s.weight), sum(s.value IS NULL), count(*) FROM completion c "
        "JOIN score s ON s.completion_id = c.id GROUP BY c.id"
    )
    for _, reward, weighted, abstained, count in rows:
        assert reward == pytest.approx(weighted)
        assert (abstained, count) == (1, 3)


def test_held_out_rows_are_scored_before_between_and_after_and_kept_apart(reader: RunReader) -> None:
    steps = [row[0] for row in reader.rows("SELECT DISTINCT step FROM prompt_group WHERE split = 'eval' ORDER BY step")]
    assert steps == [0, 2, 3]
    train = {row[0] for row in reader.rows("SELECT prompt FROM prompt_group WHERE split = 'train'")}
    held_out = {row[0] for row in reader.rows("SELECT prompt FROM prompt_group WHERE split = 'eval'")}
    assert len(held_out) == 4
    assert not train & held_out


def test_phases_add_up_to_the_step(reader: RunReader) -> None:
    for step in (1, 2, 3):
        phases = dict(reader.rows("SELECT phase, seconds FROM phase_time WHERE step = ?", (step,)))
        assert {"rollout", "score", "loss", "optimizer", "reference"} <= set(phases)
        total = reader.rows("SELECT value FROM metric WHERE name = 'time/step' AND step = ?", (step,))[0][0]
        assert total == pytest.approx(
            sum(value for phase, value in phases.items() if phase not in ("evaluate", "save"))
        )


def test_memory_is_sampled_and_numbers_are_finite(reader: RunReader) -> None:
    assert reader.rows("SELECT min(rss) > 0, count(*) > 2 FROM memory_sample") == [(1, 1)]
    values = [row[0] for row in reader.rows("SELECT value FROM metric WHERE value IS NOT NULL")]
    assert all(math.isfinite(value) for value in values)


def test_events_tell_the_story(reader: RunReader) -> None:
    kinds = [event.kind for event in reader.events()]
    for earlier, later in (
        ("run_created", "preparing"),
        ("preparing", "training_started"),
        ("training_started", "run_finished"),
    ):
        assert kinds.index(earlier) < kinds.index(later)
    assert kinds[-1] == "run_finished"


def test_the_final_weights_were_saved(home: Path, run: dict[str, Any]) -> None:
    assert (home / "runs" / run["run"] / "checkpoints" / "final" / "model.safetensors").is_file()
