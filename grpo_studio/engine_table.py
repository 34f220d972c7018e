"""`python -m grpo_studio.engine_table`: the compatibility tables of docs/engine.md, by the rules that `check` uses.

Each row is an example of settings; each cell is what `rules.inspect` says of it. Nothing is written by hand but the
rows' names, so a table cannot disagree with `check`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grpo_studio.algorithm_settings import AlgorithmSettings
from grpo_studio.engine_settings import MemorySettings
from grpo_studio.rules import inspect
from grpo_studio.settings import PACKAGE_DIR

TARGET = PACKAGE_DIR.parent / "docs" / "engine.md"
BEGIN, END = "<!-- tables: python -m grpo_studio.engine_table -->", "<!-- end of tables -->"
Example = Mapping[str, Any]

BACKENDS = typing.get_args(MemorySettings.model_fields["loss_backend"].annotation)
LOSS_TYPES = typing.get_args(AlgorithmSettings.model_fields["loss_type"].annotation)
SEQUENCE = {"importance_sampling_level": "sequence"}
BACKEND_ROWS: tuple[tuple[str, Example], ...] = (
    *((f"{name}, ratio per token", {"algorithm": {"loss_type": name}}) for name in LOSS_TYPES),
    *((f"{name}, ratio per sequence", {"algorithm": {"loss_type": name, **SEQUENCE}}) for name in LOSS_TYPES),
    ("luspo per sequence, beta > 0", {"algorithm": {"loss_type": "luspo", "beta": 0.04, **SEQUENCE}}),
    (
        "luspo per sequence, vLLM with its correction",
        {"algorithm": {"loss_type": "luspo", **SEQUENCE}, "rollout": {"engine": "vllm_colocate"}},
    ),
    ("KL term (beta > 0)", {"algorithm": {"beta": 0.04}}),
    ("several passes over a batch (num_iterations > 1)", {"algorithm": {"num_iterations": 2}}),
    ("two-sided clipping (delta)", {"algorithm": {"delta": 2.0}}),
    ("vLLM with its correction", {"rollout": {"engine": "vllm_colocate"}}),
    ("top-entropy mask (top_entropy_quantile)", {"algorithm": {"extra": {"top_entropy_quantile": 0.2}}}),
    ("entropy bonus (entropy_coef)", {"algorithm": {"extra": {"entropy_coef": 0.01}}}),
    ("off-policy mask (off_policy_mask_threshold)", {"algorithm": {"extra": {"off_policy_mask_threshold": 0.5}}}),
    ("choosing the chunk size", {"memory": {"chunk_size": 4}}),
    ("LoRA", {"memory": {"adapter": "lora"}}),
    ("QLoRA", {"memory": {"adapter": "qlora"}}),
    ("skipping dead groups, beta 0", {"memory": {"skip_dead_groups": True}}),
    ("skipping dead groups, beta > 0", {"memory": {"skip_dead_groups": True}, "algorithm": {"beta": 0.04}}),
)
STRATEGIES = ("ddp", "fsdp", "zero2", "zero3")
SCALE_ROWS: tuple[tuple[str, Example], ...] = (
    *((f"{backend} backend", {"memory": {"loss_backend": backend}}) for backend in BACKENDS),
    ("liger backend and LoRA", {"memory": {"adapter": "lora"}}),
    ("trl backend and LoRA", {"memory": {"adapter": "lora", "loss_backend": "trl"}}),
    ("trl backend and QLoRA", {"memory": {"adapter": "qlora", "loss_backend": "trl"}}),
    ("vllm_colocate", {"rollout": {"engine": "vllm_colocate"}, "memory": {"loss_backend": "trl"}}),
    (
        "vllm_server",
        {"rollout": {"engine": "vllm_server", "server_url": "http://a:8000"}, "memory": {"loss_backend": "trl"}},
    ),
)


def render() -> str:
    """Both tables, each with the reasons for its refusals below it."""
    backends = _table(
        "loss", BACKENDS, BACKEND_ROWS, lambda example, name: _with(example, "memory", {"loss_backend": name})
    )
    scale = _table(
        "with 2 processes",
        STRATEGIES,
        SCALE_ROWS,
        lambda example, name: _with(example, "scale", {"processes": 2, "strategy": name}),
    )
    return f"### Loss backends\n\n{backends}\n### Several processes\n\n{scale}"


def _table(corner: str, columns: Sequence[str], rows: Sequence[tuple[str, Example]], settings: Any) -> str:
    notes: list[str] = []
    lines = [f"| {corner} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, example in rows:
        cells = [
            _cell([str(found) for found in inspect(settings(example, column)).problems], notes) for column in columns
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_footnotes(notes)]) + "\n"


def _cell(problems: Sequence[str], notes: list[str]) -> str:
    if not problems:
        return "yes"
    for problem in problems:
        if problem not in notes:
            notes.append(problem)
    return "no " + ", ".join(f"({notes.index(problem) + 1})" for problem in problems)


def _footnotes(notes: Sequence[str]) -> Iterator[str]:
    for place, note in enumerate(notes, start=1):
        yield f"{place}. {note}"


def _with(example: Example, section: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {**example, section: {**example.get(section, {}), **settings}}


def page(text: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{render()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    TARGET.write_text(page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
