"""What this machine computes with, and who gets which of it; asked from the outside: no torch is loaded for it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import psutil

from grpo_studio.config import RunConfig
from grpo_studio.naming import names_in
from grpo_studio.scale_checks import starts_server

CPU_ENVIRONMENT = {
    # TRL compiles its fused LM head; through inductor on a CPU the first steps then take minutes.
    "TORCHDYNAMO_DISABLE": "1",
    # glibc hands large blocks back and faults them in again: measured in bench/allocator.py.
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "536870912",
}
VISIBLE = "CUDA_VISIBLE_DEVICES"
ASKED_FOR = 2.0
"""Seconds for which nvidia-smi's answer is good."""
SERVER_GPUS = "GRPO_STUDIO_SERVER_GPUS"
"""Tells a worker, who sees the trainer's GPUs only, which ones its vLLM server gets."""
CPU = "cpu"
"""Stands in a claim for the whole machine where there is no GPU."""


@dataclass(frozen=True)
class Device:
    """The device that runs use. `total` and `used` are bytes: of the card, or of the machine on a CPU."""

    kind: str
    name: str
    total: int
    used: int


@dataclass(frozen=True)
class _Gpu:
    index: str
    uuid: str
    device: Device

    def is_called(self, name: str) -> bool:
        return name == self.index or self.uuid.startswith(name)


@dataclass(frozen=True)
class Claim:
    """What a run gets while it lives.

    Args:
        trainer, server: GPUs for its processes and for its vLLM server, by the names that CUDA is told.
        devices: all of them by index, or CPU: no two runs that live at once have one in common.
    """

    trainer: tuple[str, ...]
    server: tuple[str, ...]
    devices: tuple[str, ...]


def current_device() -> Device:
    """The first GPU that may be seen, else the CPU."""
    gpus = _installed_gpus()
    for name in _visible_of(gpus):
        return next((gpu.device for gpu in gpus if gpu.is_called(name)), gpus[0].device)
    return _cpu()


def visible_gpus() -> list[str]:
    """The GPUs that runs may use, by index or uuid: those that CUDA_VISIBLE_DEVICES names, else all there are."""
    return _visible_of(_installed_gpus())


def trainer_devices(config: RunConfig) -> list[str]:
    """The GPUs of a run's processes on this machine: the first that no server of its own was promised."""
    gpus = _installed_gpus()
    return _of_trainer(config, _visible_of(gpus), gpus)


def wrong_server_devices(config: RunConfig) -> list[str]:
    """Those of rollout.server_devices that are no GPU which may be seen here, or are named a second time."""
    gpus = _installed_gpus()
    seen = {_index(name, gpus) for name in _visible_of(gpus)}
    wrong, taken = [], set()
    for name in _promised_to_server(config):
        index = _index(name, gpus)
        if index not in seen or index in taken:
            wrong.append(name)
        taken.add(index)
    return wrong


def server_devices(config: RunConfig) -> list[str]:
    """The GPUs of the vLLM server that is started for the run: those set, else those after the trainer's.

    Fewer than it needs when there are too few, which `scale_checks.device_problems` tells; none when the run starts
    no server.
    """
    if not starts_server(config):
        return []
    if handed_on := os.environ.get(SERVER_GPUS):
        return names_in(handed_on)
    if promised := _promised_to_server(config):
        return promised
    taken = trainer_devices(config)
    return [gpu for gpu in visible_gpus() if gpu not in taken][: config.rollout.tensor_parallel]


def claim(config: RunConfig, busy: Collection[str] = ()) -> Claim | None:
    """The devices that a run gets when others hold those in `busy`; None when they are too few, or named ones are held.

    On a CPU runs go one at a time. So they do when GPUs that were there just now cannot be seen: the driver hangs.
    """
    gpus = _installed_gpus()
    visible = _visible_of(gpus)
    if not visible:
        return None if busy else Claim((), (), (CPU,))
    taken = {_index(name, gpus) for name in busy}
    free = [name for name in visible if _index(name, gpus) not in taken]
    trainer, server = _of_trainer(config, free, gpus), _promised_to_server(config)
    wanted = config.rollout.tensor_parallel if starts_server(config) else 0
    if not server:
        server = [name for name in free if name not in trainer][:wanted]
    devices = [_index(name, gpus) for name in (*trainer, *server)]
    if len(trainer) < config.scale.processes or len(server) < wanted:
        return None
    if not set(devices) <= {_index(name, gpus) for name in free}:
        return None
    return Claim(tuple(trainer), tuple(server), tuple(devices))


