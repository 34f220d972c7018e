"""Peak memory of the loss on a GPU: batch x backend x precision, forecast against measured. One file, no network.

    python bench/gpu_memory.py --out DIR [--minutes 7] [--forecast FILE] [--wheels DIR]
    python bench/gpu_memory.py --write-forecast FILE [--card 80]     beforehand, where GRPO Studio is installed
    python bench/gpu_memory.py --device cpu --small --out DIR        a tiny model, tensors counted: tries the script

It needs torch, transformers and this checkout; random weights of Qwen3-0.6B's published shape are enough for memory.
Each line is one backend in one precision: AdamW steps on prompts and completions of 512 tokens together, with gradient
checkpointing, and more and more completions in one pass until memory or time runs out. Measured is the second step,
when the optimizer's state is there: `max_memory_allocated` and `max_memory_reserved` of torch's allocator.

trl and liger-kernel may be missing. Their wheels are plain Python: `pip download --no-deps trl==1.16.0
liger-kernel==0.8.5 -d wheels` elsewhere, then --wheels wheels here; a backend whose package is missing is left out and
named. Of TRL only the kernel of its fused head is used, which needs no other package; each loss is the one that
`grpo_studio/training` computes with that backend, without KL term and clipping, which take bytes per token only.
Where pydantic is missing no forecast can be made: bring one by --forecast, which also spares the device's time.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
import types
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
if "cpu" in sys.argv:
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # before torch is there; as a worker on a CPU does

import torch  # noqa: E402 (after what it reads)

from grpo_studio.memory.allocation import out_of_memory  # noqa: E402 (after its path)

GB = 1e9
PUBLISHED = ROOT / "grpo_studio" / "model_configs" / "qwen--qwen3-0.6b.json"
MODEL = "Qwen/Qwen3-0.6B"
BACKENDS = ("full", "trl", "liger")
DTYPES = ("bfloat16", "float32")
BATCHES = (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
TARGET = 0.10
"""How far a forecast may be from what is measured."""
TILE = 1 << 24
"""Most logits at once in the statistics of Liger's tokens (`policy_head.TOKEN_LOGITS`)."""
CHUNK_TOKENS = 2048
"""Tokens in a chunk of Liger's loss (`config.LIGER_CHUNK_TOKENS`)."""
VOCABULARY_CHUNK = 32_768
"""Columns of the head at once in TRL's (`trl.trainer.utils._CHUNKED_LOGPROB_CHUNK_SIZE`)."""


@dataclass(frozen=True)
class Case:
    """One pass: `completions` of `tokens` tokens behind prompts of `prompt` tokens."""

    backend: str
    dtype: str
    completions: int
    prompt: int
    tokens: int

    @property
    def key(self) -> str:
        return f"{self.backend}, {self.dtype}, {self.completions} x ({self.prompt} + {self.tokens})"


@dataclass(frozen=True)
class Point:
    """What a case measured: bytes; None for what the device does not tell. `forecast` is without CUDA's own memory."""

    case: Case
    allocated: int
    reserved: int | None
    seconds: float
    forecast: int | None = None

    @property
    def off(self) -> float | None:
        """Share by which the forecast is above what was measured."""
        return None if self.forecast is None else self.forecast / self.allocated - 1


@dataclass
class Line:
    """One backend in one precision; `ended_by` is memory, time, error or the end of the batches."""

    backend: str
    dtype: str
    points: list[Point]
    ended_by: str = "asked"
    end_at: int | None = None


# --- the losses ---


def full_loss(model: Any, ids: torch.Tensor, mask: torch.Tensor, count: int) -> torch.Tensor:
    """All logits at once, by the function that the trainer uses."""
    from grpo_studio.training.full_logits import full_token_logps

    logps, entropies, _ = full_token_logps(model, ids, mask, count, 1.0, "without")
    del entropies
    return -logps.mean()


