"""A run's own vLLM server, with a small real HTTP server in vLLM's place: it is waited for, and never outlives its run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from studio_process import ROOT, wait_for

from grpo_studio.config import RunConfig
from grpo_studio.errors import RolloutError
from grpo_studio.rollout_server import RolloutServer, free_port, launch, reason_of, server_command, server_environment

SERVER = """
    import http.server, multiprocessing.shared_memory, os, subprocess, sys, time
    port, pids = int(sys.argv[1]), sys.argv[2]
    engine = subprocess.Popen([sys.executable, "-c", {engine!r}])
    time.sleep(0.5)
    with open(pids, "w") as file:
        file.write(f"{{os.getpid()}} {{engine.pid}} {{os.environ['TMPDIR']}}")
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()
    http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()
"""
ENGINE = """
import time
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=4096)
print("memory", memory.name, flush=True)
time.sleep(300)
"""
WORKER = """
    import os, sys, time
    from pathlib import Path
    from grpo_studio.rollout_server import launch
    command, port, log = sys.argv[3:], sys.argv[1], Path(sys.argv[2])
    server = launch(command, f"http://127.0.0.1:{port}", log, 20, os.environ)
    server.wait_until_healthy()
    print("healthy", flush=True)
    time.sleep(300)
"""


class Fake:
    """Where a fake server says what it started."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.log = folder / "server.log"
        self.url = f"http://127.0.0.1:{self.port}"
        self._said = folder / "pids"
        script = textwrap.dedent(SERVER).format(engine=ENGINE)
        self.command = [sys.executable, "-c", script, str(self.port), str(self._said)]

    def launch(self, timeout: float = 20.0) -> RolloutServer:
        return launch(self.command, self.url, self.log, timeout, os.environ)

    @property
    def pids(self) -> list[int]:
        return [int(pid) for pid in self._said.read_text().split()[:2]]

    @property
    def scratch(self) -> Path:
        return Path(self._said.read_text().split()[2])

    @property
    def shared_memory(self) -> Path:
        """The file of the engine's shared memory, whether it still has a name or not."""
        name = next(line.split()[1] for line in self.log.read_text().splitlines() if line.startswith("memory"))
        return Path("/dev/shm") / name

    def alive(self) -> list[int]:
        return [pid for pid in self.pids if is_alive(pid)]


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    fake = Fake(tmp_path)
    yield fake
    for pid in fake.alive() if (tmp_path / "pids").exists() else []:
        os.kill(pid, signal.SIGKILL)


def failure(command: list[str], folder: Path, timeout: float = 20.0) -> str:
    server = launch(command, f"http://127.0.0.1:{free_port()}", folder / "server.log", timeout, os.environ)
    with pytest.raises(RolloutError) as caught:
        server.wait_until_healthy()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_server_is_waited_for_and_stopped_with_all_that_it_started(fake: Fake) -> None:
    server = fake.launch()
    server.wait_until_healthy()
    assert len(fake.alive()) == 2
    assert fake.scratch.is_dir()
    server.stop()
    assert fake.alive() == []
    assert not fake.scratch.exists()
    server.stop()


def test_it_is_of_the_session_of_the_run(fake: Fake) -> None:
    server = fake.launch()
    server.wait_until_healthy()
    assert {os.getsid(pid) for pid in fake.pids} == {os.getsid(0)}
    server.stop()


def test_its_shared_memory_has_no_name_once_it_answers(fake: Fake) -> None:
    """A kill of everything at once could not take the name away."""
    server = fake.launch()
    server.wait_until_healthy()
    assert not fake.shared_memory.exists()
    assert len(fake.alive()) == 2
    server.stop()


def test_a_server_that_is_stopped_before_it_answers_leaves_no_shared_memory(fake: Fake) -> None:
    server = fake.launch()
    wait_for(lambda: "memory" in fake.log.read_text(), what="the engine")
    assert fake.shared_memory.exists()
    server.stop()
    assert not fake.shared_memory.exists()


