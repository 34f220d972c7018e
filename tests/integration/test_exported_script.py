"""A run as a TRL script, started in a clean folder without GRPO Studio: it does what the run did."""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from trained_here import Trained, trainer_of

from grpo_studio import export_command, script_export
from grpo_studio.errors import StudioError
from grpo_studio.settings import BUNDLED_REWARDS, Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.writer import RunWriter

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

STEPS = 3
OWN_VERIFIER = '''# coding: latin-1
"""Abstains on every third length: \xe9."""
import grpo_studio.verifiers.answer_text as texts
from grpo_studio.verifiers import verifier

NOTE = "grpo_studio stays a word"


@verifier(examples=[("a", {"answer": "1"}, 1.0)])
def shy(completion: str, answer: str, *, least: float = 0.0):
    if len(completion) % 3 == 0:
        return None
    return max(least, 0.1 * (len(texts.normalise(completion)) % 5))
'''
QUICK = (
    "rewards=[{verifier: shy, params: {least: 0.1}}, {verifier: regex_match, name: 'a.b; \"c\"', weight: -0.5, "
    "params: {pattern: '[a-m]', match: search}}]",
    "dataset.held_out=4",
    "memory.loss_backend=trl",
    "algorithm.learning_rate=0.01",
    "algorithm.extra={weight_decay: 0.1}",
    "limits.abstained=null",
)
LETTERS = "rewards=[{verifier: regex_match, params: {pattern: '[a-m]', match: search}}]"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("home")
    settings = Settings(folder, folder / "runs", folder / "cache")
    settings.require_writable()
    settings.own_rewards.mkdir()
    (settings.own_rewards / "shy.py").write_text(OWN_VERIFIER, encoding="latin-1")
    return settings


@pytest.fixture(scope="module")
def run(tiny_model: Path, home: Settings) -> Trained:
    return trainer_of(tiny_model, home)(f"algorithm.steps={STEPS}", *QUICK)


def exported(folder: RunFolder, settings: Settings, target: Path) -> Path:
    """By the command, as a person does it."""
    parser = argparse.ArgumentParser()
    export_command.add_export_arguments(parser)
    options = parser.parse_args([folder.run_id, "--to", str(target), "--script"])
    document, lines, code = export_command.export(options, settings)
    assert (code, document["kind"]) == (0, "script")
    assert lines[0].startswith(f"the script is in {target}")
    return target


