"""`algorithm.extra`: every field of TRL's GRPOConfig is free, owned by a setting, fixed, or gone; free ones are typed."""

from __future__ import annotations

import ast
import datetime
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.config_files import parse_config
from grpo_studio.declaration import fields_of
from grpo_studio.extra_fields import FIXED, OBSOLETE, OWNED, SAMPLING, extra_problems
from grpo_studio.problem import Problem
from grpo_studio.trl_fields import installed_fields, trl_version

PACKAGE = Path(__file__).resolve().parent.parent.parent / "grpo_studio"
SETTING = re.compile(r"\b(?:model|rewards|algorithm|memory|rollout|scale|evaluation|checkpoint|report)\.\w+(?:\.\w+)?")


def problems_of(extra: dict[str, Any]) -> list[Problem]:
    return list(extra_problems(RunConfig.model_validate({"algorithm": {"extra": extra}})))


def problem_of(name: str, value: Any = 1) -> Problem:
    (problem,) = problems_of({name: value})
    assert "\n" not in str(problem)
    return problem


@pytest.mark.parametrize(
    "extra",
    [
        {}, {"entropy_coef": 0.01}, {"entropy_coef": 1}, {"top_entropy_quantile": 0.2, "use_adaptive_entropy": True},
        {"gradient_checkpointing_kwargs": None, "weight_decay": 0.1, "adam_beta2": 0.95}, {"pad_to_multiple_of": 8}, {"pad_to_multiple_of": "auto"},
        {"lr_scheduler_kwargs": {"num_cycles": 1}}, {"off_policy_mask_threshold": None}, {"trackio_static_space_id": False},
        {"vllm_importance_sampling_clip_max": 2.0, "vllm_structured_outputs_regex": "a+"}, 
        {"generation_kwargs": {"suppress_tokens": [1, 2]}}, {"generation_kwargs": None}, {"ddp_backend": "gloo"},
    ],
)  # fmt: skip
def test_a_free_field_with_a_value_of_its_type_is_no_problem(extra: dict[str, Any]) -> None:
    assert problems_of(extra) == []


def test_all_problems_are_found_at_once_each_under_its_own_name() -> None:
    found = problems_of({"beta": 0.1, "entropy_coef": "high", "weight_decay": 0.1, "logging_steps": 5, "no_such": 1})
    assert [problem.field for problem in found] == [
        f"algorithm.extra.{name}" for name in ("beta", "entropy_coef", "logging_steps", "no_such")
    ]


def test_an_unknown_name_gets_the_nearest_that_may_be_set() -> None:
    problem = problem_of("entropy_coeff")
    assert problem.message == f"trl {trl_version()} has no field 'entropy_coeff'"
    assert problem.fix.startswith("did you mean entropy_coef")
    assert problem.unknown_key


@pytest.mark.parametrize(
    ("name", "setting"),
    [("num_generation", "algorithm.group_size"), ("learning_rte", "algorithm.learning_rate"), ("group_size", "algorithm.group_size"), ("loss_backend", "memory.loss_backend")],
)  # fmt: skip
def test_an_unknown_name_close_to_an_owned_field_or_equal_to_a_setting_gets_that_setting(
    name: str, setting: str
) -> None:
    assert problem_of(name).fix.startswith(f"set {setting}")


def test_a_name_like_no_other_gets_no_list_of_all_fields() -> None:
    assert problem_of("qqqq").fix == "use a name from GRPOConfig in TRL's documentation"


@pytest.mark.parametrize(("name", "setting"), OWNED.items())
def test_a_field_that_a_setting_decides_is_refused_by_naming_the_setting(name: str, setting: str) -> None:
    problem = problem_of(name, 0.5)
    assert "(found 0.5)" in problem.message
    assert problem.fix == f"set {setting}"
    assert not problem.unknown_key


@pytest.mark.parametrize("name", FIXED)
def test_a_field_that_must_stay_is_refused_with_the_reason(name: str) -> None:
    problem = problem_of(name)
    assert problem.message.startswith(FIXED[name].reason)
    assert problem.fix == FIXED[name].fix


@pytest.mark.parametrize("name", OBSOLETE)
def test_a_name_of_another_version_is_told_what_to_do_now(name: str) -> None:
    problem = problem_of(name)
    exists = name in installed_fields()
    assert ("deprecates it" if exists else "has no such field") in problem.message
    assert problem.fix == OBSOLETE[name]
    assert problem.unknown_key is not exists


@pytest.mark.parametrize("name", ["generation_batch_size", "steps_per_generation"])
def test_the_batch_arithmetic_is_told_with_the_settings_that_make_it(name: str) -> None:
    text = str(problem_of(name, 64))
    assert "found 64" in text
    assert "algorithm.prompts_per_step x algorithm.group_size" in text
    assert "algorithm.num_iterations" in text


def test_a_token_is_refused_without_being_repeated() -> None:
    for name in ("hub_token", "push_to_hub_token"):
        text = str(problem_of(name, "hf_secret"))
        assert "hf_secret" not in text
        assert "HF_TOKEN" in text