def shortage(config: RunConfig) -> str | None:
    """Why a run gets no devices here even when no other run holds any; None when it does."""
    if claim(config) is not None:
        return None
    visible, server = visible_gpus(), config.rollout.tensor_parallel if starts_server(config) else 0
    wants = f"{config.scale.processes + server} GPUs" + (f", {server} of them for its vLLM server" if server else "")
    named = f" (rollout.server_devices names {config.rollout.server_devices})" if _promised_to_server(config) else ""
    return f"it needs {wants}{named}, and this machine shows {', '.join(visible)}; start it where there are more"


def worker_environment(config: RunConfig | None = None, claimed: Claim | None = None) -> dict[str, str]:
    """Variables that a run's worker wants: a GPU for each of its processes; on a CPU what measured faster.

    A trainer that sees several GPUs in one process would use torch's DataParallel, which TRL refuses.

    Args:
        config: None stands for the defaults: one process.
        claimed: what the run holds; None: what it would get if it were alone.
    """
    config = config or RunConfig()
    if not visible_gpus():
        return dict(CPU_ENVIRONMENT)
    trainer = trainer_devices(config) if claimed is None else claimed.trainer
    environment = {VISIBLE: ",".join(trainer), "VLLM_NO_USAGE_STATS": "1"}
    if VISIBLE not in os.environ:  # the indices are nvidia-smi's, and CUDA by itself counts in another order
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if server := server_devices(config) if claimed is None else claimed.server:
        environment[SERVER_GPUS] = ",".join(server)
    return environment


def _promised_to_server(config: RunConfig) -> list[str]:
    return names_in(config.rollout.server_devices or "") if starts_server(config) else []


def _of_trainer(config: RunConfig, names: Sequence[str], gpus: Sequence[_Gpu]) -> list[str]:
    promised = {_index(name, gpus) for name in _promised_to_server(config)}
    return [name for name in names if _index(name, gpus) not in promised][: config.scale.processes]


def _index(name: str, gpus: Sequence[_Gpu]) -> str:
    """A GPU has several names; this is the one that they all come down to."""
    return next((gpu.index for gpu in gpus if gpu.is_called(name)), name)


def _visible_of(gpus: Sequence[_Gpu]) -> list[str]:
    """As CUDA reads its variable: nothing from the first name on that is no GPU. An empty one hides them all."""
    asked = os.environ.get(VISIBLE)
    if not gpus or asked is None:
        return [gpu.index for gpu in gpus]
    seen = []
    for name in (part.strip() for part in asked.split(",")):
        if not (name.startswith("MIG-") or (name and any(gpu.is_called(name) for gpu in gpus))):
            break
        seen.append(name)
    return seen


def _cpu() -> Device:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = psutil.virtual_memory()
    return Device("cpu", f"CPU, {cores} cores", memory.total, memory.total - memory.available)


def _installed_gpus() -> list[_Gpu]:
    program = shutil.which("nvidia-smi")
    return [] if program is None else _asked(program, int(time.monotonic() / ASKED_FOR))


@functools.lru_cache(maxsize=1)
def _asked(program: str, turn: int) -> list[_Gpu]:
    """The machine's answer, kept for a moment: one check asks several times, and a hung driver takes ten seconds."""
    query = [program, "--query-gpu=index,uuid,name,memory.total,memory.used", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
        return list(_parsed(answer))
    except (OSError, subprocess.SubprocessError, ValueError):
        return []


def _parsed(answer: str) -> Iterator[_Gpu]:
    for line in filter(str.strip, answer.splitlines()):
        index, uuid, name, total, used = (part.strip() for part in line.split(","))
        yield _Gpu(index, uuid, Device("cuda", name, _bytes(total), _bytes(used)))


def _bytes(mebibytes: str) -> int:
    """Some cards share the machine's memory and answer [N/A]."""
    return int(mebibytes) << 20 if mebibytes.isdecimal() else 0
