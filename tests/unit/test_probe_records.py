"""Probes on the disk: written whole, listed newest first, damaged ones with what is wrong, hostile ones harmless."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.errors import DiskFullError, RunNotFoundError, StoreError
from grpo_studio.memory import probes
from grpo_studio.memory.probe import failure
from grpo_studio.memory.probe_document import BackendResult, ProbeDocument, Sweep, SweepLine, SweepPoint
from grpo_studio.memory.probes import FILE, keep_probe, new_probe_id, probe_results, read_probe
from grpo_studio.settings import Settings


def document(probe: str = "20260101-120000-quickstart-abcd", **changes: Any) -> ProbeDocument:
    line = SweepLine(
        backend="full",
        dtype="float32",
        points=[SweepPoint(x=1, peak_bytes=9, seconds=0.5)],
        ended_by="memory",
        end_x=2,
        largest=1,
    )
    known: dict[str, Any] = {
        "id": probe, "name": "quickstart", "started": 1.7e9, "config": {"model": {"id": "a"}}, "model": "a",
        "dtype": "float32", "adapter": "none", "device": "CPU, 2 cores", "card_bytes": 1 << 34, "prompt_tokens": 70,
        "completion_tokens": 12, "completions": 32, "micro_batch": 16, "reference_backend": "full",
        "backends": [
            BackendResult(backend="full", loss=-0.5, grad_norm=1.0, grad_relative_difference=0.0, peak_bytes=900, seconds=1.0),
            BackendResult(backend="trl", error="out of memory: killed by signal 9"),
        ],
        "sweep": Sweep(axis="completions", lines=[line]), "notes": ["one"],
    }  # fmt: skip
    return ProbeDocument(**known | changes)


def keep_raw(settings: Settings, probe: str, content: str | bytes) -> Path:
    folder = settings.home / "probes" / probe
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_a_probe_is_read_as_it_was_kept(settings: Settings) -> None:
    kept = document()
    folder = keep_probe(settings, kept)
    assert folder == settings.home / "probes" / kept.id
    assert read_probe(settings, kept.id) == kept
    assert [path.name for path in folder.parent.iterdir()] == [kept.id]


def test_the_document_has_the_shape_that_pages_and_scripts_read(settings: Settings) -> None:
    keep_probe(settings, document())
    told = json.loads((settings.home / "probes" / document().id / FILE).read_text())
    assert set(told) >= {
        "id", "name", "started", "config", "model", "dtype", "adapter", "device", "card_bytes", "prompt_tokens",
        "completion_tokens", "completions", "micro_batch", "backends", "reference_backend", "sweep", "notes",
    }  # fmt: skip
    assert set(told["backends"][0]) >= {
        "backend", "loss", "grad_norm", "grad_relative_difference", "peak_bytes", "peak_by_phase", "seconds", "error",
    }  # fmt: skip
    assert told["sweep"]["lines"][0] | {"reason": None} == {
        "backend": "full", "dtype": "float32", "points": [{"x": 1, "peak_bytes": 9, "seconds": 0.5}],
        "ended_by": "memory", "end_x": 2, "largest": 1, "reason": None,
    }  # fmt: skip


def test_want_of_memory_is_told_from_other_failures() -> None:
    assert [one.out_of_memory for one in document().backends] == [False, True]
    assert not BackendResult(backend="liger", error="algorithm.loss_type: luspo").out_of_memory


def test_they_are_listed_newest_first_and_no_more_than_asked_for(settings: Settings) -> None:
    ids = [f"2026010{day}-120000-a-0000" for day in (2, 1, 3)]
    for probe in ids:
        keep_probe(settings, document(probe))
    assert [one.id for one in probe_results(settings)] == sorted(ids, reverse=True)
    assert [one.id for one in probe_results(settings, limit=1)] == [max(ids)]


def test_without_a_folder_there_are_none(settings: Settings) -> None:
    assert probe_results(settings) == []


GOOD = document().as_dict()
DAMAGED = {
    "empty": ("", "Invalid JSON"),
    "half": (json.dumps(GOOD)[:200], "Invalid JSON"),
    "list": ("[]", "should be an object"),
    "bytes": (b"\xff\xfe\x00", "Invalid JSON"),
    "infinite": (json.dumps(GOOD | {"backends": [{"backend": "full", "loss": float("inf")}]}), "finite"),
    "text-for-number": (json.dumps(GOOD | {"completions": "32"}), "completions"),
    "negative": (json.dumps(GOOD | {"backends": [{"backend": "full", "peak_bytes": -1}]}), "backends.0.peak_bytes"),
    "endless-text": (json.dumps(GOOD | {"model": "a" * 501}), "model"),
    "many-backends": (json.dumps(GOOD | {"backends": [{"backend": "full"}] * 17}), "backends"),
    "another-id": (json.dumps(GOOD | {"id": "another"}), "its id is another"),
    "script-id": (json.dumps(GOOD | {"id": "<script>"}), "id: String should match pattern"),
    "too-large": (b" " * (probes.LARGEST_FILE + 1), "larger than 4 MB"),
    "deep": ("[" * 100_000, "Invalid JSON"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_one_is_listed_with_what_is_wrong(settings: Settings, kind: str) -> None:
    content, told = DAMAGED[kind]
    probe = document().id
    keep_raw(settings, probe, content)
    keep_probe(settings, document("20260102-120000-good-abcd"))
    good, bad = probe_results(settings)
    assert (good.problem, bad.document, bad.id) == (None, None, probe)
    assert told.lower() in (bad.problem or "").lower()
    assert (bad.problem or "").isprintable()
    with pytest.raises(StoreError, match=f"the probe {probe} cannot be read"):
        read_probe(settings, probe)


def test_links_and_strays_are_not_followed(settings: Settings, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / FILE).write_text(json.dumps(GOOD))
    folder = settings.home / "probes"
    folder.mkdir(parents=True)
    (folder / "linked").symlink_to(outside)
    (folder / ".new-half").mkdir()
    (folder / "note.txt").write_text("a person's own")
    (folder / "no-file").mkdir()
    inner = folder / "linked-file"
    inner.mkdir()
    (inner / FILE).symlink_to(outside / FILE)
    assert {one.id: one.problem for one in probe_results(settings)} == {
        "no-file": "it has no probe.json", "linked-file": "it has no probe.json",
    }  # fmt: skip


@pytest.mark.parametrize("probe", ["", "..", "../runs", "a/b", "A", "x" * 101, "\0", "latest"])
def test_an_id_that_is_none_is_refused(settings: Settings, probe: str) -> None:
    (settings.home / "probes").mkdir(parents=True)
    with pytest.raises(RunNotFoundError, match="no probe"):
        read_probe(settings, probe)


def test_ids_are_safe_whatever_the_name() -> None:
    for name in ("quickstart", "../../etc", "Ünï <b>", "", "a" * 300):
        made = new_probe_id(name, 1.7e9)
        assert ProbeDocument.model_validate(GOOD | {"id": made}).id == made


def test_what_cannot_be_written_leaves_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *args: Any, **kwargs: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(DiskFullError, match="the result of the probe"):
        keep_probe(settings, document())
    assert list((settings.home / "probes").iterdir()) == []


ERROR = BackendResult(backend="trl", error="ValueError: it broke")
LOST = BackendResult(backend="full", error="out of memory: killed by signal 9")
DONE = BackendResult(backend="liger", loss=0.5, peak_bytes=9)


@pytest.mark.parametrize(
    ("backends", "why"),
    [([ERROR], "ValueError: it broke"), ([ERROR, LOST], None), ([LOST], None), ([ERROR, DONE], None), ([DONE], None)],
    ids=["all-failed", "one-lacked-memory", "memory-alone", "one-failed", "done"],
)
def test_a_probe_fails_only_without_a_single_data_point(backends: list[BackendResult], why: str | None) -> None:
    assert failure(document(backends=backends)) == why
