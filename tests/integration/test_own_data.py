"""A person's own data set, by path: scanned whole, then trained on, through the real command line and worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from studio_process import as_json, studio

from grpo_studio.preflight import CheckReport, check
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

ROWS = 7473
LETTERS = {"verifier": "regex_match", "params": {"pattern": "[a-m]", "match": "search"}}
"""What a random model writes has a letter of these now and then, so that its groups are not all dead."""


@pytest.fixture(scope="module")
def gsm8k(shared_dir: Path) -> Path:
    return shared_dir / "data" / "gsm8k_train.jsonl"


def settings_for(model: Path, source: Path, reward: dict[str, Any], completion: int, **dataset: Any) -> dict[str, Any]:
    """Two small steps on a data set of which only the path is told."""
    return {
        "model": {"id": str(model)},
        "dataset": {"source": str(source), **dataset},
        "rewards": [reward],
        "algorithm": {"steps": 2, "prompts_per_step": 2, "group_size": 4, "max_completion_length": completion},
        "evaluation": {"rows": 2},
    }


@pytest.fixture(scope="module")
def checked(tiny_model: Path, gsm8k: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    settings = Settings(home, home / "runs", home / "cache")
    return check(
        settings_for(tiny_model, gsm8k, {"verifier": "math_numeric"}, 8, too_long="leave_out"), settings
    ).as_dict()


def test_gsm8k_is_mapped_by_its_path_alone(checked: dict[str, Any]) -> None:
    assert checked["ok"], checked["problems"]
    assert checked["scan"]["mapping"] == {"prompt": "question", "answer": "answer", "gold_form": "gsm8k"}
    assert checked["derived"]["dataset_rows"] == ROWS
    assert checked["derived"]["context_length"] == 512
    assert checked["scan"]["train_rows"] + checked["scan"]["held_out_rows"] + checked["scan"]["left_out"] == ROWS


def test_every_gold_of_gsm8k_is_read(checked: dict[str, Any]) -> None:
    [gold] = checked["scan"]["golds"]
    assert (gold["rows"], gold["readable"], gold["unreadable"]) == (ROWS, ROWS, [])


def test_the_lengths_of_gsm8k_add_up(checked: dict[str, Any]) -> None:
    lengths = checked["scan"]["lengths"]
    assert sum(lengths["counts"]) == ROWS
    assert lengths["room"] == lengths["context"] - 8 == 504
    assert lengths["edges"][0] <= lengths["median"] <= lengths["p95"] <= lengths["longest"] < lengths["edges"][-1]
    assert checked["derived"]["longest_prompt"] == lengths["longest"]


def test_two_steps_on_gsm8k_end_finished_without_the_rows_that_do_not_fit(
    tmp_path: Path, tiny_model: Path, gsm8k: Path, checked: dict[str, Any]
) -> None:
    config = tmp_path / "own.yaml"
    config.write_text(yaml.safe_dump(settings_for(tiny_model, gsm8k, LETTERS, 8, too_long="leave_out")))
    result = studio("train", "--config", str(config), "--wait", "--json", home=tmp_path, timeout=240)
    assert result.returncode == 0, result.stderr
    run = as_json(result)
    assert (run["state"], run["step"], run["groups"]) == ("finished", 2, 4)
    with RunReader(RunFolder(tmp_path / "runs" / run["run"]).database) as reader:
        told = {event.kind: event for event in reader.events()}
    too_long = checked["scan"]["lengths"]["too_long"]
    assert too_long > 0, "the tiny model's context of 512 is too short for the longest of them"
    assert told["rows_left_out"].message.startswith(f"{too_long} of 7,473 prompts (rows ")
    assert (
        told["data_read"].data.items()
        >= {
            "dataset_rows": ROWS,
            "left_out": too_long,
            "train_rows": checked["scan"]["train_rows"],
            "held_out_rows": checked["scan"]["held_out_rows"],
            "longest_prompt": checked["derived"]["longest_prompt"],
            "context_length": 512,
        }.items()
    )


def stopped(model: Path, source: Path, settings: Settings) -> CheckReport:
    return check(settings_for(model, source, LETTERS, 8), settings)


def test_rows_that_do_not_fit_stop_a_run_unless_they_are_left_out(
    tiny_model: Path, gsm8k: Path, settings: Settings, checked: dict[str, Any]
) -> None:
    [problem] = stopped(tiny_model, gsm8k, settings).problems
    too_long = checked["scan"]["lengths"]["too_long"]
    assert problem.field == "dataset.too_long"
    assert problem.message.startswith(f"{too_long} of 7,473 prompts (rows ")
    assert problem.message.endswith("have more than 504 tokens: the context of 512 less 8 for a completion")
    assert problem.fix.startswith("set dataset.too_long=leave_out")
