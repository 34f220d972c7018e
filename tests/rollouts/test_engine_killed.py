"""vLLM's engine killed by signal 9 beside a server that lives: who samples is told so, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from studio_process import ROOT, wait_for

from grpo_studio.config import RunConfig
from grpo_studio.devices import CPU_ENVIRONMENT
from grpo_studio.rollout_health import answers_well
from grpo_studio.rollout_server import start

pytestmark = pytest.mark.timeout(300)
CONFIG = {"rollout": {"engine": "vllm_server", "max_model_length": 256, "server_timeout": 240}}
CLIENT = """
    import sys
    from trl.generation.vllm_client import VLLMClient
    from grpo_studio.worker_end import one_line
    try:
        VLLMClient(base_url=sys.argv[1], connection_timeout=5).generate([[5, 6, 7]], n=1, max_tokens=4)
    except Exception as error:
        print(one_line(error))
        sys.exit(7)
"""


def test_a_killed_engine_is_an_error_and_no_wait_without_end(
    engine_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**CPU_ENVIRONMENT, "HF_HUB_OFFLINE": "1"}.items():
        monkeypatch.setenv(name, value)
    server = start(str(engine_model), RunConfig.model_validate(CONFIG), [], tmp_path / "server.log")
    try:
        server.wait_until_healthy()
        started = psutil.Process().children(recursive=True)
        engines = [process for process in started if "EngineCore" in " ".join(process.cmdline())]
        assert engines, [process.cmdline() for process in started]
        for engine in engines:
            os.kill(engine.pid, signal.SIGKILL)
        wait_for(lambda: not answers_well(server.url), limit=30, what="a server that does not call itself well")
        client = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(CLIENT), server.url],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert client.returncode == 7, client.stdout + client.stderr[-2000:]
        assert client.stdout.strip(), "an error without a word"
    finally:
        server.stop()
    wait_for(lambda: not any(process.is_running() for process in started), limit=30, what="the end of all of it")
