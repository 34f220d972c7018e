"""`python -m grpo_studio push`: a run's weights and their model card to the Hugging Face Hub."""

from __future__ import annotations

import argparse
from typing import Any

from grpo_studio.command_output import tell
from grpo_studio.export_command import add_choice, tidied_up
from grpo_studio.settings import Settings
from grpo_studio.store.folder import find_run


def add_push_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `push` besides those of all commands."""
    command.add_argument("run", help="id of the run, an unambiguous part of it, or latest")
    command.add_argument("--to", metavar="OWNER/NAME", help="repository (default: the run's report.hub_repo)")
    add_choice(command)
    command.add_argument(
        "--private",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether a repository that is made for it is private (default: yes); one that is there stays as it is",
    )


def push_run(options: argparse.Namespace, settings: Settings) -> tuple[dict[str, Any], list[str], int]:
    """The JSON document, the lines for people, and the exit code. The token comes from the environment alone.

    Raises:
        StudioError: there is no token, the Hub refuses, or the weights cannot be exported.
    """
    from grpo_studio.exporting.pushing import push  # it brings pandas

    folder = find_run(settings.runs_dir, options.run)
    with tidied_up():
        done = push(folder, settings, options.to, options.checkpoint, options.merge, options.private, tell)
    exported = done.exported
    document = {
        "run": folder.run_id,
        "repo": done.repo,
        "url": done.url,
        "made": done.made,
        "kind": exported.kind,
        "checkpoint": exported.checkpoint.name,
        "step": exported.checkpoint.step,
        "files": list(exported.files),
        "notes": list(exported.notes),
    }
    seen = "private" if options.private else "public"
    place = f"a new {seen} repository" if done.made else "a repository that was there"
    return document, [f"{exported.which} of {folder.run_id} is in {done.repo}, {place}: {done.url}", *exported.notes], 0
