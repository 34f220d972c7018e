"""Time and peak memory of the update (forward and backward of one optimizer step) by loss backend, and dead groups.

    python -m bench.update_step [--rounds N] [--shapes NAME,...] [--out FILE.md|FILE.csv]

One frozen batch a shape, random weights, no sampling and no optimizer step. The backends take turns, medians are printed.
Peaks: on a GPU the allocator's, over the timed rounds; on a CPU the bytes of all tensors (torch's MemTracker, weights
and gradients included), in a pass of its own that is not timed. Second table: half of the groups dead, left out by our
trainer, against TRL's own trainer, which does not.
"""

from __future__ import annotations

import argparse
import csv
import gc
import importlib.metadata
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio.devices import worker_environment

BACKENDS = ("full", "trl", "liger")
PLAIN = "TRL's own"
MIB = 1024**2


@dataclass(frozen=True)
class Shape:
    """A model and a batch of G completions for each prompt, in micro-batches. Completions are half to wholly long."""

    name: str
    vocabulary: int
    hidden: int
    layers: int
    intermediate: int
    heads: int
    kv_heads: int
    prompts: int
    group: int
    micro_batch: int
    prompt_tokens: int
    completion_tokens: int

    @property
    def completions(self) -> int:
        return self.prompts * self.group

    @property
    def accumulation(self) -> int:
        return self.completions // self.micro_batch

    def __str__(self) -> str:
        rows = f"{self.micro_batch}" if self.accumulation == 1 else f"{self.accumulation} x {self.micro_batch}"
        return (
            f"{self.name}: {rows} x ({self.prompt_tokens} + {self.completion_tokens}), vocabulary {self.vocabulary:,}"
        )


# Layers cut down so that a step takes seconds, the head kept whole.
ON_CPU = (
    Shape("smollm2, short", 49_152, 576, 12, 1536, 9, 3, 2, 4, 8, 32, 64),
    Shape("smollm2, long", 49_152, 576, 6, 1536, 9, 3, 2, 4, 8, 64, 192),
    Shape("qwen3, short", 151_936, 256, 8, 768, 4, 2, 2, 4, 8, 32, 64),
    Shape("qwen3, two passes", 151_936, 256, 8, 768, 4, 2, 4, 4, 8, 32, 96),
)
# Qwen3-0.6B and SmolLM2-135M as they are.
ON_GPU = (
    Shape("smollm2-135m, 256", 49_152, 576, 30, 1536, 9, 3, 4, 8, 32, 64, 256),
    Shape("qwen3-0.6b, 256", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 32, 64, 256),
    Shape("qwen3-0.6b, 512", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 16, 64, 512),
    Shape("qwen3-0.6b, 1024", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 16, 64, 1024),
)
Row = dict[str, Any]


class Update:
    """One trainer of a kind on the frozen batch of a shape; called, it makes all gradients of one optimizer step."""

    def __init__(self, shape: Shape, kind: str, skip: bool, batch: dict[str, Any], folder: Path) -> None:
        self.trainer = make_trainer(shape, kind, skip, folder)
        self.model = self.trainer.accelerator.prepare_model(self.trainer.model)
        self.model.train()
        self.trainer.current_gradient_accumulation_steps = shape.accumulation
        self.trainer._prepare_inputs = lambda inputs: inputs
        self.parts = micro_batches(batch, shape.accumulation)

    def __call__(self) -> float:
        self.model.zero_grad(set_to_none=True)
        loss = sum(self.one(part) for part in self.parts)
        self._forget()
        return float(loss)

    def one(self, part: dict[str, Any]) -> Any:
        return self.trainer.training_step(self.model, part, None)

    def _forget(self) -> None:
        """What a step's end would take away."""
        self.trainer._metrics["train"].clear()
        if hasattr(self.trainer, "_tally"):
            self.trainer._tally.take(self.trainer.accelerator)

    def gradient(self) -> dict[str, Any]:
        return {name: value.grad.float().cpu() for name, value in self.model.named_parameters()}


def make_trainer(shape: Shape, kind: str, skip: bool, folder: Path) -> Any:
    import torch
    from datasets import Dataset
    from trl import GRPOTrainer

    from grpo_studio.config import RunConfig
    from grpo_studio.training.arguments import grpo_arguments
    from grpo_studio.training.phases import PhaseClock
    from grpo_studio.training.trainer import StudioTrainer

    on_gpu = torch.cuda.is_available()
    config = RunConfig.model_validate(
        {
            "model": {"dtype": "bfloat16" if on_gpu else "float32"},
            "algorithm": {
                "prompts_per_step": shape.prompts,
                "group_size": shape.group,
                "max_completion_length": shape.completion_tokens,
            },
            "memory": {
                "loss_backend": "trl" if kind == PLAIN else kind,
                "micro_batch": shape.micro_batch,
                "skip_dead_groups": skip,
            },
        }
    )
    arguments = grpo_arguments(config, folder)
    arguments.model_init_kwargs = None
    rows = Dataset.from_dict({"prompt": ["a"] * shape.completions, "sample": [0] * shape.completions})
    common = {"model": random_model(shape), "args": arguments, "train_dataset": rows, "processing_class": tokenizer()}
    if kind == PLAIN:
        return GRPOTrainer(reward_funcs=_no_reward, **common)
    return StudioTrainer(
        config=config, judged=_NothingJudged(), samples=[], clock=PhaseClock(), listener=_Listener(), **common
    )


