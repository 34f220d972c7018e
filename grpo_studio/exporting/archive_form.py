"""The form of an archive: a gzipped tar of one folder named after the run, its manifest `archive.json` first.

Both who writes and who reads it ask here which files belong in, so that nothing else can come with it.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from grpo_studio.store.folder import RUN_ID

FORMAT = 1
MANIFEST = "archive.json"
IMPORTED = "imported.json"
"""In a run's folder: that it came from an archive, and which."""
SUFFIXES = (".tar.gz", ".tgz")
LARGEST_MANIFEST = 16 << 20
_PART = r"\w[\w. +=@,-]{0,199}"
_BELONGS = re.compile(
    r"config\.yaml|config-attempt-[0-9]{1,6}\.yaml|run\.db|process\.json|branch\.json|pair\.json|stop-requested"
    r"|worker\.log|server\.log"
    rf"|evaluations/{_PART}\.db"
    rf"|verifiers/(attempt-[0-9]{{1,6}}/)?{_PART}"
    rf"|checkpoints/(final|checkpoint-[0-9]{{1,9}})(/{_PART}){{1,4}}"
)
LOGS = ("worker.log", "server.log")


class ArchivedFile(BaseModel):
    """One file: its size in bytes and hex SHA-256."""

    model_config = ConfigDict(strict=True, extra="ignore")
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class ArchiveManifest(BaseModel):
    """What an archive says of itself.

    Args:
        version: of the GRPO Studio that wrote it.
        state, reason: of the run when it was archived.
        archived_at: seconds since 1970.
        files: all others in the archive by their names in the run's folder.
        notes: what was left out or changed, in words.
    """

    model_config = ConfigDict(strict=True, extra="ignore")
    format: int
    version: str = Field(max_length=100)
    run: str = Field(pattern=rf"^{RUN_ID.pattern}$")
    state: str = Field(max_length=40)
    reason: str = Field(default="", max_length=10_000)
    step: int = Field(default=0, ge=0)
    archived_at: float = Field(ge=0, allow_inf_nan=False)
    files: dict[str, ArchivedFile]
    notes: list[str] = Field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(file.bytes for file in self.files.values())


def belongs(name: str) -> bool:
    """Whether a file of that name in a run's folder is part of an archive."""
    return _BELONGS.fullmatch(name) is not None


def is_archive_name(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)
