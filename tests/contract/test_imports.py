"""The direction of imports, as DESIGN.md fixes it: walked over the source, so that no module has to be loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "grpo_studio"
HEAVY = {"torch", "transformers", "trl", "peft", "vllm", "accelerate"}
PURE = (
    "cards_table", "checkpoint_manifest", "checkpoints", "config", "config_files", "declaration", "dry_run_estimate",
    "evaluation_passing", "evaluation_stats", "group_kind", "health", "naming", "plots", "queries", "resume_rules",
    "rules", "run_state", "spending", "spent", "store", "verifiers",
)  # fmt: skip


def imported(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


MODULES = [*sorted(PACKAGE.rglob("*.py")), ROOT / "app.py"]


def area(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py") if PACKAGE in path.parents else "app"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    names = list(imported(path))
    roots = {name.split(".")[0] for name in names}
    where = area(path)
    if where != "training":
        assert not roots & HEAVY, "only training/ imports torch and its like"
    if where not in ("ui", "app"):
        assert "gradio" not in roots, "only ui/ and app.py import gradio"
    inside = {name.split(".")[1] for name in names if name.startswith("grpo_studio.")}
    if where in PURE:
        assert not inside & {"training", "ui", "supervisor", "dispatcher", "worker"}
    if where in ("training", "worker", "store"):
        assert "ui" not in inside, "the worker never knows that a UI exists"
    if where == "plots":
        assert not inside & {"store", "queries"}, "plots take frames, never the store"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_outside_training_loads_torch_when_it_is_imported(path: Path) -> None:
    if area(path) != "training":
        assert not any(name.startswith("grpo_studio.training") for name in imported(path, top_level_only=True))


ALONE = ("worker", "ranks", "rank_process", "libraries")
"""Their process answers no second question meanwhile; and the door itself."""


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_what_answers_several_threads_brings_the_libraries_in_by_one_door(path: Path) -> None:
    if area(path) in ("training", *ALONE) or path.stem.endswith("_child"):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for before, line in zip([None, *body], body, strict=False):
            if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("grpo_studio.training"):
                told = before is not None and ast.unparse(before) == "load_libraries()"
                again = isinstance(before, ast.ImportFrom) and (before.module or "").startswith("grpo_studio.training")
                assert told or again, f"line {line.lineno}: call load_libraries() before it"
