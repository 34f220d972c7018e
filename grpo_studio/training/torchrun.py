"""torchrun's own agent: meets the other machines, starts the ranks of this one, ends all of them when one fails.

Written for torch 2.13.0, whose agent starts each rank in a session of its own, out of reach of what clears up after a
worker, and gives a rank that hangs 30 seconds: so it is given another way to start one (`ranks.RankProcess`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, api
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from grpo_studio.engine_settings import ScaleSettings

RUN_NAME = "grpo-studio"
MEET_WITHIN = 900
"""Seconds that a machine waits for the others."""


def run_agent(scale: ScaleSettings, command: Sequence[str], folder: str, start: Callable[..., Any]) -> None:
    """Start this machine's ranks and block until all have ended; that one failed is its exit code's to say.

    Call it in a thread: in the main one the agent takes over the signals.

    Args:
        command: program and arguments of a rank; RANK, LOCAL_RANK, WORLD_SIZE and the like are in its environment.
        folder: where each rank finds a place for its last word (TORCHELASTIC_ERROR_FILE).
        start: called in place of torch's SubprocessHandler.

    Raises:
        Exception: the machines did not meet, or a rank could not be started.
    """
    logging.getLogger(api.__name__).setLevel(logging.ERROR)  # it warns of the thread that it is asked to run in
    api.get_subprocess_handler = start
    config = LaunchConfig(
        min_nodes=scale.machines,
        max_nodes=scale.machines,
        nproc_per_node=scale.processes,
        run_id=RUN_NAME,
        role=RUN_NAME,
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=folder),
        **_meeting_place(scale),
    )
    with contextlib.suppress(ChildFailedError):
        elastic_launch(config, command[0])(*command[1:])


def leave_group() -> None:
    """Leave the process group of the ranks, if there is one: what a rank does last."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def _meeting_place(scale: ScaleSettings) -> dict[str, Any]:
    """One machine: any free port. Several: the port that the settings name, with fixed ranks."""
    if scale.machines == 1:
        return {"rdzv_backend": "c10d", "rdzv_endpoint": "127.0.0.1:0", "local_addr": "127.0.0.1"}
    return {
        "rdzv_backend": "static",
        "rdzv_endpoint": f"{scale.main_process_ip}:{scale.main_process_port}",
        "rdzv_configs": {"rank": scale.machine_rank, "timeout": MEET_WITHIN},
    }
