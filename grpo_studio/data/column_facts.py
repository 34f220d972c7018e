"""The columns of a data set as its first rows show them: their kind and a value each. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from grpo_studio.data.chat_forms import messages_in
from grpo_studio.data.rows import Row

ColumnKind = Literal["text", "number", "truth value", "chat", "list", "mapping", "mixed", "empty"]
_DEEPEST = 3
_MOST_FIELDS = 50
"""Fields of one column that are listed; a mapping with free keys may have any number."""


@dataclass
class ColumnFacts:
    """One column, or one field of a mapping by its dotted name (`nested`); `sample` is its first value that is one."""

    name: str
    nested: bool
    kinds: Counter[ColumnKind] = field(default_factory=Counter)
    sample: Any = None

    @property
    def kind(self) -> ColumnKind:
        """The kind of all its values; missing ones do not count."""
        return "empty" if not self.kinds else "mixed" if len(self.kinds) > 1 else next(iter(self.kinds))

    @property
    def is_mapping(self) -> bool:
        """Whether most of its values are mappings that are no chat: it holds columns of its own."""
        return 2 * self.kinds["mapping"] > self.kinds.total()

    def add(self, value: Any) -> None:
        if value is None:
            return
        if self.sample is None or (isinstance(self.sample, str) and not self.sample.strip()):
            self.sample = value
        self.kinds[kind_of(value)] += 1


def kind_of(value: Any) -> ColumnKind:
    """What kind of value this is; anything that is nothing else counts as text."""
    if isinstance(value, str):
        return "text" if messages_in(value) is None else "chat"
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, int | float | Decimal):
        return "number"
    if messages_in(value) is not None:
        return "chat"
    if isinstance(value, Mapping):
        return "mapping"
    return "list" if isinstance(value, list | tuple) else "text"


def find_columns(rows: Sequence[Row]) -> dict[str, ColumnFacts]:
    """The columns of these rows by name, in their order; the fields of a mapping follow it."""
    tops: dict[str, dict[str, ColumnFacts]] = {}
    for row in rows:
        for key, value in row.items():
            name = str(key)
            found = tops.get(name)
            if found is None:
                found = tops[name] = {name: ColumnFacts(name, nested=False)}
            found[name].add(value)
            if not isinstance(value, Mapping):  # nearly always; it saves a generator for each cell
                continue
            for path, inner in _fields(name, value, _DEEPEST):
                if path not in found and len(found) > _MOST_FIELDS:
                    continue
                found.setdefault(path, ColumnFacts(path, nested=True)).add(inner)
    columns: dict[str, ColumnFacts] = {}
    for found in tops.values():
        for name, facts in found.items():
            if not facts.nested or name not in tops:  # a column of that very name is what `cell` reads
                columns[name] = facts
    return columns


def _fields(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The fields inside a mapping by dotted names; none of a name that a dotted name cannot reach."""
    if depth == 0 or not isinstance(value, Mapping) or kind_of(value) == "chat" or not path:
        return
    if depth == _DEEPEST and "." in path:
        return
    for key, inner in value.items():
        if isinstance(key, str) and key and "." not in key:
            yield f"{path}.{key}", inner
            yield from _fields(f"{path}.{key}", inner, depth - 1)
