"""`python -m grpo_studio.verifiers_table`: the table in docs/verifiers.md, from the verifiers' own files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grpo_studio.errors import VerifierError
from grpo_studio.settings import BUNDLED_REWARDS, PACKAGE_DIR
from grpo_studio.verifiers.contract import REQUIRED, VerifierSpec
from grpo_studio.verifiers.discovery import discover

TARGET = PACKAGE_DIR.parent / "docs" / "verifiers.md"
BEGIN, END = "<!-- table: python -m grpo_studio.verifiers_table -->", "<!-- end of the table -->"
HEAD = ("| name | what it gives | columns | parameters (default) |", "|---|---|---|---|")


def render(directories: Sequence[Path] = (BUNDLED_REWARDS,)) -> str:
    """The table. Raises VerifierError when a file does not load, since the table would lack it."""
    registry = discover(directories)
    if registry.failures:
        raise VerifierError("; ".join(f"{failure.path.name}: {failure.message}" for failure in registry.failures))
    return "\n".join([*HEAD, *(_row(registry.specs[name]) for name in sorted(registry.specs))])


def page(text: str) -> str:
    """A page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{render()}\n\n{END}{after}"


def _row(spec: VerifierSpec) -> str:
    columns = [f"`{name}`" + _optional(spec, name) for name in spec.columns] + ["all others"] * spec.all_columns
    params = [f"`{name}` ({_default(value)})" for name, value in spec.params.items()]
    cells = (f"`{spec.name}`", spec.purpose, ", ".join(columns) or "none", ", ".join(params) or "none")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _optional(spec: VerifierSpec, column: str) -> str:
    return "?" if column in spec.optional_columns else ""


def _default(value: Any) -> str:
    if value is REQUIRED:
        return "required"
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def main(target: Path = TARGET) -> None:
    target.write_text(page(target.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
