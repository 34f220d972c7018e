"""The Launch page: a form on the left, what it comes to on the right, and the button that starts the run.

The form is described by `form`, the server functions are those of `launch_actions`, and the page is drawn by
assets/launch*.js.
"""

from __future__ import annotations

import gradio as gr

from grpo_studio.settings import Settings
from grpo_studio.ui import frame
from grpo_studio.ui.launch_actions import LaunchActions


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /launch."""
    actions = LaunchActions(settings)
    functions: list[frame.ServerFunction] = [
        actions.describe_launch,
        actions.check_draft,
        actions.preview_prompts,
        actions.command_line,
        actions.save_preset,
        actions.start_run,
        actions.start_progress,
    ]
    with demo.route("Launch", "/launch"):
        frame.add_view("launch", "launch.js", functions, settings)