def started(folder: Path, *command: str) -> str:
    """What Python prints there, with an environment in which GRPO Studio is not to be found."""
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder.parent)}
    result = subprocess.run(
        [sys.executable, *command], cwd=folder, env=clean, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stdout


def printed(output: str) -> dict[int, tuple[float | None, ...]]:
    """The reward and the mean of each verifier by step; those come in the order of the run's rewards."""
    found = {}
    for line in output.splitlines():
        if begins := re.match(r"step (\d+)  reward (.*)  loss", line):
            numbers = [part.rpartition(" ")[2] for part in begins[2].split("  ")]
            found[int(begins[1])] = tuple(None if number == "none" else float(number) for number in numbers)
    return found


def recorded_by(run: Trained) -> dict[int, tuple[float | None, ...]]:
    labels = [reward.label for reward in run.folder.config().rewards]
    names = ["reward/mean", *(f"reward/{label}/mean" for label in labels)]
    steps = run.metrics["reward/mean"]
    return {step: tuple(run.metrics[name][step] for name in names) for step in steps}


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    [file] = folder.glob("*.safetensors")
    return load_file(file)


def assert_it_does_the_same(run: Trained, folder: Path, tolerance: float) -> None:
    output = printed(started(folder, "train.py"))
    assert list(output) == list(range(1, run.outcome.step + 1))
    for step, values in recorded_by(run).items():
        assert output[step] == pytest.approx(values, abs=1e-6), f"step {step}"
    before, after = weights_of(run.folder.checkpoints / "final"), weights_of(folder / "output" / "final")
    assert before.keys() == after.keys()
    assert max(float((before[name] - after[name]).abs().max()) for name in before) <= tolerance


def test_the_script_prints_the_rewards_of_its_run_and_ends_with_its_weights(
    run: Trained, home: Settings, tmp_path: Path
) -> None:
    """With verifiers that abstain, groups of equal rewards, a held-out split and weight decay."""
    assert sum(value or 0 for value in run.metrics["verifier/shy/abstained"].values()) > 0
    assert min(value or 0 for value in run.metrics["group/mixed"].values()) < 1
    folder = exported(run.folder, home, tmp_path / "clean" / "script")
    assert "absent" in started(folder, "-c", ABSENT)
    assert_it_does_the_same(run, folder, tolerance=1e-7)


ABSENT = "import importlib.util as u; print('there' if u.find_spec('grpo_studio') else 'absent')"


def test_nothing_in_the_folder_imports_the_program(run: Trained, home: Settings, tmp_path: Path) -> None:
    lines = script_export.write(run.folder, home, tmp_path / "script", lambda what: None)
    for path in (tmp_path / "script").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "grpo_studio"], path
    assert "model/ holds the model" in lines[1]
    mine = (tmp_path / "script" / "rewards" / "shy.py").read_text("latin-1")
    assert mine == OWN_VERIFIER.replace("grpo_studio.", "run_support."), (
        "but for its imports it is the file that judged"
    )
    rows = [json.loads(line) for line in (tmp_path / "script" / "data.jsonl").read_text().splitlines()]
    assert len(rows) == run.data("setup")["train_rows"]
    assert all(row.keys() == {"prompt", "question", "columns"} and row["columns"].keys() == {"answer"} for row in rows)
    pinned = (tmp_path / "script" / "requirements.txt").read_text().splitlines()
    assert [line.partition("==")[0] for line in pinned] == [
        "accelerate",
        "datasets",
        "numpy",
        "torch",
        "transformers",
        "trl",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["script"], "nothing is left beside it"


def test_every_module_that_was_copied_finds_those_that_it_needs(run: Trained, home: Settings, tmp_path: Path) -> None:
    script_export.write(run.folder, home, tmp_path / "script", lambda what: None)
    every = (
        "import pathlib, importlib\n"
        "for path in sorted(pathlib.Path('run_support').rglob('*.py')):\n"
        "    name = '.'.join(path.with_suffix('').parts)\n"
        "    if 'training' not in name: importlib.import_module(name.removesuffix('.__init__'))\n"
        "print('all')"
    )
    assert started(tmp_path / "script", "-c", every) == "all\n"


def refused(folder: RunFolder, settings: Settings, target: Path) -> str:
    with pytest.raises(StudioError) as caught:
        script_export.write(folder, settings, target, lambda what: None)
    message = str(caught.value)
    assert "\n" not in message
    assert "; " in message
    return message


def copy_of(run: Trained, target: Path) -> RunFolder:
    shutil.copytree(run.folder.path, target / run.folder.run_id)
    return RunFolder(target / run.folder.run_id)


def test_what_cannot_be_a_script_is_refused_and_nothing_is_written(
    run: Trained, home: Settings, tmp_path: Path
) -> None:
    target = tmp_path / "script"
    other = copy_of(run, tmp_path / "bare")
    shutil.rmtree(other.path / "verifiers")
    assert "never began to train" in refused(other, home, target)

    branch = copy_of(run, tmp_path / "branch")
    branch.database.unlink()
    with_branch = RunWriter(branch.database, attempt=1)
    with_branch.attempt_began(5, "checkpoint-5", "a branch")
    with_branch.close()
    assert "a branch that goes on after step 5" in refused(branch, home, target)

    moved = copy_of(run, tmp_path / "moved")
    moved.config_path.write_text(moved.config_path.read_text().replace("limit: null", "limit: 30"))
    assert "rows to train on, and the run had" in refused(moved, home, target)
    other_seed = copy_of(run, tmp_path / "seed")
    other_seed.config_path.write_text(other_seed.config_path.read_text().replace("seed: 1", "seed: 2"))
    assert "the prompts of the first step are others" in refused(other_seed, home, target)

    broken = copy_of(run, tmp_path / "broken")
    (broken.verifiers(1) / "shy.py").write_bytes(b"def (")
    assert "shy" in refused(broken, home, target)

    scored = copy_of(run, tmp_path / "scored")
    shutil.copy(BUNDLED_REWARDS / "reward_model.py", scored.verifiers(1))
    scored.config_path.write_text(scored.config_path.read_text().replace("verifier: shy", "verifier: reward_model"))
    assert "reward_model is a model that the trainer loads" in refused(scored, home, target)
    assert not target.exists()


def test_a_resumed_run_has_the_verifiers_and_settings_of_its_newest_attempt(
    run: Trained, home: Settings, tmp_path: Path
) -> None:
    resumed = copy_of(run, tmp_path / "resumed")
    again = RunWriter(resumed.database, attempt=2)
    again.attempt_began(2, "checkpoint-2", "resumed")
    again.close()
    mended = OWN_VERIFIER.replace("0.1 *", "0.2 *")
    resumed.verifiers(2).mkdir()
    (resumed.verifiers(2) / "shy.py").write_text(mended, encoding="latin-1")
    shutil.copy(resumed.verifiers(1) / "regex_match.py", resumed.verifiers(2))
    settings = resumed.config_path.read_text().replace("every: 0", "every: 7")
    resumed.config_path_of(2).write_text(settings)
    lines = script_export.write(resumed, home, tmp_path / "script", lambda what: None)
    assert "0.2 *" in (tmp_path / "script" / "rewards" / "shy.py").read_text("latin-1")
    assert not (tmp_path / "script" / "rewards" / "attempt-2").exists()
    assert "save_steps=7" in (tmp_path / "script" / "train.py").read_text()
    assert any("resumed 1 time;" in line for line in lines)
    assert any("checkpoint.every 0 -> 7" in line for line in lines)


@pytest.mark.parametrize("what", ["filled", "file", "link"])
def test_a_place_that_is_taken_is_refused(run: Trained, home: Settings, tmp_path: Path, what: str) -> None:
    target = tmp_path / "script"
    if what == "filled":
        target.mkdir()
        (target / "mine").touch()
    elif what == "file":
        target.touch()
    else:
        target.symlink_to(tmp_path / "nowhere")
    assert "is there already" in refused(run.folder, home, target)


# --- slow: more runs, each compared with its script ---

VARIANTS: dict[str, tuple[Sequence[str], float]] = {
    "lora": ((LETTERS, "memory.adapter=lora", "memory.lora_dropout=0.2", "memory.lora_targets=q_proj, v_proj"), 1e-4),
    "dead groups by liger": ((LETTERS, "algorithm.extra={weight_decay: 0.1}"), 1e-4),
    "iterations and micro-batches": (
        (LETTERS, "algorithm.num_iterations=2", "memory.micro_batch=2", "memory.loss_backend=full", "algorithm.scale_rewards=batch"),
        1e-4,
    ),
    "a KL term and a template": (
        (LETTERS, "algorithm.beta=0.1", "model.chat_template=chatml", "algorithm.loss_type=bnpo", "memory.loss_backend=trl"),
        1e-7,
    ),
    "plain text, other sampling": (
        (LETTERS, "model.chat_template=plain", 'dataset.system_prompt=Be "good"', "algorithm.top_k=20", "algorithm.temperature=0.7"),
        1e-4,
    ),
    "several objectives": (
        (QUICK[0], "limits.abstained=null", "algorithm.extra={multi_objective_aggregation: normalize_then_sum}", "memory.loss_backend=trl"),
        1e-7,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_the_script_of_another_run_does_the_same(name: str, tiny_model: Path, home: Settings, tmp_path: Path) -> None:
    overrides, tolerance = VARIANTS[name]
    run = trainer_of(tiny_model, home)("algorithm.steps=4", "algorithm.learning_rate=0.002", *overrides)
    assert_it_does_the_same(run, exported(run.folder, home, tmp_path / "script"), tolerance)


@pytest.mark.slow
def test_every_verifier_that_ships_judges_alike_in_the_script_s_folder(tmp_path: Path) -> None:
    from grpo_studio.script_export.support_code import renamed, support_of

    files = sorted(BUNDLED_REWARDS.glob("*.py"))
    (tmp_path / "rewards").mkdir()
    for path in files:
        (tmp_path / "rewards" / path.name).write_bytes(renamed(path))
    for place, text in support_of(files).files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    (tmp_path / "check.py").write_text(JUDGE_EXAMPLES)
    assert json.loads(started(tmp_path, "check.py").splitlines()[-1]) == {"wrong": [], "judged": len(files) - 1}


JUDGE_EXAMPLES = """
import json
from pathlib import Path
from run_support.verifiers import discover
from run_support.verifiers.judge import Judge, JudgeRequest

rewards = [Path(__file__).resolve().parent / "rewards"]
specs = [spec for spec in discover(rewards).specs.values() if spec.place == "judge"]
wrong = []
for spec in specs:
    params = [{name: value for name, value in one.values.items() if name in spec.params} for one in spec.examples]
    with Judge([JudgeRequest(spec.name, given) for given in params], rewards) as judge:
        for place, one in enumerate(spec.examples):
            columns = {name: [value] for name, value in one.values.items() if name not in params[place]}
            [score] = judge.score_each([place], [one.completion], columns)
            if score.value is None or one.expected is None:
                right = score.value is one.expected
            else:
                right = abs(score.value - one.expected) < 1e-6
            wrong += [] if right else [[spec.name, one.completion, score.value, score.reason]]
print(json.dumps({"wrong": wrong, "judged": len(specs)}))
"""
