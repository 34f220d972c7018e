"""What is wrong with a configuration, as it is shown to a person: one row of the list that `check` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from grpo_studio.errors import StudioError


@dataclass(frozen=True)
class Problem:
    """One thing that stops a run: `field` is a dotted name, `fix` says what would work."""

    field: str
    message: str
    fix: str
    unknown_key: bool = False

    def as_dict(self) -> dict[str, str]:
        row = asdict(self)
        row.pop("unknown_key")
        return row

    def __str__(self) -> str:
        return f"{self.field}: {self.message}; {self.fix}"


def problem_of(field: str, error: StudioError | str) -> Problem:
    """An error, or its one line, as a problem of a field: what stands after the last semicolon is the fix."""
    message, _, fix = str(error).rpartition("; ")
    return Problem(field, message or str(error), fix if message else "see the message")
