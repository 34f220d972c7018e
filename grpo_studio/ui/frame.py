"""What all pages share: the top bar, the styles, the page scripts, and how a script's calls are answered.

A page is one `gr.HTML`: an empty shell, a script from `assets/` that fills it, and server functions. Each server
function takes one JSON object from the script and returns one; an error that a person can mend comes back as
`{"error": "one line"}`.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
import plotly

from grpo_studio.devices import Device, current_device
from grpo_studio.errors import StudioError
from grpo_studio.job_queue import JobQueue
from grpo_studio.settings import Settings
from grpo_studio.ui import strings
from grpo_studio.ui.guard import answer_of, told

ASSETS = Path(__file__).resolve().parent / "assets"
PLOTLY_SCRIPT = Path(plotly.__file__).resolve().parent / "package_data" / "plotly.min.js"
STYLES_FIRST = "studio.css"
SHARED_WORDS = {"live": ("actions",), "runs": ("actions",), "launch": ("forecast",), "memory": ("forecast",)}
"""Sections of the strings that a page's script needs besides its own."""
DEVICE_FOR = 8.0
"""Seconds for which what the device says is believed."""

Answer = dict[str, Any]
ServerFunction = Callable[[Any], Answer]


def head() -> str:
    """What goes into every page's <head>: the styles, the theme before the first paint, and the scripts' versions."""
    sheets = sorted(ASSETS.glob("*.css"), key=lambda path: (path.name != STYLES_FIRST, path.name))
    styles = "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    theme = (ASSETS / "theme.js").read_text(encoding="utf-8")
    # An import map gives every module its version, so that no browser runs yesterday's script after an update.
    versions = {_file_url(path, version=False): _file_url(path) for path in sorted(ASSETS.glob("*.js"))}
    modules = json.dumps({"imports": versions})
    return f'<style>{styles}</style><script>{theme}</script><script type="importmap">{modules}</script>'


def add_view(page: str, script: str, functions: Sequence[ServerFunction], settings: Settings) -> gr.HTML:
    """Put a page's one component into the current Blocks context.

    Args:
        page: its key in the strings and in the top bar.
        script: file in assets/, an ES module that exports `start({element, server, strings, plotly})`.
        functions: plain functions of one JSON object; they are guarded here.
    """
    gr.set_static_paths([ASSETS, PLOTLY_SCRIPT])
    words = strings.load()
    context = {
        "page": page,
        "script": _file_url(ASSETS / "start.js"),
        "module": f"./{script}",
        "plotly": _file_url(PLOTLY_SCRIPT),
        "strings": {key: words[key] for key in ("frame", *SHARED_WORDS.get(page, ()), page) if key in words},
    }
    return gr.HTML(
        value="",
        html_template=f'<div class="studio" data-page="{page}"></div>',
        js_on_load=_start_script(context),
        apply_default_css=False,
        server_functions=[guarded(function) for function in [*functions, status_function(settings)]],
        elem_classes=["studio-page"],
    )


def guarded(function: ServerFunction) -> ServerFunction:
    """The function, with any error turned into `{"error": line}`."""

    def call(request: Any = None) -> Answer:
        return answer_of(function.__name__, lambda: function(request if isinstance(request, Mapping) else {}))

    # The name is what the script calls; functools.wraps would also hand gradio the inner signature.
    call.__name__ = function.__name__
    return call


def text_of(request: Mapping[str, Any], key: str, longest: int = 200) -> str | None:
    """A string of the request, or None when it is absent, empty, of another type or too long."""
    value = request.get(key)
    return value if isinstance(value, str) and 0 < len(value) <= longest else None


def number_of(request: Mapping[str, Any], key: str, least: int = 0, most: int = 2**53) -> int | None:
    """A whole number of the request, or None when it is absent, of another type or out of bounds."""
    value = request.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if least <= value <= most else None


def status_function(settings: Settings) -> ServerFunction:
    """What the top bar asks: this machine and the queue."""

    def frame_status(request: Mapping[str, Any]) -> Answer:
        """The badges of the top bar: this machine and the queue."""
        device = _device(int(time.monotonic() / DEVICE_FOR))
        status: Answer = {"device": device.name, "used": device.used, "total": device.total}
        try:
            return status | {"queued": sum(job.taken is None for job in JobQueue(settings.queue_path).jobs())}
        except StudioError as error:
            return status | {"queued": None, "queue_problem": told("the queue", error)}

    return frame_status


@functools.lru_cache(maxsize=1)
def _device(moment: int) -> Device:
    """The device as seen at this moment: asked once for all pages that are open."""
    return current_device()


def _file_url(path: Path, version: bool = True) -> str:
    return f"/gradio_api/file={path}" + (f"?v={int(path.stat().st_mtime)}" if version else "")


def _start_script(context: Mapping[str, Any]) -> str:
    data = json.dumps(context, ensure_ascii=True)
    return (
        f"const context = {data};"
        "const root = new URL((window.gradio_config && window.gradio_config.root) || '/', location.href);"
        "const base = root.origin + root.pathname.replace(/\\/$/, '');"
        "import(base + context.script).then((start) =>"
        " start.start({...context, base, element: element.querySelector('.studio') || element, server}));"
    )