def trl_loss(model: Any, ids: torch.Tensor, mask: torch.Tensor, count: int) -> torch.Tensor:
    """TRL's fused head over the completion's tokens, as `add_fused_lm_head` calls it (trl 1.16.0)."""
    head = chunked_log_probs()
    hidden = model.base_model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[:, :-1]
    labels = ids[:, 1:].clone()
    labels[:, :-count] = -100
    kept = labels != -100
    compact = hidden.is_cuda  # elsewhere TRL scores every position
    rows = hidden[kept] if compact else hidden.reshape(-1, hidden.shape[-1])
    targets = labels[kept] if compact else labels.clamp(min=0).reshape(-1)
    weight = model.get_output_embeddings().weight
    wanted = ("log_probs", "entropy")
    logps = head.apply(rows, weight, None, targets, 1.0, VOCABULARY_CHUNK, None, 1.0, wanted)[0]
    return -(logps if compact else logps[kept.reshape(-1)]).mean()


def liger_loss(model: Any, ids: torch.Tensor, mask: torch.Tensor, count: int) -> torch.Tensor:
    """Liger's fused loss, a token a row, after the tokens' statistics (`training/liger_loss.py`)."""
    from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss

    hidden = model.base_model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[:, -count - 1 : -1]
    device, weight = hidden.device.type, model.get_output_embeddings().weight
    tokens = ids[:, -count:].reshape(-1)
    with torch.autocast(device, enabled=False):
        rows = hidden.to(weight.dtype).reshape(-1, hidden.shape[-1])
        statistics(rows.detach(), weight)
        chunk = max(1, CHUNK_TOKENS // count) * count
        fused = LigerFusedLinearGRPOLoss(
            beta=0.0, use_ref_model=False, chunk_size=chunk, loss_type="dapo", compiled=hidden.is_cuda,
            max_completion_length=count,
        )  # fmt: skip
        ones = torch.ones(len(tokens), 1, device=hidden.device)
        advantages = torch.ones(len(tokens), device=hidden.device)
        total = torch.tensor(len(tokens), device=hidden.device)
        loss: torch.Tensor = fused(
            rows.unsqueeze(1), weight, tokens.unsqueeze(1), ones, advantages, num_items_in_batch=total
        )[0]
    return loss


@torch.no_grad()
def statistics(rows: torch.Tensor, weight: torch.Tensor) -> None:
    """As much memory as `policy_head.token_statistics` takes."""
    step = max(1, TILE // weight.shape[0])
    for start in range(0, len(rows), step):
        logits = torch.nn.functional.linear(rows[start : start + step], weight).float()
        normalizer = logits.logsumexp(-1)
        (logits - normalizer[:, None]).exp_().mul_(logits).sum(-1)


def chunked_log_probs() -> Any:
    """The kernel of TRL's head; that of its parts which gathers sharded weights needs packages that may be missing."""
    from trl.kernels import ChunkedLogProbFunction

    try:
        import trl.trainer.utils  # noqa: F401
    except Exception:  # any of its own imports may be what is missing
        stand_in: Any = types.ModuleType("trl.trainer.utils")
        stand_in.maybe_gather_lm_head_ctx = lambda *parameters: nullcontext()
        sys.modules["trl.trainer.utils"] = stand_in
    return ChunkedLogProbFunction


LOSSES: dict[str, Callable[..., torch.Tensor]] = {"full": full_loss, "trl": trl_loss, "liger": liger_loss}


def usable() -> list[str]:
    """The backends whose packages are there; says in a line which one is left out."""
    found = ["full"]
    for backend, package in (("trl", "trl.kernels"), ("liger", "liger_kernel.chunked_loss")):
        try:
            __import__(package)
            found.append(backend)
        except Exception as error:  # whatever keeps it from being imported
            print(f"left out: {backend}, since {package} cannot be imported ({type(error).__name__}: {error})")
    return found


# --- measuring ---


class Bench:
    """Measures cases on one device until `deadline` (time.monotonic)."""

    def __init__(self, config: dict[str, Any], device: str, deadline: float) -> None:
        self.config, self.device, self.deadline = config, torch.device(device), deadline
        self.on_gpu = self.device.type == "cuda"

    def line(self, backend: str, dtype: str, batches: tuple[int, ...], prompt: int, tokens: int) -> Line:
        line = Line(backend, dtype, [])
        try:
            model, optimizer = self.made(dtype)
            for batch in batches:
                if time.monotonic() > self.deadline:
                    line.ended_by, line.end_at = "time", batch
                    break
                line.end_at = batch
                line.points.append(self.point(model, optimizer, Case(backend, dtype, batch, prompt, tokens)))
                print(f"{line.points[-1].case.key}: {line.points[-1].allocated / GB:.2f} GB", flush=True)
        except Exception as error:  # one backend that fails shall not cost the others
            line.ended_by = "memory" if out_of_memory(error) else "error"
            print(f"{backend}, {dtype}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        model = optimizer = None
        self.free()
        return line

    def made(self, dtype: str) -> tuple[Any, torch.optim.Optimizer]:
        from transformers import AutoConfig, AutoModelForCausalLM

        values = {key: value for key, value in self.config.items() if key not in ("model_type", "torch_dtype")}
        config = AutoConfig.for_model(self.config["model_type"], **values)
        with self.device:
            model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype), attn_implementation="sdpa")
        model.gradient_checkpointing_enable()
        model.train()
        return model, torch.optim.AdamW(model.parameters(), lr=1e-6)

    def point(self, model: Any, optimizer: torch.optim.Optimizer, case: Case) -> Point:
        self.step(model, optimizer, case, act=True)  # the optimizer's state is there from here on
        self.free()
        began = time.perf_counter()
        with self.counted(model, optimizer) as peak:
            self.step(model, optimizer, case, act=False)
        allocated, reserved = peak()
        optimizer.zero_grad(set_to_none=True)
        return Point(case, allocated, reserved, time.perf_counter() - began)

    def step(self, model: Any, optimizer: torch.optim.Optimizer, case: Case, act: bool) -> None:
        vocabulary = min(model.config.vocab_size, 50_000)
        shape = (case.completions, case.prompt + case.tokens)
        ids = torch.randint(3, vocabulary, shape, device=self.device)
        mask = torch.ones_like(ids)
        mask[0, 0] = 0  # a padded batch, as nearly all are
        optimizer.zero_grad(set_to_none=True)
        low = self.on_gpu and case.dtype == "bfloat16"  # as the trainer does on a GPU
        with torch.autocast("cuda", torch.bfloat16) if low else nullcontext():
            loss = LOSSES[case.backend](model, ids, mask, case.tokens)
        loss.backward()
        if act:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.wait()

    @contextmanager
    def counted(self, model: Any, optimizer: torch.optim.Optimizer) -> Iterator[Callable[[], tuple[int, int | None]]]:
        """Count within; what it yields tells the peaks once it is over."""
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)
            yield lambda: (torch.cuda.max_memory_allocated(self.device), torch.cuda.max_memory_reserved(self.device))
            return
        from grpo_studio.training.tensor_bytes import TensorBytes

        counts = TensorBytes()
        counts.track(model, *(value for state in optimizer.state.values() for value in state.values()))
        with counts:
            yield lambda: (counts.peak, None)

    def wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def free(self) -> None:
        gc.collect()
        if self.on_gpu:
            torch.cuda.empty_cache()


