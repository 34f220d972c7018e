"""May this machine, with its present token, read or write a repository of the Hub? Asked before anything is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from grpo_studio.errors import ConfigError, DataError, ModelError

TIMEOUT_SECONDS = 10.0
Kind = Literal["model", "dataset"]


def require_readable(repo_id: str, kind: Kind, revision: str | None = None) -> None:
    """Ask the Hub, with the token that the worker will have; a model that is cached needs no asking.

    Raises:
        ModelError, DataError: it does not exist, is gated, or the Hub cannot be reached.
    """
    import httpx
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    problem = ModelError if kind == "model" else DataError
    instead = "use a local folder or a built-in model" if kind == "model" else "use a local file or a built-in data set"
    if kind == "model" and isinstance(try_to_load_from_cache(repo_id, "config.json", revision=revision), str):
        return
    try:
        HfApi().repo_info(repo_id, revision=revision, repo_type=kind, timeout=TIMEOUT_SECONDS)
    except GatedRepoError as error:
        raise problem(f"{repo_id} is gated; accept its terms on its page and set HF_TOKEN, or {instead}") from error
    except RepositoryNotFoundError as error:
        raise problem(
            f"the Hub has no {kind} {repo_id}, or HF_TOKEN may not read it; check the id, or {instead}"
        ) from error
    except HfHubHTTPError as error:
        raise problem(f"the Hub refuses {repo_id}: {' '.join(str(error).split())[:150]}; {instead}") from error
    except HFValidationError as error:
        raise problem(f"{repo_id!r} is no Hub id; give owner/name, or {instead}") from error
    except (httpx.HTTPError, OSError) as error:
        name = type(error).__name__
        raise problem(f"cannot reach the Hub for {repo_id} ({name}); check the network, or {instead}") from error


def require_writable(repo_id: str) -> None:
    """Make the private repository that the final weights go to, unless it is there.

    Raises:
        ConfigError: the Hub cannot be reached, or the token may not write there.
    """
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        HfApi().create_repo(repo_id, private=True, exist_ok=True)
        HfApi().auth_check(repo_id, write=True)  # one that is there may be another's
    except HFValidationError as error:
        raise ConfigError(f"{repo_id!r} is no Hub id; give owner/name") from error
    except HfHubHTTPError as error:
        reason = " ".join(str(error).split())[:150]
        raise ConfigError(f"the Hub refuses to make {repo_id}: {reason}; set HF_TOKEN to one that may write") from error
    except (httpx.HTTPError, OSError) as error:
        name = type(error).__name__
        raise ConfigError(
            f"cannot reach the Hub for {repo_id} ({name}); check the network, or leave report.hub_repo empty"
        ) from error


def push_folder(folder: Path, repo_id: str) -> str:
    """Upload a folder's files to a repository; returns the address of the commit.

    Raises:
        ModelError: the Hub cannot be reached or refuses them.
    """
    from huggingface_hub import HfApi

    try:
        commit = HfApi().upload_folder(repo_id=repo_id, folder_path=folder, commit_message="Train with GRPO Studio")
    except Exception as error:  # the boundary to the Hub's libraries: a finished run stays finished
        reason = " ".join(str(error).split())[:150]
        raise ModelError(
            f"cannot push {folder} to {repo_id}: {reason}; push it by `hf upload {repo_id} {folder}`"
        ) from error
    return str(commit.commit_url)
