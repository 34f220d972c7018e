"""Questions to a vLLM server over HTTP, each answered within seconds: is it there, is it well, whose model is it?"""

from __future__ import annotations

import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from grpo_studio.errors import RolloutError
from grpo_studio.server_address import EXAMPLE, address_trouble, clean_address

ANSWER_WITHIN = 5.0
POLL = 1.0
NEEDED = """VLLM_SERVER_DEV_MODE=1 and --weight-transfer-config '{"backend": "nccl"}'"""


def answers_well(url: str) -> bool:
    """Whether a server answers GET /health with 200 just now."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=ANSWER_WITHIN) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except (OSError, http.client.HTTPException):
        return False


def require_healthy(url: str, timeout: float, model: str | None = None) -> str:
    """Make sure that a server that somebody else runs can be sampled from and sent weights.

    A server that is not up yet is waited for.

    Args:
        url: as in `rollout.server_url`.
        timeout: seconds until it must answer.
        model: the run's model; None: do not compare.

    Returns:
        The address as TRL wants it.

    Raises:
        RolloutError: it is no address, nothing answers there, what answers is no such server, or it has another model.
    """
    _require_address(url)
    url = clean_address(url)
    _wait_for_health(url, timeout)
    try:
        served = _get(url, "/v1/models")["data"][0]
        theirs = str(served.get("root") or served["id"])
        takes_weights = (
            _get(url, "/server_info?config_format=json")["vllm_config"]["weight_transfer_config"] is not None
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise RolloutError(
            f"what answers at {url} is no vLLM server, or one of another version (no {error} in what it says of "
            f"itself); {_fix()}"
        ) from error
    if model is not None and _differ(theirs, model):
        raise RolloutError(
            f"the vLLM server at {url} serves {theirs}, and the run trains {model}; give rollout.server_url of a "
            "server that serves the same"
        )
    if not takes_weights:
        raise RolloutError(f"the vLLM server at {url} takes no weights; start it again with {NEEDED}")
    return url


def _require_address(url: str) -> None:
    if trouble := address_trouble(url):
        raise RolloutError(f"rollout.server_url: {trouble}; give one such as {EXAMPLE}")
    parts = urlsplit(url)
    try:
        socket.getaddrinfo(parts.hostname, parts.port)
    except (OSError, UnicodeError) as error:
        raise RolloutError(
            f"rollout.server_url names a host that is not known here: {parts.hostname!r}; give one such as {EXAMPLE}"
        ) from error


def _wait_for_health(url: str, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=min(ANSWER_WITHIN, timeout)):
                return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code < 500:
                raise RolloutError(f"{url}/health answered {error.code}: that is no vLLM server; {_fix()}") from error
            trouble = f"the vLLM server at {url} says that it is not well ({error.code} from /health)"
        except (OSError, http.client.HTTPException) as error:
            trouble = f"{_silence(error)} at {url}"
        if time.monotonic() > deadline:
            raise RolloutError(f"{trouble}, for {timeout:g} s; {_fix()}")
        time.sleep(min(POLL, timeout))


def _silence(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens"
    if isinstance(reason, TimeoutError):
        return "no answer came"
    return f"no usable answer came ({reason or type(error).__name__})"


def _fix() -> str:
    return "start the server, or leave rollout.server_url empty to have one started"


def _get(url: str, path: str) -> Any:
    try:
        with urllib.request.urlopen(url + path, timeout=ANSWER_WITHIN) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            message = f"the vLLM server at {url} asks for a key, which cannot be given; start it without --api-key"
        else:
            message = f"{url}{path} answered {error.code}; start the vLLM server again with {NEEDED}"
        raise RolloutError(message) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise RolloutError(f"{url}{path} gave no usable answer ({error}); see the log of the vLLM server") from error


def _differ(theirs: str, ours: str) -> bool:
    """Whether two names certainly mean different models: two Hub ids, or folders of different names."""
    if theirs == ours or Path(theirs).name == Path(ours).name:
        return False
    folders = [Path(name).is_absolute() or name.startswith(".") for name in (theirs, ours)]
    return folders[0] == folders[1]
