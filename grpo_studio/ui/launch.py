"""The Launch page: a form on the left, what it comes to on the right, and the button that starts the run.

The form is described by `form`, the server functions are those of `launch_actions` and `launch_data`, and the page is
drawn by assets/launch*.js.
"""

from __future__ import annotations

import gradio as gr

from grpo_studio.looks import ScanCache
from grpo_studio.settings import Settings
from grpo_studio.ui import frame, launch_models
from grpo_studio.ui.launch_actions import LaunchActions
from grpo_studio.ui.launch_data import DataActions
from grpo_studio.ui.launch_forecast import ForecastActions


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /launch."""
    scans = ScanCache()
    actions, data = LaunchActions(settings, scans), DataActions(settings, scans)
    forecast = ForecastActions(settings, scans)
    functions: list[frame.ServerFunction] = [
        actions.describe_launch,
        actions.check_draft,
        data.look_at_data,
        data.preview_prompts,
        data.made_settings,
        data.scan_begin,
        data.scan_progress,
        data.scan_cancel,
        forecast.forecast_cards,
        forecast.launch_forecast,
        *launch_models.functions(settings),
        actions.command_line,
        actions.save_preset,
        actions.start_run,
        actions.check_pair,
        actions.start_pair,
        actions.start_progress,
    ]
    with demo.route("Launch", "/launch"):
        frame.add_view("launch", "launch.js", functions, settings)
