"""Keeps tokens and passwords out of what is carried away."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.IGNORECASE)
SHORTEST = 6
SHAPES = re.compile(r"\bhf_[A-Za-z0-9]{16,}|\b(?:ghp|gho|ghs)_[A-Za-z0-9]{30,}|\bsk-[A-Za-z0-9_-]{20,}")
"""Tokens of the Hub and of others that are known by how they begin."""
INSTEAD = "***"


@dataclass(frozen=True)
class Redaction:
    """What is taken out: these values, and whatever has the shape of a token."""

    values: tuple[str, ...] = ()

    @classmethod
    def of_environment(cls, env: Mapping[str, str] | None = None) -> Redaction:
        """The values of this process's variables that hold tokens, keys and passwords; the longest first."""
        env = os.environ if env is None else env
        found = {
            text for name, value in env.items() if SECRET_NAME.search(name) and len(text := value.strip()) >= SHORTEST
        }
        return cls(tuple(sorted(found, key=len, reverse=True)))

    def text(self, text: str) -> str:
        for value in self.values:
            text = text.replace(value, INSTEAD)
        return SHAPES.sub(INSTEAD, text)

    def bytes(self, data: bytes) -> bytes:
        """The same of a file's bytes; what is no text in them stays as it is."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
