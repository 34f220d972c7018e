"""Where things live and how the app is served: read from the environment once, never later."""

from __future__ import annotations

import ipaddress
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from grpo_studio.errors import ConfigError, StoreError

PACKAGE_DIR = Path(__file__).resolve().parent
BUNDLED_REWARDS = PACKAGE_DIR.parent / "rewards"
BUNDLED_PRESETS = PACKAGE_DIR / "presets"
SPACE_STORAGE = Path("/data")
_SWITCH = {"auto": None, "on": True, "1": True, "true": True, "off": False, "0": False, "false": False}


@dataclass(frozen=True)
class Settings:
    """Paths are absolute. `home` holds runs, rewards, presets and the queue; `cache` holds converted models.

    `grace_seconds` is the time a worker has, after a stop was asked for, to finish its step and save. `edit_code` says
    whether verifiers may be written in the browser; None: only where nobody else can ask (`effective_edit_code`).
    `upload_mb` is the size that an uploaded file may have; 0: no uploads. `data_dirs` are folders that pages may read
    from besides `home` when others can reach the app.
    """

    home: Path
    runs_dir: Path
    cache: Path
    host: str = "127.0.0.1"
    port: int = 7860
    grace_seconds: float = 300.0
    edit_code: bool | None = None
    upload_mb: int = 2048
    data_dirs: tuple[Path, ...] = ()

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read GRPO_STUDIO_HOME, _CACHE, _HOST, _PORT, _GRACE, _EDIT_CODE, _UPLOAD_MB and _DATA_DIRS.

        Raises:
            ConfigError: the port is not a number from 1 to 65535, the grace period is no number of seconds, the
                switch for the editor is none of auto, on and off, or the size of uploads is no number.
        """
        env = os.environ if env is None else env
        home = Path(env.get("GRPO_STUDIO_HOME") or _default_home(env)).expanduser().resolve()
        cache = Path(env.get("GRPO_STUDIO_CACHE") or "~/.cache/grpo-studio").expanduser().resolve()
        port_text = env.get("GRPO_STUDIO_PORT") or "7860"
        if not port_text.isdecimal() or not 1 <= int(port_text) <= 65535:
            raise ConfigError(f"GRPO_STUDIO_PORT is {port_text!r}; give a number from 1 to 65535")
        host = env.get("GRPO_STUDIO_HOST") or "127.0.0.1"
        grace = _grace(env.get("GRPO_STUDIO_GRACE") or "300")
        switch = (env.get("GRPO_STUDIO_EDIT_CODE") or "auto").strip().lower()
        if switch not in _SWITCH:
            raise ConfigError(f"GRPO_STUDIO_EDIT_CODE is {switch!r}; give auto, on or off")
        upload_text = env.get("GRPO_STUDIO_UPLOAD_MB") or "2048"
        if not upload_text.isdecimal() or len(upload_text) > 9:
            raise ConfigError(f"GRPO_STUDIO_UPLOAD_MB is {upload_text!r}; give a number of megabytes, such as 2048")
        folders = [part for part in (env.get("GRPO_STUDIO_DATA_DIRS") or "").split(os.pathsep) if part.strip()]
        data_dirs = tuple(Path(part).expanduser().resolve() for part in folders)
        switched = _SWITCH[switch]
        return cls(home, home / "runs", cache, host, int(port_text), grace, switched, int(upload_text), data_dirs)

    def effective_edit_code(self) -> bool:
        """Whether code may be written in the browser: as set, else only when bound to this machine alone.

        Code that is written there runs with the rights of the app.
        """
        return is_loopback(self.host) if self.edit_code is None else self.edit_code

    def with_runs_dir(self, runs_dir: str | None) -> Settings:
        """The same settings with another runs folder; `None` changes nothing."""
        return self if runs_dir is None else replace(self, runs_dir=Path(runs_dir).expanduser().resolve())

    @property
    def rewards_dirs(self) -> tuple[Path, ...]:
        """Where verifiers are looked for: those of the program first, then a person's own."""
        return (BUNDLED_REWARDS, self.own_rewards)

    @property
    def own_rewards(self) -> Path:
        """A person's own verifiers; the folder need not exist."""
        return self.home / "rewards"

    @property
    def presets_dirs(self) -> tuple[Path, ...]:
        """Where presets are looked for; a person's own preset wins over a built-in one of the same name."""
        return (self.home / "presets", BUNDLED_PRESETS)

    @property
    def uploads(self) -> Path:
        """Files that were uploaded in the browser; the folder need not exist."""
        return self.home / "uploads"

    @property
    def queue_path(self) -> Path:
        return self.home / "queue.db"

    def require_writable(self) -> None:
        """Make the home and runs folders.

        Raises:
            StoreError: one of them cannot be made or written to.
        """
        for folder in (self.home, self.runs_dir):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                probe = folder / f".write-test-{os.getpid()}-{secrets.token_hex(4)}"  # two threads may ask at once
                probe.touch()
                probe.unlink()
            except OSError as error:
                raise StoreError(
                    f"cannot write to the runs folder {folder}: {error.strerror or error}; "
                    "set GRPO_STUDIO_HOME or --runs-dir to a folder that you can write to"
                ) from error


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _grace(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise ConfigError(f"GRPO_STUDIO_GRACE is {text!r}; give a number of seconds, such as 300")
    return seconds


def _default_home(env: Mapping[str, str]) -> str:
    on_space = bool(env.get("SPACE_ID"))
    if on_space and SPACE_STORAGE.is_dir() and os.access(SPACE_STORAGE, os.W_OK):
        return str(SPACE_STORAGE)
    return "studio"
