"""`python -m grpo_studio probe`: loss backends on one frozen batch, each in its own process, then a larger batch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from grpo_studio.command_output import progress_line, tell
from grpo_studio.config_arguments import add_config_arguments, raw_settings
from grpo_studio.errors import TrainingError, UsageError
from grpo_studio.looks import WholeLook
from grpo_studio.memory.probe import ProbeAsked, Probed, failure, probe
from grpo_studio.memory.probe_settings import BACKENDS, parse_backends, parse_dtypes
from grpo_studio.memory.probe_text import lines_of
from grpo_studio.memory.sweep_plan import MINUTES, SweepAsked
from grpo_studio.preflight import check
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings


def add_probe_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `probe` besides those of all commands."""
    add_config_arguments(command)
    command.add_argument("--name", help="a name for the probe, part of its id")
    command.add_argument(
        "--backends", default=",".join(BACKENDS), metavar="A,B", help="loss backends (default: %(default)s)"
    )
    command.add_argument("--sweep", choices=("completions", "tokens"), help="then make the batch larger in this way")
    command.add_argument(
        "--to", type=int, metavar="N", help="the sweep's largest size (default: until memory runs out)"
    )
    command.add_argument("--dtypes", metavar="A,B", help="number formats of the sweep (default: the run's own)")
    command.add_argument(
        "--minutes", type=float, metavar="M", help=f"refuse a sweep that would take longer (default: {MINUTES:g})"
    )
    command.add_argument(
        "--anyway", action="store_true", help="however long the sweep takes, and also on a GPU that a run is using"
    )
    command.add_argument("--no-forecast", action="store_true", help="leave out the forecast beside the measured peaks")


def probe_run(options: argparse.Namespace, settings: Settings, look: Progress) -> tuple[dict[str, Any], list[str], int]:
    """The JSON document, the lines for people, and the exit code: 1 when the settings are wrong or nothing was found.

    Raises:
        UsageError: options are unknown or do not go together.
        StudioError: there is no device, model or batch for it.
    """
    asked = _asked(options)
    report = check(raw_settings(options, settings), settings, WholeLook(look, count_all=False))
    if report.config is None or not report.ok:
        for problem in report.problems:
            tell(f"error: {problem}")
        return report.as_dict(), [], report.exit_code
    try:
        found = probe(report.config, settings, asked, _each_change())
    except KeyboardInterrupt:
        raise TrainingError("the probe was interrupted; nothing of it is left, start it again") from None
    return found.document.as_dict(), list(lines_of(found.document)), _code(found)


def _each_change() -> Progress:
    """A line for whatever is begun: a child is at one thing for minutes, and it should be said which."""
    if sys.stderr.isatty():
        return progress_line()
    told = [""]

    def show(what: str, share: float) -> None:
        if what != told[0]:
            told[0] = what
            tell(f"{what} {share:.0%}")

    return show


def _code(found: Probed) -> int:
    if reason := failure(found.document):
        tell(f"error: no backend could be probed: {reason}")
        return 1
    if found.refused:
        tell(f"error: {found.refused}")
        return 1
    return 0


def _asked(options: argparse.Namespace) -> ProbeAsked:
    """What the options ask for, refused before anything is loaded."""
    backends = parse_backends(options.backends)
    sweep = None
    if options.sweep is not None:
        dtypes = () if options.dtypes is None else parse_dtypes(options.dtypes)
        minutes = MINUTES if options.minutes is None else options.minutes
        sweep = SweepAsked(options.sweep, options.to, dtypes, minutes, options.anyway)
    elif given := [f"--{name}" for name in ("to", "dtypes", "minutes") if getattr(options, name) is not None]:
        raise UsageError(f"{given[0]} goes with a sweep; add --sweep=completions or --sweep=tokens, or leave it out")
    name = options.name or options.preset or Path(options.config).stem
    return ProbeAsked(name, backends, sweep, options.anyway, not options.no_forecast)
