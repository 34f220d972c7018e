"""A real vLLM server on the CPU, started as a run starts it: it answers, generates by TRL's client, and goes.

Weights reach a server through NCCL alone, so what TRL's client does from there on needs a GPU.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from studio_process import ROOT, wait_for

from grpo_studio.config import RunConfig
from grpo_studio.devices import CPU_ENVIRONMENT
from grpo_studio.errors import RolloutError
from grpo_studio.rollout_health import require_healthy
from grpo_studio.rollout_server import RolloutServer, start

pytestmark = pytest.mark.timeout(300)
CONFIG = {"rollout": {"engine": "vllm_server", "max_model_length": 256, "server_timeout": 240}}
CLIENT = """
    import json, sys
    from trl.generation.vllm_client import VLLMClient
    client = VLLMClient(base_url=sys.argv[1])
    extra = {"seed": 0, "ignore_eos": True}
    answer = client.generate([[5, 6, 7]], n=2, temperature=1.0, max_tokens=4, logprobs=0, generation_kwargs=extra)
    print(json.dumps({"answer": answer, "info": client.get_server_info()["weight_transfer_config"]}))
"""
WORKER = """
    import sys, time
    from pathlib import Path
    from grpo_studio.config import RunConfig
    from grpo_studio.rollout_server import start
    config = RunConfig.model_validate_json(sys.argv[2])
    server = start(sys.argv[1], config, [], Path(sys.argv[3]))
    server.wait_until_healthy()
    print(server.url, flush=True)
    time.sleep(300)
"""


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**CPU_ENVIRONMENT, "HF_HUB_OFFLINE": "1"}.items():
            patch.setenv(name, value)
        yield


def config() -> RunConfig:
    return RunConfig.model_validate(CONFIG)


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


BEFORE = shared_memory()


def made_here(*starts: str) -> list[str]:
    """Names of shared memory that came since this module began; others may have left theirs before."""
    return [name for name in shared_memory() - BEFORE if name.startswith(starts)]


def family() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


@pytest.fixture(scope="module")
def server(engine_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolloutServer]:
    server = start(str(engine_model), config(), [], tmp_path_factory.mktemp("run") / "server.log")
    began = time.monotonic()
    try:
        server.wait_until_healthy()
        print(f"healthy after {time.monotonic() - began:.1f} s")
        yield server
    finally:
        server.stop()


def test_trls_client_samples_from_it(server: RolloutServer) -> None:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CLIENT), server.url],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    said = json.loads(result.stdout.splitlines()[-1])
    assert [len(ids) for ids in said["answer"]["completion_ids"]] == [4, 4]
    assert all(step[0] < 0 for row in said["answer"]["logprobs"] for step in row)
    assert said["info"]["backend"] == "nccl"


def test_it_passes_as_a_server_of_this_model_and_of_no_other(server: RolloutServer, engine_model: Path) -> None:
    require_healthy(server.url, 5, str(engine_model))
    with pytest.raises(RolloutError, match=r"serves .* and the run trains /models/other"):
        require_healthy(server.url, 5, "/models/other")


def test_it_holds_no_named_shared_memory(server: RolloutServer) -> None:
    assert made_here("psm_") == []


def test_stopped_it_leaves_nothing(server: RolloutServer) -> None:
    """The last test of this server."""
    assert len(family()) >= 4, "the keeper, the server, its engine and the engine's worker"
    server.stop()
    assert family() == []
    assert made_here("psm_", "sem.") == []


def test_a_server_that_cannot_start_says_why(engine_model: Path, tmp_path: Path) -> None:
    too_long = {"rollout": {**CONFIG["rollout"], "max_model_length": 100_000}}
    server = start(str(engine_model), RunConfig.model_validate(too_long), [], tmp_path / "server.log")
    with pytest.raises(RolloutError, match=r"max_model_len \(100000\) is greater than") as caught:
        server.wait_until_healthy()
    assert "\n" not in str(caught.value)
    assert family() == []


def test_nothing_is_left_when_the_worker_is_killed_by_signal_9(engine_model: Path, tmp_path: Path) -> None:
    before = shared_memory()
    command = [sys.executable, "-c", textwrap.dedent(WORKER), str(engine_model), config().model_dump_json()]
    worker = subprocess.Popen(
        [*command, str(tmp_path / "server.log")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline().startswith("http://127.0.0.1:"), (tmp_path / "server.log").read_text()[-2000:]
    started = psutil.Process(worker.pid).children(recursive=True)
    assert len(started) >= 4
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    wait_for(
        lambda: not [process for process in started if process.is_running()], limit=10, what="the end of the server"
    )
    assert shared_memory() <= before
