"""Push a run's weights with their model card to the Hub. A push that fails leaves nothing here and nothing there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

from grpo_studio import hub
from grpo_studio.checkpoints import FINAL
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.exporting.aside import name_of_own
from grpo_studio.exporting.choice import chosen
from grpo_studio.exporting.weights import Exported, export_weights
from grpo_studio.hub_asking import is_offline, network_fix, network_words, offline_words
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder

Tell = Callable[[str], None]
INSTEAD = "export the run to a folder"


@dataclass(frozen=True)
class Pushed:
    """`url` is that of the commit; `made` says whether the repository is new."""

    repo: str
    url: str
    made: bool
    exported: Exported


def push(
    folder: RunFolder, settings: Settings, repo: str | None, asked: str | None, merge: bool, private: bool, tell: Tell
) -> Pushed:
    """Export to a folder of the run's own, upload, and take that folder away again.

    Args:
        repo: owner/name; None: the run's `report.hub_repo`.
        asked, merge: as `export_weights`.
        private: who may see a repository that is made for it.

    Raises:
        UsageError: no repository is named.
        ConfigError: there is no token, it may not write there, or the Hub cannot be reached.
        StudioError: as `export_weights`; ModelError: the upload failed.
    """
    repo = repo or folder.config().report.hub_repo
    if repo is None:
        raise UsageError("the run names no Hub repository (report.hub_repo); give --to owner/name")
    chosen(folder, asked)  # before anything is made on the Hub
    _require_token(repo)
    tell(f"asking for {repo}")
    made = hub.require_writable(repo, private, INSTEAD)
    try:
        return _upload(folder, settings, repo, asked, merge, made, tell)
    except BaseException:
        if made and not hub.remove_repo(repo):
            tell(f"the empty repository {repo} could not be taken back")
        raise


def push_final(folder: RunFolder, settings: Settings, repo: str, tell: Tell) -> str:
    """What a run does by itself at its end, to a repository that it made as it began; the address of the commit.

    Raises:
        StudioError: as `push`.
    """
    return _upload(folder, settings, repo, FINAL, merge=False, made=False, tell=tell).url


def _upload(
    folder: RunFolder, settings: Settings, repo: str, asked: str | None, merge: bool, made: bool, tell: Tell
) -> Pushed:
    target = folder.exports / name_of_own("push")
    try:
        exported = export_weights(folder, settings, target, asked, merge, tell, ask_hub=True)
        tell(f"uploading to {repo}")
        return Pushed(repo, hub.push_folder(target, repo), made, exported)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _require_token(repo: str) -> None:
    import httpx
    from huggingface_hub import get_token
    from huggingface_hub.errors import OIDCError

    if is_offline():
        raise ConfigError(f"{offline_words()}, so nothing can be pushed to {repo}; unset it, or {INSTEAD}")
    try:
        token = get_token()
    except (OIDCError, httpx.HTTPError, OSError) as error:
        raise ConfigError(f"no Hub token to push to {repo}: {network_words(error)}; {network_fix(error)}") from error
    if token is None:
        raise ConfigError(f"there is no Hub token to push to {repo} with; set HF_TOKEN to one that may write there")
