"""Rules about several processes: what their settings say by themselves, and what the machine can do of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.util import find_spec

from grpo_studio.config import RunConfig
from grpo_studio.naming import names_in
from grpo_studio.problem import Problem

SHARDING = ("fsdp", "zero2", "zero3")
DEEPSPEED = ("zero2", "zero3")


def scale_problems(config: RunConfig) -> Iterator[Problem]:
    """What is wrong between the settings of `scale` and the others, in order of the form."""
    yield from _batch_problems(config)
    yield from _sharding_problems(config)
    yield from _strategy_problems(config)
    yield from _machine_problems(config)


def device_problems(config: RunConfig, device_kind: str, gpus: int) -> Iterator[Problem]:
    """What this machine cannot do of it.

    Args:
        device_kind: "cuda" or "cpu", as `devices.current_device` says.
        gpus: how many may be used, as `devices.visible_gpus` says.
    """
    scale = config.scale
    if device_kind == "cpu" and scale.strategy in SHARDING and config.world_size > 1:
        why = "FSDP would quietly become DDP" if scale.strategy == "fsdp" else "DeepSpeed needs GPUs"
        yield Problem("scale.strategy", f"{scale.strategy} does not work on a CPU: {why}", "use ddp")
    elif scale.strategy in DEEPSPEED and find_spec("deepspeed") is None:
        message = f"{scale.strategy} needs the package deepspeed, which is not installed"
        yield Problem("scale.strategy", message, "install it, or use fsdp")
    if device_kind != "cpu" and scale.processes > gpus:
        message = f"{scale.processes} processes need a GPU each, and this machine shows {gpus}"
        yield Problem("scale.processes", message, f"use {gpus} or fewer" if gpus > 1 else "use 1")
    elif device_kind != "cpu" and starts_server(config):
        yield from _server_problems(config, gpus)


def starts_server(config: RunConfig) -> bool:
    """Whether the run has a vLLM server of its own."""
    return config.rollout.engine == "vllm_server" and config.rollout.server_url is None


def _batch_problems(config: RunConfig) -> Iterator[Problem]:
    algorithm, total, world = config.algorithm, config.completions_per_step, config.world_size
    if total % world == 0:
        return
    unit = world // math.gcd(world, algorithm.group_size)
    below, above = algorithm.prompts_per_step // unit * unit, -(-algorithm.prompts_per_step // unit) * unit
    nearest = min((n for n in (below, above) if n), key=lambda n: abs(n - algorithm.prompts_per_step))
    yield Problem(
        "algorithm.prompts_per_step",
        f"the {total} completions of a step ({algorithm.prompts_per_step} prompts x G = {algorithm.group_size}) do not "
        f"divide by {world} processes",
        f"use {nearest}, or another number of processes",
    )


def _sharding_problems(config: RunConfig) -> Iterator[Problem]:
    memory, strategy = config.memory, config.scale.strategy
    if strategy == "zero3" and memory.loss_backend == "liger" and memory.adapter == "none":
        yield Problem(
            "memory.loss_backend",
            "liger makes the gradient of the output layer in the forward pass, and zero3 gathers that layer only to "
            "be read then, so it would not be trained",
            "use trl, or an adapter (memory.adapter lora)",
        )
    if memory.adapter == "qlora" and strategy in ("fsdp", "zero3"):
        yield Problem(
            "scale.strategy",
            f"{strategy} cannot split the weights of QLoRA: bitsandbytes keeps them whole, packed in 4 bits",
            "use ddp, or memory.adapter lora",
        )


def _strategy_problems(config: RunConfig) -> Iterator[Problem]:
    strategy, world = config.scale.strategy, config.world_size
    if world > 1 and strategy == "none":
        message = f"{world} processes need a way to share the model (found 'none')"
        yield Problem("scale.strategy", message, "use ddp")
    if world == 1 and strategy != "none":
        message = f"{strategy} shares the model between processes, and there is only one"
        yield Problem("scale.strategy", message, "use none, or 2 or more processes")


def _machine_problems(config: RunConfig) -> Iterator[Problem]:
    scale = config.scale
    if scale.machine_rank >= scale.machines:
        wrong = f"{scale.machine_rank} is no rank of {scale.machines} machine{'s' * (scale.machines > 1)}"
        fix = f"use 0 to {scale.machines - 1}" if scale.machines > 1 else "use 0"
        yield Problem("scale.machine_rank", wrong, fix)
    if scale.machines > 1 and not (scale.main_process_ip or "").strip():
        yield Problem(
            "scale.main_process_ip",
            f"{scale.machines} machines need an address to meet at (found {scale.main_process_ip!r})",
            "give the address of machine 0, the same on each machine",
        )


def _server_problems(config: RunConfig, gpus: int) -> Iterator[Problem]:
    """A server that the run starts needs GPUs that the trainer does not use."""
    processes, named = config.scale.processes, config.rollout.server_devices
    wanted = config.rollout.tensor_parallel
    if named is not None and len(devices := names_in(named)) != wanted:
        yield Problem(
            "rollout.server_devices",
            f"{named!r} names {len(devices)} GPUs, and rollout.tensor_parallel is {wanted}",
            "name as many, or leave it empty",
        )
    elif processes + wanted > gpus:
        yield Problem(
            "rollout.engine",
            f"a vLLM server needs GPUs of its own: {wanted} beside the {processes} that train, and this machine shows "
            f"{gpus}",
            "use vllm_colocate or transformers, fewer processes, or set rollout.server_url to a server elsewhere",
        )