def random_model(shape: Shape) -> Any:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=64 if shape.hidden < 1024 else 128,
            max_position_embeddings=shape.prompt_tokens + shape.completion_tokens,
            tie_word_embeddings=True,
        )
    )
    return model.to(torch.bfloat16 if torch.cuda.is_available() else torch.float32)


def tokenizer() -> Any:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({"<pad>": 0, "<end>": 1, "a": 2}, unk_token="<pad>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>")


def frozen_batch(shape: Shape, dead_groups: int) -> dict[str, Any]:
    """A scored batch of random tokens, as TRL makes it, with so many groups of equal rewards among the others."""
    import torch

    random = torch.Generator().manual_seed(1)
    count, width = shape.completions, shape.completion_tokens
    lengths = torch.randint(width // 2, width + 1, (count,), generator=random)
    lengths[0] = width
    mask = (torch.arange(width)[None, :] < lengths[:, None]).long()
    rewards = (torch.arange(shape.group) % 3 == 0).float().repeat(shape.prompts, 1)
    rewards[shape.prompts - dead_groups :] = 1.0
    advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
    shuffle = torch.randperm(count, generator=random)
    batch = {
        "prompt_ids": torch.randint(2, shape.vocabulary, (count, shape.prompt_tokens), generator=random),
        "prompt_mask": torch.ones(count, shape.prompt_tokens, dtype=torch.long),
        "completion_ids": torch.randint(2, shape.vocabulary, (count, width), generator=random) * mask,
        "completion_mask": mask,
        "advantages": advantages.flatten(),
    }
    batch = {name: value[shuffle] for name, value in batch.items()} | {"num_items_in_batch": mask.sum()}
    return {name: value.to("cuda" if torch.cuda.is_available() else "cpu") for name, value in batch.items()}


def micro_batches(batch: dict[str, Any], parts: int) -> list[dict[str, Any]]:
    from trl.trainer.utils import split_tensor_dict

    return split_tensor_dict(batch, parts)


def peak_on_cpu(update: Update) -> int:
    """Greatest sum of all tensors' bytes in the last micro-batch's passes, the gradients of those before it there."""
    from torch.distributed._tools.mem_tracker import MemTracker

    update.model.zero_grad(set_to_none=True)
    for part in update.parts[:-1]:
        update.one(part)
    tracker = MemTracker()
    tracker.track_external(update.model, *update.parts[-1].values())
    with tracker:
        update.one(update.parts[-1])
    update._forget()
    return sum(device["Total"] for device in tracker.get_tracker_snapshot("peak").values())


def compare(shape: Shape, kinds: dict[str, tuple[str, bool]], dead_groups: int, rounds: int, folder: Path) -> list[Row]:
    """Median seconds and peak bytes of each kind, (backend or PLAIN, skip), on the same batch."""
    import torch

    on_gpu = torch.cuda.is_available()
    batch = frozen_batch(shape, dead_groups)
    updates = {label: Update(shape, kind, skip, batch, folder) for label, (kind, skip) in kinds.items()}
    seconds: dict[str, list[float]] = {label: [] for label in kinds}
    peaks: dict[str, int] = dict.fromkeys(kinds, 0)
    gradients, losses = {}, {}
    for turn in range(rounds + 1):
        for label, update in updates.items():
            gc.collect()
            if on_gpu:
                park(update for other, update in updates.items() if other != label)
                update.model.to("cuda")
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                torch.cuda.synchronize()
            began = time.perf_counter()
            losses[label] = update()
            if on_gpu:
                torch.cuda.synchronize()
            took = time.perf_counter() - began
            if turn == 0:  # warms up
                gradients[label] = update.gradient()
            else:
                seconds[label].append(took)
                peaks[label] = max(peaks[label], torch.cuda.max_memory_allocated() if on_gpu else 0)
            update.model.zero_grad(set_to_none=True)
    if not on_gpu:
        peaks = {label: peak_on_cpu(update) for label, update in updates.items()}
    first = next(iter(kinds))
    return [
        {
            "shape": str(shape),
            "backend": label,
            "loss": losses[label],
            "gradient apart": apart(gradients[label], gradients[first]),
            "seconds": statistics.median(seconds[label]),
            "least": min(seconds[label]),
            "most": max(seconds[label]),
            "MiB": peaks[label] / MIB,
        }
        for label in kinds
    ]


def park(updates: Iterable[Update]) -> None:
    """Off the GPU, so that only one model counts."""
    for update in updates:
        update.model.to("cpu")


def apart(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Norm of the difference over the norm."""

    def squares(values: Iterable[Any]) -> float:
        return math.fsum(value.double().square().sum().item() for value in values)

    return math.sqrt(squares(ours[name] - theirs[name] for name in theirs) / squares(theirs.values()))


def with_ratios(rows: list[Row], base: str, to_fastest: bool) -> list[Row]:
    by_label = {row["backend"]: row for row in rows}
    reference = min(row["seconds"] for row in rows) if to_fastest else by_label[base]["seconds"]
    word = "fastest" if to_fastest else base
    return [
        row | {f"time / {word}": row["seconds"] / reference, f"MiB / {base}": row["MiB"] / by_label[base]["MiB"]}
        for row in rows
    ]


FORMATS = {"loss": "{:.6f}", "gradient apart": "{:.1e}", "seconds": "{:.3f}", "least": "{:.3f}", "most": "{:.3f}"}


def shown(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if name == "MiB":
        return f"{value:,.0f}"
    return FORMATS.get(name, "{:.2f}").format(value)


def markdown(rows: list[Row]) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *[[shown(name, row[name]) for name in names] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    dtype = "bfloat16" if torch.cuda.is_available() else "float32"
    packages = ("torch", "transformers", "trl", "liger-kernel", "accelerate")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return f"{device}; {dtype}; {versions}; Python {sys.version.split()[0]}"


def save(file: Path, heading: str, tables: dict[str, list[Row]]) -> None:
    if file.suffix == ".csv":
        with file.open("w", newline="", encoding="utf-8") as out:
            for title, rows in tables.items():
                writer = csv.DictWriter(out, ["table", *rows[0]])
                writer.writeheader()
                writer.writerows({"table": title, **row} for row in rows)
        return
    parts = [heading, *[f"## {title}\n\n{markdown(rows)}" for title, rows in tables.items()]]
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    import warnings

    import torch
    from transformers.utils import logging

    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    known = ON_GPU if torch.cuda.is_available() else ON_CPU
    parser = argparse.ArgumentParser(prog="python -m bench.update_step", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds, after one that warms up")
    parser.add_argument("--shapes", default="", help=f"numbers from 1 to {len(known)}, by commas; default: all")
    parser.add_argument("--out", type=Path, help="also write the tables to this file, .md or .csv")
    options = parser.parse_args(arguments)
    shapes = [known[int(number) - 1] for number in options.shapes.split(",")] if options.shapes else list(known)
    print(machine(), flush=True)
    tables: dict[str, list[Row]] = {"Update step by loss backend": [], "Half of the groups dead": []}
    with tempfile.TemporaryDirectory() as home:
        for shape in shapes:
            everyone = {backend: (backend, False) for backend in BACKENDS}
            rows = compare(shape, everyone, 0, options.rounds, Path(home))
            report(tables["Update step by loss backend"], with_ratios(rows, "full", to_fastest=True))
            some = {PLAIN: (PLAIN, False)} | {f"{backend}, skipping": (backend, True) for backend in BACKENDS}
            rows = compare(shape, some, shape.prompts // 2, options.rounds, Path(home))
            report(tables["Half of the groups dead"], with_ratios(rows, PLAIN, to_fastest=False))
            if options.out:
                save(options.out, machine(), {title: rows for title, rows in tables.items() if rows})


def report(table: list[Row], rows: list[Row]) -> None:
    table += rows
    print(f"\n{markdown(rows)}", flush=True)


class _Listener:
    def batch_scored(self, step: int, batch: Any) -> None:
        """Nothing is scored here."""

    def step_done(self, step: int, logs: dict[str, Any]) -> None:
        """Nothing is logged here."""


class _NothingJudged:
    def functions(self, samples: Any) -> list[Callable[..., Any]]:
        return [_no_reward]


def _no_reward(completions: Any, **columns: Any) -> list[float]:
    raise AssertionError("the batch is frozen")


if __name__ == "__main__":
    missing = {name: value for name, value in worker_environment().items() if name not in os.environ}
    if missing:  # the allocator reads its settings as the process starts
        os.execve(sys.executable, [sys.executable, "-m", "bench.update_step", *sys.argv[1:]], {**os.environ, **missing})
    main(sys.argv[1:])
