"""What code in the sandbox can see and do, at both levels, and that nothing of it is left afterwards."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_studio.verifiers.sandbox import (
    FORCE_VARIABLE,
    GoldTests,
    Limits,
    Report,
    close_idle,
    level,
    run_program,
    run_tests,
)

ROOT = Path(__file__).resolve().parents[3]
SECRET = "hf_sandbox_test_secret"
# A number of seconds by which a process of these tests is known wherever it hides.
MARK = f"86{os.getpid():07d}.25"
DETACHED = f"""
import os, time
def twice(n):
    for _ in range(12):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for channel in range(64):
                    try: os.close(channel)
                    except OSError: pass
                os.execv("/bin/sleep", ["sleep", "{MARK}"])
            os._exit(0)
    time.sleep(0.3)
    return 2 * n
"""


@pytest.fixture(autouse=True, params=["bubblewrap", "limits"])
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(FORCE_VARIABLE, request.param)
    monkeypatch.setenv("HF_TOKEN", SECRET)
    yield
    close_idle()
    assert marked() == []
    assert folders() == []


def marked() -> list[int]:
    """Processes of these tests that still live; a zombie has no command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        found += [int(path.parent.name)] if MARK.encode() in words and b"sleep" in words else []
    return found


def folders() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("grpo-studio-sandbox-*"))


def run(code: str, tests: str, seconds: float = 5.0, limits: Limits | None = None) -> Report:
    return run_tests(code, GoldTests(tests), limits or Limits(), seconds)


def value_of(code: str, *arguments: object) -> str:
    """What `f` of the code returns, taken from the reason of a test that does not hold."""
    call = ", ".join(map(repr, arguments))
    report = run(code, f"found = f({call})\nassert found == 'never this', repr(found)[:250]")
    return report.reason.partition("does not hold: ")[2] or report.reason


def keeps_files() -> bool:
    """Without namespaces only Landlock, which old kernels lack, keeps files from the code; the level then says so."""
    found = level()
    return found.name == "bubblewrap" or "Landlock" in found.detail


def test_the_level_says_what_it_does() -> None:
    found = level()
    assert found.detail
    if os.environ[FORCE_VARIABLE] == "limits":
        assert found.name == "limits" == level("limits").name
        assert "switched off" in found.detail


def test_the_environment_is_empty() -> None:
    code = "import os\ndef f(): return sorted(set(os.environ) - {'PATH', 'HOME', 'TMPDIR', 'LANG', 'LC_CTYPE', 'PWD', 'PYTHONHASHSEED', 'PYTHONDONTWRITEBYTECODE', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'})"
    assert value_of(code) == "[]"


def test_the_environment_of_other_processes_is_not_readable() -> None:
    started = subprocess.Popen(["sleep", "60"], env={"HF_TOKEN": SECRET})
    try:
        code = f"def f(*pids):\n    for pid in pids:\n        try:\n            if b'HF_TOKEN' in open(f'/proc/{{pid}}/environ', 'rb').read(): return 'seen'\n        except OSError: pass\n    return {os.getpid()}"
        seen = value_of(code, started.pid, os.getpid(), os.getppid(), "self", 1, 2)
        assert seen == str(os.getpid()) or not keeps_files()
    finally:
        started.kill()
        started.wait()