@pytest.mark.parametrize(
    ("name", "value", "takes"),
    [
        ("weight_decay", True, "a number"), ("dataloader_prefetch_factor", 1.5, "a whole number or null"), ("use_cache", "yes", "true or false"),
        ("router_aux_loss_coef", [0.1], "a number or null"), ("run_name", 7, "text or null"), ("ref_model_sync_steps", None, "a whole number"),
        ("dataloader_multiprocessing_context", "thread", "one of fork, spawn, forkserver"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_shown_with_what_the_installed_field_takes(
    name: str, value: Any, takes: str
) -> None:
    problem = problem_of(name, value)
    assert problem.message == f"trl {trl_version()} takes {takes} here (found {value!r})"
    assert problem.fix == f"give {takes}"


@pytest.mark.parametrize("number", ["1e-3", "0.1", "3"])
def test_a_number_in_quotes_is_to_be_written_without_them(number: str) -> None:
    assert problem_of("entropy_coef", number).fix == f"write {number}, without quotes"
    assert problems_of(parse_config(f"entropy_coef: {number}", "test")) == []


@pytest.mark.parametrize("value", ["1e999", "nan", "0.1.2"])
def test_text_that_is_no_finite_number_is_not_offered_as_one(value: str) -> None:
    assert problem_of("entropy_coef", value).fix == "give a number"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "nan is not a finite number"),
        ([1.0, float("-inf")], "-inf is not a finite number"),
        ({"a": {"b": [float("inf")]}}, "inf is not a finite number"),
        (datetime.date(2026, 1, 2), "datetime.date(2026, 1, 2) cannot be written as JSON"),
        ({"a": (1, 2)}, "(1, 2) cannot be written as JSON"),
        ({3: 1}, "the key 3 is not text"),
    ],
)
def test_only_plain_finite_values_are_taken_however_deep(value: Any, message: str) -> None:
    assert problem_of("generation_kwargs", value).message == message


@pytest.mark.parametrize(("key", "setting"), SAMPLING.items())
def test_generation_kwargs_cannot_overrule_a_setting(key: str, setting: str) -> None:
    problem = problem_of("generation_kwargs", {"suppress_tokens": [1], key: 2})
    assert problem.field == f"algorithm.extra.generation_kwargs.{key}"
    assert problem.fix == f"set {setting}"


def test_generation_kwargs_as_text_would_not_be_read_so_it_is_refused() -> None:
    problem = problem_of("generation_kwargs", '{"temperature": 0.1}')
    assert problem.field == "algorithm.extra.generation_kwargs"
    assert problem.fix == "give a mapping"


def test_every_owned_and_fixed_name_is_a_field_of_the_installed_version_and_in_one_table_only() -> None:
    assert set(OWNED) | set(FIXED) <= set(installed_fields())
    assert len({*OWNED, *FIXED, *OBSOLETE}) == len(OWNED) + len(FIXED) + len(OBSOLETE)


def test_every_setting_that_an_answer_names_exists() -> None:
    settings = {*fields_of(RunConfig), "rewards.N.weight"}
    answers = [
        *OWNED.values(),
        *OBSOLETE.values(),
        *SAMPLING.values(),
        *(" ".join(refusal) for refusal in FIXED.values()),
    ]
    named = {name for answer in answers for name in SETTING.findall(answer)}
    assert {"rollout.server_devices", "memory.micro_batch"} <= named
    assert named <= settings


def test_every_field_that_an_answer_says_to_write_is_free() -> None:
    for answer in OBSOLETE.values():
        for name in re.findall(r"write (\w+) instead", answer):
            assert name in installed_fields()
            assert name not in {*OWNED, *FIXED, *OBSOLETE}


@pytest.mark.parametrize("file", ["arguments.py", "sharding.py"])
def test_every_field_that_the_worker_sets_itself_is_owned_or_fixed(file: str) -> None:
    tree = ast.parse((PACKAGE / "training" / file).read_text())
    keys = {
        key.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }
    keys |= {keyword.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords}
    written = keys & set(installed_fields())
    assert len(written) > 2
    assert written <= {*OWNED, *FIXED}


def test_checking_loads_neither_torch_nor_trl() -> None:
    script = (
        "import sys\n"
        "from grpo_studio.config import RunConfig\n"
        "from grpo_studio.extra_fields import extra_problems\n"
        "extra = {'entropy_coef': 'x', 'beta': 1, 'optim_args': 'a', 'no_such': 1}\n"
        "found = list(extra_problems(RunConfig.model_validate({'algorithm': {'extra': extra}})))\n"
        "assert len(found) == 3, found\n"
        "print(*{'torch', 'trl', 'transformers', 'accelerate', 'gradio'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=PACKAGE.parent, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_without_trl_the_whole_setting_is_one_problem_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trl", None)
    installed_fields.cache_clear()
    try:
        problem = problems_of({"entropy_coef": 0.1, "beta": 2})
    finally:
        installed_fields.cache_clear()
    assert [str(one) for one in problem] == ["algorithm.extra: the package trl is not installed; run pip install trl"]
