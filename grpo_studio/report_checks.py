"""What `report` needs of this machine: a tracker's package and login, a token for the Hub. Asked before a run starts.

The environment is read anew each time, as the worker will read it; no tracker is loaded and nothing is pushed.
"""

from __future__ import annotations

import netrc
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from grpo_studio.config import RunConfig
from grpo_studio.problem import Problem
from grpo_studio.shown import shown

PACKAGES = {"trackio": ("trackio",), "wandb": ("wandb",), "tensorboard": ("tensorboard", "tensorboardX")}
"""Value of `report.to` to the packages of which one must be installed, the usual one first."""
WANDB_SERVER = "https://api.wandb.ai"
WANDB_MODES_WITHOUT_LOGIN = ("offline", "dryrun", "disabled")
OFFLINE_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def report_problems(config: RunConfig) -> Iterator[Problem]:
    """What keeps a run from reporting to the tracker and the Hub repository that its settings name."""
    yield from _tracker_problems(config.report.to)
    if config.report.hub_repo is not None:
        yield from _hub_problems(config.report.hub_repo)


def _tracker_problems(tracker: str) -> Iterator[Problem]:
    if tracker == "none":
        return
    packages = PACKAGES[tracker]
    if not any(map(_is_installed, packages)):
        missing = f"the package {packages[0]} is not installed (found report.to={tracker})"
        yield Problem("report.to", missing, f"run pip install {packages[0]}, or use none")
    elif tracker == "wandb" and not _wandb_needs_no_login() and not _wandb_login():
        yield Problem(
            "report.to",
            f"wandb has no login for {_wandb_host()} on this machine",
            "set WANDB_API_KEY, run wandb login, or set WANDB_MODE=offline",
        )


def _is_installed(package: str) -> bool:
    """Whether the package itself is there: wandb leaves a folder of its name behind, which can be imported, too."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def _wandb_needs_no_login() -> bool:
    return os.environ.get("WANDB_MODE") in WANDB_MODES_WITHOUT_LOGIN


def _wandb_login() -> bool:
    """Whether wandb finds a key or token in the places where it looks by itself: environment and netrc file."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    try:
        entry = netrc.netrc(_netrc_file()).authenticators(_wandb_host())
    except (OSError, netrc.NetrcParseError):
        return False
    return entry is not None and bool(entry[2])


def _wandb_host() -> str:
    return urlsplit(os.environ.get("WANDB_BASE_URL") or WANDB_SERVER).netloc


def _netrc_file() -> Path:
    if named := os.environ.get("NETRC"):
        return Path(named).expanduser()
    usual = Path.home() / ".netrc"
    return usual if usual.exists() else Path.home() / "_netrc"


def _hub_problems(repo: str) -> Iterator[Problem]:
    if (switch := _offline_switch()) is not None:
        offline = f"{switch}={os.environ[switch]} keeps this machine off the Hub (found {repo})"
        yield Problem("report.hub_repo", offline, f"unset {switch}, or leave it empty")
        return
    import httpx
    from huggingface_hub import get_token
    from huggingface_hub.errors import OIDCError

    try:
        token = get_token()
    except (OIDCError, httpx.HTTPError, OSError) as error:
        reason = shown(str(error), 150)
        yield Problem("report.hub_repo", f"no Hub token to push to {repo} with: {reason}", "set HF_TOKEN to one")
        return
    if token is None:
        yield Problem(
            "report.hub_repo",
            f"this machine has no Hub token to push to {repo} with",
            "set HF_TOKEN to one that may write there, run hf auth login, or leave it empty",
        )


def _offline_switch() -> str | None:
    """The variable that keeps huggingface_hub off the network: the first that is set decides, as it does there."""
    decides = next((name for name in OFFLINE_SWITCHES if os.environ.get(name)), None)
    on = decides is not None and os.environ[decides].upper() in ("1", "ON", "YES", "TRUE")
    return decides if on else None
