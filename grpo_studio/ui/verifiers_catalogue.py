"""What the Verifiers page lists: every verifier that was found and every file that failed, read again when one changed.

No gradio here.
"""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_studio.config import RewardSettings
from grpo_studio.ui.form import describe_verifier, plain
from grpo_studio.verifiers.contract import GIVEN_COLUMNS, VerifierSpec, text_of
from grpo_studio.verifiers.discovery import Registry, discover
from grpo_studio.verifiers.loading import is_shipped

LONGEST_SHOWN = 4_000
"""Characters of an example or a file's error that are sent to the page."""


class Catalogue:
    """The verifiers of some folders, loaded again only when a `stat` says that a file changed."""

    def __init__(self, directories: Sequence[Path], own: Path) -> None:
        self.directories = tuple(directories)
        self.own = own
        self._lock = threading.Lock()
        self._known: tuple[str, Registry] | None = None

    def read(self) -> tuple[str, Registry]:
        """A word that changes with any file, and the verifiers as the files are now."""
        with self._lock:
            version = self.version()
            if self._known is None or self._known[0] != version:
                self._known = (version, discover(self.directories))
            return self._known

    def describe(self) -> dict[str, Any]:
        """{"version", "verifiers", "failures", "first"} as the page shows them; `first` is the one to begin with."""
        version, registry = self.read()
        usual = RewardSettings().verifier
        return {
            "version": version,
            "first": usual if usual in registry.specs else next(iter(registry.specs), None),
            "verifiers": [describe_whole(spec, not is_shipped(spec.path)) for spec in registry.specs.values()],
            "failures": [
                {"file": item.path.name, "own": self._is_editable(item.path), "message": item.message[:LONGEST_SHOWN]}
                for item in registry.failures
            ],
        }

    def _is_editable(self, path: Path) -> bool:
        return path.resolve().parent == self.own.resolve()

    def version(self) -> str:
        """A word that changes with any file; nothing is loaded."""
        return hashlib.sha256(repr(list(self._stamps())).encode()).hexdigest()[:16]

    def taken_by(self, name: str, but: Path) -> str | None:
        """The file of another verifier of that name, or None."""
        spec = self.read()[1].specs.get(name)
        return None if spec is None or spec.path.resolve() == but.resolve() else spec.path.name

    def _stamps(self) -> Iterator[tuple[str, int, int]]:
        for folder in self.directories:
            for path in sorted(folder.glob("*.py")):
                try:
                    status = path.stat()
                except OSError:
                    continue  # it was taken away a moment ago, or is a link to nothing
                yield str(path), status.st_mtime_ns, status.st_size


def describe_whole(spec: VerifierSpec, own: bool) -> dict[str, Any]:
    """A verifier with all that its page shows: `describe_verifier` and its text, columns, place and examples."""
    doc = (inspect.getdoc(spec.function) or "").partition("\n")[2].strip()
    return describe_verifier(spec) | {
        "own": own,
        "doc": " ".join(doc.split()) if "\n\n" not in doc else doc,
        "optional": sorted(spec.optional_columns),
        "given": [name for name in spec.columns if name in GIVEN_COLUMNS],
        "all_columns": spec.all_columns,
        "place": spec.place,
        "has_ideal": spec.ideal is not None,
        "examples": [_example(spec, number) for number in range(len(spec.examples))],
    }


def _example(spec: VerifierSpec, number: int) -> dict[str, Any]:
    example = spec.examples[number]
    values: Mapping[str, Any] = example.values
    return {
        "completion": text_of(example.completion)[:LONGEST_SHOWN],
        "columns": {name: plain(value) for name, value in values.items() if name not in spec.params},
        "params": {name: plain(value) for name, value in values.items() if name in spec.params},
        "expected": example.expected,
    }
