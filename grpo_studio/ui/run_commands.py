"""The commands that take long, from what a page asks for: `python -m grpo_studio` with these very arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grpo_studio.errors import UsageError
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.store.folder import RunFolder
from grpo_studio.ui.chosen import exact_run
from grpo_studio.ui.command_jobs import on_run
from grpo_studio.ui.readable import confined, require_readable
from grpo_studio.ui.results_evaluate import arguments_of

LONGEST_PATH = 4_000
CHECKPOINT = re.compile(r"[0-9]{1,9}|newest|best|final")
REPOSITORY = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
WHAT = {"weights": [], "merged": ["--merge"], "script": ["--script"], "archive": ["--archive"]}
"""What an export is made of, by the word of the page, as options of `export`."""
NEEDS_WEIGHTS = frozenset({"weights", "merged"})


def arguments_for(request: Mapping[str, Any], settings: Settings) -> list[str]:
    """The command's name and arguments.

    Raises:
        StudioError: the request names no command, lacks what it needs, or asks for what visitors may not.
    """
    kind = request.get("kind")
    if kind == "evaluate":
        return arguments_of(request, settings)
    if kind == "export":
        return _export(exact_run(settings, request), request)
    if kind == "push":
        return _push(exact_run(settings, request), request, settings)
    if kind == "import":
        return ["import", "--", str(_archive(request, settings))]
    raise UsageError(f"{shown(kind)} is nothing that a page can do; give evaluate, export, push or import")


def _export(folder: RunFolder, request: Mapping[str, Any]) -> list[str]:
    what = request.get("what")
    if not isinstance(what, str) or what not in WHAT:
        raise UsageError(f"{shown(what)} cannot be exported; choose {', '.join(WHAT)}")
    options, name = list(WHAT[what]), what
    if what in NEEDS_WEIGHTS:
        asked = _checkpoint(request)
        options.append(f"--checkpoint={asked}")
        name = f"{what}-{'step-' if asked.isdecimal() else ''}{asked}"
    if what == "archive" and request.get("with_checkpoints") is True:
        options.append("--with-checkpoints")
    return on_run("export", folder.run_id, f"--to={_free_place(folder, name)}", *options)


def _free_place(folder: RunFolder, name: str) -> Path:
    """A folder below the run's exports that is not there yet."""
    names = (name, *(f"{name}-{number}" for number in range(2, 10_000)))
    return next(place for one in names if not (place := folder.exports / one).exists())


def _push(folder: RunFolder, request: Mapping[str, Any], settings: Settings) -> list[str]:
    if confined(settings):
        raise UsageError("visitors cannot push with this machine's Hub token; push in a terminal: push RUN")
    repository = request.get("repository")
    if not isinstance(repository, str) or not REPOSITORY.fullmatch(repository.strip()):
        raise UsageError(f"{shown(repository)} is no repository; give owner/name")
    seen = "--no-private" if request.get("public") is True else "--private"
    options = [f"--to={repository.strip()}", f"--checkpoint={_checkpoint(request)}", seen]
    return on_run("push", folder.run_id, *options, *(["--merge"] if request.get("merge") is True else []))


def _checkpoint(request: Mapping[str, Any]) -> str:
    asked = request.get("checkpoint")
    if not isinstance(asked, str) or not CHECKPOINT.fullmatch(asked):
        raise UsageError(f"{shown(asked)} is no checkpoint; give its step, newest, best or final")
    return asked


def _archive(request: Mapping[str, Any], settings: Settings) -> Path:
    text = request.get("path")
    if not isinstance(text, str) or not 0 < len(text.strip()) <= LONGEST_PATH or "\0" in text:
        raise UsageError("give the path of an archive that `export --archive` made")
    require_readable(text.strip(), settings)
    return Path(text.strip()).expanduser().absolute()
