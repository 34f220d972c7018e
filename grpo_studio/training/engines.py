"""Makes the rollout engine ready before the model loads, and clears it away after the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from accelerate import PartialState

from grpo_studio import rollout_server
from grpo_studio.config import RunConfig
from grpo_studio.devices import server_devices
from grpo_studio.rollout_health import require_healthy
from grpo_studio.store.folder import RunFolder


def prepare_engine(config: RunConfig) -> None:
    """What has to be done before TRL's settings are made."""
    if config.uses_vllm and not torch.cuda.is_available():
        from grpo_studio.training.vllm_cpu import prepare_vllm_on_cpu

        prepare_vllm_on_cpu()


@contextmanager
def rollout_engine(
    config: RunConfig, source: str, folder: RunFolder, preparing: Callable[[str], None]
) -> Iterator[str | None]:
    """Yields the address of the vLLM server, None for the other engines; a server that it starts it also ends.

    With several processes the first one starts the server; the others need no address.

    Raises:
        StudioError: the server does not answer.
    """
    if not config.uses_vllm:
        yield None
        return
    if config.rollout.engine != "vllm_server" or not PartialState().is_main_process:
        yield config.rollout.server_url
        return
    if config.rollout.server_url is not None:
        preparing(f"asking the vLLM server at {config.rollout.server_url}")
        yield require_healthy(config.rollout.server_url, config.rollout.server_timeout, source)
        return
    preparing("starting the vLLM server")
    server = rollout_server.start(source, config, server_devices(config), folder.path / "server.log")
    try:
        server.wait_until_healthy()
        yield server.url
    finally:
        server.stop()
