"""May this machine, with its present token, read or write a repository of the Hub? Asked before anything is loaded."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grpo_studio.errors import ConfigError, DataError, ModelError
from grpo_studio.hub_asking import TIMEOUT_SECONDS, Kind, ask_about, limit_waiting
from grpo_studio.shown import shown

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""Where transformers looks for weights, in this order; with .index.json after it where they are in several files."""
WEIGHT_FILES = tuple(re.compile(rf"{stem}(-\d+-of-\d+)?\.{end}") for stem, end in (n.rsplit(".", 1) for n in WEIGHTS))
SMALL_FILES = re.compile(r"[^/]+\.(json|jinja|txt|model|tiktoken)|additional_chat_templates/[^/]+")
"""The files of config and tokenizer that transformers may read."""


@dataclass(frozen=True)
class RepoFacts:
    """What the Hub says of a repository before anything of it is fetched; None where it does not say.

    Args:
        gated: whether its terms must be accepted first.
        readable: whether the present token may read its files.
        files: every file and its bytes.
        parameters: numbers in the weights, by the Hub's reading of the safetensors headers.
        download_bytes: what loading it fetches: of a model its config, tokenizer and weights, None when it has no
            weights that transformers loads; of a data set all its files.
    """

    id: str
    gated: bool
    readable: bool
    licence: str | None
    files: Mapping[str, int]
    parameters: int | None
    download_bytes: int | None


def repo_facts(repo_id: str, kind: Kind, revision: str | None = None) -> RepoFacts:
    """Ask the Hub about a repository; a gated one has facts, too, also when it may not be read.

    Raises:
        ModelError, DataError: it does not exist, or the Hub cannot be reached.
    """
    info = ask_about(repo_id, kind, *(() if revision is None else ("revision", revision)), blobs=True)
    try:
        facts = _facts(info, repo_id, kind)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = ModelError if kind == "model" else DataError
        raise problem(f"what answers for the Hub does not describe {repo_id}; check HF_ENDPOINT") from error
    return replace(facts, readable=_opens(repo_id, kind)) if facts.gated else facts


def _facts(info: Any, repo_id: str, kind: Kind) -> RepoFacts:
    files = {str(file["rfilename"]): int(file.get("size") or 0) for file in info.get("siblings") or ()}
    total = (info.get("safetensors") or {}).get("total")
    return RepoFacts(
        id=str(info.get("id") or repo_id),
        gated=bool(info.get("gated")),
        readable=True,
        licence=_licence(info),
        files=files,
        parameters=total if isinstance(total, int) else None,
        download_bytes=_bytes_of(files, model_downloads(files) if kind == "model" else tuple(files)),
    )


def is_public(repo_id: str, kind: Kind) -> bool:
    """Whether somebody without a token may look at a repository; False too when the Hub does not say."""
    from huggingface_hub import HfApi

    try:
        return not HfApi(token=False).repo_info(repo_id, repo_type=kind, timeout=TIMEOUT_SECONDS).private
    except Exception:  # the boundary to the Hub's libraries: what is not known to be public is not
        return False


def require_readable(repo_id: str, kind: Kind, revision: str | None = None) -> None:
    """Ask the Hub, with the token that the worker will have; a model whose weights are cached needs no asking.

    Raises:
        ModelError, DataError: it does not exist, is gated, or the Hub cannot be reached.
    """
    if kind == "model" and _is_cached(repo_id, revision):
        return
    ask_about(repo_id, kind, "auth-check")  # the description of a gated repository alone is open to all
    if revision is not None:
        ask_about(repo_id, kind, "revision", revision)


def _opens(repo_id: str, kind: Kind) -> bool:
    from huggingface_hub.errors import GatedRepoError

    try:
        ask_about(repo_id, kind, "auth-check")
    except (ModelError, DataError) as error:
        if isinstance(error.__cause__, GatedRepoError):
            return False
        raise
    return True


def _licence(info: Mapping[str, Any]) -> str | None:
    card = info.get("cardData") or {}
    named = card.get("license") if isinstance(card, Mapping) else None
    if named is None:
        tags = (str(tag) for tag in info.get("tags") or ())
        named = next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), None)
    if named == "other" and card.get("license_name"):
        named = card["license_name"]
    return ", ".join(map(str, named)) if isinstance(named, list) else None if named is None else str(named)


