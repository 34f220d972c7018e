"""The items of one call, and how they travel to a child: as text that is encoded once, whoever judges it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from grpo_studio.errors import VerifierError
from grpo_studio.verifiers.contract import VerifierSpec, text_of
from grpo_studio.verifiers.plain_data import plain

Key = tuple[Any, ...]
_NOTHING: Final = "null"


class Task:
    """One completion to be judged for one request; a probe is an accepted example in a completion's place."""

    __slots__ = ("deaths", "probe", "request", "row")

    def __init__(self, request: int, row: int, probe: bool = False) -> None:
        self.request, self.row, self.probe, self.deaths = request, row, probe, 0


class Work:
    """The completions and columns of one call, encoded; `examples` are the probes' texts, one for each request.

    `completions=None` asks for the ideal completion of each row, which the child makes.
    """

    def __init__(
        self,
        specs: Sequence[VerifierSpec],
        examples: Sequence[str],
        completions: Sequence[Any] | None,
        columns: Mapping[str, Sequence[Any]],
    ) -> None:
        """Raises VerifierError for columns of different lengths."""
        self.rows = len(completions) if completions is not None else max(map(len, columns.values()), default=0)
        for name, values in columns.items():
            if len(values) != self.rows:
                raise VerifierError(f"column '{name}' has {len(values)} values for {self.rows} completions")
        self._specs, self._examples = specs, examples
        self._texts = None if completions is None else [encode_basestring_ascii(text_of(one)) for one in completions]
        self._bad: dict[tuple[str, int], str] = {}
        self._columns = {name: self._encoded(name, columns[name]) for name in _needed(specs, columns)}
        self._named = [tuple(name for name in self._columns if spec.takes(name)) for spec in specs]
        self._missing = [
            next((name for name in spec.columns if name not in columns and name not in spec.optional_columns), None)
            for spec in specs
        ]

    def fault(self, task: Task) -> str | None:
        """Why an item cannot be handed to its verifier at all."""
        if (missing := self._missing[task.request]) is not None:
            return f"{self._specs[task.request].name} needs a column '{missing}'"
        if self._bad:
            for name in self._named[task.request]:
                if (task_fault := self._bad.get((name, task.row))) is not None:
                    return task_fault
        return None

    def key(self, task: Task) -> Key:
        """The request and the gold: all that a verifier is given besides the completion."""
        return task.request, *(self._columns[name][task.row] for name in self._named[task.request])

    def unit(self, number: int, first: int, tasks: Sequence[Task]) -> str:
        """A line for a child: these items, the first of which is the child's `first` in all."""
        places: dict[tuple[int, int], int] = {}
        texts: list[str] = []
        rows: list[int] = []
        items: list[int] = []
        for task in tasks:
            row = task.row
            key = (row, task.request if task.probe else -1)
            place = places.get(key)
            if place is None:
                place = places[key] = len(rows)
                rows.append(row)
                texts.append(self._text(task))
            items += (task.request, place)
        columns = ",".join(
            f"{encode_basestring_ascii(name)}:[{','.join([values[row] for row in rows])}]"
            for name, values in self._columns.items()
        )
        head = f'{{"unit":{number},"first":{first},"items":{items},"texts":['
        return f'{head}{",".join(texts)}],"columns":{{{columns}}}}}'

    def _text(self, task: Task) -> str:
        if task.probe:
            return encode_basestring_ascii(self._examples[task.request])
        return _NOTHING if self._texts is None else self._texts[task.row]

    def _encoded(self, name: str, values: Sequence[Any]) -> list[str]:
        encoded = []
        for row, value in enumerate(values):
            try:
                encoded.append(encode_basestring_ascii(value) if type(value) is str else _encode(value))
            except (TypeError, ValueError, RecursionError) as error:
                self._bad[name, row] = f"the gold is not plain data: {error}"
                encoded.append(_NOTHING)
        return encoded


def accepted_example(spec: VerifierSpec) -> str:
    """The text of the verifier's own example that scores highest."""
    best = max(spec.examples, key=lambda example: -1.0 if example.expected is None else example.expected)
    return text_of(best.completion)


def _needed(specs: Sequence[VerifierSpec], columns: Collection[str]) -> list[str]:
    """The columns that are sent: those that some verifier is called with."""
    return [name for name in columns if any(spec.takes(name) for spec in specs)]


_encode = json.JSONEncoder(default=plain).encode
