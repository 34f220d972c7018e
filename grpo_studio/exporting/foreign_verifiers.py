"""Verifier files that came with an archive are somebody's code: they judge here only when the same file is here too."""

from __future__ import annotations

from pathlib import Path

from grpo_studio.catalog import sha256_of
from grpo_studio.errors import VerifierError
from grpo_studio.exporting.archive_form import IMPORTED
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder


def require_own_verifiers(folder: RunFolder, settings: Settings, kept: Path) -> None:
    """Refuse to run the files in `kept` of a run that was imported, unless each is, byte for byte, a verifier here.

    Raises:
        VerifierError: one is not; the message names it and where it would have to be put.
    """
    if not (folder.path / IMPORTED).exists():
        return
    own = {sha256_of(path) for place in settings.rewards_dirs for path in place.glob("*.py")}
    for path in sorted(kept.glob("*.py")):
        if sha256_of(path) not in own:
            raise VerifierError(
                f"this run was imported, and its verifier {path.name} is not among those here, so it is not run; read "
                f"{path}, and copy it to {settings.own_rewards} if you trust it"
            )
