"""Resume, branch, cancel, move, delete: what is refused with which way out, what lies on the disk after each."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from grpo_studio import commands, dispatcher, lifecycle, run_elsewhere, run_lock, supervisor
from grpo_studio.checkpoints import Manifest, read_checkpoint, write_manifest
from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.errors import CheckpointError, ConfigError, StoreError, StudioError, UsageError
from grpo_studio.job_queue import JobQueue
from grpo_studio.resume_rules import config_hash, settings_that_matter
from grpo_studio.settings import Settings
from grpo_studio.store.folder import ProcessRecord, RunFolder, create_run
from grpo_studio.store.reader import RunReader
from grpo_studio.store.writer import RunWriter
from grpo_studio.worker_process import record_of

Make = Callable[..., RunFolder]
BASE = {
    "dataset": {"held_out": 0},
    "rewards": [{"verifier": "math_numeric"}],
    "algorithm": {"steps": 12, "prompts_per_step": 2, "group_size": 4},
    "checkpoint": {"every": 5},
}
DEAD = ProcessRecord(2**22 + 1, "gone", session=2**22 + 1, host="nowhere", attempt=1, exit_code=-9, signal=9)


@pytest.fixture(autouse=True)
def _unserved(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Nothing is started: the queue is what these tests look at. What was asked for is noted."""
    asked: list[Settings] = []
    monkeypatch.setattr(dispatcher, "ensure_running", asked.append)
    return asked


@pytest.fixture
def make(settings: Settings) -> Make:
    """A run that was killed by signal 9 after step 7 with checkpoint-5, unless told otherwise."""

    def made(*checkpoints: int, step: int = 7, process: ProcessRecord | None = DEAD, end: str = "") -> RunFolder:
        config = RunConfig.model_validate(BASE)
        folder = create_run(settings.runs_dir, config, "made")
        writer = RunWriter(folder.database, attempt=1)
        for number in range(1, step + 1):
            writer.metrics(number, {"optim/loss": 0.5, "reward/mean": number / 10})
        if end:
            writer.event(end, "told")
        writer.close()
        if process is not None:
            folder.write_process(process)
        for number in checkpoints or (5,):
            if number:
                save(folder, number)
        return folder

    return made


def save(folder: RunFolder, step: int, name: str = "", resumable: bool = True, score: float | None = None) -> Path:
    path = folder.checkpoints / (name or f"checkpoint-{step}")
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"w" * 100)
    (path / "optimizer.pt").write_bytes(b"o" * 50)
    config = RunConfig.model_validate(BASE)
    write_manifest(path, Manifest(step, 1, resumable, config_hash(config), settings_that_matter(config), score=score))
    return path


def attempts_of(folder: RunFolder) -> list[tuple[int, int, str | None]]:
    with RunReader(folder.database) as reader:
        return [(began.attempt, began.from_step, began.checkpoint) for began in reader.attempts()]


def last_event(folder: RunFolder) -> tuple[str, str]:
    with RunReader(folder.database) as reader:
        event = reader.events()[-1]
        return event.kind, event.message


