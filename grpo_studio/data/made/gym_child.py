"""The process that makes rows of Reasoning Gym: `python gym_child.py`, run as a file, which imports nothing of ours.

One JSON document on stdin, {"task", "params", "first"} or {"describe": [tasks]}. The answers are one JSON document a
line on stdout: {"row": {...}} for the rows from `first` on, {"fields": {task: [...]}} for a description; where that
fails {"unknown": setting, "known": [settings]} or {"problem": text}.

The library stays away from the app and the trainer: it takes seconds to import, its tasks draw from the random states
of the process, print, and iterate over sets, and settings can be chosen so that a row never comes. Here the hash seed
is fixed by the parent and the random states are set before each row, so that a row follows from its settings and number
alone. When stdin ends, the parent is gone, and so is this process.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import json
import os
import random
import re
import resource
import sys
import threading
import traceback
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

_MEMORY = 4 * 1024**3
_NOT_SETTINGS = ("data_file",)
"""A path that the library would read and show in its questions."""
_PLAIN_TEXT = re.compile(r"(?!.*__)[\w ,:+-]{0,60}|[\d.:+ -]{0,60}")
"""Words and names, or numbers and times; no text that could reach into Python."""


class Unknown(Exception):
    """A setting that a task does not have, and those that it has."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(name)
        self.name, self.known = name, known


def main() -> None:
    """Answer the one request of the parent."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    memory = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (memory, hard))
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    for document in _answers(request):
        answers.write(json.dumps(document) + "\n")


def _end_with_parent() -> None:
    while os.read(0, 1 << 12):
        pass
    os._exit(0)


def _answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        factory = importlib.import_module("reasoning_gym.factory")
        kinds = {task: kind for task, (_, kind) in factory.DATASETS.items()}
        if "describe" in request:
            yield {"fields": {task: _fields(kinds[task]) for task in request["describe"] if task in kinds}}
        else:
            yield from _rows(factory, request["task"], request["params"], request["first"])
    except Unknown as error:
        yield {"unknown": error.name, "known": error.known}
    except Exception as error:
        yield {"problem": _reason(error)}


def _rows(factory: Any, task: str, params: Mapping[str, Any], first: int) -> Iterator[dict[str, Any]]:
    kind = factory.DATASETS[task][1]
    hints, known = typing.get_type_hints(kind), {field.name: field for field in _settings(kind)}
    for name in params:
        if name not in known:
            raise Unknown(name, list(known))
    _set_random_states(params["seed"])
    values = {name: _value(known[name], hints[name], value) for name, value in params.items()}
    dataset = factory.create_dataset(task, **values)
    for index in range(first, params["size"]):
        _set_random_states(params["seed"] + index)
        entry = dataset[index]
        answer = entry["answer"]
        row = {
            "prompt": str(entry["question"]),
            "answer": None if answer is None else str(answer),
            "metadata": plain(entry["metadata"]),
            "task": task,
        }
        yield {"row": row}


def _set_random_states(seed: int) -> None:
    import numpy

    random.seed(seed)
    numpy.random.seed(seed % 2**32)


def plain(value: Any) -> Any:
    """A value as JSON has it: tuples and sets become lists, keys text, and what JSON has no form for its text."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    convert = getattr(value, "tolist", None) or getattr(value, "isoformat", None)
    return plain(convert()) if convert else str(value)


def _settings(kind: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(kind) if field.name not in _NOT_SETTINGS]


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _value(field: dataclasses.Field[Any], hint: Any, value: Any) -> Any:
    """A setting as the library wants it. Raises ValueError with the reason."""
    import pydantic

    default = _default(field)
    refuse_odd_text(field.name, value, default)
    if hint is int and isinstance(default, float):
        hint = float  # as one of them is declared
    if typing.get_origin(hint) is tuple:
        hint = tuple[(*typing.get_args(hint)[:1], ...)]  # type: ignore[misc]  # one of them says tuple[str] for three
    if isinstance(value, bool) and hint in (int, float):
        raise ValueError(f"{field.name} is {value}, not a number")
    try:
        return pydantic.TypeAdapter(hint).validate_python(value)
    except pydantic.ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise ValueError(f"{field.name} is {value!r:.80}: {fault['msg']}") from error


def refuse_odd_text(name: str, value: Any, default: Any) -> None:
    """Raises ValueError for text that is neither plain nor one of the defaults.

    Some tasks evaluate what they made of their settings: text that could be code gets nowhere near them.
    """
    own = set(_texts(plain(default)))
    for text in _texts(value):
        if text not in own and not _PLAIN_TEXT.fullmatch(text):
            listed = f" nor one of {', '.join(sorted(own))}" if 0 < len(own) < 20 else ""
            raise ValueError(f"{name} holds {text[:40]!r}, which is neither plain words{listed or ' nor its default'}")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in (*value.keys(), *value.values()):
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _fields(kind: Any) -> list[dict[str, Any]]:
    hints, comments = typing.get_type_hints(kind), _comments(kind)
    return [
        {
            "name": field.name,
            "default": plain(_default(field)),
            "help": comments.get(field.name, ""),
            **_kind(hints[field.name], _default(field)),
        }
        for field in _settings(kind)
    ]


def _kind(hint: Any, default: Any) -> dict[str, Any]:
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    inner = next(option for option in options if option is not type(None))
    found: dict[str, Any] = {"nullable": type(None) in options}
    if typing.get_origin(inner) is typing.Literal:
        return found | {"kind": "choice", "choices": list(typing.get_args(inner))}
    if isinstance(inner, type) and issubclass(inner, enum.Enum):
        return found | {"kind": "choice", "choices": [plain(member) for member in inner]}
    if inner is int and isinstance(default, float):
        inner = float
    texts = {"date", "time", "datetime"}
    kinds = {bool: "bool", int: "int", float: "number", str: "text"}
    return found | {"kind": "text" if getattr(inner, "__name__", "") in texts else kinds.get(inner, "map")}


def _comments(kind: Any) -> dict[str, str]:
    """What the library's source says of its settings, in a comment at the end of their lines."""
    try:
        source = inspect.getsource(kind)
    except OSError:
        return {}
    found = re.findall(r"^ +(\w+) *:[^#\n]*#\s*(.+?)\s*$", source, re.MULTILINE)
    return {name: text[:1].upper() + text[1:].rstrip(".") + "." for name, text in found}


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, AssertionError) and not text:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = (frame.line or "it cannot be made").removeprefix("assert ").replace("self.", "")
        return f"this must hold: {text[:200]}"
    if isinstance(error, MemoryError):
        return f"it takes more than {_MEMORY >> 30} GB of memory"
    if isinstance(error, AssertionError | ValueError) and text:
        return text[:300]
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


if __name__ == "__main__":
    main()
