"""The Verifiers page: what each verifier does, a box to try one, the bench, and an editor for a person's own.

The server functions are those of `verifiers_actions`, `verifiers_bench` and `verifiers_editor`; the page is drawn by
assets/verifiers*.js.
"""

from __future__ import annotations

import gradio as gr

from grpo_studio.settings import Settings
from grpo_studio.ui import frame
from grpo_studio.ui.verifiers_actions import VerifiersActions
from grpo_studio.ui.verifiers_bench import BenchActions
from grpo_studio.ui.verifiers_catalogue import Catalogue
from grpo_studio.ui.verifiers_editor import EditorActions


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /verifiers."""
    catalogue = Catalogue(settings.rewards_dirs, settings.own_rewards)
    editor = EditorActions(settings, catalogue)
    actions, bench = VerifiersActions(settings, catalogue, editor), BenchActions(settings)
    functions: list[frame.ServerFunction] = [
        actions.verifiers_list,
        actions.verifiers_try,
        bench.verifiers_bench_form,
        bench.verifiers_bench_begin,
        bench.verifiers_bench_progress,
        bench.verifiers_bench_cancel,
        editor.verifiers_open,
        editor.verifiers_new,
        editor.verifiers_check,
        editor.verifiers_try_code,
        editor.verifiers_save,
        editor.verifiers_delete,
    ]
    with demo.route("Verifiers", "/verifiers"):
        frame.add_view("verifiers", "verifiers.js", functions, settings)
