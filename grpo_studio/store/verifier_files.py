"""The verifier files of a run, kept with it: what judged is known for ever, and an edit changes no run that is on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grpo_studio.config import RewardSettings
from grpo_studio.errors import StoreError
from grpo_studio.store.folder import write_whole
from grpo_studio.verifiers import Registry
from grpo_studio.verifiers_used import used_by_all


@dataclass(frozen=True)
class KeptFile:
    """One file as it was when the run started, with the verifiers of the run that it defines."""

    file: str
    sha256: str
    source: str
    verifiers: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def keep_verifiers(rewards: Sequence[RewardSettings], registry: Registry, folder: Path) -> list[KeptFile]:
    """Copy the files that define the verifiers of a run, those that they call too (parts of an ensemble).

    Two files of one name are told apart by a number. A verifier is refused when it is found twice, so the folder can
    stand before those that the files came from.

    Raises:
        VerifierError: a reward's verifier is not there.
        StoreError: a file cannot be read, or the copy not be written.
    """
    own = {reward.verifier for reward in rewards}
    names = [name for name in used_by_all(rewards, registry) if name in own or name in registry.specs]
    by_file: dict[Path, list[str]] = {}
    for name in names:
        by_file.setdefault(registry.get(name).path, []).append(name)
    kept: list[KeptFile] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, verifiers in by_file.items():
            file = _free_name(path, {one.file for one in kept})
            source = path.read_bytes()
            write_whole(folder / file, source)
            kept.append(KeptFile(file, hashlib.sha256(source).hexdigest(), str(path), tuple(verifiers)))
    except OSError as error:
        raise StoreError(f"cannot keep the verifier files in {folder}: {error}") from error
    return kept


def _free_name(path: Path, taken: set[str]) -> str:
    names = (path.name, *(f"{path.stem}-{number}{path.suffix}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
