"""The commands of `python -m grpo_studio`: arguments in, exit code out.

Exit codes: 0 done, 1 an invalid value or a failed job, 2 an unknown command, key or preset. With --json, stdout is one
JSON document and nothing else; errors are one line on stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from grpo_studio import scan_text, supervisor
from grpo_studio.bench_command import add_bench_arguments, bench, with_arguments
from grpo_studio.config_files import read_config_file, read_preset, with_overrides
from grpo_studio.errors import StudioError, UsageError
from grpo_studio.looks import WholeLook
from grpo_studio.preflight import CheckReport, check
from grpo_studio.progress import Progress
from grpo_studio.score_command import add_score_arguments, score
from grpo_studio.settings import Settings
from grpo_studio.shown import visible
from grpo_studio.store.folder import RunFolder, find_run, run_folders
from grpo_studio.store.log import tail

LOG_BYTES = 1 << 20
QUIET_SECONDS = 2.0
Command = Callable[[argparse.Namespace, Settings], int]


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line, and ends with 2."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{' '.join(message.split())}; see python -m grpo_studio --help")


def run(arguments: Sequence[str]) -> int:
    """Run one command. All errors that a person can mend come out as one line on stderr."""
    try:
        options = parser().parse_args(arguments)
        settings = Settings.from_env().with_runs_dir(options.runs_dir)
        command: Command = options.command
        return command(options, settings)
    except StudioError as error:
        print(f"error: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; runs go on in the background", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0


def parser() -> argparse.ArgumentParser:
    """All commands with their arguments."""
    top = OneLineParser(prog="python -m grpo_studio", description="GRPO training runs: start, watch, stop.")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=OneLineParser)

    def add(name: str, function: Command, help_text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help_text, description=help_text)
        command.set_defaults(command=function)
        command.add_argument("--runs-dir", help="folder of the runs (default: runs/ in GRPO_STUDIO_HOME)")
        command.add_argument("--json", action="store_true", help="print one JSON document")
        return command

    train = add("train", _train, "check the settings, then start a run in the background")
    _add_config_arguments(train)
    train.add_argument("--name", help="a name for the run, part of its id")
    train.add_argument("--wait", action="store_true", help="wait until the run has ended; exit 1 unless it finished")
    _add_config_arguments(add("check", _check, "list all problems of the settings; start nothing"))
    add("runs", _runs, "list the runs, newest first")
    for name, function, help_text in (
        ("show", _show, "the state of a run and its newest metrics"),
        ("log", _log, "the end of a run's log"),
        ("stop", _stop, "finish the step, save a checkpoint and end the run"),
    ):
        command = add(name, function, help_text)
        command.add_argument("run", help="id of the run, an unambiguous part of it, or latest")
        if function is _log:
            command.add_argument("--lines", type=int, default=200, help="how many lines (default: 200)")
        if function is _stop:
            command.add_argument("--no-wait", action="store_true", help="ask, and do not wait until it has ended")
    add_score_arguments(add("score", _score, "run verifiers against cases with expected values"))
    add_bench_arguments(add("bench", _bench, "what rewards will do: gold check, exploit probes, a model's samples"))
    return top


def _add_config_arguments(command: argparse.ArgumentParser) -> None:
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--preset", help="name of a preset, such as quickstart")
    source.add_argument("--config", help="YAML file of settings")
    command.add_argument(
        "--set", action="append", default=[], metavar="a.b=value", help="change one setting; may be repeated"
    )


def _raw_settings(options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    return with_overrides(_source_settings(options, settings), options.set)


def _source_settings(options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """The raw settings of the preset or file; none of both leaves every setting at its default."""
    if options.preset is not None:
        return read_preset(options.preset, settings.presets_dirs)
    return {} if options.config is None else read_config_file(Path(options.config).expanduser())


def _check(options: argparse.Namespace, settings: Settings) -> int:
    report = check(_raw_settings(options, settings), settings, WholeLook(_slow_progress()))
    if options.json:
        _print_json(report.as_dict())
    else:
        _print_report(report)
    return report.exit_code


def _print_report(report: CheckReport) -> None:
    for problem in report.problems:
        print(visible(str(problem)), file=sys.stderr)
    lines = [] if report.scan is None or not report.scan.rows else scan_text.lines_of(report.scan)
    told = "\n".join(lines)
    for note in report.notes:
        if note not in told:
            print(f"note: {visible(note)}")
    print(told, end="\n" * bool(told))
    for name, value in report.derived.items():
        print(f"{name}: {value}")
    print("no problems" if report.ok else f"{len(report.problems)} problems")


def _train(options: argparse.Namespace, settings: Settings) -> int:
    report = check(_raw_settings(options, settings), settings, WholeLook(_slow_progress(), count_all=False))
    if report.config is None or not report.ok:
        if options.json:
            _print_json(report.as_dict())
        for problem in report.problems:
            print(f"error: {visible(str(problem))}", file=sys.stderr)
        return report.exit_code
    name = options.name or options.preset or Path(options.config).stem
    folder = supervisor.submit(report.config, settings, name, progress_line())
    if not options.json:
        print(f"{folder.run_id} queued; watch it with: python -m grpo_studio show {folder.run_id}")
    if options.wait:
        supervisor.wait_until_ended(folder, settings)
    summary = supervisor.summary(folder)
    if options.json:
        _print_json(summary)
    elif options.wait:
        _print_summary(summary)
    return 0 if not options.wait or summary["state"] == "finished" else 1


def progress_line() -> Progress:
    """A progress bar on stderr, where it is a terminal; else a line for each tenth."""
    told = [-1]

    def show(what: str, share: float) -> None:
        tenth = int(share * 10)
        if sys.stderr.isatty():
            bar = "#" * int(share * 30)
            print(f"\r{what} [{bar:<30}] {share:4.0%}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)
        elif tenth != told[0]:
            told[0] = tenth
            print(f"{what} {share:.0%}", file=sys.stderr, flush=True)

    return show


def _slow_progress() -> Progress:
    """A progress line for what may be over at once: it says nothing in the first seconds."""
    began, show = time.monotonic(), progress_line()

    def slowly(what: str, share: float) -> None:
        if time.monotonic() - began > QUIET_SECONDS:
            show(what, share)

    return slowly


def _runs(options: argparse.Namespace, settings: Settings) -> int:
    rows = [_summary_or_error(folder) for folder in run_folders(settings.runs_dir)]
    if options.json:
        _print_json(rows)
        return 0
    for row in rows:
        if "error" in row:
            print(f"{row['run']:<44} unreadable: {row['error']}")
            continue
        reward = row["metrics"].get("reward/mean")
        shown = "" if reward is None else f"reward {reward:.3f}"
        print(f"{row['run']:<44} {row['state']:<10} step {row['step']} of {row['steps']}  {shown}")
    if not rows:
        print(f"no runs in {settings.runs_dir}")
    return 0


def _summary_or_error(folder: RunFolder) -> dict[str, Any]:
    """A damaged run is a row with its error and hides no other."""
    try:
        return supervisor.summary(folder)
    except StudioError as error:
        return {"run": folder.run_id, "error": str(error), "folder": str(folder.path)}


def _show(options: argparse.Namespace, settings: Settings) -> int:
    summary = supervisor.summary(find_run(settings.runs_dir, options.run))
    if options.json:
        _print_json(summary)
    else:
        _print_summary(summary)
    return 0


def _print_summary(summary: dict[str, Any]) -> None:
    print(f"{summary['run']}: {summary['state']}, step {summary['step']} of {summary['steps']}")
    if summary["reason"]:
        print(summary["reason"])
    print(f"{summary['groups']} groups, {summary['completions']} completions; in {summary['folder']}")
    for name, value in summary["metrics"].items():
        print(f"{name:<40} {'-' if value is None else format(value, '.6g')}")


def _log(options: argparse.Namespace, settings: Settings) -> int:
    folder = find_run(settings.runs_dir, options.run)
    text = "\n".join(tail(folder.log, LOG_BYTES).splitlines()[-max(1, options.lines) :])
    if options.json:
        _print_json({"run": folder.run_id, "log": text})
    else:
        print(text)
    return 0


def _stop(options: argparse.Namespace, settings: Settings) -> int:
    folder = find_run(settings.runs_dir, options.run)
    supervisor.stop(folder, settings)
    if not options.no_wait:
        supervisor.wait_until_ended(folder, settings)
    summary = supervisor.summary(folder)
    if options.json:
        _print_json(summary)
    else:
        print(f"{summary['run']}: {summary['state']}, step {summary['step']}: {summary['reason']}")
    return 0


def _bench(options: argparse.Namespace, settings: Settings) -> int:
    raw = with_arguments(_source_settings(options, settings), options, settings)
    return _print_found(options, *bench(options, with_overrides(raw, options.set), settings, progress_line()))


def _score(options: argparse.Namespace, settings: Settings) -> int:
    return _print_found(options, *score(options, settings))


def _print_found(options: argparse.Namespace, document: dict[str, Any], lines: Sequence[str], code: int) -> int:
    if options.json:
        _print_json(document)
    else:
        print("\n".join(lines))
    return code


def _print_json(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    print(text.encode("utf-8", "replace").decode())  # data may hold lone surrogates, which no stream takes
