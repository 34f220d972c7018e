"""The settings of a data set that is made in place: read from `dataset.params`, described for a form."""

from __future__ import annotations

import hashlib
import re
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from grpo_studio.config import DatasetSettings
from grpo_studio.declaration import Section, limits_of
from grpo_studio.errors import DataError
from grpo_studio.naming import nearest_names
from grpo_studio.shown import shown

Params = TypeVar("Params", bound=Section)
HELD_OUT_SHARE = 5
"""One question in this many may only ever be held out, whatever the settings of a run."""
_KINDS = {int: "int", float: "number", bool: "bool"}


def read_params(kind: type[Params], settings: DatasetSettings) -> Params:
    """The settings of a data set, checked.

    Raises:
        DataError: one is unknown or has a value that it cannot take.
    """
    require_known(settings, kind.model_fields)
    try:
        return kind.model_validate(settings.params)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        reason, where = fault["msg"].removeprefix("Value error, "), ".".join(map(str, fault["loc"]))
        value = f"{where} is {quoted(fault['input'])}: " if where else ""
        raise DataError(f"dataset.params of {settings.source}: {value}{reason}") from error


def require_known(settings: DatasetSettings, known: Mapping[str, Any]) -> None:
    """Raises DataError for a setting that a data set does not have."""
    for name in settings.params:
        if name not in known:
            raise DataError(f"{settings.source} has no setting {quoted(name)}; {nearest_names(str(name), known)}")


def refuse_config(settings: DatasetSettings) -> None:
    """Raises DataError when a configuration is named, for data sets that have none."""
    if settings.config:
        raise DataError(
            f"dataset.config is {quoted(settings.config)}, but {settings.source} has no configurations; "
            "leave it empty, its settings stand in dataset.params"
        )


def may_be_held_out(settings: DatasetSettings, question: str) -> bool:
    """Whether a question is one of the fifth that no run of this `held_out_seed` trains on."""
    return hashlib.sha256(f"{settings.held_out_seed or ''}{question}".encode()).digest()[0] % HELD_OUT_SHARE == 0


def whole_numbers(text: str) -> list[int] | None:
    """The numbers of text such as `2`, `1,3` or `1-3`, each once and in order; None when it is no such list."""
    numbers: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", part)
        found = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
        if not found:
            return None
        numbers.update(found)
    return sorted(numbers)


def described(kind: type[Section]) -> list[dict[str, Any]]:
    """Its settings as a form shows them (the shape is that of `ui.form.describe_field`)."""
    return [
        form_field(
            name,
            _KINDS.get(_without_none(info.annotation), "text"),
            info.get_default(),
            title=info.title,
            help=info.description or "",
            nullable=type(None) in typing.get_args(info.annotation),
            **limits_of(info.metadata),
        )
        for name, info in kind.model_fields.items()
    ]


def form_field(name: str, kind: str, default: Any, *, title: str | None = None, **more: Any) -> dict[str, Any]:
    """One setting as a form shows it; without a title its name in words."""
    words = title or name.replace("_", " ").capitalize()
    base = {"name": name, "title": words, "help": "", "kind": kind, "nullable": False, "default": default}
    return base | {"main": False, "not_yet": None, "hints": []} | more


def quoted(value: Any) -> str:
    """A value as it stands in a message."""
    return f"'{shown(value)}'" if isinstance(value, str) else shown(value)


def _without_none(annotation: Any) -> Any:
    options = [option for option in typing.get_args(annotation) if option is not type(None)]
    return options[0] if options else annotation
