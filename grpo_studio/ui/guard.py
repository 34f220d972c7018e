"""The one boundary between a request from a browser and the program: a failure becomes `{"error": "one line"}`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from grpo_studio.errors import StudioError

log = logging.getLogger(__name__)
Answer = dict[str, Any]


def answer_of(name: str, call: Callable[[], Answer]) -> Answer:
    """The call's answer, or its error as data; an error that is not meant for a person goes to the app's log."""
    try:
        return call()
    except Exception as error:
        return {"error": told(name, error)}


def told(what: str, error: Exception) -> str:
    """The error in one line for a person; logged with its trace unless it is one of ours."""
    if isinstance(error, StudioError):
        return " ".join(str(error).split())
    log.error("%s failed", what, exc_info=error)
    return f"{what} failed: {type(error).__name__}; the app's log has the details"
