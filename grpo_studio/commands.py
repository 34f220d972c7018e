"""The commands of `python -m grpo_studio`: arguments in, exit code out.

Exit codes: 0 done, 1 an invalid value or a failed job, 2 an unknown command, key or preset, or options that do not
go together. With --json, stdout is one
JSON document and nothing else; errors are one line on stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from grpo_studio import life_command, supervisor
from grpo_studio.bench_command import add_bench_arguments, bench, with_arguments
from grpo_studio.chat_command import add_chat_arguments, chat
from grpo_studio.command_output import (
    print_found,
    print_json,
    print_report,
    print_summary,
    progress_line,
    slow_progress,
)
from grpo_studio.config_arguments import add_config_arguments, raw_settings, source_settings
from grpo_studio.config_files import with_overrides
from grpo_studio.dry_run_command import add_dry_run_arguments, tell_dry_run
from grpo_studio.errors import StudioError, UsageError
from grpo_studio.evaluate_command import add_evaluate_arguments, evaluate
from grpo_studio.export_command import add_export_arguments, export
from grpo_studio.forecast_command import add_forecast_arguments, forecast_run
from grpo_studio.import_command import add_import_arguments, import_run
from grpo_studio.looks import WholeLook
from grpo_studio.pair_command import add_pair_arguments, pair
from grpo_studio.preflight import check
from grpo_studio.probe_command import add_probe_arguments, probe_run
from grpo_studio.push_command import add_push_arguments, push_run
from grpo_studio.score_command import add_score_arguments, score
from grpo_studio.settings import Settings
from grpo_studio.shown import visible
from grpo_studio.store.folder import RunFolder, find_run, run_folders
from grpo_studio.store.log import tail

LOG_BYTES = 1 << 20
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
    add_config_arguments(train)
    train.add_argument("--name", help="a name for the run, part of its id")
    train.add_argument("--wait", action="store_true", help="wait until the run has ended; exit 1 unless it finished")
    add_dry_run_arguments(train)
    add_pair_arguments(add("pair", _pair, "start two runs that differ in one setting, and tell what that changed"))
    add_config_arguments(add("check", _check, "list all problems of the settings; start nothing"))
    add_forecast_arguments(add("forecast", _forecast, "peak memory by phase, predicted before anything is loaded"))
    add_probe_arguments(
        add("probe", _probe, "loss, gradient, memory and time of each loss backend on one frozen batch")
    )
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
    add_evaluate_arguments(add("evaluate", _evaluate, "score a checkpoint on the run's held-out rows"))
    life_command.add_life_commands(lambda name, help_text: add(name, _LIFE[name], help_text))
    add_export_arguments(add("export", _export, "carry away a run's weights, the whole run, or the run as a script"))
    add_import_arguments(add("import", _import, "take in the run of an archive that export made"))
    add_push_arguments(add("push", _push, "push a run's weights and their model card to the Hugging Face Hub"))
    add_score_arguments(add("score", _score, "run verifiers against cases with expected values"))
    add_bench_arguments(add("bench", _bench, "what rewards will do: gold check, exploit probes, a model's samples"))
    add_chat_arguments(add("chat", _chat, "talk with a run's model, before and after training side by side"))
    return top


def _check(options: argparse.Namespace, settings: Settings) -> int:
    report = check(raw_settings(options, settings), settings, WholeLook(slow_progress()))
    if options.json:
        print_json(report.as_dict())
    else:
        print_report(report)
    return report.exit_code


def _train(options: argparse.Namespace, settings: Settings) -> int:
    if options.anyway and not options.dry_run:
        raise UsageError("--anyway goes with --dry-run alone; add that, or leave it out")
    report = check(raw_settings(options, settings), settings, WholeLook(slow_progress(), count_all=False))
    if report.config is None or not report.ok:
        if options.json:
            print_json(report.as_dict())
        for problem in report.problems:
            print(f"error: {visible(str(problem))}", file=sys.stderr)
        return report.exit_code
    if options.dry_run:
        return print_found(options, *tell_dry_run(report.config, options, settings, progress_line()))
    name = options.name or options.preset or Path(options.config).stem
    folder = supervisor.submit(report.config, settings, name, progress_line())
    if not options.json:
        print(f"{folder.run_id} queued; watch it with: python -m grpo_studio show {folder.run_id}")
    if options.wait:
        supervisor.wait_until_ended(folder, settings)
    summary = supervisor.summary(folder, settings)
    if options.json:
        print_json(summary)
    elif options.wait:
        print_summary(summary)
    return 0 if not options.wait or summary["state"] == "finished" else 1


def _pair(options: argparse.Namespace, settings: Settings) -> int:
    data = raw_settings(options, settings)
    return print_found(options, *pair(options, data, settings, progress_line(), slow_progress()))


def _forecast(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *forecast_run(options, settings))


def _probe(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *probe_run(options, settings, slow_progress()))


def _runs(options: argparse.Namespace, settings: Settings) -> int:
    rows = [_summary_or_error(folder, settings) for folder in run_folders(settings.runs_dir)]
    if options.json:
        print_json(rows)
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


def _summary_or_error(folder: RunFolder, settings: Settings) -> dict[str, Any]:
    """A damaged run is a row with its error and hides no other."""
    try:
        return supervisor.summary(folder, settings)
    except StudioError as error:
        return {"run": folder.run_id, "error": str(error), "folder": str(folder.path)}


def _show(options: argparse.Namespace, settings: Settings) -> int:
    summary = supervisor.summary(find_run(settings.runs_dir, options.run), settings)
    if options.json:
        print_json(summary)
    else:
        print_summary(summary)
    return 0


def _log(options: argparse.Namespace, settings: Settings) -> int:
    folder = find_run(settings.runs_dir, options.run)
    text = "\n".join(tail(folder.log, LOG_BYTES).splitlines()[-max(1, options.lines) :])
    if options.json:
        print_json({"run": folder.run_id, "log": text})
    else:
        print(text)
    return 0


def _stop(options: argparse.Namespace, settings: Settings) -> int:
    folder = find_run(settings.runs_dir, options.run)
    supervisor.stop(folder, settings)
    if not options.no_wait:
        supervisor.wait_until_ended(folder, settings)
    summary = supervisor.summary(folder, settings)
    if options.json:
        print_json(summary)
    else:
        print(f"{summary['run']}: {summary['state']}, step {summary['step']}: {summary['reason']}")
    return 0


def _bench(options: argparse.Namespace, settings: Settings) -> int:
    raw = with_arguments(source_settings(options, settings), options, settings)
    return print_found(options, *bench(options, with_overrides(raw, options.set), settings, progress_line()))


def _score(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *score(options, settings))


def _export(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *export(options, settings))


def _import(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *import_run(options, settings))


def _push(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *push_run(options, settings))


def _chat(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *chat(options, settings))


def _evaluate(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *evaluate(options, settings, progress_line()))


def _branch(options: argparse.Namespace, settings: Settings) -> int:
    return print_found(options, *life_command.branch(options, settings, slow_progress()))


def _found_by(function: Callable[[argparse.Namespace, Settings], life_command.Found]) -> Command:
    """A command that prints what such a function finds."""
    return lambda options, settings: print_found(options, *function(options, settings))


_LIFE: dict[str, Command] = {
    "resume": _found_by(life_command.resume),
    "branch": _branch,
    "cancel": _found_by(life_command.cancel),
    "delete": _found_by(life_command.delete),
    "queue": _found_by(life_command.queue),
    "checkpoints": _found_by(life_command.checkpoints),
}
