"""Time and peak memory of the update (forward and backward of one optimizer step) by loss backend, and dead groups.

    python -m bench.update_step [--rounds N] [--shapes NAME,...] [--out FILE.md|FILE.csv]

One frozen batch a shape, random weights, no sampling and no optimizer step. The backends take turns; medians. On a CPU
that others use too, compare its seconds (all threads of this process) rather than those of the clock. Peaks: weights,
gradients and activations; on a GPU the allocator's over the timed rounds, on a CPU the bytes of all tensors (torch's
MemTracker) in a pass that is not timed. Second table: half of the groups dead, left out by our trainer, against TRL's
own trainer, which does not.
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


# SmolLM2-135M as it is, and Qwen3-0.6B at half its width: the head's share of the work is that of small real models.
ON_CPU = (
    Shape("smollm2-135m", 49_152, 576, 30, 1536, 9, 3, 2, 4, 8, 32, 64),
    Shape("smollm2-135m", 49_152, 576, 30, 1536, 9, 3, 2, 4, 4, 32, 96),
    Shape("half qwen3-0.6b", 151_936, 512, 28, 1536, 8, 4, 2, 4, 8, 32, 64),
    Shape("half qwen3-0.6b", 151_936, 512, 28, 1536, 8, 4, 2, 4, 4, 64, 64),
)
ON_GPU = (
    Shape("smollm2-135m", 49_152, 576, 30, 1536, 9, 3, 4, 8, 32, 64, 256),
    Shape("qwen3-0.6b", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 32, 64, 256),
    Shape("qwen3-0.6b", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 16, 64, 512),
    Shape("qwen3-0.6b", 151_936, 1024, 28, 3072, 16, 8, 4, 8, 16, 64, 1024),
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
        return {name: value.grad for name, value in self.model.named_parameters()}

    def weights(self) -> int:
        """Bytes."""
        return sum(value.numel() * value.element_size() for value in self.model.parameters())


def on_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def make_trainer(shape: Shape, kind: str, skip: bool, folder: Path) -> Any:
    from datasets import Dataset
    from trl import GRPOTrainer

    from grpo_studio.config import RunConfig
    from grpo_studio.training.arguments import grpo_arguments
    from grpo_studio.training.phases import PhaseClock
    from grpo_studio.training.trainer import StudioTrainer

    config = RunConfig.model_validate(
        {
            "model": {"dtype": "bfloat16" if on_gpu() else "float32"},
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
    return model.to(torch.bfloat16 if on_gpu() else torch.float32)


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
    return {name: value.to("cuda" if on_gpu() else "cpu") for name, value in batch.items()}


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
    batch = frozen_batch(shape, dead_groups)
    updates = {label: Update(shape, kind, skip, batch, folder) for label, (kind, skip) in kinds.items()}
    rows: dict[str, Row] = {}
    baseline: dict[str, Any] = {}
    for label, update in updates.items():  # warms up, too
        loss = update()
        baseline = baseline or {name: value.clone() for name, value in update.gradient().items()}
        rows[label] = {"shape": str(shape), "backend": label, "loss": loss}
        rows[label]["gradient apart"] = apart(update.gradient(), baseline)
        update.model.zero_grad(set_to_none=True)
    baseline.clear()
    runs: dict[str, list[Run]] = {label: [] for label in kinds}
    for _ in range(rounds):
        for label, update in updates.items():
            runs[label].append(timed(update))
    for label, update in updates.items():
        clock = [run.seconds for run in runs[label]]
        rows[label] |= {"seconds": statistics.median(clock), "least": min(clock), "most": max(clock)}
        if on_gpu():
            rows[label]["MiB"] = max(run.peak for run in runs[label]) / MIB
        else:
            rows[label]["CPU seconds"] = statistics.median(run.cpu_seconds for run in runs[label])
            rows[label]["MiB"] = peak_on_cpu(update) / MIB
    return list(rows.values())


@dataclass(frozen=True)
class Run:
    seconds: float
    cpu_seconds: float
    peak: int


def timed(update: Update) -> Run:
    """One update, from no gradients to all; the peak leaves out what other models hold on a GPU."""
    import torch

    gc.collect()
    others = 0
    if on_gpu():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        others = torch.cuda.memory_allocated() - update.weights()
        torch.cuda.synchronize()
    began, began_cpu = time.perf_counter(), time.process_time()
    update()
    if on_gpu():
        torch.cuda.synchronize()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    peak = torch.cuda.max_memory_allocated() - others if on_gpu() else 0
    update.model.zero_grad(set_to_none=True)
    return Run(seconds, cpu_seconds, peak)


def apart(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Norm of the difference over the norm."""

    def squares(values: Iterable[Any]) -> float:
        return math.fsum(value.float().square().sum().item() for value in values)

    return math.sqrt(squares(ours[name] - theirs[name] for name in theirs) / squares(theirs.values()))


def with_ratios(rows: list[Row], base: str) -> list[Row]:
    """Each row with its time over the fastest's and over that of `base`, and its memory over that of `base`."""
    measure = "seconds" if on_gpu() else "CPU seconds"
    fastest = min(rows, key=lambda row: row[measure])
    reference = next(row for row in rows if row["backend"] == base)
    return [
        row
        | {
            f"{measure} / fastest": row[measure] / fastest[measure],
            f"{measure} / {base}": row[measure] / reference[measure],
            f"MiB / {base}": row["MiB"] / reference["MiB"],
        }
        for row in rows
    ]


FORMATS = {"loss": "{:.6f}", "gradient apart": "{:.1e}", "MiB": "{:,.0f}"} | dict.fromkeys(
    ("seconds", "least", "most", "CPU seconds"), "{:.3f}"
)


def shown(name: str, value: Any) -> str:
    return value if isinstance(value, str) else FORMATS.get(name, "{:.2f}").format(value)


def markdown(rows: list[Row]) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *[[shown(name, row[name]) for name in names] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    import torch

    device = torch.cuda.get_device_name() if on_gpu() else f"CPU, {torch.get_num_threads()} threads"
    dtype = "bfloat16" if on_gpu() else "float32"
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

    from transformers.utils import logging

    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    known = ON_GPU if on_gpu() else ON_CPU
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
            report(tables["Update step by loss backend"], with_ratios(rows, "full"))
            some = {PLAIN: (PLAIN, False)} | {f"{backend}, skipping": (backend, True) for backend in BACKENDS}
            rows = compare(shape, some, shape.prompts // 2, options.rounds, Path(home))
            report(tables["Half of the groups dead"], with_ratios(rows, PLAIN))
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
