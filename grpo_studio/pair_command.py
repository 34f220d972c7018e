"""`python -m grpo_studio pair`: two whole runs that differ in one setting, and the difference that was measured."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grpo_studio import supervisor
from grpo_studio.command_output import tell
from grpo_studio.config_arguments import add_config_arguments
from grpo_studio.looks import ScanCache, WholeLook
from grpo_studio.pair_check import CheckedPair, check_pair
from grpo_studio.pair_differ import parse_differ
from grpo_studio.pair_records import SIDES, Pair
from grpo_studio.pair_settings import refuse_other_uses, value_text
from grpo_studio.pairs import start_checked
from grpo_studio.preflight import check
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings
from grpo_studio.shown import visible
from grpo_studio.store.folder import RunFolder

Found = tuple[dict[str, Any], list[str], int]


def add_pair_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `pair` besides those of all commands."""
    add_config_arguments(command)
    command.add_argument(
        "--differ", required=True, metavar="a.b=x,y", help="the one setting that differs, and its value in A and in B"
    )
    command.add_argument("--name", help="a name for both runs, part of their ids")
    command.add_argument("--wait", action="store_true", help="wait until both have ended; exit 1 unless both finished")


def pair(
    options: argparse.Namespace,
    data: Mapping[str, Any],
    settings: Settings,
    progress: Progress | None = None,
    slow: Progress | None = None,
) -> Found:
    """The JSON document, the lines for people, and the exit code.

    Args:
        data: the settings that both runs share, not yet checked.
        progress: told how far a model is fetched; `slow` how far the checks are.

    Raises:
        StudioError: the arguments do not fit together, or the runs cannot be made; no run is left behind.
    """
    field, values = parse_differ(options.differ)
    refuse_other_uses(field, options.set)
    look = WholeLook(slow, count_all=False, scans=ScanCache())
    checked = check_pair(data, field, values, lambda raw: check(raw, settings, look))
    if not checked.ok:
        for problem in checked.problems:
            tell(f"error: {problem}")
        return checked.as_dict(), [], checked.exit_code
    started = start_checked(checked, settings, options.name or options.preset or Path(options.config).stem, progress)
    document, lines, code = _followed(started, options.wait, settings)
    return document | {"notes": checked.notes}, [*_lines(started, checked, options.wait), *lines], code


def _followed(started: Pair, wait: bool, settings: Settings) -> Found:
    """Wait for both where that is asked for; what they came to."""
    folders = [folder for folder in started.folders if folder is not None]
    if wait:
        for folder in folders:
            supervisor.wait_until_ended(folder, settings)
    runs = [supervisor.summary(folder, settings) for folder in folders]
    document: dict[str, Any] = {
        "pair": started.id,
        "field": started.field,
        "values": list(started.values),
        "runs": runs,
    }
    if not wait:
        return document, [f"look at both: http://{settings.host}:{settings.port}/pair?pair={started.id}"], 0
    told = measured(folders)
    lines = [
        f"{side}: {run['state']}, step {run['step']} of {run['steps']}"
        + (f": {run['reason']}" if run["reason"] else "")
        for side, run in zip(SIDES, runs, strict=True)
    ]
    finished = all(run["state"] == "finished" for run in runs)
    return document | {"measured": told}, [*lines, told["sentence"]], 0 if finished else 1


def measured(folders: list[RunFolder]) -> dict[str, Any]:
    """The measured difference of two runs, as the page of the pair tells it."""
    from grpo_studio.pair_text import as_dict
    from grpo_studio.queries.paired import compared_to_the_end
    from grpo_studio.store.reader import RunReader

    with RunReader(folders[0].database) as a, RunReader(folders[1].database) as b:
        return as_dict(compared_to_the_end(a, b))


def _lines(started: Pair, checked: CheckedPair, waited: bool) -> list[str]:
    how = "ran" if waited else "queued"
    lines = [f"note: {visible(note)}" for note in checked.notes]
    return [
        *lines,
        *(
            f"{side} ({visible(checked.field)} {value_text(value)}): {run} {how}"
            for side, value, run in zip(SIDES, checked.values, started.runs, strict=True)
        ),
    ]