def _bytes_of(files: Mapping[str, int], names: Sequence[str] | None) -> int | None:
    return None if names is None else sum(files[name] for name in names)


def model_downloads(names: Collection[str]) -> tuple[str, ...] | None:
    """Those of a model's files that loading it fetches; None when none of them are weights that transformers loads."""
    for pattern in WEIGHT_FILES:
        if weights := [name for name in names if pattern.fullmatch(name)]:
            return (*weights, *(name for name in names if SMALL_FILES.fullmatch(name)))
    return None


def _is_cached(repo_id: str, revision: str | None) -> bool:
    """Whether the config and all weights of a model lie in the Hub's cache here: nothing is asked for at its start."""
    from huggingface_hub.errors import HFValidationError

    try:
        if cached_file(repo_id, "config.json", revision) is None:
            return False
        for name in WEIGHTS:
            if cached_file(repo_id, name, revision) is not None:
                return True
            if (index := cached_file(repo_id, f"{name}.index.json", revision)) is not None:
                shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
                return all(cached_file(repo_id, shard, revision) is not None for shard in shards)
    except (HFValidationError, OSError, ValueError, KeyError, AttributeError):
        pass  # no such id, or a damaged cache: the Hub is asked
    return False


def cached_file(repo_id: str, name: str, revision: str | None) -> Path | None:
    """Where a file of a model lies in the Hub's cache here; None when it does not."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repo_id, name, revision=revision)
    return Path(found) if isinstance(found, str) else None


def require_writable(repo_id: str, private: bool = True, instead: str = "leave report.hub_repo empty") -> bool:
    """Make the repository that weights go to, unless it is there; returns whether it was made just now.

    Args:
        private: who may see a repository that is made; one that is there stays as it is.
        instead: what else could be done when the Hub cannot be reached.

    Raises:
        ConfigError: the Hub cannot be reached, or the token may not write there.
    """
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        made = _made(repo_id, private)
        HfApi().auth_check(repo_id, write=True)  # one that is there may be another's
    except HFValidationError as error:
        raise ConfigError(f"{repo_id!r} is no Hub id; give owner/name") from error
    except HfHubHTTPError as error:
        if error.response.status_code == 401:
            raise ConfigError(
                f"the Hub does not know the token (pushing to {repo_id}); set HF_TOKEN to a valid one"
            ) from error
        reason = shown(str(error), 150)
        raise ConfigError(f"the Hub refuses to make {repo_id}: {reason}; set HF_TOKEN to one that may write") from error
    except (httpx.HTTPError, OSError) as error:
        name = type(error).__name__
        raise ConfigError(f"cannot reach the Hub for {repo_id} ({name}); check the network, or {instead}") from error
    return made


def _made(repo_id: str, private: bool) -> bool:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        HfApi().create_repo(repo_id, private=private, exist_ok=False)
    except HfHubHTTPError as error:
        if error.response.status_code != 409:  # conflict: it is there
            raise
        return False
    return True


def remove_repo(repo_id: str) -> bool:
    """Take back a repository that was made just now and has nothing in it yet; whether that was done."""
    from huggingface_hub import HfApi

    try:
        HfApi().delete_repo(repo_id)
    except Exception:  # the boundary to the Hub's libraries: what led here is told, and this is tidying up after it
        return False
    return True


def push_folder(folder: Path, repo_id: str) -> str:
    """Upload a folder's files to a repository, all or none; returns the address of the commit.

    Raises:
        ModelError: the Hub cannot be reached or refuses them.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    limit_waiting(None)
    disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the Hub finds odd in a card is no reason to fail
            commit = HfApi().upload_folder(repo_id=repo_id, folder_path=folder, commit_message="Train with GRPO Studio")
    except Exception as error:  # the boundary to the Hub's libraries: a finished run stays finished
        reason = shown(str(error), 150)
        raise ModelError(f"cannot push to {repo_id}: {reason}; push the run again by `push`") from error
    return str(commit.commit_url)
