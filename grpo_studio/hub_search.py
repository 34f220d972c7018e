"""Models and data sets of the Hub, found by a part of their name while a person types.

Answers are remembered for some minutes, and a failure for some seconds, so that typing without a network is not slow.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from grpo_studio.errors import HubError
from grpo_studio.hub_asking import Kind, ask, is_offline, network_fix, network_words, offline_words

ROWS = 10
TIMEOUT_SECONDS = 4.0
ANSWER_KEPT_SECONDS = 300.0
FAILURE_KEPT_SECONDS = 20.0
ANSWERS_KEPT = 200
LONGEST_TEXT = 200
WORKS_WITHOUT = {
    "model": "built-in models, local folders and GGUF files work without the Hub",
    "dataset": "built-in data sets, reasoning_gym tasks and local files work without the Hub",
}
Suggestion = dict[str, str]

_answers: OrderedDict[tuple[str, str], tuple[float, list[Suggestion]]] = OrderedDict()
_failure: tuple[float, str] | None = None
_lock = threading.Lock()


def search(kind: Kind, text: str) -> list[Suggestion]:
    """Up to 10 repositories whose id holds the text, the most downloaded first; none for empty text.

    Models are those that generate text, and the one whose whole id was typed.

    Raises:
        HubError: the Hub is not asked (HF_HUB_OFFLINE), cannot be reached or refuses.
    """
    text = " ".join(text.split())[:LONGEST_TEXT]
    if not text:
        return []
    known = _remembered(kind, text)
    if known is not None:
        return known
    if is_offline():
        raise HubError(f"{offline_words()}, so it cannot be searched; unset it ({WORKS_WITHOUT[kind]})")
    _raise_known_failure(kind)
    try:
        found = _asked(kind, text)
    except Exception as error:  # the boundary to the Hub's libraries, which raise many kinds
        raise HubError(_told(error, kind)) from error
    with _lock:
        _answers[kind, text.lower()] = (time.monotonic(), found)
        while len(_answers) > ANSWERS_KEPT:
            _answers.popitem(last=False)
    return found


def forget() -> None:
    """Drop all that is remembered, as after a change of network or token."""
    global _failure
    with _lock:
        _answers.clear()
        _failure = None


def _remembered(kind: Kind, text: str) -> list[Suggestion] | None:
    with _lock:
        at, found = _answers.get((kind, text.lower()), (0.0, None))
    return found if found is not None and time.monotonic() - at < ANSWER_KEPT_SECONDS else None


def _raise_known_failure(kind: Kind) -> None:
    with _lock:
        failure = _failure
    if failure is not None and time.monotonic() - failure[0] < FAILURE_KEPT_SECONDS:
        raise HubError(f"{failure[1]} ({WORKS_WITHOUT[kind]})")


def _asked(kind: Kind, text: str) -> list[Suggestion]:
    only = {"pipeline_tag": "text-generation"} if kind == "model" else {}
    rows = _list(kind, text, **only)
    if kind == "model" and "/" in text and not any(_id(row) == text for row in rows):
        rows = [row for row in _list(kind, text) if _id(row) == text] + rows
    return [{"value": _id(row), "note": _note(row)} for row in rows if _id(row)][:ROWS]


def _list(kind: Kind, text: str, **only: str) -> list[Mapping[str, Any]]:
    rows = ask(f"{kind}s", timeout=TIMEOUT_SECONDS, search=text, sort="downloads", limit=ROWS, **only)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _id(row: Mapping[str, Any]) -> str:
    return str(row.get("id") or "")[:LONGEST_TEXT]


def _note(row: Mapping[str, Any]) -> str:
    downloads = row.get("downloads")
    words = [f"{_rounded(downloads)} downloads a month"] if isinstance(downloads, int) else []
    return ", ".join(words + (["gated"] if row.get("gated") else []) + (["private"] if row.get("private") else []))


def _rounded(number: int) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)


def _told(error: Exception, kind: Kind) -> str:
    """One line; it is remembered, so that the next key does not wait for the same again."""
    global _failure
    from huggingface_hub.errors import HfHubHTTPError

    status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
    words = f"the Hub refuses to be searched: {status}" if status else network_words(error)
    fix = "set HF_TOKEN to a valid one, or unset it" if status == 401 else network_fix(error)
    with _lock:
        _failure = (time.monotonic(), f"{words}; {fix}")
    return f"{words}; {fix} ({WORKS_WITHOUT[kind]})"