def refused(call: Callable[..., object], *arguments: object) -> str:
    """The one line of a refusal, which has a way out."""
    with pytest.raises(StudioError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert "; " in message, message
    return message


def whole(folder: RunFolder) -> list[tuple[str, bytes]]:
    """All that lies in a run's folder but what SQLite and the lock leave."""
    return sorted(
        (str(path.relative_to(folder.path)), path.read_bytes())
        for path in folder.path.rglob("*")
        if path.is_file() and path.name not in ("run.db", "run.db-shm", "run.db-wal", "run.lock")
    )


# resume


def test_resume_begins_the_next_attempt_after_the_newest_checkpoint_and_queues_it(
    make: Make, settings: Settings
) -> None:
    folder = make(3, 5)
    folder.stop_request.write_text("0")
    lifecycle.resume(folder, settings)
    assert attempts_of(folder) == [(1, 0, None), (2, 5, "checkpoint-5")]
    assert JobQueue(settings.queue_path).waiting() == [folder.path]
    assert not folder.stop_request.exists()
    summary = supervisor.summary(folder, settings)
    assert (summary["state"], summary["step"], summary["place"]) == ("queued", 5, 1)
    assert summary["metrics"]["reward/mean"] == 0.5, "rows after the checkpoint are superseded"
    assert not folder.config_path_of(2).exists()


def test_a_run_whose_record_is_damaged_goes_on_with_what_is_whole_of_it(make: Make, settings: Settings) -> None:
    folder = make(5)
    damaged = folder.database.read_bytes()[:-4096] + bytes(4096)
    folder.database.write_bytes(damaged)
    lifecycle.resume(folder, settings)
    assert attempts_of(folder) == [(1, 0, None), (2, 5, "checkpoint-5")]
    kind, message = last_event(folder)
    assert (kind, "its record was damaged: " in message) == ("attempt_began", True)
    assert (folder.path / "run.db.damaged").read_bytes() == damaged


@pytest.mark.parametrize(
    ("overrides", "field", "value"),
    [
        (["limits.hours=2"], "limits.hours", 2.0),
        (["checkpoint.every=1", "checkpoint.keep=4"], "checkpoint.every", 1),
        (["evaluation.every=3"], "evaluation.every", 3),
    ],
)
def test_settings_that_change_no_step_may_change_and_are_kept_for_that_attempt(
    make: Make, settings: Settings, overrides: list[str], field: str, value: object
) -> None:
    folder = make()
    before = folder.config_path.read_bytes()
    lifecycle.resume(folder, settings, overrides)
    section, name = field.split(".")
    assert getattr(getattr(folder.config(), section), name) == value
    assert folder.config_path.read_bytes() == before
    assert f"{field} " in last_event(folder)[1]


@pytest.mark.parametrize(
    ("override", "kind", "words"),
    [
        ("algorithm.group_size=8", CheckpointError, "algorithm.group_size 4 -> 8"),
        ("algorithm.steps=24", CheckpointError, "algorithm.steps 12 -> 24"),
        ("algorithm.learning_rate=0.1", CheckpointError, "branch"),
        ("rewards.0.weight=2", CheckpointError, "rewards"),
        ("algorithm.group_size=1", ConfigError, "use 2 or more"),
        ("limits.hours=-1", ConfigError, "limits.hours"),
        ("limits.hourz=1", UsageError, "hours"),
        ("limit.hours=1", UsageError, "limit"),
        ("limits.hours", UsageError, "has no '='"),
        ("algorithm.extra.resume_from_checkpoint=/tmp/x", ConfigError, "resume RUN"),
    ],
)
def test_a_change_that_cannot_be_is_refused_by_name_and_changes_nothing(
    make: Make, settings: Settings, override: str, kind: type[StudioError], words: str
) -> None:
    folder = make()
    before = whole(folder)
    with pytest.raises(kind, match=words.replace(".", r"\.")) as caught:
        lifecycle.resume(folder, settings, [override])
    assert caught.value.exit_code == (2 if kind is UsageError else 1)
    assert whole(folder) == before
    assert attempts_of(folder) == [(1, 0, None)]
    assert JobQueue(settings.queue_path).jobs() == []


@pytest.mark.parametrize(
    ("before", "after"),
    [("group_size: 4", "group_size: 8"), ("steps: 12", "steps: 24"), ("epsilon: 0", "epsilon: 1")],
)
def test_settings_edited_by_hand_in_the_folder_are_found(
    make: Make, settings: Settings, before: str, after: str
) -> None:
    folder = make()
    folder.config_path.write_text(folder.config_path.read_text().replace(before, after, 1))
    message = refused(lifecycle.resume, folder, settings)
    assert f"algorithm.{before.partition(':')[0]} " in message
    assert "cannot go on from checkpoint-5" in message
    assert attempts_of(folder) == [(1, 0, None)]


def test_settings_in_the_folder_that_are_no_settings_any_more_are_told_with_their_file(
    make: Make, settings: Settings
) -> None:
    folder = make()
    folder.config_path.write_text(folder.config_path.read_text().replace("group_size: 4", "group_size: many", 1))
    assert str(folder.config_path) in refused(lifecycle.resume, folder, settings)


def test_a_run_without_a_checkpoint_never_begins_anew(make: Make, settings: Settings) -> None:
    message = refused(lifecycle.resume, make(0), settings)
    assert "no checkpoint to go on from (checkpoint.every is 5" in message
    assert "train --config" in message


@pytest.mark.parametrize("damage", ["truncated", "missing", "manifest", "no manifest", "staging"])
def test_a_newest_checkpoint_that_is_not_whole_is_passed_over_and_told(
    make: Make, settings: Settings, damage: str
) -> None:
    folder = make(5, 10, step=11)
    spoil(folder.checkpoints / "checkpoint-10", damage)
    lifecycle.resume(folder, settings)
    assert attempts_of(folder)[-1] == (2, 5, "checkpoint-5")
    kind, message = last_event(folder)
    assert kind == "attempt_began"
    assert "checkpoint-10 is " in message
    assert "passed over" in message


@pytest.mark.parametrize("damage", ["truncated", "missing", "manifest", "no manifest", "staging"])
def test_only_a_checkpoint_that_is_not_whole_is_nothing_to_go_on_from(
    make: Make, settings: Settings, damage: str
) -> None:
    folder = make(10)
    spoil(folder.checkpoints / "checkpoint-10", damage)
    message = refused(lifecycle.resume, folder, settings)
    assert "nothing to go on from: the checkpoint checkpoint-10 is" in message
    assert ("half-written" in message) == (damage in ("no manifest", "staging"))


def spoil(path: Path, damage: str) -> None:
    match damage:
        case "truncated":
            (path / "model.safetensors").write_bytes(b"w" * 60)
        case "missing":
            (path / "optimizer.pt").unlink()
        case "manifest":
            (path / "checkpoint.json").write_text('{"step": 10,')
        case "no manifest":
            (path / "checkpoint.json").unlink()
        case _:
            path.rename(path.with_name(f".saving-{path.name}"))


def test_final_weights_alone_are_nothing_to_go_on_from(make: Make, settings: Settings) -> None:
    folder = make(0)
    save(folder, 12, "final", resumable=False)
    assert "final holds weights without an optimizer" in refused(lifecycle.resume, folder, settings)


def test_a_finished_run_is_for_branching(make: Make, settings: Settings) -> None:
    folder = make(5, step=12, end="run_finished")
    with pytest.raises(UsageError, match="hourz"):
        lifecycle.resume(folder, settings, ["limits.hourz=1"])
    for overrides in ([], ["algorithm.steps=24"], ["limits.hours=1"]):
        message = refused(lifecycle.resume, folder, settings, overrides)
        assert "has finished: 12 steps are done" in message
        assert "algorithm.steps=24" in message


@pytest.mark.parametrize("end", ["run_stopped", "run_failed", "run_paused"])
def test_what_ended_otherwise_can_go_on(make: Make, settings: Settings, end: str) -> None:
    folder = make(5, end=end)
    lifecycle.resume(folder, settings)
    assert supervisor.state_of(folder).state == "queued"


def test_a_run_that_waits_or_works_is_not_resumed(make: Make, settings: Settings) -> None:
    folder = make()
    lifecycle.resume(folder, settings)
    assert "waits in the queue already" in refused(lifecycle.resume, folder, settings, ["limits.hours=1"])
    folder.write_process(record_of(os.getpid(), 2))
    assert "is preparing" in refused(lifecycle.resume, folder, settings)
    folder.stop_request.write_text("0")
    assert "is stopping" in refused(lifecycle.resume, folder, settings)
    assert len(attempts_of(folder)) == 2


def test_a_run_whose_lock_a_worker_of_another_home_holds_is_at_work(
    make: Make, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lock, "PATIENCE", 0.1)
    folder = make()
    with run_lock.held(folder):
        assert "at work elsewhere" in refused(lifecycle.resume, folder, settings)
        assert "is at work" in refused(lifecycle.delete, folder, settings)
    lifecycle.resume(folder, settings)


def test_a_worker_of_another_machine_is_found_by_its_lock_or_by_what_it_writes(
    make: Make, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_elsewhere, "SEEN_WITHIN", 0.5)
    folder = make(process=ProcessRecord(1, "boot:1", session=1, host="another", attempt=1))
    with run_lock.held(folder):
        assert supervisor.state_of(folder).state == "running"
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.05):
            with folder.log.open("a") as log:
                log.write("a step\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert "at work on the machine another" in refused(lifecycle.resume, folder, settings)
        assert "is at work" in refused(lifecycle.delete, folder, settings)
    finally:
        done.set()
        writer.join()
    lifecycle.resume(folder, settings)
    assert supervisor.state_of(folder).state == "queued"


def test_of_two_who_resume_at_once_one_does_and_the_other_is_told(make: Make, settings: Settings) -> None:
    folder, told = make(), []

    def resume(hours: int) -> None:
        try:
            lifecycle.resume(folder, settings, [f"limits.hours={hours}"])
            told.append(hours)
        except StudioError as error:
            told.append(str(error))

    threads = [threading.Thread(target=resume, args=(hours,)) for hours in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [hours for hours in told if isinstance(hours, int)]
    assert len(won) == 1, told
    assert folder.config().limits.hours == won[0]
    assert len(attempts_of(folder)) == 2
    assert all("already" in words or "just now" in words for words in told if isinstance(words, str)), told


def test_an_attempt_that_cannot_be_queued_is_not_begun(
    make: Make, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()
    settings.queue_path.write_text("no database, " * 100)
    message = refused(lifecycle.resume, folder, settings, ["limits.hours=1"])
    assert "move it away" in message
    assert attempts_of(folder) == [(1, 0, None)]
    assert not folder.config_path_of(2).exists()


def test_a_run_that_nothing_can_serve_is_left_to_be_resumed(
    make: Make, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make()

    def fails(settings: Settings) -> None:
        raise StoreError("cannot start what serves the queue: no memory; see dispatcher.log")

    with monkeypatch.context() as patch:
        patch.setattr(dispatcher, "ensure_running", fails)
        refused(lifecycle.resume, folder, settings)
    assert supervisor.state_of(folder).state == "stopped"
    assert JobQueue(settings.queue_path).jobs() == []
    lifecycle.resume(folder, settings)
    assert attempts_of(folder)[-1] == (3, 5, "checkpoint-5")


def test_settings_of_an_attempt_that_was_never_begun_are_forgotten(make: Make, settings: Settings) -> None:
    """A resume was killed after it had written them."""
    folder = make()
    changed = RunConfig.model_validate(with_overrides(BASE, ["limits.hours=7", "algorithm.group_size=8"]))
    folder.config_path_of(2).write_text(json.dumps(changed.model_dump(mode="json")))
    lifecycle.resume(folder, settings)
    assert folder.config().limits.hours is None
    assert not folder.config_path_of(2).exists()


def test_an_attempt_that_was_begun_and_never_queued_is_seen_and_can_be_mended(make: Make, settings: Settings) -> None:
    folder = make()
    RunWriter(folder.database, 2).attempt_began(5, "checkpoint-5", "begun")
    summary = supervisor.summary(folder, settings)
    assert (summary["state"], summary["place"]) == ("queued", None)
    assert summary["reason"].endswith(f"; put it there: resume {folder.run_id}")
    assert "without --set" in refused(lifecycle.resume, folder, settings, ["limits.hours=1"])
    lifecycle.resume(folder, settings)
    assert supervisor.summary(folder, settings)["place"] == 1
    assert len(attempts_of(folder)) == 2


def test_a_damaged_queue_hides_no_run(make: Make, settings: Settings) -> None:
    waits, ended = make(), make()
    lifecycle.resume(waits, settings)
    settings.queue_path.write_bytes(b"no database " * 500)
    for left in settings.home.glob("queue.db-*"):
        left.unlink()
    summary = supervisor.summary(waits, settings)
    assert (summary["state"], summary["place"]) == ("queued", None)
    assert "is damaged" in summary["reason"]
    assert supervisor.summary(ended, settings)["state"] == "killed"
    assert "move it away" in refused(lifecycle.cancel, waits, settings)
    settings.queue_path.unlink()
    lifecycle.resume(waits, settings)
    assert supervisor.summary(waits, settings)["place"] == 1


def test_a_run_whose_records_are_gone_can_still_be_branched_and_resumed(make: Make, settings: Settings) -> None:
    folder = make(end="run_stopped")
    for left in folder.path.glob("run.db-*"):
        left.unlink()
    folder.database.write_bytes(b"no database " * 100)
    made = lifecycle.branch(folder, "newest", [], settings)
    assert attempts_of(made) == [(1, 5, "checkpoint-5")]
    lifecycle.resume(folder, settings)
    assert attempts_of(folder) == [(1, 0, None), (2, 5, "checkpoint-5")]
    assert "its record was damaged: " in last_event(folder)[1]
    lifecycle.cancel(folder, settings)
    lifecycle.delete(folder, settings)


# branch


def test_a_branch_is_a_new_run_that_goes_on_from_the_checkpoint(make: Make, settings: Settings) -> None:
    parent = make(5, step=12, end="run_finished")
    made = lifecycle.branch(parent, "5", ["algorithm.group_size=8", "algorithm.steps=20"], settings, "Wider!")
    assert "-wider-" in made.run_id
    assert attempts_of(made) == [(1, 5, "checkpoint-5")]
    assert made.config().algorithm.group_size == 8
    assert read_checkpoint(made.checkpoints / "checkpoint-5").step == 5
    assert JobQueue(settings.queue_path).waiting() == [made.path]
    about = json.loads((made.path / "branch.json").read_text())
    changed = {change["field"]: (change["before"], change["after"]) for change in about["changes"]}
    assert (about["run"], about["checkpoint"], about["step"]) == (parent.run_id, "checkpoint-5", 5)
    assert changed == {"algorithm.group_size": (4, 8), "algorithm.steps": (12, 20)}
    assert os.stat(made.checkpoints / "checkpoint-5" / "model.safetensors").st_nlink == 2
    assert attempts_of(parent) == [(1, 0, None)]


def test_a_disk_without_links_gets_a_copy(make: Make, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlinked(source: str, target: str, **_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", unlinked)
    made = lifecycle.branch(make(), "newest", [], settings)
    assert (made.checkpoints / "checkpoint-5" / "model.safetensors").read_bytes() == b"w" * 100


@pytest.mark.parametrize(
    ("asked", "overrides", "kind", "words"),
    [
        ("5", ["algorithm.steps=5"], ConfigError, "algorithm.steps is 5, and checkpoint-5 has 5 steps.*set .* to 6"),
        ("10", ["algorithm.steps=3"], ConfigError, "checkpoint-10 has 10 steps.*11 or more"),
        ("5", ["model.id=builtin:other"], ConfigError, "model.id"),
        ("5", ["memory.adapter=lora"], ConfigError, "memory.adapter"),
        ("5", ["algorithm.optimizer=sgd"], ConfigError, "algorithm.optimizer"),
        ("5", ["algorithm.group_size=1"], ConfigError, "use 2 or more"),
        ("5", ["algorithm.groups=2"], UsageError, "algorithm.groups"),
        ("5", ["dataset.source=/no/such/file.jsonl"], ConfigError, "there is no file"),
        ("7", [], CheckpointError, "there are checkpoint-5, checkpoint-10"),
        ("best", [], CheckpointError, "best"),
        ("final", [], CheckpointError, "without an optimizer; branch from checkpoint-5, checkpoint-10"),
        ("../../etc", [], CheckpointError, "no checkpoint"),
    ],
)
def test_a_branch_that_cannot_be_leaves_nothing(
    make: Make, settings: Settings, asked: str, overrides: list[str], kind: type[StudioError], words: str
) -> None:
    parent = make(5, 10, step=12)
    save(parent, 12, "final", resumable=False)
    with pytest.raises(kind, match=words):
        lifecycle.branch(parent, asked, overrides, settings)
    assert [entry.name for entry in settings.runs_dir.iterdir()] == [parent.run_id]
    assert JobQueue(settings.queue_path).jobs() == []


def test_newest_and_best_are_those_that_training_can_go_on_from(make: Make, settings: Settings) -> None:
    parent = make(0, step=12, end="run_finished")
    save(parent, 4, score=0.9)
    save(parent, 8, score=0.5)
    save(parent, 12, "final", resumable=False, score=1.0)
    assert lifecycle.branch_changes(parent, "newest", [])[0].step == 8
    assert lifecycle.branch_changes(parent, "best", [])[0].step == 4


def test_a_branch_tells_what_was_edited_in_the_folder_of_its_parent_too(make: Make, settings: Settings) -> None:
    parent = make()
    parent.config_path.write_text(parent.config_path.read_text().replace("group_size: 4", "group_size: 8", 1))
    changes = lifecycle.branch_changes(parent, "5", ["algorithm.beta=0.1"])[1]
    assert [str(change) for change in changes] == ["algorithm.group_size 4 -> 8", "algorithm.beta 0.0 -> 0.1"]


def test_a_branch_that_breaks_off_leaves_no_run(
    make: Make, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = make()

    def fails(*arguments: object, **more: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "attempt_began", fails)
        with pytest.raises((StudioError, sqlite3.Error)):
            lifecycle.branch(parent, "5", [], settings)
    assert [entry.name for entry in settings.runs_dir.iterdir()] == [parent.run_id]


# cancel, move, delete


def test_a_cancelled_resume_can_be_resumed_again(make: Make, settings: Settings) -> None:
    folder = make()
    lifecycle.resume(folder, settings)
    lifecycle.cancel(folder, settings)
    state = supervisor.state_of(folder)
    assert (state.state, state.reason) == ("stopped", "taken out of the queue before it went on after step 5")
    assert JobQueue(settings.queue_path).jobs() == []
    lifecycle.resume(folder, settings)
    assert attempts_of(folder)[-1] == (3, 5, "checkpoint-5")


def test_only_what_waits_is_cancelled(make: Make, settings: Settings) -> None:
    ended = make()
    assert "nothing to cancel" in refused(lifecycle.cancel, ended, settings)
    ended.write_process(record_of(os.getpid(), 1))
    assert "stop RUN" in refused(lifecycle.cancel, ended, settings)
    assert last_event(ended)[0] == "run_created"


def test_a_run_that_waits_is_moved_within_the_places_that_there_are(make: Make, settings: Settings) -> None:
    first, second = make(), make()
    assert "does not wait" in refused(lifecycle.move, first, settings, 1)
    lifecycle.resume(first, settings)
    assert "only place 1" in refused(lifecycle.move, first, settings, 2)
    lifecycle.resume(second, settings)
    assert "places 1 to 2" in refused(lifecycle.move, second, settings, 3)
    lifecycle.move(second, settings, 1)
    assert JobQueue(settings.queue_path).waiting() == [second.path, first.path]


def test_delete_takes_all_of_an_ended_run_and_what_an_earlier_deletion_left(make: Make, settings: Settings) -> None:
    folder, other = make(), make()
    (settings.runs_dir / ".deleted-half").mkdir()
    lifecycle.delete(folder, settings)
    assert [entry.name for entry in settings.runs_dir.iterdir()] == [other.run_id]


def test_what_waits_or_runs_is_not_deleted(make: Make, settings: Settings) -> None:
    folder = make()
    lifecycle.resume(folder, settings)
    assert "is in the queue" in refused(lifecycle.delete, folder, settings)
    lifecycle.cancel(folder, settings)
    folder.write_process(record_of(os.getpid(), 2))
    assert "at work" in refused(lifecycle.delete, folder, settings)
    assert folder.path.is_dir()


@pytest.mark.parametrize("damage", ["process.json", "config.yaml", "run.db"])
def test_a_damaged_run_can_be_deleted(make: Make, settings: Settings, damage: str) -> None:
    folder = make()
    (folder.path / damage).write_text("{")
    lifecycle.delete(folder, settings)
    assert list(settings.runs_dir.iterdir()) == []


# the commands


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = commands.run(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_queue_is_listed_and_moved_by_command(
    make: Make, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make() for _ in range(3)]
    for run in runs:
        assert told(capsys, "resume", run.run_id)[0] == 0
    JobQueue(settings.queue_path).take(runs[0].path, ["0", "1"])
    code, out, _ = told(capsys, "queue", "--move", runs[2].run_id, "--to", "1", "--json")
    rows = [(row["run"], row["place"], row["state"], row["devices"]) for row in json.loads(out)["jobs"]]
    assert code == 0
    assert rows == [
        (runs[0].run_id, None, "queued", ["0", "1"]),
        (runs[2].run_id, 1, "queued", None),
        (runs[1].run_id, 2, "queued", None),
    ]
    assert told(capsys, "queue")[1].splitlines()[0].startswith("on 0,1")
    assert told(capsys, "cancel", runs[1].run_id)[1].startswith(f"{runs[1].run_id}: stopped")
    assert told(capsys, "queue", "--move", runs[1].run_id, "--to", "1")[0] == 1
    assert told(capsys, "queue", "--to", "1")[0] == 2


def test_checkpoints_are_listed_with_what_keeps_them(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    run = make(0, step=12)
    for step, score in ((4, 0.9), (6, None), (8, 0.5), (10, 0.7), (12, None)):
        save(run, step, score=score)
    spoil(run.checkpoints / "checkpoint-6", "missing")
    save(run, 12, "final", resumable=False)
    code, out, _ = told(capsys, "checkpoints", run.run_id, "--json")
    found = json.loads(out)
    assert code == 0
    kept = {one["name"]: (one["kept_for"], one["best"], one["resumable"], one["bytes"]) for one in found["checkpoints"]}
    assert kept == {
        "checkpoint-4": (["best"], True, True, 150),
        "checkpoint-8": ([], False, True, 150),
        "checkpoint-10": (["newest"], False, True, 150),
        "checkpoint-12": (["newest"], False, True, 150),
        "final": (["final"], False, False, 150),
    }
    assert [broken["name"] for broken in found["broken"]] == ["checkpoint-6"]


def test_a_branch_by_command_says_what_differs(
    make: Make, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make()
    setting = ("--set", "algorithm.beta=0.1")
    code, out, _ = told(capsys, "branch", run.run_id, "--step", "newest", *setting, "--show", "--json")
    assert (code, json.loads(out)["changes"]) == (0, [{"field": "algorithm.beta", "before": 0.0, "after": 0.1}])
    assert len(list(settings.runs_dir.iterdir())) == 1
    code, out, _ = told(capsys, "branch", run.run_id, "--step", "5", *setting, "--json")
    made = json.loads(out)
    assert (code, made["state"], made["step"], made["branch_of"]) == (0, "queued", 5, run.run_id)
    assert told(capsys, "branch", run.run_id)[0] == 2


def test_deleting_by_command_has_to_be_meant(
    make: Make, settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make()
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    code, _, err = told(capsys, "delete", run.run_id)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "--yes" in err
    assert run.path.is_dir()
    assert told(capsys, "delete", run.run_id, "--yes")[0] == 0
    assert not run.path.exists()


@pytest.mark.parametrize(
    ("setting", "code"), [("algorithm.group_size=8", 1), ("limits.hours=no", 1), ("limits.hourz=1", 2)]
)
def test_a_refusal_by_command_is_one_line(
    make: Make, capsys: pytest.CaptureFixture[str], setting: str, code: int
) -> None:
    got, out, err = told(capsys, "resume", make().run_id, "--set", setting, "--json")
    assert (got, out, len(err.splitlines())) == (code, "", 1)
