"""The text of an exported script: whatever a run's settings hold, it is Python that says just that."""

from __future__ import annotations

import ast
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from grpo_studio.config import RunConfig
from grpo_studio.config_files import preset_names, read_preset
from grpo_studio.errors import ConfigError
from grpo_studio.script_export.facts import Recorded, ScriptFacts, ScriptRow
from grpo_studio.script_export.literals import literal
from grpo_studio.script_export.rendering import script
from grpo_studio.script_export.told import command_of, differences, readme
from grpo_studio.script_export.writing import run_name
from grpo_studio.settings import BUNDLED_PRESETS
from grpo_studio.store.records import AttemptStart

HOSTILE = (
    "plain", "", "'", '"', '"""', "'''", '\\"', "\\", "\n", "\r\n", "\u2028", "\x00", "\ud800", "@@RUN@@", "#[end]",
    "#[if lora]", '"); import os; os.abort() #', "{0}", "%s", "${x}", "\u202e", "\U0001f600", "\N{BOM}",
)  # fmt: skip
PLAIN_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.sampled_from(HOSTILE),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.sampled_from(HOSTILE), inner, max_size=4)
    ),
    max_leaves=12,
)
TOLD = Recorded("cpu", "float32", 10, (), (AttemptStart(),))


def facts(**changed: Any) -> ScriptFacts:
    plain = ScriptFacts(
        grpo={"learning_rate": 1e-5, "reward_weights": [1.0], "delta": None},
        model="owner/name",
        revision=None,
        template="{{ messages }}",
        plain=False,
        end_token=None,
        dtype="float32",
        on_cpu=True,
        rows=[ScriptRow("a", "a", {})],
    )
    return replace(plain, **changed)


def tree_of(config: RunConfig, found: ScriptFacts) -> ast.Module:
    """The script, which must compile without so much as a warning."""
    text = script(config, found, run_name("20260101-000000-run-0000"), command_of(config))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(text.encode("utf-8"), "train.py", "exec")
    return ast.parse(text)


def value_of(tree: ast.Module, name: str) -> Any:
    """What a constant of the script stands for."""
    [found] = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    ]
    return ast.literal_eval(found)


def settings_of(tree: ast.Module) -> dict[str, ast.expr]:
    [call] = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "GRPOConfig"]
    return {keyword.arg or "": keyword.value for keyword in call.keywords}


@how(max_examples=60)
@given(PLAIN_DATA)
def test_a_literal_reads_as_the_value_that_it_stands_for(value: Any) -> None:
    text = literal(value).replace('float("inf")', "1e999").replace('float("-inf")', "-1e999")
    assert ast.literal_eval(text) == value
    text.encode("utf-8")


def test_a_literal_of_no_plain_data_is_refused_by_its_value() -> None:
    with pytest.raises(ConfigError, match=r"<object object.*; use text, numbers or lists"):
        literal({"a": [object()]})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_written_so_that_python_reads_it(value: float) -> None:
    assert str(eval(literal(value), {"float": float})) == str(value)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_run_breaks_the_script_or_adds_to_it(text: str) -> None:
    named = text if text and text.isprintable() else f"x{text!a}"  # no setting can be empty or hold half a character
    reward = {"verifier": named, "name": named, "weight": -2.5, "params": {text: [text, {text: text}]}}
    memory = {"adapter": "qlora", "lora_targets": f"q, {named},"}
    config = RunConfig.model_validate({"rewards": [reward], "memory": memory})
    grpo = {"generation_kwargs": {"stop": [text]}, "report_to": text}
    tree = tree_of(config, facts(model=text, revision=text, end_token=text, grpo=grpo))
    plain = tree_of(RunConfig.model_validate({"memory": {"adapter": "qlora"}}), facts(model="m", end_token="e"))
    assert value_of(tree, "MODEL") == text
    assert value_of(tree, "REVISION") == text
    assert value_of(tree, "REWARDS") == [reward]
    assert ast.literal_eval(settings_of(tree)["generation_kwargs"]) == {"stop": [text]}
    assert [type(node) for node in tree.body] == [type(node) for node in plain.body], "nothing came in beside values"


@pytest.mark.parametrize("run", ['x"""; import os #', "a\nb", "\ud800", "`x`", "../../x", "ä"])
def test_a_folder_of_any_name_is_plain_words_in_the_script(run: str) -> None:
    name = run_name(run)
    assert name.isascii()
    assert not set(name) & set("\"'`\n\\/ #")
    config = RunConfig()
    compile(script(config, facts(), name, command_of(config)), "train.py", "exec")


