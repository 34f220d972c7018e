"""All pages of the app, put together. Every page is a route with parameters, so that any view can be sent on."""

from __future__ import annotations

import os
import sys

import gradio as gr
from starlette.middleware import Middleware

from grpo_studio import dispatcher
from grpo_studio.errors import StoreError
from grpo_studio.job_queue import JobQueue
from grpo_studio.serving import require_free_port
from grpo_studio.settings import Settings, is_loopback
from grpo_studio.ui import frame, launch, live, memory, pair, play, results, runs, verifiers
from grpo_studio.ui.same_origin import SameOrigin
from grpo_studio.ui.uploads import upload_route

QUEUE_EVERY = 0.2


def build_app(settings: Settings) -> gr.Blocks:
    """The app: `/` and `/live` (the newest run, or `?run=`), `/launch`, `/memory`, `/verifiers`, `/runs`; and of runs
    `/play`, `/results` and `/pair`.
    """
    with gr.Blocks(title="GRPO Studio", analytics_enabled=False, fill_width=True) as demo:
        live.add_view(settings)
    launch.add_page(demo, settings)
    live.add_page(demo, settings)
    memory.add_page(demo, settings)
    verifiers.add_page(demo, settings)
    runs.add_page(demo, settings)
    play.add_page(demo, settings)
    results.add_page(demo, settings)
    pair.add_page(demo, settings)
    return demo


def serve(demo: gr.Blocks, settings: Settings) -> None:
    """Serve the app until interrupted.

    Raises:
        PortTakenError: another program listens on the address.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    require_free_port(settings.host, settings.port)
    try:
        if JobQueue(settings.queue_path).jobs():
            dispatcher.ensure_running(settings)
    except StoreError as error:  # the runs can be looked at all the same
        print(f"error: {error}", file=sys.stderr, flush=True)
    demo.launch(
        server_name=settings.host,
        server_port=settings.port,
        ssr_mode=False,
        quiet=True,
        footer_links=[],
        head=frame.head(),
        theme=gr.themes.Base(font="sans-serif", font_mono="monospace"),
        prevent_thread_lock=True,
        max_file_size=1024,  # of gradio's own uploads, which no page here uses
        app_kwargs={"middleware": [Middleware(SameOrigin)], "routes": [upload_route(settings)]},
    )
    # Gradio looks at its event queue every millisecond: 7 % of a core for ever, and no page here uses that queue.
    demo._queue.sleep_when_free = demo._queue.progress_update_sleep_when_free = QUEUE_EVERY
    if not is_loopback(settings.host):
        print(exposure(settings), file=sys.stderr, flush=True)
    print(f"GRPO Studio: http://{settings.host}:{settings.port}", flush=True)
    demo.block_thread()


def exposure(settings: Settings) -> str:
    """What it means to serve on an address that others can reach, in one line."""
    return (
        f"warning: anyone who can reach {settings.host}:{settings.port} can start and stop runs and read files; "
        "there is no sign-in yet"
    )
