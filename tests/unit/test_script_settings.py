"""An exported script against the trainer: the same settings for TRL, the same sums of scores, the same rows."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from grpo_studio.config import RunConfig
from grpo_studio.config_files import preset_names, read_preset
from grpo_studio.script_export.facts import ScriptFacts, ScriptRow
from grpo_studio.script_export.rendering import script
from grpo_studio.settings import BUNDLED_PRESETS
from grpo_studio.store.records import ScoreRecord

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

OF_OUTPUT = {
    "output_dir", "logging_dir", "run_name", "save_strategy", "save_steps", "save_total_limit", "save_only_model", "logging_steps",
    "hub_model_id", "vllm_group_port", "vllm_server_base_url",
}  # fmt: skip
ODD: dict[str, dict[str, Any]] = {
    "losses": {"algorithm": {"loss_type": "cispo", "delta": 2.0, "min_p": 0.1, "num_iterations": 2, "warmup_ratio": 0.1}},
    "extra": {"algorithm": {"extra": {"entropy_coef": 0.01, "chat_template_kwargs": {"enable_thinking": False}}}},
    "mixed": {"model": {"dtype": "mixed", "attn_implementation": "eager", "revision": "a'b"}},
    "server": {"rollout": {"engine": "vllm_server", "server_url": "http://h:1"}, "model": {"chat_template": "chatml"}},
    "saving": {"checkpoint": {"every": 3}, "report": {"to": "tensorboard", "hub_repo": "a/b"}},
}  # fmt: skip
CASES = {name: read_preset(name, [BUNDLED_PRESETS]) for name in preset_names([BUNDLED_PRESETS])} | ODD


@pytest.mark.parametrize("name", CASES)
def test_the_settings_of_the_script_are_those_of_the_run(name: str) -> None:
    """Its GRPOConfig against the trainer's own, field by field."""
    import torch
    from trl import GRPOConfig

    from grpo_studio.training.arguments import grpo_arguments
    from grpo_studio.training.precision import effective_dtype
    from grpo_studio.training.script_facts import script_settings
    from grpo_studio.training.tokenization import stop_at_end_token

    config = RunConfig.model_validate({key: value for key, value in CASES[name].items() if key != "about"})
    dtype = effective_dtype(config.model)
    tokenizer = SimpleNamespace(eos_token_id=7)
    grpo = script_settings(config, dtype, not torch.cuda.is_available(), tokenizer)
    row = ScriptRow("a", "a", {})
    text = script(
        config, ScriptFacts(grpo, "m", None, None, False, None, "float32", True, [row]), "run", "python train.py"
    )
    [function] = [
        node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "grpo_config"
    ]
    space = {"GRPOConfig": GRPOConfig, "OUTPUT": Path("out")}
    exec(compile(ast.Module([function], []), "train.py", "exec"), space)
    own = grpo_arguments(config, Path("out"))
    stop_at_end_token(own, config, tokenizer)
    theirs = space["grpo_config"]()  # type: ignore[operator]
    for field in fields(GRPOConfig):
        if field.name not in OF_OUTPUT:
            expected = getattr(own, field.name)
            if field.name == "model_init_kwargs":
                expected = {key: value for key, value in expected.items() if value is not None}
            assert getattr(theirs, field.name) == expected, field.name


WEIGHTS = (1.0, -2.5, 0.0)
SCORES = st.none() | st.floats(-1e19, 1e19) | st.sampled_from([0.0, 1.0, 1e18, 4e17, -0.0])


@how(max_examples=60)
@given(st.tuples(SCORES, SCORES, SCORES))
def test_scores_add_up_as_the_trainer_adds_them_up(scores: tuple[float | None, ...]) -> None:
    from grpo_studio.training.rewards import without_excess
    from grpo_studio.weighted_reward import weighted_reward

    own = without_excess([ScoreRecord("v", value, weight) for value, weight in zip(scores, WEIGHTS, strict=True)])
    theirs = SUMS["within_bounds"](list(scores))
    assert theirs == [score.value for score in own]
    assert SUMS["total"](theirs) == pytest.approx(weighted_reward(own))


def sums() -> dict[str, Any]:
    """The functions of the script that add scores up."""
    text = script(
        RunConfig(), ScriptFacts({}, "m", None, None, False, None, "float32", True, []), "run", "python train.py"
    )
    wanted = ("weighted", "total", "within_bounds")
    body = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name in wanted]
    space: dict[str, Any] = {"REWARDS": [{"weight": weight} for weight in WEIGHTS], "LARGEST_REWARD": 1e18}
    exec(compile(ast.Module(body, []), "train.py", "exec"), space)
    return space


SUMS = sums()


def test_of_a_large_data_set_the_rows_of_the_steps_are_taken_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    from trl.trainer.utils import RepeatSampler

    from grpo_studio.data import Sample
    from grpo_studio.training import script_facts

    monkeypatch.setattr(script_facts, "MOST_ROWS", 50)
    samples = [Sample((), f"q{number}", None, {}) for number in range(100)]
    config = RunConfig.model_validate(
        {"algorithm": {"steps": 5, "prompts_per_step": 4, "num_iterations": 2, "seed": 9}}
    )
    grpo: dict[str, Any] = {}
    rows, why = script_facts.rows_in_use(config, samples, grpo)
    order = list(RepeatSampler(range(100), 1, batch_size=4, seed=9))
    assert [row.question for row in rows] == [f"q{place}" for place in order[:12]]
    assert grpo == {"shuffle_dataset": False}
    assert "12 of 100" in why
    longer = RunConfig.model_validate({"algorithm": {"steps": 30, "prompts_per_step": 4}})
    assert script_facts.rows_in_use(longer, samples, {}) == (samples, ""), "more than one epoch takes them all"
    monkeypatch.undo()
    assert script_facts.rows_in_use(config, samples, {}) == (samples, "")