@pytest.mark.parametrize("name", preset_names([BUNDLED_PRESETS]))
def test_the_script_of_every_preset_passes_the_linter(name: str, tmp_path: Path) -> None:
    raw = read_preset(name, [BUNDLED_PRESETS])
    raw.pop("about", None)
    config = RunConfig.model_validate(raw)
    text = script(config, facts(model=tmp_path), "run", command_of(config))
    (tmp_path / "train.py").write_text(text)
    chosen = "E4,E5,E7,E9,F,B,W"
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--line-length=120",
        f"--select={chosen}",
        "--ignore=E402",
    ]
    result = subprocess.run([*command, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "@@" not in text
    assert "#[" not in text


@pytest.mark.parametrize(
    ("change", "found", "there", "absent"),
    [
        ({}, {}, ["TORCHDYNAMO_DISABLE", "DeadStepCallback(", "chat_template.jinja"], ["peft", "HF_HUB_OFFLINE", "eos_token ="]),
        ({}, {"on_cpu": False, "model": Path("m")}, ["HF_HUB_OFFLINE", 'str(HERE / "model")'], ["TORCHDYNAMO_DISABLE"]),
        ({"report": {"to": "wandb"}}, {"model": Path("m")}, [], ["HF_HUB_OFFLINE"]),
        ({"algorithm": {"beta": 0.1}}, {}, ["without_rounding("], ["DeadStepCallback", "thin("]),
        ({"memory": {"skip_dead_groups": False}}, {}, ["without_rounding("], ["DeadStepCallback", "thin("]),
        ({"memory": {"adapter": "lora", "lora_targets": "q_proj, v_proj"}}, {}, ['target_modules=["q_proj", "v_proj"]'], ["BitsAndBytes"]),
        ({"memory": {"adapter": "qlora"}}, {"dtype": "bfloat16"}, ['target_modules="all-linear"', "torch.bfloat16"], []),
        ({}, {"plain": True}, ["tokenizer.chat_template = None"], ["chat_template.jinja"]),
        ({}, {"template": None}, [], ["chat_template"]),
        ({}, {"end_token": "<e>"}, ['tokenizer.eos_token = "<e>"'], []),
    ],
)  # fmt: skip
def test_the_script_holds_what_its_run_needs_and_no_more(
    change: dict[str, Any], found: dict[str, Any], there: Sequence[str], absent: Sequence[str]
) -> None:
    config = RunConfig.model_validate(change)
    tree_of(config, facts(**found))
    text = script(config, facts(**found), "run", command_of(config))
    assert [part for part in there if part not in text] == []
    assert [part for part in absent if part in text] == []


def told_of(change: dict[str, Any], before: dict[str, Any] | None = None, told: Recorded = TOLD, **found: Any) -> str:
    config = RunConfig.model_validate(change)
    first = config if before is None else RunConfig.model_validate(before)
    lines = differences(config, first, told, facts(**found), [])
    assert all("\n" not in line for line in lines)
    text = readme("run", config, facts(**found), told, lines)
    assert all(f"- {line}\n" in text for line in lines), "README.md says all that the command says"
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"limits": {"hours": 2}}, "limits.hours"),
        ({"limits": {"cost": 2}}, "limits.cost"),
        ({"limits": {"tokens": 2}}, "limits.tokens"),
        ({"limits": {"abstained": 0.2}}, "limits.abstained"),
        ({"report": {"hub_repo": "a/b"}}, "report.hub_repo"),
        ({"checkpoint": {"every": 5}}, "checkpoint.keep_best"),
        ({"checkpoint": {"every": 5, "keep_best": False, "keep_every": 10}}, "keep_every"),
        ({"dataset": {"held_out": 8}}, "dataset.held_out"),
        ({"memory": {"loss_backend": "full"}}, "full backend"),
        ({"memory": {"loss_backend": "liger"}}, "liger backend"),
        ({"rollout": {"engine": "vllm_server"}}, "trl vllm-serve"),
        ({"rollout": {"engine": "vllm_colocate"}}, "rollout.sync_canary"),
        ({"scale": {"strategy": "fsdp", "processes": 2}}, "FSDP"),
    ],
)
def test_what_is_not_carried_over_is_told(change: dict[str, Any], word: str) -> None:
    quiet = {"limits": {"abstained": None}, "dataset": {"held_out": 0}, "memory": {"loss_backend": "trl"}}
    assert word not in told_of(quiet, revision="abc")
    assert word in told_of(quiet | change)


def test_a_run_of_several_attempts_tells_them_and_what_changed() -> None:
    resumed = replace(
        TOLD, attempts=(AttemptStart(), AttemptStart(2, 5, "checkpoint-5"), AttemptStart(3, 6, "checkpoint-6"))
    )
    text = told_of({"checkpoint": {"keep": 3}}, {"checkpoint": {"keep": 2}}, resumed)
    assert "resumed 2 times; the script begins at step 0" in text
    assert "checkpoint.keep 2 -> 3" in text
    assert "resumed" not in told_of({"checkpoint": {"keep": 3}})


def test_the_command_names_the_processes_and_never_an_address() -> None:
    assert command_of(RunConfig()) == "python train.py"
    several = RunConfig.model_validate(
        {"scale": {"processes": 4, "machines": 2, "strategy": "ddp", "main_process_ip": "`x`\n; rm"}}
    )
    assert command_of(several) == (
        "accelerate launch --num_processes 8 --num_machines 2 --machine_rank RANK --main_process_ip ADDRESS "
        "--main_process_port 29500 train.py"
    )


@pytest.mark.parametrize("text", [text for text in HOSTILE if text != "\ud800"])
def test_no_text_of_a_run_leaves_its_place_in_the_readme(text: str) -> None:
    config = RunConfig.model_validate({"dataset": {"source": f"a`b{text}"}, "rewards": [{"verifier": f"v`{text}"}]})
    shown = readme("run", config, facts(model=f"`{text}"), replace(TOLD, card=f"`{text}"), [])
    usual = readme("run", RunConfig(), facts(), replace(TOLD, card="NVIDIA L4"), [])
    assert len(shown.splitlines()) == len(usual.splitlines())
    assert shown.count("`") == usual.count("`")
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"device": "cuda:0", "card": "NVIDIA H200"}, "The run trained on `NVIDIA H200`."),
        ({"device": "cpu", "versions": {"python": "3.12.1"}}, "The run trained on a CPU with Python 3.12.1."),
        ({"device": "cuda:0", "versions": {"python": "3.12.1"}}, "The run trained with Python 3.12.1."),
    ],
)
def test_the_readme_says_on_what_and_with_which_python_the_run_trained(found: dict[str, Any], said: str) -> None:
    assert f"\n{said}\n" in readme("run", RunConfig(), facts(), replace(TOLD, **found), [])


def test_a_run_that_recorded_neither_is_told_nothing_of() -> None:
    assert "The run trained" not in readme("run", RunConfig(), facts(), replace(TOLD, device=None), [])
