"""`make demo`: the app, with the quickstart run under way, so that the first page a person sees is alive."""

from __future__ import annotations

import os
import sys

from grpo_studio import supervisor
from grpo_studio.command_output import progress_line
from grpo_studio.config_files import read_preset
from grpo_studio.errors import ConfigError, StudioError
from grpo_studio.preflight import check
from grpo_studio.serving import require_free_port
from grpo_studio.settings import PACKAGE_DIR, Settings
from grpo_studio.store.folder import RunFolder, run_folders

PRESET = "quickstart"


def start_unless_active(settings: Settings) -> str:
    """Queue the quickstart run, unless some run is queued or under way already; returns what was done, in words."""
    active = [folder.run_id for folder in run_folders(settings.runs_dir) if _is_active(folder)]
    if active:
        return f"{active[0]} is under way; no new run was started"
    report = check(read_preset(PRESET, settings.presets_dirs), settings)
    if report.config is None or not report.ok:
        raise ConfigError("; ".join(str(problem) for problem in report.problems))
    folder = supervisor.submit(report.config, settings, PRESET, progress_line())
    return f"{folder.run_id} was started"


def _is_active(folder: RunFolder) -> bool:
    try:
        return not supervisor.state_of(folder).ended
    except StudioError:
        return False  # a damaged run says so on the page


def main() -> int:
    """Start the run, then become the app."""
    try:
        settings = Settings.from_env()
        require_free_port(settings.host, settings.port)
        print(start_unless_active(settings), flush=True)
    except StudioError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    os.execv(sys.executable, [sys.executable, str(PACKAGE_DIR.parent / "app.py")])


if __name__ == "__main__":
    sys.exit(main())