@pytest.mark.parametrize("path", ["project", "own test", "private", "users", "logs"])
def test_files_of_the_machine_are_not_readable(path: str, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("x")
    places = {"project": ROOT / "pyproject.toml", "own test": Path(__file__), "private": private}
    places |= {"users": Path("/etc/passwd"), "logs": Path("/var/log")}
    assert places[path].exists()
    code = "import os\ndef f(p): return os.listdir(p) if os.path.isdir(p) else len(open(p).read())"
    assert "Error" in value_of(code, str(places[path])) or not keeps_files()


def test_the_system_is_read_only_and_the_own_folder_is_not() -> None:
    code = "import os\ndef f(p):\n    open(p, 'w').write('x')\n    return 'wrote ' + p"
    if keeps_files():
        assert "Error" in value_of(code, "/usr/lib/sandbox-test")
        assert "Error" in value_of(code, "/sandbox-test")
        assert "Error" in value_of(code, str(ROOT / "sandbox-test"))
    assert "wrote" in value_of(code.replace("(p):", "(p):\n    p = os.environ['TMPDIR'] + '/' + p"), "one")
    assert not (ROOT / "sandbox-test").exists()


def test_there_is_no_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = "import socket\ndef f(port): return str(socket.create_connection(('127.0.0.1', port), 1))"
        assert "Error" in value_of(code, server.getsockname()[1])


def test_processes_outside_are_out_of_reach() -> None:
    started = subprocess.Popen(["sleep", "60"])
    try:
        code = "import os\ndef f(*pids):\n    for pid in pids:\n        try: os.kill(pid, 9)\n        except OSError: pass\n    return 'alive'"
        assert "alive" in value_of(code, started.pid, os.getpid())
        assert started.poll() is None
    finally:
        started.kill()
        started.wait()


def test_numpy_can_be_used_where_it_is_installed() -> None:
    code = "import numpy as np\ndef f(xs): return np.array(xs) * 2\ndef g(xs): return np.array(xs).sum()"
    report = run(code, "assert f([1, 2]).tolist() == [2, 4]\nassert g([1, 2]) == 3\nassert np.array_equal(f([1]), [2])")
    assert report.all_passed, report


def test_detached_processes_end_with_the_sandbox() -> None:
    assert run(DETACHED, "assert twice(2) == 4").all_passed
    assert marked() == []


def test_detached_processes_end_with_a_hang() -> None:
    report = run(DETACHED.replace("return", "while True: pass\n    return"), "assert twice(2) == 4", seconds=1.0)
    assert "time limit" in report.reason
    assert marked() == []


def test_too_many_processes_are_stopped() -> None:
    code = DETACHED.replace("range(12)", "range(200)")
    report = run(code, "assert twice(2) == 4", limits=Limits(processes=16))
    assert (report.passed, report.total) == (0, 1)
    wait_until(lambda: not marked())


def test_nothing_outlives_an_owner_that_is_killed() -> None:
    code = DETACHED.replace("return", "time.sleep(60)\n    return")
    script = f"from grpo_studio.verifiers.sandbox import *\nrun_tests({code!r}, GoldTests('assert twice(2) == 4'), Limits(), 60)"
    owner = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        wait_until(lambda: len(marked()) == 12)
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    wait_until(lambda: not marked() and not folders())


def wait_until(condition: object) -> None:
    deadline = time.monotonic() + 30
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_memory_of_one_process_is_limited() -> None:
    assert "MemoryError" in value_of("def f(): return len('A' * 3 * 1024**3)")


def test_memory_of_all_processes_is_limited() -> None:
    code = "import os, time\ndef f():\n    for _ in range(6):\n        if os.fork() == 0:\n            x = bytearray(b'x') * (150 << 20)\n            time.sleep(60)\n    time.sleep(60)"
    report = run(code, "assert f() == 1", limits=Limits(memory=256 << 20), seconds=20.0)
    assert "MiB" in report.reason


def test_files_are_limited_in_size() -> None:
    code = "import os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\ndef f():\n    with open(os.environ['TMPDIR'] + '/x', 'wb') as file:\n        for _ in range(200): file.write(b'x' * (1 << 20))\n    return 'all'"
    assert "OSError" in value_of(code)


def test_output_is_limited() -> None:
    report = run("def f():\n    while True: print('z' * 100000)", "assert f() == 1", seconds=20.0)
    assert "printed more" in report.reason


def test_sleeping_is_limited_by_the_clock_and_burning_by_the_processor() -> None:
    assert "time limit" in run("import time\ndef f(): time.sleep(99)", "assert f() == 1", seconds=0.5).reason
    assert "ended" in run("def f():\n    while True: pass", "assert f() == 1", 30.0, Limits(cpu_seconds=1)).reason


def test_a_program_leaves_nothing_either() -> None:
    code = f"import subprocess\nsubprocess.Popen(['/bin/sleep', '{MARK}'], start_new_session=True)\nprint(input())"
    found = run_program(code, ["a\n", "b\n"], Limits(), 5.0)
    assert [(one.output, one.trouble) for one in found] == [("a\n", ""), ("b\n", "")]
    assert marked() == []


def test_the_same_code_gives_the_same_order_of_a_set() -> None:
    code = "def f(): return list({'a', 'b', 'c', 'd', 'e', 'f'})"
    assert value_of(code) == value_of(code)
