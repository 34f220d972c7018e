"""Loads verifier files. One that does not ship with the program is first loaded in a process of its own, since it may
hang or end the process that loads it. Only then is it loaded here, and not again until its text changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
import traceback
import types
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from grpo_studio.errors import VerifierError
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers.contract import MARKED, VerifierSpec, spec_of
from grpo_studio.verifiers.judge_load import first_load

LOAD_LIMIT: Final = 15.0
_MOST_BYTES: Final = 1 << 20
SHIPPED: Final = frozenset(
    [
        "code_asserts",
        "code_stdin",
        "countdown",
        "ensemble",
        "exact_match",
        "format_tags",
        "json_schema",
        "length_range",
        "length_target",
        "math_boxed",
        "math_equal",
        "math_numeric",
        "multiple_choice",
        "reasoning_gym",
        "regex_match",
        "repetition_penalty",
        "reward_model",
        "soft_overlong",
        "wrong_and_long",
    ]
)
"""Files of the program's own folder that are known to load; others there were added by a person."""
_Loaded = tuple[str, "list[VerifierSpec] | str"]  # the hash of a file's text; what it defines, or why it does not load
_known: dict[Path, _Loaded] = {}
_elsewhere_first = True
# What is known, `sys.modules` and `sys.stdout` are the whole process's: one thread at a time loads.
_lock = threading.RLock()


def load_all(paths: Sequence[Path], limit: float) -> list[tuple[Path, list[VerifierSpec] | str]]:
    """What each file defines, or why it does not load; `limit` is in seconds, for one file."""
    with _lock:
        return _load_all(paths, limit)


def _load_all(paths: Sequence[Path], limit: float) -> list[tuple[Path, list[VerifierSpec] | str]]:
    texts: dict[Path, bytes] = {}
    found: dict[Path, list[VerifierSpec] | str] = {}
    for path in paths:
        try:
            text = _text(path)
        except VerifierError as error:
            found[path] = str(error)
            continue
        mark, before = hashlib.sha256(text).hexdigest(), _known.get(path)
        if before is not None and before[0] == mark:
            found[path] = before[1]
        else:
            texts[path] = text
    foreign = [path for path in texts if _elsewhere_first and not is_shipped(path)]
    failures = first_load(foreign, limit)
    for path, text in texts.items():
        try:
            found[path] = failures.get(path) or _execute(path, text)
        except VerifierError as error:
            found[path] = str(error)
        _known[path] = hashlib.sha256(text).hexdigest(), found[path]
    return [(path, found[path]) for path in paths]


def load_checked(path: Path, load_limit: float = LOAD_LIMIT) -> list[VerifierSpec]:
    """The verifiers that one file defines, loaded elsewhere first. Raises VerifierError."""
    [(_, found)] = load_all([path], load_limit)
    if isinstance(found, str):
        raise VerifierError(found)
    return found


def load_in_this_process() -> None:
    """From now on load files right here: this process is one that may hang or end."""
    global _elsewhere_first
    _elsewhere_first = False


def load_file(path: Path) -> list[VerifierSpec]:
    """The verifiers that one file defines. Raises VerifierError, whatever the file itself raised."""
    with _lock:
        return _execute(path, _text(path))


def is_shipped(path: Path) -> bool:
    """Whether a file came with the program, so that it is known to load."""
    return path.parent == BUNDLED_REWARDS and path.stem in SHIPPED


def _text(path: Path) -> bytes:
    """A file's bytes. Raises VerifierError, and never waits: a pipe of that name is refused."""
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is a link to nothing" if path.is_symlink() else "is no file"
            raise VerifierError(f"{path.name} {what}, where a Python file should be")
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise VerifierError(f"{path.name} has {size} bytes; a verifier has at most {_MOST_BYTES}")
        return path.read_bytes()
    except OSError as error:
        raise VerifierError(f"{path.name} cannot be read: {error.strerror or error}") from error


def _execute(path: Path, text: bytes) -> list[VerifierSpec]:
    # The name must be unique for each path: two folders may both hold a my_rule.py. Compiled here and not imported:
    # an import may take a stale compiled file for a text that changed within a second.
    name = f"grpo_studio_reward_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        # A file that prints while it loads must not spoil the one JSON document of `--json`.
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit and the like are failures of that file, not of the app.
        sys.modules.pop(name, None)
        raise VerifierError(_explain(error, path)) from error
    marked = Counter(spec.name for spec in module.__dict__.get(MARKED, ()))
    if twice := [name for name, count in marked.items() if count > 1]:
        raise VerifierError(f"verifier '{twice[0]}' is defined twice in {path.name}; rename one of the two")
    # One imported from elsewhere belongs to the file that defines it.
    found = [spec for value in vars(module).values() if (spec := spec_of(value)) and spec.function.__module__ == name]
    return list({spec.name: spec for spec in found}.values())  # a second global may name the same function


def _explain(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        # Compiling has no frame of the file; a text that cannot be decoded has no line.
        return f"{type(error).__name__}: {error.msg}" + (f" (line {error.lineno})" if error.lineno else "")
    message = f"{type(error).__name__}: {error}".strip().rstrip(":")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{message} (line {lines[-1]})" if lines else message


def _forget_lock() -> None:
    global _lock
    _lock = threading.RLock()


# A fork made while another thread loads would wait for that thread, which it does not have.
os.register_at_fork(after_in_child=_forget_lock)
