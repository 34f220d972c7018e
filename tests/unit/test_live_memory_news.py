"""What the Live page is told of a run's memory: a figure of every device, and the peaks below it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from sample_run import SampleRun

from grpo_studio.settings import Settings
from grpo_studio.ui.live import LiveActions


@pytest.fixture
def run(settings: Settings) -> Iterator[SampleRun]:
    run = SampleRun(settings.home, cards=("cuda:0", "cuda:1"))
    run.begin()
    run.advance(3)
    yield run
    run.writer.close()


def test_a_tick_shows_every_device_the_card_and_the_others(run: SampleRun, settings: Settings) -> None:
    news = LiveActions(settings).live_tick({})
    json.dumps(news, allow_nan=False)
    layout, data = news["memory"]["layout"], news["memory"]["data"]
    assert layout["meta"] == {"devices": ["cuda:0", "cuda:1"], "newest": layout["meta"]["newest"], "whole": True}
    assert [note["text"] for note in layout["annotations"]][1] == "card 8 GB"
    assert {trace["name"] for trace in data} >= {"allocated", "reserved", "resident", "other processes", "rollout"}


def test_the_peaks_are_read_on_and_come_in_the_order_of_a_step(run: SampleRun, settings: Settings) -> None:
    live = LiveActions(settings)
    news = live.live_tick({})
    rows = news["memory_facts"]["peaks"]
    phases = ["rollout", "score", "loss", "optimizer", "sync"]
    assert [(row["device"], row["phase"]) for row in rows] == [
        (card, phase) for card in ("cuda:0", "cuda:1") for phase in phases
    ]
    assert {row["last_step"] for row in rows} == {3}
    assert rows[1]["name"] == "scoring"
    run.advance()
    after = live.live_tick({"cursor": news["cursor"]})["memory_facts"]["peaks"]
    assert {row["last_step"] for row in after} == {4}
    assert all(new["greatest"] >= old["greatest"] for new, old in zip(after, rows, strict=True))


def test_a_snapshot_is_named_while_its_file_is_there(run: SampleRun, settings: Settings) -> None:
    live = LiveActions(settings)
    run.writer.event("memory_snapshot", "saved", data={"path": "memory/snapshot-step-2.pickle"})
    assert live.live_tick({})["memory_facts"]["snapshot"] is None
    path = run.folder.path / "memory" / "snapshot-step-2.pickle"
    path.parent.mkdir()
    path.write_bytes(b"")
    assert live.live_tick({})["memory_facts"]["snapshot"] == str(path)
