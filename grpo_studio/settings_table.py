"""`python -m grpo_studio.settings_table`: docs/settings.md, the table of all settings, made from their declarations."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.declaration import fields_of
from grpo_studio.settings import PACKAGE_DIR

TARGET = PACKAGE_DIR.parent / "docs" / "settings.md"
INTRODUCTION = """# Settings

Every setting of a run, by the name that `--set`, a YAML file and the Launch page use. This page is made from the
declarations in `grpo_studio/config.py` by `python -m grpo_studio.settings_table`. *Not yet* means: the name is
accepted, and any value but the default is refused by `check`.
"""


def render() -> str:
    """The whole page."""
    sections = [INTRODUCTION]
    for name, info in RunConfig.model_fields.items():
        kind = info.annotation
        rows: dict[str, FieldInfo] = {}
        if name == "rewards":
            rows = {f"rewards.N.{key}": value for key, value in RewardSettings.model_fields.items()}
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            rows = fields_of(kind, f"{name}.")
        else:
            rows = {name: info}
        lines = [f"## {info.title}", "", "| setting | default | values | what it does |", "|---|---|---|---|"]
        sections.append("\n".join([*lines, *(_row(*item) for item in rows.items())]) + "\n")
    return "\n".join(sections)


def _row(name: str, info: FieldInfo) -> str:
    extra = info.json_schema_extra
    not_yet = " *Not yet.*" if isinstance(extra, dict) and "not_yet" in extra else ""
    cells = (f"`{name}`", _default(info), _values(info), f"{info.description}{not_yet}{_hints(info)}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _hints(info: FieldInfo) -> str:
    extra = info.json_schema_extra
    hints: Any = extra.get("hints", []) if isinstance(extra, dict) else []
    return "".join(f"<br>*{hint['text']}* [{hint['source']}]({hint['url']})" for hint in hints)


def _default(info: FieldInfo) -> str:
    value = info.default
    if value is PydanticUndefined:
        return "required"
    return "empty" if value is None else f"`{value!r}`" if not isinstance(value, str) else f"`{value}`"


def _values(info: FieldInfo) -> str:
    choices = _choices(info.annotation)
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    words = {Ge: "at least {}", Gt: "above {}", Le: "at most {}", Lt: "below {}"}
    bounds = []
    for constraint in info.metadata:
        for kind, text in words.items():
            if isinstance(constraint, kind):
                bounds.append(text.format(getattr(constraint, kind.__name__.lower())))
    return ", ".join(bounds) or _kind(info.annotation)


def _choices(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) is typing.Literal:
        return typing.get_args(annotation)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(choice for part in typing.get_args(annotation) for choice in _choices(part))
    return ()


def _kind(annotation: Any) -> str:
    names = {str: "text", bool: "true or false", int: "whole number", float: "number", dict: "mapping"}
    if typing.get_origin(annotation) is dict:
        return names[dict]
    parts = typing.get_args(annotation) or (annotation,)
    return next((names[part] for part in parts if part in names), "see the description")


def main(target: Path = TARGET) -> None:
    target.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
