from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from grpo_studio.errors import VerifierError
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers import discover, problems_of
from grpo_studio.verifiers.loading import SHIPPED, is_shipped, load_file

ROOT = Path(__file__).resolve().parents[3]
RULE = """
from typing import Literal
from grpo_studio.verifiers import verifier

def check(size, mode, ratio):
    return "size is 13" if size == 13 else None

@verifier(examples=[("x", {{"answer": "x"}}, 1.0)], check=check)
def {name}(completion: str, answer: str, *, size: int, mode: Literal["a", "b"] = "a", ratio: float = 0.5):
    "Says yes."
    return 1.0
"""


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_files_are_found_by_path_and_underscores_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "one.py", RULE.format(name="one"))
    write(tmp_path, "_shared.py", "raise RuntimeError")
    registry = discover([tmp_path, tmp_path, tmp_path / "not_there"])
    assert list(registry.specs) == ["one"]
    assert registry.specs["one"].path == tmp_path / "one.py"
    assert registry.failures == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef broken(:", "SyntaxError: invalid syntax (line 2)"),
        ("x = '\0'", "null bytes"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit: 3 (line 1)"),
        ("\n1 / 0", "ZeroDivisionError: division by zero (line 2)"),
        ("class Odd(BaseException): pass\nraise Odd", "Odd (line 2)"),
        ("x = 1", "no function marked with @verifier"),
        ("from grpo_studio.verifiers import verifier\n@verifier(examples=[])\ndef f(completion): ...", "no examples"),
        (
            RULE.format(name="rule") + "\n@verifier(examples=[('', {}, 0)])\ndef rule(completion): ...",
            "'rule' is defined twice in bad.py",
        ),
        ("import os\nos._exit(7)", "loading bad.py ends the process (exit status 7)"),
        ("import os\nos.kill(os.getpid(), 9)", "loading bad.py ends the process (signal 9)"),
        ("import os\nos.abort()", "loading bad.py ends the process (signal 6)"),
    ],
)
def test_a_file_that_fails_is_listed_and_breaks_nothing_else(tmp_path: Path, text: str, message: str) -> None:
    bad = write(tmp_path, "bad.py", text)
    write(tmp_path, "good.py", RULE.format(name="good"))
    registry = discover([tmp_path])
    assert list(registry.specs) == ["good"]
    [failure] = registry.failures
    assert failure.path == bad
    assert message in failure.message


def test_a_file_that_hangs_as_it_is_loaded_is_listed_and_those_after_it_are_found(tmp_path: Path) -> None:
    write(tmp_path, "bad.py", "while True: pass")
    write(tmp_path, "ends.py", "import os; os._exit(0)")
    write(tmp_path, "good.py", RULE.format(name="good"))
    registry = discover([tmp_path], load_limit=1.0)
    assert list(registry.specs) == ["good"]
    assert [failure.message for failure in registry.failures] == [
        "loading bad.py takes over 1 s; it may hang",
        "loading ends.py ends the process (exit status 0)",
    ]


def test_what_is_no_file_of_text_is_listed_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "a_folder.py").mkdir()
    (tmp_path / "b_link.py").symlink_to(tmp_path / "not_there")
    os.mkfifo(tmp_path / "c_pipe.py")
    (tmp_path / "d_bytes.py").write_bytes(b"x = '\xff'")
    (tmp_path / "e_empty.py").write_bytes(b"")
    (tmp_path / "f_huge.py").write_text("#" * (1 << 20) + "\n")
    (tmp_path / "g_loop.py").symlink_to(tmp_path / "g_loop.py")
    (tmp_path / "h_linked.py").symlink_to(write(tmp_path / "other", "rule.py", RULE.format(name="linked")))
    registry = discover([tmp_path])
    messages = {failure.path.name: failure.message for failure in registry.failures}
    assert list(registry.specs) == ["linked"]
    assert "is a folder" in messages["a_folder.py"]
    assert "is a link to nothing" in messages["b_link.py"]
    assert "is no file" in messages["c_pipe.py"]
    assert messages["d_bytes.py"].startswith("SyntaxError: (unicode error) 'utf-8' codec can't decode")
    assert "is empty" in messages["e_empty.py"]
    assert "at most 1048576" in messages["f_huge.py"]
    assert "g_loop.py" in messages["g_loop.py"]


