"""The launcher of several processes: starts, stops, kills and tells; with stand-ins for the ranks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live_runs import GONE_WITHIN, ended, events_of, family, ranks_of
from studio_process import ROOT, wait_for

from grpo_studio.config import RunConfig
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.worker_process import record_of

TWO = {"processes": 2, "strategy": "ddp"}
# What stand-ins for a rank do; RANK is in their environment.
DEAF = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); rank = os.environ['RANK']\n"
TELL = "from pathlib import Path; Path('started-' + os.environ['RANK']).touch()\n"


def launch(folder: RunFolder, stand_in: str) -> subprocess.Popen[bytes]:
    """A launcher in a session of its own, whose ranks run `stand_in` in the folder of the run."""
    program = (
        "import sys; from pathlib import Path; from grpo_studio.ranks import launch; "
        "from grpo_studio.store.folder import RunFolder; "
        "sys.exit(launch(RunFolder(Path(sys.argv[1])), 1, [sys.executable, '-c', sys.argv[2]]))"
    )
    with folder.log.open("ab") as log:
        launcher = subprocess.Popen(
            [sys.executable, "-c", program, str(folder.path), stand_in],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=folder.path, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    folder.write_process(record_of(launcher.pid, attempt=1))
    return launcher


def new_run(home: Path, **scale: object) -> RunFolder:
    return create_run(home / "runs", RunConfig.model_validate({"scale": scale or TWO}))


def started(folder: RunFolder) -> bool:
    return all((folder.path / f"started-{rank}").exists() for rank in (0, 1))


def test_ranks_are_told_of_each_other_and_share_the_cores(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    names = "'RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'ACCELERATE_USE_CPU', 'GRPO_STUDIO_LAUNCHER'"
    launcher = launch(folder, f"import os; print(*(os.environ[name] for name in ({names})), flush=True)")
    launcher.wait(GONE_WITHIN)
    said = sorted(line for line in folder.log.read_text().splitlines() if "127.0.0.1" in line)
    assert said == [f"{rank} {rank} 2 127.0.0.1 true {launcher.pid}" for rank in (0, 1)]
    assert ended(folder) == [("run_failed", "the processes ended without a word; see the log")]


@pytest.mark.slow
def test_a_killed_rank_ends_another_that_is_stuck_and_deaf(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    launcher = launch(folder, DEAF + TELL + "time.sleep(300)")
    wait_for(lambda: started(folder), what="the ranks")
    ranks_of(launcher.pid)["1"].kill()
    begun = time.monotonic()
    assert launcher.wait(GONE_WITHIN) == 1
    assert time.monotonic() - begun < GONE_WITHIN
    assert family(launcher.pid) == []
    [(kind, message)] = ended(folder)
    assert kind == "run_failed"
    assert message.startswith("rank 1 was killed by signal 9 (SIGKILL")


def test_the_first_rank_that_failed_is_the_cause(tmp_path: Path) -> None:
    """Rank 1 fails first and takes long to die; rank 0 fails from it and is dead before."""
    folder = new_run(tmp_path)
    launcher = launch(
        folder,
        "import os, time; from grpo_studio.rank_process import leave_word; last = os.environ['RANK'] == '1'\n"
        + TELL
        + "while not Path('started-0').exists() or not Path('started-1').exists(): time.sleep(0.05)\n"
        + "time.sleep(0 if last else 0.5)\n"
        + "leave_word('ValueError: the cause' if last else 'RuntimeError: the peer is gone')\n"
        + "time.sleep(1.5 if last else 0); os._exit(1)",
    )
    assert launcher.wait(GONE_WITHIN) == 1
    assert ended(folder) == [
        ("run_failed", "rank 1: ValueError: the cause; before the first step; the other processes were ended")
    ]


def test_an_exit_without_a_word_is_told_with_its_code(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    launcher = launch(folder, "import os, time; time.sleep(300 if os.environ['RANK'] == '0' else 0); os._exit(3)")
    assert launcher.wait(GONE_WITHIN) == 1
    [(kind, message)] = ended(folder)
    assert kind == "run_failed"
    assert "rank 1 ended without a word (exit code 3)" in message


def test_a_stop_reaches_every_rank_and_none_is_killed(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    launcher = launch(
        folder,
        "import os, signal, time; stop = []; signal.signal(signal.SIGTERM, lambda *got: stop.append(got))\n"
        + TELL
        + "while not stop: time.sleep(0.05)\n"
        + "time.sleep(1.5); Path('stopped-' + os.environ['RANK']).touch()",
    )
    wait_for(lambda: started(folder), what="the ranks")
    os.kill(launcher.pid, signal.SIGTERM)
    assert launcher.wait(GONE_WITHIN) == 0
    assert folder.stop_request.exists()
    assert all((folder.path / f"stopped-{rank}").exists() for rank in (0, 1))
    assert [kind for kind, _ in ended(folder)] == ["run_stopped"]


@pytest.mark.parametrize("pause", [0.5, 2.0])
def test_a_stop_before_there_are_ranks_is_kept(tmp_path: Path, pause: float) -> None:
    folder = new_run(tmp_path)
    launcher = launch(folder, "import time; time.sleep(300)")
    wait_for(lambda: any(event.kind == "preparing" for event in events_of(folder)), what="the launcher")
    time.sleep(pause)
    os.kill(launcher.pid, signal.SIGTERM)
    assert launcher.wait(GONE_WITHIN) == 0
    assert ended(folder) == [("run_stopped", "stopped on request before training began")]
    assert family(launcher.pid) == []


def test_a_machine_that_waits_for_another_can_be_stopped(tmp_path: Path) -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        port = nobody_listens.getsockname()[1]
    folder = new_run(
        tmp_path, strategy="ddp", machines=2, machine_rank=1, main_process_ip="127.0.0.1", main_process_port=port
    )
    launcher = launch(folder, "import time; time.sleep(300)")
    wait_for(lambda: any("machine 1 of 2" in event.message for event in events_of(folder)), what="the launcher")
    time.sleep(5)
    os.kill(launcher.pid, signal.SIGTERM)
    assert launcher.wait(GONE_WITHIN) == 0
    assert [kind for kind, _ in ended(folder)] == ["run_stopped"]
