"""What commands that take a run's settings share: --preset or --config, and --set."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from grpo_studio.config_files import read_config_file, read_preset, with_overrides
from grpo_studio.settings import Settings


def add_config_arguments(command: argparse.ArgumentParser, required: bool = True) -> None:
    """The arguments that settings come from; one of a preset and a file is required, unless it is said not to be."""
    source = command.add_mutually_exclusive_group(required=required)
    source.add_argument("--preset", help="name of a preset, such as quickstart")
    source.add_argument("--config", help="YAML file of settings")
    command.add_argument(
        "--set", action="append", default=[], metavar="a.b=value", help="change one setting; may be repeated"
    )


def raw_settings(options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """The settings that the arguments name, not yet checked.

    Raises:
        StudioError: the preset is unknown, the file cannot be read, or a change is malformed.
    """
    return with_overrides(source_settings(options, settings), options.set)


def source_settings(options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """The raw settings of the preset or file; none of both leaves every setting at its default."""
    if options.preset is not None:
        return read_preset(options.preset, settings.presets_dirs)
    return {} if options.config is None else read_config_file(Path(options.config).expanduser())
