"""Verifiers that die, hang, abstain or are edited in real runs of the tiny model; what a run then does and shows."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from live_runs import events_of
from studio_process import as_json, studio, tiny_train
from trained_here import Train, trainer_of

from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

HEAD = "import os, time\nfrom pathlib import Path\nfrom grpo_studio.verifiers import verifier\n\n\n"
BREAKS = (
    HEAD + "CALLS = Path({calls!r})\n\n\n"
    "@verifier(examples=[('ab', {{}}, 0.2)])\n"
    "def letters(completion: str) -> float:\n"
    "    'Share of ten characters, until its grader goes away.'\n"
    "    with CALLS.open('a') as file:\n"
    "        file.write('.')\n"
    "    if CALLS.stat().st_size > {healthy}:\n"
    "        raise ConnectionError('the grading service is away')\n"
    "    return min(len(completion), 10) / 10\n"
)
"""A verifier that works for so many completions, then fails on everything, its own example included."""


def add(home: Path, name: str, source: str) -> Path:
    (home / "rewards").mkdir(parents=True, exist_ok=True)
    path = home / "rewards" / f"{name}.py"
    path.write_text(source)
    return path


@pytest.fixture
def train(tiny_model: Path, settings: Settings) -> Train:
    return trainer_of(tiny_model, settings)


def test_a_grader_that_goes_away_pauses_the_run_with_a_checkpoint(tmp_path: Path, tiny_model: Path) -> None:
    """2 prompts x G = 4 a step: healthy for two steps, then four steps hold eight prompts of which most abstained."""
    add(tmp_path, "letters", BREAKS.format(calls=str(tmp_path / "calls"), healthy=16))
    result = tiny_train(
        tiny_model, tmp_path, "--set", "rewards=[{verifier: letters}, {verifier: math_numeric, weight: 0}]",
        "--set", "algorithm.steps=50", "--set", "dataset.held_out=0", "--wait",
    )  # fmt: skip
    assert result.returncode == 1
    shown = as_json(result)
    assert shown["state"] == "paused"
    assert shown["step"] < 10
    assert f"after step {shown['step']}: " in shown["reason"]
    assert "completions" in shown["reason"]
    assert "letters abstained on" in shown["reason"]
    assert "the grading service is away" in shown["reason"]
    assert "start the run again" in shown["reason"]
    folder = RunFolder(tmp_path / "runs" / shown["run"])
    assert (folder.checkpoints / f"checkpoint-{shown['step']}" / "model.safetensors").is_file()
    assert [event.kind for event in events_of(folder)][-2:] == ["checkpoint_saved", "run_paused"]
    human = studio("show", "latest", home=tmp_path).stdout
    assert "paused" in human
    assert shown["reason"] in human


@pytest.mark.slow
def test_two_processes_pause_together(tmp_path: Path, tiny_model: Path) -> None:
    add(
        tmp_path,
        "never",
        HEAD + "@verifier(examples=[('ab', {}, None)])\ndef never(completion: str):\n    return None\n",
    )
    result = tiny_train(
        tiny_model, tmp_path, "--set", "scale.processes=2", "--set", "scale.strategy=ddp", "--wait",
        "--set", "rewards=[{verifier: never}]", "--set", "algorithm.steps=50", "--set", "dataset.held_out=0",
    )  # fmt: skip
    shown = as_json(result)
    assert (shown["state"], shown["step"]) == ("paused", 4), shown["reason"]
    assert "32 of the last 32 completions (100%)" in shown["reason"]


def test_a_grader_that_is_down_from_the_start_pauses_before_training(train: Train, settings: Settings) -> None:
    add(
        settings.home,
        "down",
        HEAD + "@verifier(examples=[('ab', {}, 1.0)])\ndef down(completion: str) -> float:\n    os._exit(3)\n",
    )
    trained = train("rewards=[{verifier: down}]", "dataset.held_out=4")
    assert trained.outcome.step == 0
    assert trained.outcome.paused is not None
    assert trained.outcome.paused.startswith("before training, on the held-out rows: 4 of the last 4 completions")
    assert "down abstained" in trained.outcome.paused
    assert "training_started" not in [kind for kind, _, _ in trained.events]


def test_a_run_too_short_for_the_share_pauses_at_its_end(train: Train, settings: Settings) -> None:
    add(
        settings.home,
        "down",
        HEAD
        + "@verifier(examples=[('ab', {}, 1.0)])\ndef down(completion: str) -> float:\n    raise OSError('no disk')\n",
    )
    trained = train("rewards=[{verifier: down}]")
    assert trained.outcome.step == 2
    assert trained.outcome.paused is not None
    assert "16 of the last 16 completions (100%)" in trained.outcome.paused
    assert "no disk" in trained.outcome.paused


def test_completions_that_break_or_hang_a_verifier_are_zeros(train: Train, settings: Settings) -> None:
    """Whatever the completion is to blame for is a 0 with a count, never an abstention; one of them hangs."""
    add(
        settings.home, "moody",
        HEAD + f"MARK = Path({str(settings.home / 'mark')!r})\n\n\n"
        "@verifier(examples=[('ok ok ok ok ok', {}, 1.0)])\n"
        "def moody(completion: str) -> float:\n"
        "    if 'ok ok' in completion:\n        return 1.0\n"
        "    if not MARK.exists():\n        MARK.touch()\n        time.sleep(1000)\n"
        "    raise ValueError('cannot read this text')\n",
    )  # fmt: skip
    trained = train("rewards=[{verifier: moody}, {verifier: regex_match, params: {pattern: '[a-m]', match: search}}]")
    assert trained.outcome.paused is None
    assert trained.metrics["verifier/moody/timeout"] == {1: 1.0, 2: 0.0}
    assert trained.metrics["verifier/moody/error"] == {1: 7.0, 2: 8.0}
    assert trained.metrics["verifier/moody/abstained"] == {1: 0.0, 2: 0.0}
    assert trained.metrics["reward/moody/mean"] == {1: 0.0, 2: 0.0}


def test_a_verifier_gets_the_prompt_and_the_length_in_tokens(train: Train, settings: Settings) -> None:
    add(
        settings.home, "given",
        HEAD + "@verifier(examples=[('ab', {'prompt': 'Say q', 'completion_tokens': 2}, 2.02)])\n"
        "def given(completion: str, prompt: str, completion_tokens: int) -> float:\n"
        "    if not isinstance(prompt, str) or not prompt.startswith('Say '):\n        return -1.0\n"
        "    return completion_tokens + len(set(completion)) / 100\n",
    )  # fmt: skip
    trained = train("rewards=[{verifier: given}]", "dataset.held_out=4", "dataset.prompt_template=Say {prompt}")
    with RunReader(trained.folder.database) as reader:
        rows = reader.rows(
            "SELECT g.split, c.tokens, s.value FROM completion c JOIN score s ON s.completion_id = c.id "
            "JOIN prompt_group g ON g.id = c.group_id"
        )
    assert {split for split, _, _ in rows} == {"train", "eval"}
    assert all(int(value) == tokens for _, tokens, value in rows), rows


@pytest.mark.parametrize("aggregation", ["sum_then_normalize", "normalize_then_sum"])
def test_rewards_beyond_float32_are_missing_and_told(train: Train, settings: Settings, aggregation: str) -> None:
    """Half of the completions add up to 1e39: they teach nothing, the others do, and the weights stay numbers."""
    from safetensors.torch import load_file

    add(
        settings.home, "large",
        HEAD + "@verifier(examples=[('ab', {}, 1e38)])\n"
        "def large(completion: str) -> float:\n"
        "    total = sum(map(ord, completion))\n    return 1e38 if total % 2 else total % 4 / 2\n",
    )  # fmt: skip
    trained = train(
        "rewards=[{verifier: large, weight: 10}]", "limits.abstained=1", "algorithm.steps=4",
        f"algorithm.extra={{multi_objective_aggregation: {aggregation}}}",
    )  # fmt: skip
    assert trained.outcome.paused is None
    lost = trained.metrics["verifier/large/non_finite"]
    assert sum(value or 0.0 for value in lost.values()) > 0
    assert lost == trained.metrics["verifier/large/abstained"]
    told = [message for kind, message, _ in trained.events if kind == "non_finite_score"]
    assert len(told) == 1
    assert "times the weight 10" in told[0]
    weights = load_file(trained.folder.checkpoints / "final" / "model.safetensors")
    assert all(bool(weight.isfinite().all()) for weight in weights.values())


def test_values_of_a_wrong_kind_are_counted_and_told(train: Train, settings: Settings) -> None:
    add(
        settings.home,
        "text",
        HEAD + "@verifier(examples=[('ab', {}, None)])\ndef text(completion: str):\n    return '1.0'\n",
    )
    add(
        settings.home,
        "nan",
        HEAD + "@verifier(examples=[('ab', {}, None)])\ndef nan(completion: str):\n    return float('nan')\n",
    )
    trained = train(
        "rewards=[{verifier: text, weight: 0}, {verifier: nan, weight: 0}, "
        "{verifier: regex_match, params: {pattern: '[a-m]', match: search}}]"
    )
    counted = {"abstained": 8.0, "wrong_type": 8.0, "non_finite": 0.0, "timeout": 0.0, "error": 0.0}
    assert {kind: trained.metrics[f"verifier/text/{kind}"][1] for kind in counted} == counted
    assert trained.metrics["verifier/nan/non_finite"][1] == 8.0
    assert trained.metrics["verifier/nan/abstained"][1] == 8.0
    told = {kind: message for kind, message, _ in trained.events if kind in ("verifier_trouble", "non_finite_score")}
    assert told["verifier_trouble"].startswith("text: first value of a wrong type at step 1: ")
    assert told["non_finite_score"].startswith("nan: first value that is not finite at step 1: ")


def test_a_run_judges_with_the_files_that_it_began_with(train: Train, settings: Settings) -> None:
    """The verifier's file is changed by its first call, and the child that judges ends at times."""
    path = settings.home / "rewards" / "letters.py"
    source = (
        HEAD + f"ORIGINAL = Path({str(path)!r})\n\n\n"
        "@verifier(examples=[('ab', {}, 0.2)])\n"
        "def letters(completion: str) -> float:\n"
        "    ORIGINAL.write_text('raise SystemExit(1)')\n"
        "    if len(completion) % 3 == 0:\n        os._exit(1)\n"
        "    return min(len(completion), 10) / 10\n"
    )
    add(settings.home, "letters", source)
    trained = train("rewards=[{verifier: letters}]")
    assert path.read_text() == "raise SystemExit(1)"
    with RunReader(trained.folder.database) as reader:
        rows = reader.rows("SELECT c.text, s.value, s.outcome FROM completion c JOIN score s ON s.completion_id = c.id")
    assert len(rows) == 16
    for text, value, outcome in rows:
        assert (value, outcome) == ((0.0, "error") if len(text) % 3 == 0 else (min(len(text), 10) / 10, "ok"))
    kept = trained.folder.path / "verifiers" / "letters.py"
    assert kept.read_text() == source
    [told] = trained.data("verifiers")["files"]
    assert told["file"] == "letters.py"
    assert told["sha256"] == hashlib.sha256(source.encode()).hexdigest()
    assert told["verifiers"] == ["letters"]
