"""`python -m grpo_studio import`: the run of an archive, among the runs here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from grpo_studio.checkpoints import newest_resumable, whole_checkpoints
from grpo_studio.command_output import tell
from grpo_studio.export_command import tidied_up
from grpo_studio.exporting.importing import import_archive
from grpo_studio.run_facts import state_of
from grpo_studio.settings import Settings


def add_import_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `import` besides those of all commands."""
    command.add_argument("archive", help="file that export --archive made")
    command.add_argument("--as", dest="name", metavar="NAME", help="import it under a new id with this name in it")


def import_run(options: argparse.Namespace, settings: Settings) -> tuple[dict[str, Any], list[str], int]:
    """The JSON document, the lines for people, and the exit code.

    Raises:
        StudioError: the archive cannot be used, or the run is here already; nothing is left half-made.
    """
    path = Path(options.archive).expanduser().absolute()
    with tidied_up():
        folder, manifest = import_archive(path, settings, options.name, tell)
    state, kept = state_of(folder), whole_checkpoints(folder)
    notes = list(manifest.notes)
    if newest_resumable(folder) is None:
        notes.append(
            "it cannot be resumed or branched from: the archive holds no checkpoint that training can go on from"
        )
    document = {
        "run": folder.run_id,
        "from": manifest.run,
        "state": state.state,
        "reason": state.reason,
        "step": manifest.step,
        "checkpoints": [one.name for one in kept],
        "folder": str(folder.path),
        "notes": notes,
    }
    return document, [f"{folder.run_id}: {state.state}, step {manifest.step}; in {folder.path}", *notes], 0
