"""Data sets of the Hub as rows."""

from __future__ import annotations

import re

from grpo_studio.config import BUILTIN_DATASET, DatasetSettings
from grpo_studio.data.rows import Row, RowStream
from grpo_studio.errors import DataError
from grpo_studio.hub import require_readable


def open_hub(settings: DatasetSettings) -> RowStream:
    """The rows of a split; with `settings.streaming` they come over the network as they are asked for.

    Raises:
        DataError: it does not exist, is gated, has no such configuration or split, or the Hub cannot be reached.
    """
    return RowStream(iter(_read_hub(settings)))


def _read_hub(settings: DatasetSettings) -> list[Row]:
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", settings.source):
        raise DataError(
            f"there is no file {settings.source}; give an existing file, a Hub id (owner/name) or {BUILTIN_DATASET}"
        )
    require_readable(settings.source, "dataset")
    import datasets

    try:
        loaded = datasets.load_dataset(settings.source, settings.config, split=settings.split)
    except Exception as error:  # the library raises many kinds, from HTTP errors to KeyError
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"cannot load {settings.source} (config {settings.config}, split {settings.split}) from the Hub: {reason}; "
            f"check the id and the network, or use a local file or {BUILTIN_DATASET}"
        ) from error
    return list(loaded)