# --- the forecast ---


def forecasts(cases: list[Case], config: dict[str, Any], name: str, card: float | None) -> dict[str, int]:
    """Bytes of the loss by case, without what CUDA and its allocator take besides; those that can be made."""
    try:
        from grpo_studio.config import RunConfig
        from grpo_studio.memory.forecast import CardSize
        from grpo_studio.memory.forecasting import forecast
        from grpo_studio.settings import Settings
    except ImportError as error:
        print(f"no forecast: {error}; make one elsewhere by --write-forecast, and bring it by --forecast FILE")
        return {}
    found = {}
    size = None if card is None else CardSize(f"{card:g} GB", int(card * GB), "asked for")
    with tempfile.TemporaryDirectory() as place:
        if name != MODEL:  # of that one the config is packaged
            Path(place, "config.json").write_text(json.dumps(config), encoding="utf-8")
            Path(place, "model.safetensors").touch()  # no forecast reads weights
            name = place
        settings = replace(Settings.from_env(), cache=Path(place, "cache"))
        for case in cases:
            run = RunConfig.model_validate(
                {
                    "model": {"id": name, "dtype": case.dtype},
                    "algorithm": {"group_size": case.completions, "prompts_per_step": 1,
                                  "max_completion_length": case.tokens},
                    "memory": {"loss_backend": case.backend, "micro_batch": case.completions,
                               "gradient_checkpointing": True},
                }
            )  # fmt: skip
            try:
                parts = dict(forecast(run, settings, prompt_tokens=case.prompt, card=size).parts_by_phase["loss"])
            except Exception as error:  # what was measured is worth more than what was foreseen
                print(f"no forecast for {case.key}: {type(error).__name__}: {error}")
                continue
            parts.pop("allocator_reserve", None)
            found[case.key] = sum(parts.values())
    return found


