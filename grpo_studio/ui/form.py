"""RunConfig and verifiers -> a JSON description of the launch form.

Pure, and no setting is named by hand: titles, help, kinds, bounds, choices and defaults are read from the pydantic
declarations and from the verifiers' signatures, so a setting added to RunConfig is in the form at once.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.declaration import fields_of, limits_of
from grpo_studio.verifiers.contract import REQUIRED, VerifierSpec

LONG_TEXT = 5_000
"""Text that may be longer than this gets a box of several lines."""
_NUMBERS = {int: "int", float: "number"}


def describe_form() -> dict[str, Any]:
    """All sections of a RunConfig in their order, the fields of one reward, and the default values.

    A section is {name, title, fields}; a setting that belongs to no section is in one of its own. A field is
    {name, title, help, kind, nullable, default, main, not_yet, hints, ...bounds}; `kind` is one of text, textarea, int,
    number, bool, choice and map (JSON text); a hint is {text, source, url}.
    """
    sections = []
    for name, info in RunConfig.model_fields.items():
        if name == "rewards":
            fields = []
        elif isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            fields = [describe_field(key, field) for key, field in fields_of(info.annotation, f"{name}.").items()]
        else:
            fields = [describe_field(name, info)]
        sections.append({"name": name, "title": info.title or name, "fields": fields})
    return {
        "sections": sections,
        "reward_fields": [describe_field(key, info) for key, info in RewardSettings.model_fields.items()],
        "defaults": RunConfig().model_dump(mode="json"),
    }


def describe_field(name: str, info: FieldInfo) -> dict[str, Any]:
    """One setting as the form shows it."""
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    inner, nullable = _without_none(info.annotation)
    limits = limits_of([*info.metadata, *_annotation_metadata(info.annotation)])
    described: dict[str, Any] = {
        "name": name,
        "title": info.title or name,
        "help": info.description or "",
        "kind": _kind(inner, limits.get("max_length")),
        "nullable": nullable,
        "default": plain(info.get_default(call_default_factory=True)),
        "main": bool(extra.get("main")),
        "not_yet": extra.get("not_yet"),
        "hints": extra.get("hints", []),
    }
    if described["kind"] == "choice":
        described["choices"] = list(typing.get_args(inner))
    return described | limits


def describe_verifier(spec: VerifierSpec) -> dict[str, Any]:
    """One verifier as the list of rewards shows it: {name, purpose, file, columns, params: [field]}."""
    return {
        "name": spec.name,
        "purpose": spec.purpose,
        "file": spec.path.name,
        "columns": list(spec.columns),
        "params": [_describe_param(spec, name, default) for name, default in spec.params.items()],
    }


def _describe_param(spec: VerifierSpec, name: str, default: Any) -> dict[str, Any]:
    required = default is REQUIRED
    annotation = spec.annotations.get(name, Any if required or default is None else type(default))
    inner, nullable = _without_none(annotation)
    field: dict[str, Any] = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "help": _sentence_about(name, inspect.getdoc(spec.function) or ""),
        "kind": _kind(inner, None),
        "nullable": nullable,
        "default": None if required else plain(default),
        "required": required,
        "main": required,
        "not_yet": None,
    }
    if field["kind"] == "choice":
        field["choices"] = list(typing.get_args(inner))
    return field


def _sentence_about(name: str, doc: str) -> str:
    """The first sentence of a docstring, after its first line, that names the param in backticks; else nothing."""
    body = " ".join(doc.partition("\n")[2].split())
    for sentence in re.split(r"(?<=[.!?])\s+", body):
        for clause in sentence.split("; "):
            if f"`{name}`" in clause:
                text = clause.removeprefix(f"`{name}`:").replace("`", "").strip()
                return text[:1].upper() + text[1:]
    return ""


def _kind(annotation: Any, max_length: int | None) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return "choice"
    if annotation is bool:
        return "bool"
    if annotation in _NUMBERS:
        return _NUMBERS[annotation]
    if annotation is str:
        return "textarea" if max_length is not None and max_length > LONG_TEXT else "text"
    return "map"


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """The annotation less `| None` and `Annotated`, and whether it had `None`."""
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
        nullable = len(options) < len(typing.get_args(annotation))
        if len(options) == 1:
            return _without_none(options[0])[0], nullable
    return annotation, False


def _annotation_metadata(annotation: Any) -> Iterator[Any]:
    for option in (annotation, *typing.get_args(annotation)):
        if typing.get_origin(option) is typing.Annotated:
            yield from typing.get_args(option)[1:]


def plain(value: Any) -> Any:
    """A default as JSON; what JSON has no form for is shown as text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
