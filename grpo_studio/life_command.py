"""The commands that go on with a run that exists: resume, branch, cancel, delete, queue, checkpoints."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from grpo_studio import lifecycle, supervisor
from grpo_studio.checkpoints import FINAL, NAME, Checkpoint, best_of, read_checkpoint, whole_checkpoints
from grpo_studio.config import CheckpointSettings
from grpo_studio.disk import sized
from grpo_studio.errors import CheckpointError, StudioError, UsageError
from grpo_studio.job_queue import JobQueue
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, find_run

Found = tuple[dict[str, Any], Sequence[str], int]
Add = Callable[[str, str], argparse.ArgumentParser]
SET = "change one setting; may be repeated"


def add_life_commands(add: Add) -> None:
    """All of them with their arguments; `add(name, help)` makes the parser of one."""
    resume_ = add("resume", "go on with a run that has ended, from its newest checkpoint")
    branch_ = add("branch", "start a new run from a checkpoint of another one, with changed settings")
    for command in (resume_, branch_):
        _add_run(command)
        command.add_argument("--set", action="append", default=[], metavar="a.b=value", help=SET)
        command.add_argument("--wait", action="store_true", help="wait until the run has ended; exit 1 unless finished")
    branch_.add_argument("--step", required=True, metavar="K", help="step of the checkpoint, or best, or newest")
    branch_.add_argument("--name", help="a name for the new run, part of its id")
    branch_.add_argument("--show", action="store_true", help="only say which settings would differ; start nothing")
    _add_run(add("cancel", "take a run that waits out of the queue"))
    delete_ = add("delete", "delete a run with all that it recorded")
    _add_run(delete_)
    delete_.add_argument("--yes", action="store_true", help="do not ask")
    queue_ = add("queue", "list the runs that wait, in order, and those that run")
    queue_.add_argument("--move", metavar="RUN", help="give this run another place")
    queue_.add_argument("--to", type=int, metavar="N", help="that place; 1 is the next one")
    _add_run(add("checkpoints", "list a run's checkpoints, and what each is kept for"))


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", help="id of the run, an unambiguous part of it, or latest")


def resume(options: argparse.Namespace, settings: Settings) -> Found:
    """Begin the next attempt; as `train` returns."""
    folder = find_run(settings.runs_dir, options.run)
    lifecycle.resume(folder, settings, options.set)
    return _followed(folder, options, settings, "goes on")


def branch(options: argparse.Namespace, settings: Settings, progress: Progress | None = None) -> Found:
    """Begin a branch, with the settings that differ."""
    parent = find_run(settings.runs_dir, options.run)
    checkpoint, changes = lifecycle.branch_changes(parent, options.step, options.set)
    told = {"branch_of": parent.run_id, "checkpoint": checkpoint.name, "changes": [asdict(one) for one in changes]}
    lines = [f"from {checkpoint.name} of {parent.run_id}", *(map(str, changes) if changes else ["no setting differs"])]
    if options.show:
        return told, lines, 0
    made = lifecycle.branch(parent, options.step, options.set, settings, options.name, progress)
    document, more, code = _followed(made, options, settings, f"branches after step {checkpoint.step}")
    return document | told, [*lines, *more], code


def cancel(options: argparse.Namespace, settings: Settings) -> Found:
    """Take a run out of the queue."""
    folder = find_run(settings.runs_dir, options.run)
    lifecycle.cancel(folder, settings)
    summary = supervisor.summary(folder, settings)
    return summary, [f"{folder.run_id}: {summary['state']}: {summary['reason']}"], 0


def delete(options: argparse.Namespace, settings: Settings) -> Found:
    """Delete a run, once it is sure that this is meant.

    Raises:
        UsageError: nobody can be asked, and --yes is not given.
    """
    folder = find_run(settings.runs_dir, options.run)
    if not options.yes and not _meant(folder):
        return {"deleted": None}, ["nothing was deleted"], 1
    lifecycle.delete(folder, settings)
    return {"deleted": folder.run_id}, [f"deleted {folder.run_id}"], 0


def queue(options: argparse.Namespace, settings: Settings) -> Found:
    """The queue in order, after `--move` if that is asked for.

    Raises:
        UsageError: only one of --move and --to is given.
    """
    if (options.move is None) != (options.to is None):
        raise UsageError("--move RUN and --to N belong together; give both, or none to list the queue")
    if options.move is not None:
        lifecycle.move(find_run(settings.runs_dir, options.move), settings, options.to)
    rows: list[dict[str, Any]] = [
        {
            "run": job.run_dir.name,
            "place": job.place,
            "state": _state(RunFolder(job.run_dir)),
            "devices": None if job.devices is None else list(job.devices),
            "folder": str(job.run_dir),
        }
        for job in JobQueue(settings.queue_path).jobs()
    ]
    return {"jobs": rows}, [_queue_line(row) for row in rows] or ["no run waits"], 0


def checkpoints(options: argparse.Namespace, settings: Settings) -> Found:
    """Each checkpoint of a run: step, size, held-out score, and what it is kept for."""
    folder = find_run(settings.runs_dir, options.run)
    found = whole_checkpoints(folder)
    best = best_of(one for one in found if one.name != FINAL)
    reasons = kept_for(found, folder.config().checkpoint)
    rows = [
        {
            "name": one.name,
            "step": one.step,
            "attempt": one.manifest.attempt,
            "bytes": one.bytes,
            "score": one.manifest.score,
            "best": one is best,
            "resumable": one.manifest.resumable,
            "kept_for": reasons[one.name],
            "saved_at": one.manifest.saved_at,
        }
        for one in found
    ]
    broken = list(_broken(folder))
    lines = [_checkpoint_line(row) for row in rows] + [row["problem"] for row in broken]
    return {"run": folder.run_id, "checkpoints": rows, "broken": broken}, lines or ["no checkpoints"], 0


def kept_for(found: Sequence[Checkpoint], rules: CheckpointSettings) -> dict[str, list[str]]:
    """Which rules keep each checkpoint, by its name: newest, best, every, final."""
    steps = [one for one in found if one.name != FINAL]
    best = best_of(steps)
    newest = {one.name for one in steps[-rules.keep :]}
    reasons: dict[str, list[str]] = {one.name: ["final"] for one in found if one.name == FINAL}
    for one in steps:
        held = {
            "newest": one.name in newest,
            "best": rules.keep_best and one is best,
            "every": bool(rules.keep_every) and one.step % rules.keep_every == 0,
        }
        reasons[one.name] = [rule for rule, holds in held.items() if holds]
    return reasons


def _broken(folder: RunFolder) -> Sequence[dict[str, str]]:
    entries = sorted(folder.checkpoints.iterdir()) if folder.checkpoints.is_dir() else []
    found = []
    for entry in entries:
        if entry.name == FINAL or NAME.fullmatch(entry.name):
            try:
                read_checkpoint(entry)
            except CheckpointError as error:
                found.append({"name": entry.name, "problem": str(error)})
    return found


def _followed(folder: RunFolder, options: argparse.Namespace, settings: Settings, what: str) -> Found:
    """Wait for the end where that is asked for; the summary, and 1 when the run was waited for and has not finished."""
    if options.wait:
        supervisor.wait_until_ended(folder, settings)
    summary = supervisor.summary(folder, settings)
    lines = [f"{folder.run_id} {what}; watch it with: python -m grpo_studio show {folder.run_id}"]
    if options.wait:
        lines = [f"{folder.run_id}: {summary['state']}, step {summary['step']} of {summary['steps']}"]
        lines += [summary["reason"]] if summary["reason"] else []
    return summary, lines, 0 if not options.wait or summary["state"] == "finished" else 1


def _meant(folder: RunFolder) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(f"delete {folder.run_id} removes all that it recorded; give --yes if that is meant")
    print(f"Delete {folder.run_id} ({sized(folder.size_on_disk())})? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _state(folder: RunFolder) -> str:
    try:
        return supervisor.state_of(folder).state if folder.path.is_dir() else "deleted"
    except StudioError:
        return "unreadable"


def _queue_line(row: dict[str, Any]) -> str:
    place = "on " + ",".join(row["devices"] or ["?"]) if row["place"] is None else f"{row['place']}."
    return f"{place:<8} {row['run']:<44} {row['state']}"


def _checkpoint_line(row: dict[str, Any]) -> str:
    score = "" if row["score"] is None else f"score {row['score']:.3f}"
    kept = ", ".join(row["kept_for"]) or "goes with the next one"
    best = "*" if row["best"] else " "
    return f"{row['name']:<20} step {row['step']:<8} {sized(row['bytes']):>8} {best} {score:<12} {kept}"
