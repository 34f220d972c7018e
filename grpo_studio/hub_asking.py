"""How the Hub is asked, and what a failed request means, in words. No token is in any of them."""

from __future__ import annotations

import os
from typing import Any, Literal
from urllib.parse import quote

from grpo_studio.errors import DataError, ModelError

TIMEOUT_SECONDS = 10.0
Kind = Literal["model", "dataset"]
KIND_NAMES = {"model": "model", "dataset": "data set"}
INSTEAD = {
    "model": "use a local folder or a built-in model",
    "dataset": "use a local file or a built-in data set",
}
OFFLINE_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def ask(*steps: str, timeout: float = TIMEOUT_SECONDS, **parameters: Any) -> Any:
    """What the Hub's API answers to a GET of a path; raises the errors of huggingface_hub and httpx."""
    from huggingface_hub import constants, get_session, hf_raise_for_status
    from huggingface_hub.utils._headers import build_hf_headers

    path = "/".join(quote(step, safe="/") for step in steps[:2]) + "".join(f"/{quote(s, safe='')}" for s in steps[2:])
    response = get_session().get(
        f"{constants.ENDPOINT}/api/{path}", headers=build_hf_headers(), params=parameters, timeout=timeout
    )
    hf_raise_for_status(response)
    return response.json() if response.content else None


def ask_about(repo_id: str, kind: Kind, *steps: str, **parameters: Any) -> Any:
    """As `ask`, about a repository.

    Raises:
        ModelError, DataError: any failure, told.
    """
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(repo_id)
        return ask(f"{kind}s", repo_id, *steps, **parameters)
    except Exception as error:  # the boundary to the Hub's libraries, which raise many kinds
        raise failure(error, repo_id, kind, steps[-1] if len(steps) == 2 else None) from error


def limit_waiting(seconds: float | None = TIMEOUT_SECONDS) -> None:
    """How long a request of huggingface_hub in this process waits for an answer, unless it says so; None: for ever.

    None is the library's own way, which suits an upload: it is answered when all has arrived.
    """
    from huggingface_hub import get_session

    get_session().timeout = seconds


def is_offline() -> bool:
    """Whether huggingface_hub was told, when it was loaded, to keep off the network."""
    from huggingface_hub.constants import is_offline_mode

    return is_offline_mode()


def offline_words() -> str:
    """That a variable keeps this machine off the Hub, by its name and value."""
    switch = next((name for name in OFFLINE_SWITCHES if os.environ.get(name)), OFFLINE_SWITCHES[0])
    return f"{switch}={os.environ.get(switch) or 1} keeps this machine off the Hub"


def failure(error: BaseException, repo_id: str, kind: Kind, revision: str | None = None) -> ModelError | DataError:
    """The error that tells of a failed request about a repository."""
    text = _told(error, repo_id, kind, revision)
    return ModelError(text) if kind == "model" else DataError(text)


def _told(error: BaseException, repo_id: str, kind: Kind, revision: str | None) -> str:
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name, instead = KIND_NAMES[kind], INSTEAD[kind]
    if isinstance(error, HFValidationError):
        return f"{repo_id!r} is no Hub id; give owner/name, or {instead}"
    if isinstance(error, OfflineModeIsEnabled):
        return f"{offline_words()}, where the {name} {repo_id} is; unset it, or {instead}"
    if isinstance(error, GatedRepoError):
        held = "the Hub token of this machine has no access to it" if _has_token() else "no Hub token is set here"
        page = f"datasets/{repo_id}" if kind == "dataset" else repo_id
        return (
            f"{repo_id} is gated and {held}; accept its terms on the Hub's page {page} and set HF_TOKEN, or {instead}"
        )
    if isinstance(error, RepositoryNotFoundError):
        held = "this machine's Hub token may not read it" if _has_token() else "no Hub token is set here"
        return f"the Hub has no {name} {repo_id}, or it is private and {held}; check the id and HF_TOKEN, or {instead}"
    if isinstance(error, RevisionNotFoundError):
        return f"the {name} {repo_id} has no revision {revision!r}; give one of its branches, tags or commits"
    if isinstance(error, HfHubHTTPError):
        return _refusal(error.response.status_code, repo_id, instead)
    return f"{network_words(error)} (asked for {repo_id}); {network_fix(error)}, or {instead}"


def is_network_trouble(error: BaseException | None) -> bool:
    """Whether a request failed for no fault of what was asked for: no network, none wanted, or the Hub is ill."""
    import httpx
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error, HfHubHTTPError):
        return error.response.status_code >= 500
    network = (httpx.TransportError, OfflineModeIsEnabled, ConnectionError, TimeoutError)
    return isinstance(error, network) and not _is_about_token(error)


def network_words(error: BaseException) -> str:
    """What kept a request from being answered at all."""
    import httpx

    if _is_about_token(error):
        return "the Hub token of this machine cannot be sent"
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return "the Hub does not answer"
    if isinstance(error, httpx.HTTPError | OSError):
        return f"cannot reach the Hub: {type(error).__name__}"
    return f"what answers for the Hub is not understood: {type(error).__name__}"


def network_fix(error: BaseException) -> str:
    """What would help against it."""
    return "set HF_TOKEN to a valid one" if _is_about_token(error) else "check the network"


def _is_about_token(error: BaseException) -> bool:
    """Whether the token itself is the trouble: no header can hold it, or it cannot be had."""
    import httpx
    from huggingface_hub.errors import OIDCError

    return isinstance(error, UnicodeError | httpx.LocalProtocolError | OIDCError)


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None


def _refusal(status: int, repo_id: str, instead: str) -> str:
    asked = f"(asked for {repo_id})"
    if status == 401:
        return f"the Hub does not know the token of this machine {asked}; set HF_TOKEN to a valid one, or unset it"
    if status == 429:
        return f"the Hub takes no more requests for now: 429 {asked}; wait some minutes, or {instead}"
    if status >= 500:
        return f"the Hub has trouble of its own: {status} {asked}; try again later, or {instead}"
    return f"the Hub refuses: {status} {asked}; check that HF_TOKEN may read it, or {instead}"
