"""Which evaluations a run has, and the rows of one of them: of run.db, or of a database in evaluations/."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from grpo_studio.errors import StoreError
from grpo_studio.evaluation_passing import PassRule
from grpo_studio.queries.current import integers
from grpo_studio.queries.steps import thinned
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader, current

ROWS = 10_000
"""Rows of an evaluation that are read at most; the first ones."""
LISTED_STEPS, LISTED_FILES = 200, 100
AT_ONCE = 500
LATER = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
OWN = re.compile(r"step-([0-9]{1,9})")


@dataclass(frozen=True)
class Evaluation:
    """One scoring of the held-out rows.

    Args:
        key: "step-40" for one that the run made itself, else the name of a file in evaluations/.
        step: optimizer steps that are in the weights; 0: before training.
        checkpoint: what was evaluated later, "base" for the model before training; None for the run's own.
        at: seconds since 1970.
    """

    key: str
    step: int
    database: Path
    checkpoint: str | None = None
    at: float | None = None


@dataclass(frozen=True)
class Sampled:
    """What the samples of a row came to: how many, how many the passing reward judged, how many passed."""

    count: int
    judged: int
    passed: int
    reward: float | None


@dataclass(frozen=True)
class EvaluatedRow:
    """One held-out row. `key` is made of prompt, answer and how often both came before, so it means the same row in
    another evaluation; `group` and `completion` are row ids of the database."""

    key: bytes
    group: int
    completion: int
    reward: float | None
    scores: Mapping[str, float | None]
    sampled: Sampled | None = None


@dataclass(frozen=True)
class EvaluatedRows:
    """The rows of an evaluation, in their order; `left` more are not read."""

    evaluation: Evaluation
    rows: tuple[EvaluatedRow, ...]
    left: int = 0


def evaluations_of(folder: RunFolder) -> list[Evaluation]:
    """The run's own by step, at most `LISTED_STEPS` of them, then those made later, the newest `LISTED_FILES`.

    A file that cannot be read is left out: it hides no other.
    """
    own: list[Evaluation] = []
    if folder.database.is_file():
        with RunReader(folder.database) as reader, reader.snapshot():
            steps = thinned(_steps(reader), LISTED_STEPS)
            times = _times(reader, steps)
            own = [Evaluation(f"step-{step}", step, folder.database, at=times.get(step)) for step in steps]
    return own + _later(folder)


def find_evaluation(folder: RunFolder, key: str) -> Evaluation | None:
    """The evaluation with that key, also one that a long list leaves out; None when there is none."""
    if found := OWN.fullmatch(key):
        step = int(found[1])
        with RunReader(folder.database) as reader:
            times = _times(reader, [step])
        return Evaluation(key, step, folder.database, at=times[step]) if step in times else None
    return _of_file(folder.evaluations / f"{key}.db") if LATER.fullmatch(key) else None


def evaluated_rows(evaluation: Evaluation, rule: PassRule) -> EvaluatedRows:
    """All that is needed to compare it with another, without the texts.

    Raises:
        StoreError: its database cannot be read.
    """
    with RunReader(evaluation.database) as reader, reader.snapshot():
        groups, left = _groups(reader, "eval", evaluation.step)
        keys = _keys(reader, groups)
        sampled_groups, _ = _groups(reader, "eval_sampled", evaluation.step)
        samples = dict(zip(_keys(reader, sampled_groups), _samples(reader, sampled_groups, rule), strict=True))
        greedy = _greedy(reader, groups)
        rows = [
            EvaluatedRow(key, group, *greedy[group], samples.get(key))
            for key, group in zip(keys, groups, strict=True)
            if group in greedy
        ]
    return EvaluatedRows(evaluation, tuple(rows), left)


def _steps(reader: RunReader) -> list[int]:
    """Steps that have greedy groups and still count, each found by one look into the index."""
    found: set[int] = set()
    for span in reader.spans():
        limit = "" if span.before is None else f" AND step < {span.before}"
        where = f"FROM prompt_group WHERE split = 'eval' AND attempt = {span.attempt}{limit}"
        rows = reader.rows(
            f"WITH RECURSIVE t(step) AS (SELECT min(step) {where} UNION ALL "
            f"SELECT (SELECT min(step) {where} AND step > t.step) FROM t WHERE t.step IS NOT NULL) "
            "SELECT step FROM t WHERE step IS NOT NULL"
        )
        found.update(int(row[0]) for row in rows)
    return sorted(found)


def _times(reader: RunReader, steps: list[int]) -> dict[int, float]:
    """When the evaluations of these steps were recorded; steps that have no greedy group are left out."""
    if not steps:
        return {}
    rows = reader.rows(
        f"SELECT step, max(ts) FROM metric WHERE name = 'eval/reward' AND step IN ({integers(steps)}) "
        f"AND {current(reader)} AND EXISTS (SELECT 1 FROM prompt_group g WHERE g.split = 'eval' "
        "AND g.attempt = metric.attempt AND g.step = metric.step) GROUP BY step"
    )
    return {int(step): float(ts) for step, ts in rows}


def _later(folder: RunFolder) -> list[Evaluation]:
    try:
        entries = [entry for entry in os.scandir(folder.evaluations) if entry.name.endswith(".db")]
    except OSError:
        return []
    named = [entry for entry in entries if LATER.fullmatch(entry.name.removesuffix(".db"))]
    newest = sorted(named, key=lambda entry: (entry.stat().st_mtime_ns, entry.name))[-LISTED_FILES:]
    found = [_known(Path(entry.path), entry.stat().st_mtime_ns) for entry in newest]
    return [one for one in found if one is not None]


@lru_cache(maxsize=1024)
def _known(path: Path, changed: int) -> Evaluation | None:
    return _of_file(path)


def _of_file(path: Path) -> Evaluation | None:
    try:
        with RunReader(path) as reader:
            events = [event for event in reader.events(limit=8) if event.kind == "evaluated" and event.data]
    except (StoreError, ValueError):
        return None
    for event in events:
        data = event.data or {}
        step, checkpoint = data.get("step"), data.get("checkpoint")
        if isinstance(step, int) and isinstance(checkpoint, str):
            return Evaluation(path.stem, step, path, checkpoint, event.ts)
    return None


def _groups(reader: RunReader, split: str, step: int) -> tuple[list[int], int]:
    """Ids of the groups in order, and how many more there are; of several attempts the newest."""
    where = f"split = ? AND step = ? AND {current(reader)}"
    newest = reader.rows(f"SELECT max(attempt) FROM prompt_group WHERE {where}", (split, step))[0][0]
    if newest is None:
        return [], 0
    where += f" AND attempt = {int(newest)}"
    total = reader.rows(f"SELECT count(*) FROM prompt_group WHERE {where}", (split, step))[0][0]
    rows = reader.rows(f"SELECT id FROM prompt_group WHERE {where} ORDER BY id LIMIT {ROWS}", (split, step))
    return [int(row[0]) for row in rows], max(0, int(total) - ROWS)


def _keys(reader: RunReader, groups: list[int]) -> list[bytes]:
    """What names each row anywhere: a digest of prompt and answer, and how many equal ones came before it."""
    seen: Counter[bytes] = Counter()
    keys: dict[int, bytes] = {}
    for part in _parts(groups):
        for group, prompt, answer in reader.rows(
            f"SELECT id, prompt, answer FROM prompt_group WHERE id IN ({integers(part)}) ORDER BY id"
        ):
            digest = hashlib.blake2b(repr((prompt, answer)).encode("utf-8", "replace"), digest_size=16).digest()
            keys[group] = digest + seen[digest].to_bytes(4, "big")
            seen[digest] += 1
    return [keys[group] for group in groups]


def _greedy(reader: RunReader, groups: list[int]) -> dict[int, tuple[int, float | None, dict[str, float | None]]]:
    """The one completion of each group: its id, its reward, its scores by verifier."""
    found: dict[int, tuple[int, float | None, dict[str, float | None]]] = {}
    for part in _parts(groups):
        for group, completion, reward, verifier, value in reader.rows(
            "SELECT c.group_id, c.id, c.reward, s.verifier, s.value FROM completion c "
            f"LEFT JOIN score s ON s.completion_id = c.id WHERE c.group_id IN ({integers(part)}) AND c.idx = 0"
        ):
            scores = found.setdefault(group, (completion, reward, {}))[2]
            if verifier is not None:
                scores[verifier] = value
    return found


def _samples(reader: RunReader, groups: list[int], rule: PassRule) -> list[Sampled]:
    found: dict[int, Sampled] = {}
    for part in _parts(groups):
        for group, *values in reader.rows(
            "SELECT c.group_id, count(*), count(s.value), coalesce(sum(s.value >= ?), 0), avg(c.reward) "
            "FROM completion c LEFT JOIN score s ON s.completion_id = c.id AND s.verifier = ? "
            f"WHERE c.group_id IN ({integers(part)}) GROUP BY c.group_id",
            (rule.score, rule.reward),
        ):
            found[group] = Sampled(*values)
    return [found.get(group, Sampled(0, 0, 0, None)) for group in groups]


def _parts(groups: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(groups), AT_ONCE):
        yield groups[start : start + AT_ONCE]
