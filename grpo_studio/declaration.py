"""How a setting is declared: one pydantic field with its default, bounds, title and help text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import annotated_types
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Section(BaseModel):
    """A frozen group of settings; an unknown key is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), coerce_numbers_to_str=True)


@dataclass(frozen=True)
class Hint:
    """Advice for one setting: what people use and why, and where that is written (a paper or page with its address)."""

    text: str
    source: str
    url: str


def setting(
    default: Any,
    title: str,
    help_text: str,
    *,
    main: bool = False,
    not_yet: str | None = None,
    hints: Sequence[Hint] = (),
    **bounds: Any,
) -> Any:
    """Declare one setting. `main` settings stand open in the form; `not_yet` names what it waits for."""
    extra: dict[str, Any] = {"main": main, "hints": [asdict(hint) for hint in hints]}
    if not_yet is not None:
        extra["not_yet"] = not_yet
    return Field(default=default, title=title, description=help_text, json_schema_extra=extra, **bounds)


def fields_of(section: type[BaseModel], prefix: str = "") -> dict[str, FieldInfo]:
    """Every setting below `section` by its dotted name, in order of declaration; lists are one entry."""
    found: dict[str, FieldInfo] = {}
    for name, info in section.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= fields_of(kind, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = info
    return found


def value_at(config: BaseModel, dotted: str) -> Any:
    """The value of a setting by its dotted name."""
    value: Any = config
    for part in dotted.split("."):
        value = getattr(value, part)
    return value


def limits_of(metadata: Iterable[Any]) -> dict[str, Any]:
    """Bounds by the names that the form uses; an exclusive bound is marked by its own name."""
    found: dict[str, Any] = {}
    for item in metadata:
        match item:
            case annotated_types.Ge(ge=bound):
                found["min"] = bound
            case annotated_types.Gt(gt=bound):
                found["above"] = bound
            case annotated_types.Le(le=bound):
                found["max"] = bound
            case annotated_types.Lt(lt=bound):
                found["below"] = bound
            case annotated_types.MinLen(min_length=length):
                found["min_length"] = length
            case annotated_types.MaxLen(max_length=length):
                found["max_length"] = length
    return found