def test_a_file_that_cannot_be_read_is_listed(tmp_path: Path) -> None:
    path = write(tmp_path, "secret.py", RULE.format(name="secret"))
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom grpo_studio.verifiers import discover\n"
        "os.setgroups([]) if os.getuid() == 0 else None\n"
        "os.setuid(65534) if os.getuid() == 0 else None\n"
        "print(discover([Path(sys.argv[1])]).failures[0].message)"
    )
    path.chmod(0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != folder.parent and "pytest" in str(folder):
            folder.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "secret.py cannot be read: Permission denied\n"


def test_a_file_is_loaded_once_until_its_text_changes(tmp_path: Path) -> None:
    count = tmp_path / "count"
    text = f"with open({str(count)!r}, 'a') as file:\n    file.write('x')\n" + RULE.format(name="rule")
    path = write(tmp_path, "rule.py", text)
    first = discover([tmp_path]).get("rule")
    assert count.read_text() == "xx"  # in a process of its own, and here
    path.touch()
    assert discover([tmp_path]).get("rule") is first
    assert count.read_text() == "xx"
    # As long, and within the same second: neither size nor time tells.
    path.write_text(text.replace("return 1.0", "return 0.5"))
    assert discover([tmp_path]).get("rule").function("x", "x", size=1) == 0.5


def test_exactly_the_files_that_ship_with_the_program_are_trusted_to_load(tmp_path: Path) -> None:
    shipped = [path.name for path in BUNDLED_REWARDS.glob("*.py")]
    if (ROOT / ".git").exists():  # a person may have added others to the folder
        listed = subprocess.run(["git", "ls-files", "rewards"], cwd=ROOT, capture_output=True, text=True, check=True)
        shipped = [Path(line).name for line in listed.stdout.split()]
    assert {f"{name}.py" for name in SHIPPED} == set(shipped)
    assert is_shipped(BUNDLED_REWARDS / "exact_match.py")
    assert not is_shipped(BUNDLED_REWARDS / "added.py")
    assert not is_shipped(tmp_path / "exact_match.py")


def test_threads_that_load_at_the_same_time_leave_stdout_as_it_was(tmp_path: Path) -> None:
    before = sys.stdout
    slow = [write(tmp_path, f"rule_{wait}.py", f"import time\ntime.sleep(0.{wait})") for wait in (2, 5)]
    run_all([Thread(target=load_file, args=[path]) for path in slow])
    assert sys.stdout is before


def test_threads_that_look_at_the_same_time_load_a_file_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    text = f"import time\nwith open({str(count)!r}, 'a') as file:\n    file.write('x')\ntime.sleep(0.2)\n"
    write(tmp_path, "rule.py", text + RULE.format(name="rule"))
    found: list[object] = []
    run_all([Thread(target=lambda: found.append(discover([tmp_path]).get("rule"))) for _ in range(3)])
    assert len(found) == 3
    assert len(set(map(id, found))) == 1
    assert count.read_text() == "xx"  # in a process of its own, and here


def run_all(threads: list[Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_the_process_that_loads_first_sees_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    seen = tmp_path / "seen"
    write(
        tmp_path,
        "nosy.py",
        f"import os\nwith open({str(seen)!r}, 'a') as file:\n    file.write(os.environ.get('HF_TOKEN', 'none') + ' ')\nos._exit(0)",
    )
    discover([tmp_path])
    assert seen.read_text() == "none "


def test_loading_prints_nothing_to_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "loud.py", "print('hello')" + RULE.format(name="loud"))
    assert list(discover([tmp_path]).specs) == ["loud"]
    assert capsys.readouterr().out == ""


def test_the_second_verifier_of_a_name_is_refused_and_both_paths_are_named(tmp_path: Path) -> None:
    first = write(tmp_path / "a", "same.py", RULE.format(name="rule"))
    second = write(tmp_path / "b", "same.py", RULE.format(name="rule"))
    registry = discover([first.parent, second.parent])
    assert registry.specs["rule"].path == first
    [failure] = registry.failures
    assert str(first) in failure.message
    assert str(second) in failure.message


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "math_numeric.py", RULE.format(name="math_numeric"))
    with pytest.raises(VerifierError) as error:
        discover([tmp_path]).get("math_numric")
    assert str(error.value) == "no verifier 'math_numric'; did you mean math_numeric?"


@pytest.mark.parametrize(
    ("params", "columns", "parts"),
    [
        ({"size": 3}, ["answer"], []),
        ({"size": 3, "ratio": 1, "mode": "b"}, ["answer", "other"], []),
        ({}, ["answer"], ["needs the param 'size'"]),
        ({"size": 3, "sise": 4}, ["answer"], ["no param 'sise'; it takes: size, mode, ratio"]),
        ({"size": "3"}, ["answer"], ["'size' is '3'; it must be int"]),
        ({"size": True}, ["answer"], ["must be int"]),
        ({"size": 3, "mode": "c"}, ["answer"], ["'mode' is 'c'"]),
        ({"size": 3, "ratio": float("nan")}, ["answer"], ["'ratio' is nan"]),
        ({"size": 13}, ["answer"], ["size is 13"]),
        ({"size": 3}, ["solution"], ["needs a column 'answer'; the data has: solution"]),
        ({"size": 3}, ["prompt"], ["needs a column 'answer'; the data has: prompt"]),
        ({"size": None, "extra": 1}, [], ["'extra'", "'size' is None", "column 'answer'"]),
    ],
)
def test_all_problems_of_a_use_are_found(
    tmp_path: Path, params: dict[str, Any], columns: list[str], parts: list[str]
) -> None:
    write(tmp_path, "rule.py", RULE.format(name="rule"))
    problems = problems_of(discover([tmp_path]).get("rule"), params, columns)
    assert len(problems) == len(parts)
    for problem, part in zip(problems, parts, strict=True):
        assert part in problem
