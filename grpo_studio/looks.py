"""How closely `check` looks at the data: all of it, or as much as a page can wait for while a person types."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from grpo_studio import data
from grpo_studio.catalog import locate
from grpo_studio.config import BUILTIN_DATASET, DatasetSettings, RunConfig
from grpo_studio.data import Sample
from grpo_studio.data.reserved import rename_notes
from grpo_studio.data.rows import Row
from grpo_studio.data_scan import ScanReport, judged
from grpo_studio.errors import ColumnError, DataError, ModelError
from grpo_studio.gold_preflight import QUICK_ROWS, read_golds
from grpo_studio.problem import Problem, problem_of
from grpo_studio.progress import Progress
from grpo_studio.remembered import Remembered
from grpo_studio.scan_measure import Measured, measure
from grpo_studio.settings import Settings
from grpo_studio.verifier_preflight import check_rewards
from grpo_studio.verifiers.discovery import discover
from grpo_studio.verifiers_used import files_used, used_by_all

SCANS_KEPT = 8
SMALL_SETS = (BUILTIN_DATASET,)
"""Read whole at once, though they have more rows than a quick look takes."""
ROWS_OF_TASKS = 20
"""Rows of a reasoning_gym task that a quick look takes: some are made in a tenth of a second each."""


@dataclass(frozen=True)
class Seen:
    """What a look at the data found.

    Args:
        samples: training rows to judge the rewards by; None when there are no data.
        scan: the report on the whole set, when it is known.
    """

    samples: Sequence[Sample] | None
    problems: Sequence[Problem] = ()
    notes: Sequence[str] = ()
    derived: dict[str, Any] = field(default_factory=dict)
    scan: ScanReport | None = None


class Look(Protocol):
    """One way to look at the data of a run."""

    def at(self, config: RunConfig, settings: Settings) -> Seen:
        """What is found; a data set that cannot be read is a problem among it."""
        ...


class WholeLook:
    """Reads and scans everything.

    Args:
        progress: told how far it is; it ends the scan by raising.
        count_all: whether to count the tokens of prompts that fit by far, too; it is for the histogram alone.
        scans: finished scans, the newest of which is taken when nothing has changed since.
    """

    def __init__(
        self, progress: Progress | None = None, count_all: bool = True, scans: ScanCache | None = None
    ) -> None:
        self._progress, self._count_all, self._scans = progress, count_all, scans

    def at(self, config: RunConfig, settings: Settings) -> Seen:
        """As `Look.at`."""
        known = None if self._scans is None else self._scans.known(config, settings)
        return _seen(known or judged(config, measure(config, settings, self._progress, count_all=self._count_all)))


class ScanCache:
    """Scans that were finished, by what they depend on: a change of the learning rate, of the steps or of the longest
    completion needs no new one, a changed file does. Safe to use from any thread.
    """

    def __init__(self, kept: int = SCANS_KEPT) -> None:
        self._whole: Remembered[Measured] = Remembered(kept)
        self._quick: Remembered[Measured] = Remembered(kept)
        self._heads: Remembered[list[Row]] = Remembered(kept)

    def scan(self, config: RunConfig, settings: Settings, progress: Progress | None = None) -> ScanReport:
        """The report, from a scan that is made now unless it is known; `progress` ends it by raising."""
        key = _scan_key(config, settings)
        measured = self._whole.known(key) or measure(config, settings, progress)
        if not _may_change_by_itself(measured, config):
            self._whole.get(key, lambda: measured)
        return judged(config, measured)

    def known(self, config: RunConfig, settings: Settings) -> ScanReport | None:
        """The report, when the scan that it takes was made before."""
        measured = self._whole.known(_scan_key(config, settings))
        return None if measured is None else judged(config, measured)

    def quick(self, config: RunConfig, settings: Settings) -> Measured:
        """All rows of a small set, without their tokens."""
        return self._quick.get(_scan_key(config, settings), lambda: measure(config, settings, quick=True))

    def head(self, settings: DatasetSettings, count: int) -> list[Row]:
        """The first rows.

        Raises:
            DataError: they cannot be read.
        """
        return self._heads.get(_data_key(settings), lambda: data.head(settings, count))


class QuickLook:
    """Judges the first rows only, and everything where a scan in the cache, or a small data set, tells it."""

    def __init__(self, scans: ScanCache) -> None:
        self._scans = scans

    def at(self, config: RunConfig, settings: Settings) -> Seen:
        """As `Look.at`."""
        known = self._scans.known(config, settings)
        if known is not None:
            return _seen(known)
        try:
            source = config.dataset.source
            most = ROWS_OF_TASKS if data.kind_of(source) == "reasoning_gym" else QUICK_ROWS
            rows = self._scans.head(config.dataset, most + 1)
            if len(rows) <= most or source in SMALL_SETS:
                return _seen(judged(config, self._scans.quick(config, settings)), whole=False)
            return _seen_first(config, settings, rows[:most])
        except DataError as error:
            field = error.field if isinstance(error, ColumnError) else "dataset.source"
            return Seen(None, [problem_of(field, error)])


def _seen(report: ScanReport, whole: bool = True) -> Seen:
    samples = report.first or None
    return Seen(samples, report.problems, report.notes, report.derived, report if whole else None)


def _seen_first(config: RunConfig, settings: Settings, rows: Sequence[Row]) -> Seen:
    mapping = data.map_columns(rows, config.dataset.columns, config.dataset.source)
    made = (data.to_sample(row, config.dataset, mapping, number) for number, row in enumerate(rows, start=1))
    samples = tuple(sample for sample in made if sample is not None)
    checked = check_rewards(config, settings, samples or None)
    golds = read_golds(settings, checked.sound, checked.registry, samples)
    return Seen(samples or None, golds.problems, [*rename_notes(mapping.renamed), *golds.notes])


def _may_change_by_itself(measured: Measured, config: RunConfig) -> bool:
    """Whether it is a failure that may be gone a moment later: of the network, say."""
    return measured.problem is not None and data.is_on_hub(config.dataset.source)


def _scan_key(config: RunConfig, settings: Settings) -> str:
    registry = discover(settings.rewards_dirs)
    about = [
        _data_key(config.dataset),
        config.rows_wanted(),
        config.model.id,
        config.model.revision,
        config.model.chat_template,
        list(_model_stamps(config, settings)),
        config.algorithm.extra.get("chat_template_kwargs"),
        [reward.model_dump(mode="json") for reward in config.rewards],
        files_used(used_by_all(config.rewards, registry), registry),
        [str(folder) for folder in settings.rewards_dirs],
    ]
    text = json.dumps(about, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _data_key(settings: DatasetSettings) -> str:
    """What the rows depend on; what is to be done with those that cannot be used is not part of it."""
    kept = settings.model_dump(mode="json", exclude={"unusable", "too_long"})
    return json.dumps([kept, _stamp(Path(settings.source))])


def _model_stamps(config: RunConfig, settings: Settings) -> Iterator[Any]:
    """State of the small files of a model that is here: a template that is edited changes every prompt."""
    try:
        location = locate(config.model.id, settings.cache)
    except ModelError:
        return
    yield location.ready
    if location.file is not None:
        yield _stamp(location.file)
    path = location.path
    if path is None:
        return
    yield _stamp(path)
    for pattern in ("*.json", "*.jinja", "*.model", "*.txt"):
        for file in sorted(path.glob(pattern)):
            yield file.name, _stamp(file)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.expanduser().stat()
    except (OSError, ValueError, RuntimeError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