def test_an_early_end_is_told_with_the_cause_from_its_log(tmp_path: Path) -> None:
    lines = [
        "INFO starting",
        "(EngineCore pid=1) ERROR [core.py:1] ValueError: max_model_len 9 is too long",
        "Traceback (most recent call last):",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    script = f"import sys; print({chr(10).join(lines)!r}, file=sys.stderr); sys.exit(3)"
    message = failure([sys.executable, "-c", script], tmp_path)
    assert message.startswith(
        "the vLLM server ended with exit status 3 before it answered: ValueError: max_model_len 9"
    )
    assert str(tmp_path / "server.log") in message


def test_an_error_with_details_is_told_with_them_and_a_warning_is_no_error() -> None:
    log = """
WARNING [ulimit.py:1] This can cause errors like `OSError: [Errno 24] Too many open files`.
  File "x.py", line 1, in <module>
pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
  Value error, User-specified max_model_len (9) is greater than 8
"""
    assert reason_of(log) == (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig "
        "Value error, User-specified max_model_len (9) is greater than 8"
    )


def test_an_early_end_without_an_error_is_told_with_its_last_lines(tmp_path: Path) -> None:
    message = failure([sys.executable, "-c", "print('one\\ntwo\\n\\nthree\\nfour')"], tmp_path)
    assert "exit status 0 before it answered: two / three / four;" in message


def test_what_an_earlier_attempt_said_is_no_cause(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("OSError: of yesterday\n")
    message = failure([sys.executable, "-c", ""], tmp_path)
    assert "before it said anything" in message


def test_a_server_that_never_answers_is_given_up_and_ended(tmp_path: Path) -> None:
    script = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(300)"
    message = failure([sys.executable, "-c", script], tmp_path, timeout=1.5)
    assert message.startswith("the vLLM server did not answer within 1.5 s; raise rollout.server_timeout")
    assert not is_alive(int((tmp_path / "pid").read_text()))


def started_by_a_worker(fake: Fake) -> subprocess.Popen[str]:
    """A worker in a session of its own that has the server."""
    worker = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORKER), str(fake.port), str(fake.log), *fake.command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "healthy\n"
    worker.stdout.close()
    return worker


def test_nothing_is_left_when_the_worker_is_killed_by_signal_9(fake: Fake) -> None:
    worker = started_by_a_worker(fake)
    keeper = psutil.Process(fake.pids[0]).ppid()
    worker.kill()
    worker.wait()
    wait_for(lambda: not fake.alive() and not is_alive(keeper), limit=5, what="the end of the server")
    wait_for(lambda: not fake.scratch.exists(), limit=5, what="the end of its folder")


def test_the_server_dies_with_what_keeps_it_and_the_engine_is_still_found(fake: Fake) -> None:
    """Signal 9 to the process between: the engine is an orphan then, and `stop` knows it."""
    server = fake.launch()
    server.wait_until_healthy()
    os.kill(psutil.Process(fake.pids[0]).ppid(), signal.SIGKILL)
    wait_for(lambda: not is_alive(fake.pids[0]), limit=5, what="the end of the server")
    server.stop()
    assert fake.alive() == []
    assert not fake.scratch.exists()


def test_a_worker_that_ends_in_peace_leaves_nothing_either(fake: Fake) -> None:
    worker = started_by_a_worker(fake)
    worker.terminate()
    worker.wait()
    wait_for(lambda: not fake.alive(), limit=5, what="the end of the server")


def test_the_command_carries_what_the_weight_transfer_needs() -> None:
    config = RunConfig.model_validate(
        {
            "model": {"revision": "v1", "dtype": "bfloat16"},
            "rollout": {"tensor_parallel": 2, "max_model_length": 900, "gpu_memory": 0.85},
        }
    )
    command = server_command("owner/name", config, 4321, on_cpu=False)
    told = dict(pairwise(command))
    wanted = {
        "--model": "owner/name",
        "--revision": "v1",
        "--host": "127.0.0.1",
        "--port": "4321",
        "--dtype": "bfloat16",
        "--tensor-parallel-size": "2",
        "--gpu-memory-utilization": "0.85",
        "--max-model-len": "900",
        "--weight-transfer-config": '{"backend": "nccl"}',
        "--logprobs-mode": "processed_logprobs",
    }
    assert {name: told[name] for name in wanted} == wanted
    assert "--enforce-eager" not in command


def test_the_server_sees_its_own_gpus_and_none_of_the_trainers_variables() -> None:
    base = {"CUDA_VISIBLE_DEVICES": "0", "RANK": "0", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x", "HF_TOKEN": "t"}
    environment = server_environment(base, ["2", "3"])
    assert environment["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert environment["VLLM_SERVER_DEV_MODE"] == "1"
    assert environment["HF_TOKEN"] == "t"
    assert not {"RANK", "MASTER_PORT", "TORCHELASTIC_RUN_ID"} & set(environment)


def test_free_ports_are_free_and_differ() -> None:
    ports = {free_port() for _ in range(5)}
    assert len(ports) > 1
    assert all(1024 < port < 65536 for port in ports)


def test_what_a_crashed_engine_held_is_cleared_away(tmp_path: Path) -> None:
    """The server ends by itself; Python's resource tracker, which outlives it a moment, takes the memory's name away."""
    crash = ENGINE.replace("time.sleep(300)", "import os; os._exit(1)")
    failure([sys.executable, "-c", crash], tmp_path)
    name = (tmp_path / "server.log").read_text().split()[1]
    assert not (Path("/dev/shm") / name).exists()
