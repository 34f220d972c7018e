"""What a data set of the Hub is made of: its configuration, its splits and their files, by the library `datasets`."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio.data.hub_files import HubFile
from grpo_studio.data.hub_quiet import quiet
from grpo_studio.data.rows import Row
from grpo_studio.errors import DataError
from grpo_studio.hub import require_readable
from grpo_studio.hub_asking import failure, is_network_trouble, limit_waiting
from grpo_studio.shown import shown

NAMES_LISTED = 30
STREAM_RETRIES = 3
MEDIA = ("Image", "Audio", "Video", "Pdf", "Nifti", "Mesh")
"""Features of `datasets` that are no text."""


@dataclass(frozen=True)
class HubSet:
    """One configuration of a data set. `notes` tell how it was come by."""

    source: str
    place: str
    builder: Any
    notes: list[str]

    def files(self, split: str) -> list[HubFile]:
        """The files of a split, in their order.

        Raises:
            DataError: there is no such split (those that there are), or it names files that are not of the data set.
        """
        known = {str(name): urls for name, urls in (self.builder.config.data_files or {}).items()}
        if split not in known:
            raise DataError(f"{self.source} has no split {split[:80]!r}; set dataset.split to one of {_listed(known)}")
        urls = [str(url) for url in known[split]]
        inside = f"{self.place}/" if self.place != self.source else f"hf://datasets/{self.source}@"
        if any(not url.startswith(inside) or ".." in url.split("/") for url in urls):
            raise DataError(f"{self.source} names files outside itself, which are never read; use another data set")
        return [HubFile(self.source, url) for url in urls]

    def media(self, first: HubFile) -> list[str]:
        """Columns that hold pictures, sound and the like, known before a row is read."""
        features = self.builder.info.features
        if features is None and first.name.lower().endswith(".parquet"):
            import datasets
            from pyarrow import parquet

            features = datasets.Features.from_arrow_schema(parquet.read_schema(first))
        return media_columns(features)

    def library_rows(self, split: str, streaming: bool) -> Iterator[Row]:
        """The rows as `datasets` reads them, without the columns that hold media; dates and times as text."""
        if streaming:
            loaded = self.builder.as_streaming_dataset(split)
        else:
            with quiet():
                self.builder.download_and_prepare()
                loaded = self.builder.as_dataset(split)
        loaded = loaded.remove_columns(media_columns(loaded.features))
        for row in loaded:
            yield {str(name): _plain(value) for name, value in row.items()}


def open_set(source: str, config: str | None, split: str) -> HubSet:
    """Find a data set; a copy of it in the Hub's cache does when the Hub cannot be asked.

    Raises:
        DataError: it does not exist, is gated, has no such configuration, or the Hub cannot be reached.
    """
    import datasets

    limit_waiting()
    datasets.config.USE_PARQUET_EXPORT = False  # another server is asked for it, with a long patience, for facts unused
    datasets.config.STREAMING_OPEN_MAX_RETRIES = datasets.config.STREAMING_READ_MAX_RETRIES = STREAM_RETRIES
    try:
        require_readable(source, "dataset")
    except DataError as error:
        if is_network_trouble(error.__cause__) and (copy := _copy_here(source)) is not None:
            return _open_copy(source, copy, config, split, error)
        raise
    try:
        with quiet():
            return HubSet(source, source, datasets.load_dataset_builder(source, config), [])
    except Exception as error:  # the library raises many kinds, from HTTP errors to KeyError
        raise _told(error, source, config) from error


def _open_copy(source: str, folder: str, config: str | None, split: str, unreachable: DataError) -> HubSet:
    """The data set as far as it is in the Hub's cache: of a copy with some files only those of the split are named."""
    import datasets

    note = f"{source} is read from its copy in this machine's cache: the Hub could not be asked"
    try:
        with quiet():
            named = _split_files(folder, config, split)
            builder = datasets.load_dataset_builder(folder, None if named else config, data_files=named)
    except Exception as error:  # not whole: what is wrong is that the Hub cannot be asked for the rest
        raise unreachable from error
    return HubSet(source, folder, builder, [note])


def _split_files(folder: str, config: str | None, split: str) -> dict[str, Any] | None:
    """The files of a split as the card of a copy names them; None when it names none."""
    from huggingface_hub import DatasetCard

    card = Path(folder, "README.md")
    configs = DatasetCard.load(card).data.to_dict().get("configs") if card.is_file() else None
    chosen = [one for one in configs or () if config in (one["config_name"], None)]
    if len(chosen) != 1 or not isinstance(chosen[0].get("data_files"), list):
        return None
    found = [part["path"] for part in chosen[0]["data_files"] if part["split"] == split]
    return {split: found[0]} if found else None


def media_columns(features: Mapping[str, Any] | None) -> list[str]:
    """Names of the columns that hold media, be it in lists or mappings."""
    return [str(name) for name, feature in (features or {}).items() if _holds_media(feature)]


def _holds_media(feature: Any) -> bool:
    if isinstance(feature, Mapping):
        return any(_holds_media(part) for part in feature.values())
    if isinstance(feature, list | tuple):
        return any(_holds_media(part) for part in feature)
    inner = getattr(feature, "feature", None)
    return type(feature).__name__ in MEDIA or (inner is not None and _holds_media(inner))


def _plain(value: Any) -> Any:
    """A value with dates, times and durations as text."""
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _copy_here(source: str) -> str | None:
    """The folder of a copy in the Hub's cache, as `hf download` and earlier readings leave it."""
    from huggingface_hub import snapshot_download

    try:
        return str(snapshot_download(source, repo_type="dataset", local_files_only=True))
    except (OSError, ValueError):
        return None


def _told(error: Exception, source: str, config: str | None) -> DataError:
    if is_network_trouble(error):
        return DataError(str(failure(error, source, "dataset")))
    if isinstance(error, RuntimeError) and "scripts" in str(error):
        return DataError(
            f"{source} is read by a program of its own, which is never run here; "
            "choose a data set of Parquet, JSON or CSV files, or use a local file"
        )
    names = _configurations(source)
    if config is None and len(names) > 1:
        return DataError(f"{source} has {len(names)} configurations; set dataset.config to one of {_listed(names)}")
    if config is not None and names and config not in names:
        fix = "leave dataset.config empty" if len(names) == 1 else f"set dataset.config to one of {_listed(names)}"
        return DataError(f"{source} has no configuration {config[:80]!r}; {fix}")
    if isinstance(error, FileNotFoundError):
        return DataError(f"{source} on the Hub has no data files, or not those that its card names; check the id")
    reason = shown(str(error), 200)
    return DataError(f"cannot tell the files of {source} on the Hub: {reason}; use another data set or a local file")


def _configurations(place: str) -> list[str]:
    import datasets

    try:
        with quiet():
            return [str(name) for name in datasets.get_dataset_config_names(place)]
    except Exception:  # it was asked for a better message alone
        return []


def _listed(names: Any) -> str:
    listed = [shown(str(name), 80) for name in names]
    more = f" and {len(listed) - NAMES_LISTED} more" if len(listed) > NAMES_LISTED else ""
    return ", ".join(listed[:NAMES_LISTED]) + more
