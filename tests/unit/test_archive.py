"""A run as one archive: what is in it, what it becomes in another installation, and archives that mean harm."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import tarfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sample_run import SampleRun, begun
from studio_process import wait_for

from grpo_studio.checkpoints import Manifest, newest_resumable, write_manifest
from grpo_studio.commands import run as command
from grpo_studio.errors import DiskFullError, StoreError, VerifierError
from grpo_studio.exporting import unpacking
from grpo_studio.exporting.archive import archive
from grpo_studio.exporting.archive_form import ArchiveManifest
from grpo_studio.exporting.foreign_verifiers import require_own_verifiers
from grpo_studio.exporting.importing import import_archive
from grpo_studio.exporting.redaction import Redaction
from grpo_studio.job_queue import JobQueue
from grpo_studio.run_facts import state_of
from grpo_studio.settings import Settings
from grpo_studio.store.folder import ProcessRecord, RunFolder, run_folders
from grpo_studio.store.writer import RunWriter
from grpo_studio.ui.live import LiveActions
from grpo_studio.ui.runs import RunsActions

NEVER = "raise SystemExit('never run me')\n"
SECRET = "hf_ThisTokenMustNotLeave1234567890"


def quiet(what: str) -> None:
    """Progress is of no interest here."""


@pytest.fixture
def run(settings: Settings) -> SampleRun:
    return begun(settings.home)


@pytest.fixture
def finished(run: SampleRun) -> RunFolder:
    return finish(run)


def finish(run: SampleRun) -> RunFolder:
    """The run at its end, with all that a run's folder may hold."""
    folder = run.folder
    run.end("run_finished", "all steps done")
    run.writer.close()
    (folder.path / "verifiers").mkdir()
    (folder.path / "verifiers" / "mine.py").write_text(NEVER)
    folder.exports.mkdir()
    (folder.exports / "big.bin").write_bytes(b"0" * 1000)
    (folder.path / "branch.json").write_text('{"run": "parent", "checkpoint": "checkpoint-5", "step": 5}')
    for name, step in (("checkpoint-3", 3), ("final", 3)):
        place = folder.checkpoints / name
        place.mkdir(parents=True)
        (place / "model.safetensors").write_bytes(name.encode() * 50)
        write_manifest(place, Manifest(step, 1, name != "final", "hash", {}))
    (folder.checkpoints / ".saving-checkpoint-4").mkdir()
    folder.write_process(ProcessRecord(2**22 + 5, "gone", 2**22 + 5, "elsewhere", 1, exit_code=0))
    return folder


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of such a run."""
    home = tmp_path_factory.mktemp("archived")
    run = SampleRun(home)
    run.begin()
    run.advance(3)
    return archive(finish(run), home, False, quiet)[0]


@pytest.fixture
def other(settings: Settings, tmp_path: Path) -> Settings:
    """Another installation."""
    home = tmp_path / "other home"
    return replace(settings, home=home, runs_dir=home / "runs")


def left_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {entry.name: (tar.extractfile(entry) or io.BytesIO()).read() for entry in tar}


class TestWhatIsInIt:
    def test_all_but_checkpoints_and_exports_under_the_run_s_name(self, finished: RunFolder, tmp_path: Path) -> None:
        path, manifest = archive(finished, tmp_path / "out", False, quiet)
        assert path == tmp_path / "out" / f"{finished.run_id}.tar.gz"
        names = [name.removeprefix(f"{finished.run_id}/") for name in members(path)]
        assert names[0] == "archive.json"
        assert sorted(names[1:]) == [
            "branch.json", "config.yaml", "process.json", "run.db", "verifiers/mine.py", "worker.log",
        ]  # fmt: skip
        assert (manifest.state, manifest.step) == ("finished", 3)
        assert "without its 2 checkpoints" in manifest.notes[-1]
        assert left_in(path.parent) == [path.name]

    def test_the_manifest_tells_the_checksum_of_every_file(self, finished: RunFolder, tmp_path: Path) -> None:
        path, manifest = archive(finished, tmp_path / "run.tgz", True, quiet)
        held = members(path)
        for name, file in manifest.files.items():
            data = held[f"{finished.run_id}/{name}"]
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.sha256)
        assert {"checkpoints/final/model.safetensors", "checkpoints/checkpoint-3/checkpoint.json"} <= set(
            manifest.files
        )

    def test_it_can_lie_among_the_exports_of_the_run_and_never_holds_itself(self, finished: RunFolder) -> None:
        first, _ = archive(finished, finished.exports, False, quiet)
        second, manifest = archive(finished, finished.exports / "again.tar.gz", False, quiet)
        assert not any(name.startswith("exports") for name in manifest.files)
        assert left_in(finished.exports) == sorted(["big.bin", first.name, second.name])

    def test_the_database_is_whole_although_its_rows_lie_in_the_wal(self, run: SampleRun, tmp_path: Path) -> None:
        path, _ = archive(run.folder, tmp_path / "run.tar.gz", False, quiet)
        (tmp_path / "run.db").write_bytes(members(path)[f"{run.folder.run_id}/run.db"])
        with (
            closing(sqlite3.connect(tmp_path / "run.db")) as copy,
            closing(sqlite3.connect(run.folder.database)) as own,
        ):
            count = "SELECT count(*), max(id) FROM metric"
            assert copy.execute(count).fetchone() == own.execute(count).fetchone()
            assert copy.execute("PRAGMA journal_mode").fetchone() == ("delete",)

    def test_no_token_leaves_whether_in_a_log_a_setting_or_a_record(
        self, finished: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SOME_API_KEY", "not-of-a-known-shape")
        with finished.log.open("a") as log:
            log.write(f"request with {SECRET} and not-of-a-known-shape failed\n")
        writer = RunWriter(finished.database, 1)
        writer.event("push_failed", f"refused {SECRET}", data={"key": "not-of-a-known-shape"})
        writer.close()
        text = finished.config_path.read_text().replace("prompt_template: null", f"prompt_template: 'x {SECRET}'")
        assert SECRET in text
        finished.config_path.write_text(text)
        path, manifest = archive(finished, tmp_path / "run.tar.gz", True, quiet)
        held = b"".join(members(path).values())
        assert SECRET.encode() not in held
        assert b"not-of-a-known-shape" not in held
        assert b"request with ***" in held
        assert any("token or password" in note for note in manifest.notes)

    def test_a_huge_log_keeps_its_end_and_says_so(
        self, finished: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("grpo_studio.exporting.archive_copy.LONGEST_LOG", 1000)
        finished.log.write_text("".join(f"line {number}\n" for number in range(1000)))
        path, manifest = archive(finished, tmp_path / "run.tar.gz", False, quiet)
        log = members(path)[f"{finished.run_id}/worker.log"].decode()
        assert log.startswith("[the first ")
        assert log.endswith("line 999\n")
        assert len(log) < 1100
        assert any("of worker.log were left out" in note for note in manifest.notes)

    def test_a_link_is_not_followed(self, finished: RunFolder, tmp_path: Path) -> None:
        (tmp_path / "private.txt").write_text("of somebody else")
        (finished.path / "verifiers" / "linked.py").symlink_to(tmp_path / "private.txt")
        path, manifest = archive(finished, tmp_path / "run.tar.gz", False, quiet)
        assert b"of somebody else" not in b"".join(members(path).values())
        assert "verifiers/linked.py is a link and was left out" in manifest.notes

    def test_a_place_that_is_taken_is_refused(self, finished: RunFolder, tmp_path: Path) -> None:
        (tmp_path / "run.tar.gz").write_text("mine")
        with pytest.raises(StoreError, match="is there already"):
            archive(finished, tmp_path / "run.tar.gz", False, quiet)
        assert (tmp_path / "run.tar.gz").read_text() == "mine"

    def test_without_room_it_is_refused_before_it_begins(
        self, finished: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("grpo_studio.disk.free_bytes", lambda path: 1000)
        with pytest.raises(DiskFullError, match=f"the archive of {finished.run_id} needs"):
            archive(finished, tmp_path / "out" / "run.tar.gz", False, quiet)
        assert not (tmp_path / "out").exists()

    def test_a_damaged_record_is_one_error_and_leaves_nothing(self, finished: RunFolder, tmp_path: Path) -> None:
        finished.database.write_bytes(b"no database at all" * 100)
        with pytest.raises(StoreError, match=r"run\.db"):
            archive(finished, tmp_path / "out" / "run.tar.gz", False, quiet)
        assert not (tmp_path / "out").exists()


class TestInAnotherInstallation:
    def test_every_panel_shows_the_same(self, finished: RunFolder, settings: Settings, other: Settings) -> None:
        imported, _ = import_archive(archive(finished, settings.home, True, quiet)[0], other, None, quiet)
        assert imported.run_id == finished.run_id
        assert state_of(imported) == state_of(finished)
        one, two = LiveActions(settings), LiveActions(other)
        here, there = one.live_tick({}), two.live_tick({})
        for part in ("strip", "charts", "groups", "memory", "events"):
            assert _comparable(there[part]) == _comparable(here[part]), part
        step = {"run": finished.run_id, "step": 2}
        assert two.live_step(step) == one.live_step(step)
        group = {"run": finished.run_id, "group": 5}
        assert two.live_group(group) == one.live_group(group)
        assert two.live_log({}) == one.live_log({})
        [row] = RunsActions(other).runs_page({})["rows"]
        assert (row["name"], row["state"], row["step"]) == ("quickstart", "finished", 3)

    def test_its_verifiers_are_data_and_come_nowhere_else(
        self, finished: RunFolder, settings: Settings, other: Settings
    ) -> None:
        path, _ = archive(finished, settings.home, False, quiet)
        imported, _ = import_archive(path, other, None, quiet)
        assert (imported.path / "verifiers" / "mine.py").read_text() == NEVER
        assert left_in(other.own_rewards) == []
        kept = imported.verifiers(1)
        with pytest.raises(VerifierError, match=r"its verifier mine\.py is not among those here, so it is not run"):
            require_own_verifiers(imported, other, kept)
        other.own_rewards.mkdir()
        (other.own_rewards / "known.py").write_text(NEVER)
        require_own_verifiers(imported, other, kept)
        require_own_verifiers(finished, settings, finished.verifiers(1))

    def test_it_is_noted_where_it_came_from(self, finished: RunFolder, settings: Settings, other: Settings) -> None:
        path, _ = archive(finished, settings.home, False, quiet)
        imported, _ = import_archive(path, other, None, quiet)
        told = json.loads((imported.path / "imported.json").read_text())
        assert (told["archive"], told["run"], told["state"]) == (path.name, finished.run_id, "finished")

    def test_with_its_checkpoints_training_can_go_on_from_it(
        self, finished: RunFolder, settings: Settings, other: Settings
    ) -> None:
        imported, _ = import_archive(archive(finished, settings.home, True, quiet)[0], other, None, quiet)
        newest = newest_resumable(imported)
        assert newest is not None
        assert newest.name == "checkpoint-3"
        assert (imported.checkpoints / "final" / "model.safetensors").read_bytes() == b"final" * 50

    @pytest.mark.parametrize(
        ("exit_code", "signal", "told"),
        [(-9, 9, "signal 9 (SIGKILL"), (3, None, "exit code 3"), (None, None, "without")],
    )
    def test_a_run_that_was_killed_is_killed_there_too(
        self, run: SampleRun, settings: Settings, other: Settings, exit_code: int, signal: int | None, told: str
    ) -> None:
        run.folder.write_process(ProcessRecord(2**22 + 5, "gone", 2**22 + 5, "a host", 1, exit_code, signal))
        imported, _ = import_archive(archive(run.folder, settings.home, False, quiet)[0], other, None, quiet)
        state = state_of(imported)
        assert state.state == "killed"
        assert told in state.reason
        assert "last step 3" in state.reason

    def test_a_living_run_ends_in_its_copy_alone(self, run: SampleRun, settings: Settings, other: Settings) -> None:
        path, manifest = archive(run.folder, settings.home, False, quiet)
        assert (manifest.state, manifest.step) == ("stopped", 3)
        imported, _ = import_archive(path, other, None, quiet)
        again, _ = import_archive(path, settings, "copy", quiet)  # on the very host of the living worker
        for copy in (imported, again):
            assert state_of(copy).state == "stopped"
            assert state_of(copy).reason.startswith("archived after step 3, while it was running")
        assert state_of(run.folder).state == "running"
        run.advance()
        assert state_of(run.folder).state == "running"

    def test_a_waiting_run_does_not_wait_there(self, settings: Settings, other: Settings) -> None:
        waiting = SampleRun(settings.home).folder
        imported, _ = import_archive(archive(waiting, settings.home, False, quiet)[0], other, None, quiet)
        assert state_of(imported).state == "stopped"
        assert state_of(imported).reason.startswith("archived while it waited in the queue")
        assert state_of(waiting).state == "queued"
        assert not JobQueue(other.queue_path).jobs()

    def test_a_run_that_is_there_is_not_replaced(self, finished: RunFolder, settings: Settings) -> None:
        path, _ = archive(finished, settings.home, False, quiet)
        with pytest.raises(StoreError, match=rf"the run {finished.run_id} is here already; --as NAME"):
            import_archive(path, settings, None, quiet)
        copy, _ = import_archive(path, settings, "My Copy!", quiet)
        began = finished.run_id[:15]
        assert copy.run_id.startswith(f"{began}-my-copy-")
        assert {one.run_id for one in run_folders(settings.runs_dir)} == {finished.run_id, copy.run_id}
        assert left_in(settings.runs_dir) == sorted([finished.run_id, copy.run_id])

    def test_the_commands_say_it_in_words_and_as_json(
        self, finished: RunFolder, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "a.tar.gz"
        assert command(["export", finished.run_id, "--to", str(file), "--archive", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["kind"], document["to"], document["state"]) == ("archive", str(file), "finished")
        assert command(["import", str(file), "--runs-dir", str(tmp_path / "elsewhere"), "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["run"], document["state"], document["checkpoints"]) == (finished.run_id, "finished", [])
        assert "cannot be resumed" in document["notes"][-1]
        assert command(["import", str(file)]) == 1
        assert "is here already; --as NAME" in capsys.readouterr().err
        assert command(["export", finished.run_id, "--to", str(file), "--archive", "--merge"]) == 2
        assert "--merge is about weights, and --archive writes none" in capsys.readouterr().err
        assert command(["export", finished.run_id, "--to", "x", "--with-checkpoints"]) == 2

    def test_the_copy_of_a_run_that_goes_on_is_of_one_moment(
        self, settings: Settings, other: Settings, run: SampleRun
    ) -> None:
        """Groups and metrics of a step come in one transaction: a copy has all of a step, or nothing of it."""
        import threading

        stop = threading.Event()
        seen: list[int] = []

        def write() -> None:
            writer = RunWriter(run.folder.database, 1)
            step = 1000
            while not stop.is_set():
                step += 1
                with writer.transaction():
                    writer.metrics(step, {"a": 1.0})
                    writer.metrics(step, {"b": 1.0})
                seen.append(step)
            writer.close()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            wait_for(lambda: len(seen) > 20, what="the first rows")
            path, _ = archive(run.folder, settings.home, False, quiet)
        finally:
            stop.set()
            thread.join()
        imported, _ = import_archive(path, other, None, quiet)
        with closing(sqlite3.connect(imported.database)) as copy:
            counts = copy.execute("SELECT sum(name = 'a'), sum(name = 'b') FROM metric WHERE step > 1000").fetchone()
        assert counts[0] == counts[1] > 0


def _comparable(value: Any) -> Any:
    """Without what tells of the place or the moment."""
    text = json.dumps(value, sort_keys=True, default=str)
    return json.loads(text, object_hook=lambda found: {k: v for k, v in found.items() if k not in ("now", "ago")})


Change = Callable[[dict[str, bytes], dict[str, Any]], None]


def made(
    path: Path, source: Path, change: Change = lambda files, manifest: None, extra: list[tarfile.TarInfo] | None = None
) -> Path:
    """An archive as somebody who means harm makes one: files and manifest changed, checksums mended where they are."""
    held = members(source)
    run = next(iter(held)).split("/")[0]
    files = {name.removeprefix(f"{run}/"): data for name, data in held.items()}
    manifest = json.loads(files.pop("archive.json"))
    change(files, manifest)
    write_archive(path, run, files, manifest, extra or [])
    return path


def write_archive(
    path: Path, run: str, files: Mapping[str, bytes], manifest: Any, extra: list[tarfile.TarInfo]
) -> None:
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        content = json.dumps(manifest).encode()
        for name, data in {"archive.json": content, **files}.items():
            entry = tarfile.TarInfo(name if name.startswith("/") else f"{run}/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for entry in extra:
            tar.addfile(entry)


def described(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def put(name: str, data: bytes) -> Change:
    """A file of that name, listed in the manifest as it is."""

    def change(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        files[name] = data
        manifest["files"][name] = described(data)

    return change


def says(**values: Any) -> Change:
    return lambda files, manifest: manifest.update(values)


def database(*statements: str) -> Change:
    """Its run.db, changed by SQL."""

    def change(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        with closing(sqlite3.connect(":memory:")) as memory:
            memory.deserialize(files["run.db"])
            for statement in statements:
                memory.executescript(statement)
            put("run.db", bytes(memory.serialize()))(files, manifest)

    return change


def link(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


HARM: list[tuple[str, Change, str]] = [
    ("a name that climbs out", put("../../evil.py", b"x"), "leads out of the run's folder"),
    ("climbing within", put("verifiers/../../evil.py", b"x"), "leads out of the run's folder"),
    ("climbing with backslashes", put("verifiers\\..\\..\\evil.py", b"x"), "leads out of the run's folder"),
    ("an absolute name", put("/etc/cron.d/evil", b"x"), "the absolute name /etc/cron.d/evil"),
    ("a drive", put("C:\\evil", b"x"), "the absolute name"),
    ("a hidden file", put(".bashrc", b"x"), "no file of a run"),
    ("an export", put("exports/page.html", b"x"), "no file of a run"),
    ("a lock", put("run.lock", b"x"), "no file of a run"),
    ("a control character", put("verifiers/a\nb.py", b"x"), "no file of a run"),
    ("a name of a thousand letters", put("verifiers/" + "a" * 1000, b"x"), "no file of a run"),
    ("a name that differs in case alone", put("verifiers/MINE.py", b"x"), "names a file twice"),
    ("a newer format", says(format=2), "made by a newer GRPO Studio (format 2, this one knows 1); update the program"),
    ("no format", lambda files, manifest: manifest.pop("format"), "archive.json cannot be read"),
    ("a run id that is a path", says(run="../x"), "archive.json cannot be read"),
    ("files that are no mapping", says(files=[1]), "archive.json cannot be read"),
    ("a size below zero", says(files={"run.db": {"bytes": -1, "sha256": "0" * 64}}), "archive.json cannot be read"),
    ("no settings", lambda files, manifest: manifest["files"].pop("config.yaml"), "holds no config.yaml"),
    ("no record", lambda files, manifest: manifest["files"].pop("run.db"), "holds no run.db"),
    ("a file that is missing", lambda files, manifest: files.pop("worker.log"), "lacks worker.log"),
    ("a file that nothing tells of", lambda f, m: f.update({"server.log": b"x"}), "server.log is not in the manifest"),
    ("another content", lambda f, m: f.update({"worker.log": b"y" * len(f["worker.log"])}), "its checksum differs"),
    ("another length", lambda f, m: f.update({"worker.log": b"y"}), "has 1 bytes instead of"),
    ("a bomb by its word", says(files={"config.yaml": {"bytes": 1 << 39, "sha256": "0" * 64}}), "would unpack from"),
    ("settings that are none", put("config.yaml", b"[1, 2]"), "config.yaml in the archive cannot be used"),
    ("settings of another program", put("config.yaml", b"later: 1"), "config.yaml in the archive cannot be used"),
    (
        "later settings that are none",
        put("config-attempt-2.yaml", b"nothing: 2"),
        "config-attempt-2.yaml in the archive",
    ),
    ("no database", put("run.db", b"not SQLite" * 200), "cannot read"),
    ("a trigger", database("CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM metric; END"), "other tables"),
    ("a view for a table", database("DROP TABLE phase_time; CREATE VIEW phase_time AS SELECT 1"), "other tables"),
    ("a newer schema", database("PRAGMA user_version=999"), "run.db in the archive was written by a newer GRPO Studio"),
    ("text for a number", database("UPDATE metric SET value = 'many'"), "values in metric that no run records"),
    ("an infinite number", database("UPDATE metric SET value = 9e999"), "values in metric that no run records"),
    ("data that are no JSON", database("UPDATE event SET data = '{'"), "values in event that no run records"),
    ("a process that is none", put("process.json", b'{"pid": "1", "session": 0, "attempt": 1}'), "which is no number"),
    ("a process list", put("process.json", b"[]"), "process.json in the archive cannot be read"),
    ("a branch that is none", put("branch.json", b"7"), "branch.json in the archive cannot be read"),
    ("an evaluation that is none", put("evaluations/later.db", b"x" * 100), "cannot read"),
]


class TestArchivesThatMeanHarm:
    def refused(self, path: Path, other: Settings) -> str:
        with pytest.raises(StoreError) as caught:
            import_archive(path, other, None, quiet)
        assert left_in(other.runs_dir) == [], "nothing is left half-made"
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_made_again_unchanged_it_is_taken(self, good: Path, other: Settings, tmp_path: Path) -> None:
        assert import_archive(made(tmp_path / "a.tar.gz", good), other, None, quiet)[1].state == "finished"

    @pytest.mark.parametrize(("change", "told"), [case[1:] for case in HARM], ids=[case[0] for case in HARM])
    def test_it_is_refused_with_its_own_message(
        self, good: Path, other: Settings, tmp_path: Path, change: Change, told: str
    ) -> None:
        message = self.refused(made(tmp_path / "a.tar.gz", good, change), other)
        assert told in message
        assert not (tmp_path / "evil.py").exists()

    @pytest.mark.parametrize(
        ("kind", "told"),
        [
            (tarfile.SYMTYPE, "holds a link"),
            (tarfile.LNKTYPE, "holds a link"),
            (tarfile.CHRTYPE, "holds a device or pipe"),
            (tarfile.FIFOTYPE, "holds a device or pipe"),
            (tarfile.DIRTYPE, "holds a folder"),
        ],
    )
    def test_what_is_no_plain_file_is_refused(
        self, good: Path, other: Settings, tmp_path: Path, kind: bytes, told: str
    ) -> None:
        run = next(iter(members(good))).split("/")[0]
        path = made(tmp_path / "a.tar.gz", good, extra=[link(f"{run}/verifiers/x.py", kind)])
        assert told in self.refused(path, other)

    @pytest.mark.parametrize("name", ["../evil.py", "/tmp/evil.py", "other-run/worker.log", "evil.py"])
    def test_an_entry_that_the_manifest_hides_is_refused(
        self, good: Path, other: Settings, tmp_path: Path, name: str
    ) -> None:
        path = made(tmp_path / "a.tar.gz", good, extra=[tarfile.TarInfo(name)])
        assert "evil" in (message := self.refused(path, other)) or "other-run" in message

    def test_an_entry_that_comes_twice_is_refused(self, good: Path, other: Settings, tmp_path: Path) -> None:
        run = next(iter(members(good))).split("/")[0]
        path = made(tmp_path / "a.tar.gz", good, extra=[tarfile.TarInfo(f"{run}/worker.log")])
        assert "worker.log comes twice" in self.refused(path, other)

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"", "it is not gzipped"),
            (b"PK\x03\x04 a zip", "it is not gzipped"),
            (b"\x1f\x8b but no more", "is damaged or no archive of a run"),
            (gzip.compress(b"text alone"), "is damaged or no archive of a run"),
            (gzip.compress(b"\0" * 10240), "archive.json is not its first file"),
        ],
        ids=["empty", "zip", "cut off", "text", "zeros"],
    )
    def test_what_is_no_archive_is_told(self, other: Settings, tmp_path: Path, content: bytes, told: str) -> None:
        (tmp_path / "a.tar.gz").write_bytes(content)
        assert told in self.refused(tmp_path / "a.tar.gz", other)

    def test_a_missing_file_and_a_folder_are_told(self, other: Settings, tmp_path: Path) -> None:
        assert "cannot read" in self.refused(tmp_path / "none.tar.gz", other)
        assert "cannot read" in self.refused(tmp_path, other)

    @pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
    def test_a_file_that_was_cut_off_is_told(self, good: Path, other: Settings, tmp_path: Path, share: float) -> None:
        data = good.read_bytes()
        (tmp_path / "a.tar.gz").write_bytes(data[: int(len(data) * share)])
        assert "is damaged or no archive of a run" in self.refused(tmp_path / "a.tar.gz", other)

    def test_a_bit_that_flipped_is_told(self, good: Path, other: Settings, tmp_path: Path) -> None:
        data = bytearray(good.read_bytes())
        data[len(data) // 2] ^= 1
        (tmp_path / "a.tar.gz").write_bytes(data)
        self.refused(tmp_path / "a.tar.gz", other)

    def test_what_unpacks_to_more_than_it_says_is_broken_off(
        self, good: Path, other: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A long header or an entry outside the manifest is not read to its end either."""
        monkeypatch.setattr(unpacking, "LARGEST_MANIFEST", 100_000)
        run = next(iter(members(good))).split("/")[0]
        entry = tarfile.TarInfo(f"{run}/worker.log")
        entry.pax_headers = {"comment": "0" * (64 << 20)}
        path = made(tmp_path / "a.tar.gz", good, extra=[entry])
        assert path.stat().st_size < 1 << 20
        assert "unpacks to more than it says" in self.refused(path, other)

    def test_too_many_files_are_refused(
        self, good: Path, other: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(unpacking, "MOST_FILES", 3)
        assert "a run has at most 3" in self.refused(made(tmp_path / "a.tar.gz", good), other)

    def test_without_room_nothing_is_written(
        self, good: Path, other: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("grpo_studio.disk.free_bytes", lambda path: 10)
        with pytest.raises(DiskFullError, match=r"the run .* needs"):
            import_archive(good, other, None, quiet)
        assert left_in(other.runs_dir) == []

    def test_a_manifest_nested_without_end_is_told(self, other: Settings, tmp_path: Path) -> None:
        with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
            data = b"[" * 200_000
            entry = tarfile.TarInfo("x/archive.json")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        assert "archive.json cannot be read" in self.refused(tmp_path / "a.tar.gz", other)

    def test_a_worker_that_it_names_is_never_taken_for_a_living_one(
        self, run: SampleRun, settings: Settings, other: Settings, tmp_path: Path
    ) -> None:
        """A hostile process.json with the very token of a process of this machine."""
        mine = run.folder.process()
        assert mine is not None
        good = archive(run.folder, settings.home, False, quiet)[0]
        live = json.dumps(
            {"pid": mine.pid, "started": mine.started, "session": mine.session, "host": mine.host, "attempt": 1}
        )
        path = made(tmp_path / "a.tar.gz", good, put("process.json", live.encode()))
        imported, _ = import_archive(path, other, None, quiet)
        known = imported.process()
        assert known is not None
        assert known.started != mine.started
        assert state_of(imported).ended


def test_redaction_knows_values_and_shapes() -> None:
    redaction = Redaction.of_environment({"WANDB_API_KEY": "abcdef123", "PATH": "/usr/bin", "MY_PASSWORD": "short"})
    assert redaction.text("abcdef123 /usr/bin short") == "*** /usr/bin short"
    assert redaction.text(f"at {SECRET}.") == "at ***."
    assert redaction.bytes(b"\xff abcdef123 \x00") == b"\xff *** \x00"


def test_a_manifest_is_read_as_it_is_written() -> None:
    manifest = ArchiveManifest(format=1, version="1", run="a-run", state="finished", archived_at=1.0, files={})
    assert ArchiveManifest.model_validate(json.loads(manifest.model_dump_json())) == manifest
