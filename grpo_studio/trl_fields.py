"""The fields of the installed TRL's GRPOConfig, read from its source: neither TRL nor torch is loaded for it.

A field is judged by its annotation as it stands in the source. Names that only the libraries know (their enums and
classes) stand for any value, as nothing of them is imported.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import types
import typing
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from grpo_studio.errors import ConfigError

SOURCES = (
    ("transformers", "training_args.py", "TrainingArguments"),
    ("trl", "trainer/base_config.py", "_BaseConfig"),
    ("trl", "trainer/grpo_config.py", "GRPOConfig"),
)
"""Package, file and class of GRPOConfig and its bases; what is declared again further down replaces what is above."""

_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "null",
    Any: "any value",
}


@dataclass(frozen=True)
class TrlField:
    """One field of GRPOConfig.

    Args:
        annotation: the type as the source writes it, such as `float | None`.
        default: its value when the source gives a literal, else `dataclasses.MISSING`.
        help: TRL's own description; empty when the source has none that is plain text.
        choices: all values that it takes, when the source lists them; else empty.
    """

    name: str
    annotation: str
    default: Any
    help: str
    choices: tuple[Any, ...] = ()

    def accepts(self, value: Any) -> bool:
        """Whether a value, as JSON or YAML gives it, is of the field's type.

        Strict: a whole number will do for a float, but neither text nor true will do for a number.
        """
        try:
            TypeAdapter(self._kind()).validate_python(value, strict=True)
        except ValidationError:
            return False
        return not self.choices or value is None or value in self.choices

    @property
    def takes(self) -> str:
        """The values that it takes, in words."""
        return f"one of {', '.join(map(str, self.choices))}" if self.choices else _in_words(self._kind())

    def _kind(self) -> Any:
        return _type_of(ast.parse(self.annotation, mode="eval").body)


@cache
def installed_fields() -> dict[str, TrlField]:
    """Every field that the installed GRPOConfig takes by its name, those of its bases first.

    Raises:
        ConfigError: TRL or transformers is not installed, or is built in another way than this program knows.
    """
    found: dict[str, TrlField] = {}
    for package, file, name in SOURCES:
        found |= _declared_fields(_class_of(_source(package, file), name, package))
    return found


def trl_version() -> str:
    """The version of the installed TRL, such as 1.16.0."""
    return version("trl")


def _source(package: str, file: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(f"the package {package} is not installed; run pip install {package}")
    return Path(spec.origin).parent / file


def _class_of(source: Path, name: str, package: str) -> ast.ClassDef:
    wrong_version = f"the installed {package} has no {name} in {source.name}; install the version in requirements.txt"
    if not source.is_file():
        raise ConfigError(wrong_version)
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    raise ConfigError(wrong_version)


def _declared_fields(declaration: ast.ClassDef) -> dict[str, TrlField]:
    found = {}
    for node in declaration.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = _field(node.target.id, ast.unparse(node.annotation), node.value)
    return found


def _field(name: str, annotation: str, value: ast.expr | None) -> TrlField:
    """A field from the right-hand side of its declaration: `field(default=..., metadata={...})`."""
    given = {keyword.arg: keyword.value for keyword in value.keywords} if isinstance(value, ast.Call) else {}
    metadata = given.get("metadata")
    about: dict[Any, ast.expr] = {}
    if isinstance(metadata, ast.Dict):
        about = {_literal(key): entry for key, entry in zip(metadata.keys, metadata.values, strict=True)}
    help_text, choices = _literal(about.get("help")), _literal(about.get("choices"))
    return TrlField(
        name,
        annotation,
        _literal(given.get("default")),
        help_text if isinstance(help_text, str) else "",
        tuple(choices) if isinstance(choices, list) else (),
    )


def _literal(node: ast.expr | None) -> Any:
    """The value of a literal, else `dataclasses.MISSING`."""
    if node is None:
        return dataclasses.MISSING
    try:
        return ast.literal_eval(node)
    except ValueError:
        return dataclasses.MISSING


def _type_of(node: ast.expr) -> Any:
    """The type that an annotation names: of builtins and typing; any other name stands for any value."""
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Name(id=name):
            kind = getattr(builtins, name, getattr(typing, name, Any))
            return kind if isinstance(kind, type) or kind in (typing.Literal, typing.Optional, typing.Union) else Any
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union(_type_of(left), _type_of(right))
        case ast.Subscript(value=outer, slice=inner):
            return _generic(_type_of(outer), inner)
        case _:
            return Any


def _union(*kinds: Any) -> Any:
    union: Any = typing.Union
    return union[kinds]


def _generic(outer: Any, inner: ast.expr) -> Any:
    if outer is Any:
        return Any
    nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    parts = tuple(_literal(node) if outer is typing.Literal else _type_of(node) for node in nodes)
    return outer[parts] if len(parts) > 1 else outer[parts[0]]


def _in_words(kind: Any) -> str:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_in_words, sorted(parts, key=lambda part: part is type(None))))
    if origin is typing.Literal:
        return " or ".join(map(repr, parts))
    if kind is dict or origin is dict:
        return "a mapping"
    if kind is list or origin is list:
        return f"a list, each entry {_in_words(parts[0])}" if parts else "a list"
    return _WORDS.get(kind, "any value")
