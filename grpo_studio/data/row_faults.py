"""What is wrong with the prompt of a row: unusable (fatal) or doubtful. Pure."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from grpo_studio.config import DatasetSettings
from grpo_studio.data.faults import Fault
from grpo_studio.data.mapping import ColumnMapping
from grpo_studio.data.prompt_cell import PromptCell, read_prompt
from grpo_studio.data.rows import Row, cell
from grpo_studio.shown import shown

__all__ = ["Fault", "prompt_of", "row_faults"]
_SLOT = "{prompt}"
_PLACEHOLDER = re.compile(
    r"\s*(?:\{{1,2}|<|\[|\$\{)\s*(?:prompt|question|problem|query|instruction|input)\s*(?:\}{1,2}|>|\])\s*"
)


def row_faults(row: Row, settings: DatasetSettings, mapping: ColumnMapping) -> list[Fault]:
    """All faults of a row's prompt, each kind once; `to_sample` gives None exactly when one of them is fatal."""
    return list(prompt_of(row, settings, mapping).faults)


def prompt_of(row: Row, settings: DatasetSettings, mapping: ColumnMapping) -> PromptCell:
    """The prompt of a row as `read_prompt` reads it, and whether it says more than the template does."""
    read = read_prompt(None if mapping.prompt is None else cell(row, mapping.prompt))
    if not read.usable:
        return read
    template = settings.prompt_template
    if template is not None and _squeezed(read.question) in _bare(template):
        what = "the prompt is only the text of the prompt template, without a question"
        return PromptCell(faults=(*read.faults, Fault("only_template", what, fatal=True)))
    if _PLACEHOLDER.fullmatch(read.question):
        what = f"the prompt is {shown(read.question)}, the place for a question that was never filled in"
        return replace(read, faults=(*read.faults, Fault("unfilled_prompt", what, fatal=False)))
    return read


@functools.lru_cache(maxsize=8)
def _bare(template: str) -> frozenset[str]:
    """The text of a template without a question, as a row may hold it."""
    empty = {_squeezed(template), _squeezed(template.replace(_SLOT, ""))}
    return frozenset(empty - {"", _SLOT})


def _squeezed(text: str) -> str:
    return " ".join(text.split())
