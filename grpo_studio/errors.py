"""The exception tree. Each error is one line: what was wrong, the value found, what would work."""

from __future__ import annotations


class StudioError(Exception):
    """Base of every error that is shown to a person as it stands; `exit_code` is what the command line returns."""

    exit_code = 1


class UsageError(StudioError, ValueError):
    """An unknown command, key or preset."""

    exit_code = 2


class ConfigError(StudioError, ValueError):
    """A setting has a value that cannot work."""


class ModelError(StudioError, OSError):
    """A model cannot be found, fetched or read."""


class DataError(StudioError, ValueError):
    """A data set cannot be found or read, or lacks what the run needs."""


class ColumnError(DataError):
    """A column is missing, or several could be meant. `field` is the setting that would say which.

    `mapping` holds what was found, so that a page can offer it.
    """

    def __init__(self, message: str, field: str, mapping: object = None) -> None:
        super().__init__(message)
        self.field = field
        self.mapping = mapping


class HubError(StudioError, OSError):
    """The Hub cannot be searched."""


class VerifierError(StudioError, ValueError):
    """A verifier is unknown, broken or has wrong parameters."""


class RolloutError(StudioError, RuntimeError):
    """The engine that samples does not start, answer, or agree with the trainer."""


class TrainingError(StudioError, RuntimeError):
    """Training came to its end without having trained."""


class OutOfMemoryError(TrainingError, MemoryError):
    """The device's memory was too small; the message names the phase, the forecast and what would fit."""


class CheckpointError(StudioError, ValueError):
    """A checkpoint is missing, half-written or damaged, or nothing can go on from it."""


class RunNotFoundError(StudioError, LookupError):
    """No run goes by that id."""


class StoreError(StudioError, OSError):
    """A run folder or its database cannot be written or read."""


class DiskFullError(StoreError):
    """A disk has too little room left; the message names it, what is free and what is needed."""


class PortTakenError(StudioError, OSError):
    """The address for the app is in use."""
