"""Two runs that differ in one setting, trained for real: the loss backend changes the memory and not what is learned."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from studio_process import TINY_RUN, as_json, studio

from grpo_studio import dispatcher
from grpo_studio.config import RunConfig
from grpo_studio.pair_records import Pair, pairs_of
from grpo_studio.pair_text import as_dict, sentence
from grpo_studio.pairs import start_pair
from grpo_studio.queries.paired import Compared, compared_to_the_end, measures_tensors
from grpo_studio.settings import Settings
from grpo_studio.stopping import StopFlag
from grpo_studio.store.reader import RunReader
from grpo_studio.store.writer import RunWriter

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # as in a worker on a CPU
STEPS = 10


def settings_below(home: Path) -> Settings:
    paths = {"GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache")}
    settings = Settings.from_env(os.environ | paths)
    settings.require_writable()
    return settings


@pytest.fixture(scope="module")
def trained(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Both halves, started as the command starts them and worked at here, in the order of the queue."""
    from grpo_studio.training.session import Session

    settings = settings_below(tmp_path_factory.mktemp("home"))
    config = RunConfig.model_validate(
        {
            "model": {"id": str(tiny_model), "dtype": "float32"},
            "dataset": {"held_out": 0, "prompt_template": "{prompt}"},
            "rewards": [{"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}],
            "algorithm": {
                "steps": STEPS, "prompts_per_step": 2, "group_size": 4, "max_completion_length": 16,
                "learning_rate": 1e-3,
            },
            "memory": {"track_tensors": True},
        }
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatcher, "ensure_running", lambda settings: None)  # this process does what it would start
        pair = start_pair(config, settings, "memory.loss_backend", ("liger", "trl"), "backends")
    for folder in pair.folders:
        assert folder is not None
        with closing(RunWriter(folder.database, attempt=1)) as writer:
            Session(folder.config(), settings, folder, writer, StopFlag()).run()
    return pair


@pytest.fixture(scope="module")
def compared(trained: Pair) -> Compared:
    a, b = trained.folders
    assert a is not None
    assert b is not None
    with RunReader(a.database) as one, RunReader(b.database) as other:
        assert measures_tensors(one) is measures_tensors(other) is True
        return compared_to_the_end(one, other)


def test_rewards_are_equal_to_the_last_digit_until_rounding_flips_a_token(compared: Compared) -> None:
    assert compared.common == STEPS
    first = compared.rewards_differ or STEPS + 1
    if compared.difference is None:
        assert first == STEPS + 1
        assert compared.equal_upto == STEPS
        assert "equal to the last digit in all 10 steps" in sentence(compared)
    else:  # on another machine rounding may flip a token: then the very completion is told, before any reward moves
        assert compared.difference.kind == "completions"
        assert compared.difference.step <= first
        assert compared.equal_upto == compared.difference.step - 1


def test_the_update_is_another_one_and_the_same_but_for_rounding(trained: Pair) -> None:
    """Each side ran its own backend: gradients agree closely and not to the last digit."""
    norms = []
    for folder in trained.folders:
        assert folder is not None
        with RunReader(folder.database) as reader:
            norms.append(dict(reader.rows("SELECT step, value FROM metric WHERE name = 'optim/grad_norm'")))
    assert norms[0][1] == pytest.approx(norms[1][1], rel=1e-4)
    assert norms[0] != norms[1]


def test_the_memory_of_both_is_told_by_phase(compared: Compared) -> None:
    told = as_dict(compared)
    for side in told["sides"]:
        assert side["peak_bytes"] > 0
        assert {"rollout", "loss", "optimizer"} <= set(side["peak_by_phase"])
        assert side["seconds"] > 0


@pytest.mark.slow
def test_the_command_runs_both_and_tells_the_difference(tiny_model: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    tiny = ("--preset", "quickstart", "--set", f"model.id={tiny_model}", "--set", "dataset.held_out=4", *TINY_RUN)
    command = ("pair", *tiny, "--differ", "memory.loss_backend=liger,trl", "--name", "two")
    done = studio(*command, "--wait", "--json", home=home, timeout=240)
    assert done.returncode == 0, done.stderr
    document = as_json(done)
    assert (document["field"], document["values"]) == ("memory.loss_backend", ["liger", "trl"])
    assert [run["state"] for run in document["runs"]] == ["finished", "finished"]
    assert [run["pair"]["side"] for run in document["runs"]] == ["A", "B"]
    assert document["measured"]["steps"] == 3
    assert document["measured"]["sentence"].startswith("A ")
    assert [one.id for one in pairs_of(settings_below(home))] == [document["pair"]]
    begins = [started(home, run["run"]) for run in document["runs"]]
    assert begins == sorted(begins)
    assert (
        "A of a pair that differs in memory.loss_backend"
        in studio("show", document["runs"][0]["run"], home=home).stdout
    )


@pytest.mark.slow
def test_a_half_that_fails_is_told_by_the_exit_code(tiny_model: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    tiny = ("--preset", "quickstart", "--set", f"model.id={tiny_model}", "--set", "dataset.held_out=4", *TINY_RUN)
    command = ("pair", *tiny, "--set", "limits.price_per_hour=3600", "--differ", "limits.cost=,0.001")
    done = studio(*command, "--wait", "--json", home=home, timeout=240)
    assert done.returncode == 1
    assert [run["state"] for run in as_json(done)["runs"]] == ["finished", "stopped"]


def started(home: Path, run: str) -> float:
    with RunReader(home / "runs" / run / "run.db") as reader:
        return next(event.ts for event in reader.events() if event.kind == "preparing")
