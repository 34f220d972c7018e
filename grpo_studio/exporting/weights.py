"""A checkpoint of a run as a folder that other programs load: adapter, merged model, or whole model, with its card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo_studio.checkpoints import Checkpoint
from grpo_studio.errors import CheckpointError, UsageError
from grpo_studio.exporting.aside import folder_aside
from grpo_studio.exporting.card_facts import CardFacts, Kind, card_facts, recorded_setup
from grpo_studio.exporting.choice import chosen
from grpo_studio.exporting.curve import svg
from grpo_studio.exporting.model_card import PICTURE, SETTINGS_FILE, model_card
from grpo_studio.exporting.origin import Origin
from grpo_studio.libraries import load_libraries
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder

ADAPTER_CONFIG, CONFIG = "adapter_config.json", "config.json"
NOT_CARRIED = frozenset({
    "checkpoint.json", "training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt", "scaler.pt",
    "trainer_state.json", "README.md",
})  # fmt: skip
"""What a checkpoint holds besides the model: state of the training, and the card that PEFT makes."""
LARGEST_JSON = 64 << 20
BYTES_OF = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Exported:
    """Where it is, what it is, which checkpoint; `notes` say what is needed to use it."""

    to: Path
    kind: Kind
    checkpoint: Checkpoint
    which: str
    files: tuple[str, ...]
    bytes: int
    notes: tuple[str, ...] = field(default=())


def export_weights(
    folder: RunFolder,
    settings: Settings,
    target: Path,
    asked: str | None,
    merge: bool,
    tell: Callable[[str], None],
    ask_hub: bool = False,
) -> Exported:
    """Write the folder, aside first; it is there whole or not at all.

    Args:
        asked: the checkpoint by step or name, "best" or "newest"; None: the final weights, else the newest.
        ask_hub: whether the Hub may be asked for the base model's licence.

    Raises:
        CheckpointError: there is no such checkpoint, or it is damaged or holds no weights.
        UsageError: a merge was asked for and there is no adapter.
        StoreError: the target is taken or cannot be written; DiskFullError: there is no room.
        ModelError: a merge cannot load the base model.
    """
    checkpoint, which = chosen(folder, asked)
    adapter = (checkpoint.path / ADAPTER_CONFIG).is_file()
    if merge and not adapter:
        raise UsageError(f"{checkpoint.name} holds a whole model, so there is nothing to merge; leave out --merge")
    kind: Kind = "whole" if not adapter else "merged" if merge else "adapter"
    setup = recorded_setup(folder)
    dtype = _dtype(folder, checkpoint, kind, setup)
    facts = card_facts(folder, settings, checkpoint, kind, dtype, ask_hub)
    needed = _needed(checkpoint, kind, dtype, setup)
    with folder_aside(target, needed, f"the export of {checkpoint.name}") as aside:
        if kind == "merged":
            load_libraries()
            from grpo_studio.training.merging import save_merged

            save_merged(folder.config(), settings, checkpoint, aside, dtype, tell)
        else:
            _copy(checkpoint, aside, tell)
        _mend(aside, facts.origin)
        _write_card(aside, facts)
        files = sorted(str(path.relative_to(aside)) for path in aside.rglob("*") if path.is_file())
        size = sum((aside / name).stat().st_size for name in files)
    return Exported(target, kind, checkpoint, which, tuple(files), size, tuple(_notes(facts)))


def _dtype(folder: RunFolder, checkpoint: Checkpoint, kind: Kind, setup: dict[str, Any]) -> str:
    """The number format of the exported weights; 4-bit weights become 16-bit ones."""
    if kind == "merged" and folder.config().memory.adapter == "qlora":
        return "bfloat16"
    known = setup.get("dtype")
    if kind == "whole":
        known = _json(checkpoint.path / CONFIG).get("dtype", known)
    return known if isinstance(known, str) and known in BYTES_OF else "float32"


def _needed(checkpoint: Checkpoint, kind: Kind, dtype: str, setup: dict[str, Any]) -> int:
    if kind != "merged":
        return sum(size for name, size in checkpoint.manifest.files.items() if _is_carried(name)) + (1 << 20)
    parameters = setup.get("parameters")
    return (parameters if isinstance(parameters, int) else 0) * BYTES_OF[dtype] + (32 << 20)


def _is_carried(name: str) -> bool:
    return name not in NOT_CARRIED and not name.startswith(("rng_state", "global_step", "pytorch_model_fsdp"))


def _copy(checkpoint: Checkpoint, aside: Path, tell: Callable[[str], None]) -> None:
    carried = [name for name in checkpoint.manifest.files if _is_carried(name)]
    if not any(name.endswith((".safetensors", ".bin")) for name in carried):
        raise CheckpointError(f"{checkpoint.name} holds no weights that other programs load; take another checkpoint")
    for name in carried:
        tell(f"copying {name}")
        (aside / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(checkpoint.path / name, aside / name)
        except FileNotFoundError as error:
            raise CheckpointError(f"{checkpoint.name} was taken away while it was copied; take a newer one") from error


def _mend(aside: Path, origin: Origin) -> None:
    """Paths of this machine become names, and what only training wanted is put back."""
    if (aside / ADAPTER_CONFIG).is_file():
        adapter = _json(aside / ADAPTER_CONFIG)
        adapter |= {"base_model_name_or_path": origin.hub_id or origin.name, "revision": origin.revision}
        _write(aside / ADAPTER_CONFIG, adapter)
    if (aside / CONFIG).is_file():
        config = _json(aside / CONFIG)
        config.pop("_name_or_path", None)
        if config.get("use_cache") is False:
            config["use_cache"] = True  # training switches it off
        _write(aside / CONFIG, config)
    if (aside / "tokenizer_config.json").is_file():
        tokenizer = _json(aside / "tokenizer_config.json")
        for name in ("name_or_path", "is_local", "local_files_only"):
            tokenizer.pop(name, None)
        _write(aside / "tokenizer_config.json", tokenizer)


def _write_card(aside: Path, facts: CardFacts) -> None:
    (aside / "README.md").write_text(model_card(facts), encoding="utf-8")
    (aside / SETTINGS_FILE).write_text(facts.settings, encoding="utf-8")
    if facts.curve:
        (aside / PICTURE).write_text(svg(facts.curve, "Mean reward by step"), encoding="utf-8")
    usual = (aside / "README.md").stat().st_mode & 0o777
    for path in aside.rglob("*"):
        if path.is_file():
            path.chmod(usual)  # safetensors makes files that their owner alone may read


def _notes(facts: CardFacts) -> list[str]:
    origin = facts.origin
    if facts.kind == "adapter" and origin.hub_id is None:
        return [f"to use it, load the base model {origin.name} and put it on by PeftModel.from_pretrained (README.md)"]
    if facts.kind == "adapter":
        near = "" if origin.exact else "; the run began from a 4-bit copy of it: --merge gives the very model"
        return [f"it needs its base model {origin.hub_id}, which PEFT fetches by itself{near}"]
    if facts.kind == "merged" and facts.adapter.startswith("QLoRA"):
        return ["the 4-bit weights of the base model were dequantized to bfloat16 and the adapter merged into those"]
    return []


def _json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise ValueError("it is too large")
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path.name} in {path.parent.name} cannot be read: {error}; take another checkpoint"
        ) from error
    return value if isinstance(value, dict) else {}


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
