"""What the disk and the process table say about a run. Reads little of each, so that hundreds are listed at once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from grpo_studio import run_lock
from grpo_studio.errors import StoreError
from grpo_studio.process_identity import is_of_this_boot
from grpo_studio.run_state import RunFacts, RunState, derive
from grpo_studio.store.folder import ProcessRecord, RunFolder
from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import AttemptStart
from grpo_studio.worker_process import GONE, is_running, on_this_host

NEWEST_OF_EACH_KIND = (
    "SELECT kind, message FROM event "
    "WHERE id IN (SELECT max(id) FROM event WHERE attempt = ? GROUP BY kind) ORDER BY id"
)
NAMES = (
    # Steps from one name to the next in the index: a long run has millions of rows and some eighty names.
    "WITH RECURSIVE known(name) AS (SELECT min(name) FROM metric UNION ALL "
    "SELECT (SELECT min(name) FROM metric WHERE name > known.name) FROM known WHERE known.name IS NOT NULL) "
    "SELECT name FROM known WHERE name IS NOT NULL"
)
STEPS = re.compile(r"^algorithm:\n(?: .*\n)*?  steps: ([0-9]{1,9})$", re.MULTILINE)
"""The number of steps in a config.yaml as it is written here; parsing all of it takes ten milliseconds."""

VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]{0,59}")


def facts_of(folder: RunFolder) -> RunFacts:
    """What is known about a run's newest attempt."""
    process = folder.process()
    alive = _is_alive(folder, process)  # before the events: a worker that ends in between has told its end by then
    events: list[tuple[str, str]] = []
    step, trouble, checkpoint = 0, "", None
    try:
        with RunReader(folder.database) as reader:
            began = reader.newest_attempt()
            events = [(kind, message) for kind, message in reader.rows(NEWEST_OF_EACH_KIND, (began.attempt,))]
            saved = "SELECT message FROM event WHERE kind = 'checkpoint_saved' ORDER BY id DESC LIMIT 1"
            checkpoint = next((message for (message,) in reader.rows(saved)), None)
            step = reader.last_step()
    except StoreError as error:
        trouble, began = str(error), AttemptStart(process.attempt if process else 1)
    if process is not None and process.attempt != began.attempt:  # that of an earlier life
        process, alive = None, False
    return RunFacts(
        events=events,
        started=process is not None,
        alive=alive,
        stop_requested=folder.stop_request.exists(),
        step=step,
        exit_code=process.exit_code if process else None,
        signal=process.signal if process else None,
        checkpoint=checkpoint,
        from_step=began.from_step,
        trouble=trouble,
        rebooted=process is not None and _is_of_another_boot(process),
    )


def state_of(folder: RunFolder) -> RunState:
    """The state of a run, as `run_state.derive` says."""
    return derive(facts_of(folder))


def last_metrics(reader: RunReader) -> dict[str, float | None]:
    """The newest value of each metric that no later attempt has superseded."""
    found: dict[str, float | None] = {}
    for (name,) in reader.rows(NAMES):
        for span in reversed(reader.spans()):
            before = "" if span.before is None else f"AND step < {span.before} "
            newest = (
                f"SELECT value FROM metric WHERE name = ? AND attempt = ? {before}ORDER BY step DESC, id DESC LIMIT 1"
            )
            if rows := reader.rows(newest, (name, span.attempt)):
                found[name] = rows[0][0]
                break
    return found


def setup_of(reader: RunReader) -> dict[str, Any]:
    """What the newest attempt that began to train told of itself; empty before one has.

    Keys: device, card, dtype, parameters, train_rows, versions and more (`training.setup_facts`). A record of an older
    program lacks some, and one from outside holds what it likes.
    """
    for (data,) in reader.rows("SELECT data FROM event WHERE kind = 'setup' ORDER BY id DESC"):
        with suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(data or "null"), dict) and found:
                return found
    return {}


def versions_in(setup: Mapping[str, Any]) -> dict[str, str]:
    """The versions that a setup tells, by package: what is no version, in a record from outside, is left out."""
    told = setup.get("versions")
    pairs = told.items() if isinstance(told, dict) else ()
    return {name: text for name, text in pairs if isinstance(text, str) and VERSION.fullmatch(text)}


def steps_of(folder: RunFolder) -> int:
    """How many steps the newest attempt of a run is to have.

    Raises:
        ConfigError: its settings cannot be read.
    """
    try:
        quick = STEPS.search(folder.newest_config_path().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        quick = None
    return int(quick[1]) if quick else folder.config().algorithm.steps


def summary(folder: RunFolder) -> dict[str, Any]:
    """A run in brief, in the shape that `train` and `show` print as JSON."""
    facts = facts_of(folder)
    state = derive(facts)
    groups, completions, attempt, metrics = 0, 0, 1, {}
    try:
        with RunReader(folder.database) as reader:
            groups, completions = reader.counts()
            attempt, metrics = reader.newest_attempt().attempt, last_metrics(reader)
    except StoreError:
        pass
    return {
        "run": folder.run_id,
        "state": state.state,
        "step": facts.step,
        "steps": steps_of(folder),
        "reason": state.reason,
        "attempt": attempt,
        "groups": groups,
        "completions": completions,
        "metrics": metrics,
        "folder": str(folder.path),
    }


def _is_alive(folder: RunFolder, process: ProcessRecord | None) -> bool:
    """Whether that worker lives. One of another machine cannot be asked: there, the lock that it holds tells."""
    if process is None or on_this_host(process):
        return is_running(process)
    return process.exit_code is None and run_lock.is_held(folder)


def _is_of_another_boot(process: ProcessRecord) -> bool:
    return on_this_host(process) and process.started != GONE and not is_of_this_boot(process.started)