# --- what is told ---


def table(lines: list[Line], device: str, model: str) -> str:
    """Markdown: a row a case, then the greatest batch and the verdict on the forecast."""
    points = [point for line in lines for point in line.points]
    judged = [point for point in points if point.off is not None]
    rows = [
        f"{model} on {device}, torch {torch.__version__}",
        "",
        "| backend | weights | completions | allocated, GB | reserved, GB | forecast, GB | off | s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for point in points:
        case = point.case
        held = "" if point.reserved is None else f"{point.reserved / GB:.2f}"
        said = "" if point.forecast is None else f"{point.forecast / GB:.2f}"
        off = "" if point.off is None else f"{point.off:+.1%}"
        rows.append(
            f"| {case.backend} | {case.dtype} | {case.completions} | {point.allocated / GB:.2f} | {held} | {said} "
            f"| {off} | {point.seconds:.2f} |"
        )
    rows += ["", "| backend | weights | most completions | ended by |", "|---|---|---|---|"]
    for line in lines:
        most = max((point.case.completions for point in line.points), default=0)
        end = "" if line.ended_by == "asked" else f" at {line.end_at}"
        rows.append(f"| {line.backend} | {line.dtype} | {most} | {line.ended_by}{end} |")
    if judged:
        near = sum(abs(point.off or 0.0) <= TARGET for point in judged)
        worst = max(abs(point.off or 0.0) for point in judged)
        rows += ["", f"Forecast within {TARGET:.0%}: {near} of {len(judged)} cases; furthest off: {worst:.1%}."]
    return "\n".join(rows) + "\n"


def figure(lines: list[Line], path: Path, device: str, model: str, card: float | None) -> None:
    """Peak against completions, a line each; dashes are the forecast, a cross is where memory ran out."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("left out: the figure, since matplotlib is missing")
        return
    colours = dict(zip(BACKENDS, ("#b3403a", "#3a6fb3", "#2f8f5b"), strict=True))
    drawing, axes = pyplot.subplots(figsize=(8, 5))
    for line in (line for line in lines if line.points):
        x = [point.case.completions for point in line.points]
        y = [point.allocated / GB for point in line.points]
        low = line.dtype == "bfloat16"
        axes.plot(x, y, marker="o" if low else "s", color=colours[line.backend], alpha=1 if low else 0.55,
                  label=f"{line.backend}, {line.dtype}")  # fmt: skip
        said = [(point.case.completions, point.forecast / GB) for point in line.points if point.forecast is not None]
        if said:
            axes.plot(*zip(*said, strict=True), linestyle="--", linewidth=1, color=colours[line.backend])
        if line.ended_by == "memory" and card is not None:
            axes.plot([line.end_at], [card], marker="x", color=colours[line.backend])
    if card is not None:
        axes.axhline(card, color="#888888", linewidth=1)
    axes.set(xlabel="completions in one pass", ylabel="peak, GB", title=f"{model} on {device}; dashed: forecast")
    axes.legend()
    drawing.savefig(path, dpi=120, bbox_inches="tight")


def unpack_wheels(folder: Path) -> None:
    """Make the packages of these wheels importable, for this process alone."""
    place = tempfile.mkdtemp(prefix="wheels-")
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place)
    sys.path.insert(0, place)


def small(config: dict[str, Any]) -> dict[str, Any]:
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4,
             "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 8192}  # fmt: skip
    return config | sizes | {"bos_token_id": 1, "eos_token_id": 2}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder for gpu_memory.md, .png and .json")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="a tiny model and few tokens")
    parser.add_argument("--minutes", type=float, default=7.0, help="stop measuring after so many, at most 8")
    parser.add_argument("--forecast", type=Path, help="a forecast made beforehand")
    parser.add_argument("--write-forecast", type=Path, help="only make a forecast, for --forecast elsewhere")
    parser.add_argument("--card", type=float, default=80.0, help="GB of the card that --write-forecast is for")
    parser.add_argument("--wheels", type=Path, help="folder with wheels of trl and liger-kernel")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * min(options.minutes, 8.0)
    config = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    config, name = (small(config), "a tiny Qwen3") if options.small else (config, MODEL)
    batches = BATCHES[:3] if options.small else BATCHES
    prompt, tokens = (8, 56) if options.small else (32, 480)
    if options.wheels is not None:
        unpack_wheels(options.wheels)
    if options.write_forecast is not None:
        cases = [Case(b, d, n, prompt, tokens) for d in DTYPES for b in BACKENDS for n in batches]
        made = forecasts(cases, config, name, None if options.device == "cpu" else options.card)
        options.write_forecast.write_text(json.dumps(made, indent=1), encoding="utf-8")
        return 0 if made else 1
    if options.out is None:
        parser.error("--out is missing; name the folder for table and figure")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no GPU here; use --device cpu --small to try the script")
    return run(options, config, name, batches, (prompt, tokens), deadline)


def run(
    options: argparse.Namespace,
    config: dict[str, Any],
    name: str,
    batches: tuple[int, ...],
    sizes: tuple[int, int],
    deadline: float,
) -> int:
    """Measure, hold the forecast against it, write; exit code 1 when nothing could be measured."""
    on_gpu = options.device == "cuda"
    device = torch.cuda.get_device_name() if on_gpu else "a CPU (bytes of tensors)"
    card = torch.cuda.get_device_properties(0).total_memory / GB if on_gpu else None
    bench = Bench(config, options.device, deadline)
    backends = usable()
    lines = [bench.line(backend, dtype, batches, *sizes) for dtype in DTYPES for backend in backends]
    cases = [point.case for line in lines for point in line.points]
    if options.forecast is not None:
        said = json.loads(options.forecast.read_text(encoding="utf-8"))
    else:
        said = forecasts(cases, config, name, card)
    for line in lines:
        line.points = [replace(point, forecast=said.get(point.case.key)) for point in line.points]
    options.out.mkdir(parents=True, exist_ok=True)
    text = table(lines, device, name)
    (options.out / "gpu_memory.md").write_text(text, encoding="utf-8")
    document = {
        "device": device,
        "card_gb": card,
        "torch": torch.__version__,
        "lines": [asdict(line) for line in lines],
    }
    (options.out / "gpu_memory.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    figure(lines, options.out / "gpu_memory.png", device, name, card)
    print(text)
    return 0 if cases else 1


if __name__ == "__main__":
    sys.exit(main())
