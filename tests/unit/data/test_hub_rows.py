"""Data sets of the Hub, served by a stand-in: configurations and splits, values as written, what is read, what fails."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hub_stand_in import TOKEN, HubStandIn
from huggingface_hub import constants
from pyarrow import parquet

from grpo_studio import data
from grpo_studio.config import DatasetSettings
from grpo_studio.data.loading import open_rows
from grpo_studio.errors import DataError

pytest_plugins = ("hub_stand_in",)
CARD = """---
configs:
- config_name: easy
  data_files:
  - {split: train, path: easy/train.jsonl}
  - {split: test, path: easy/test.jsonl}
- config_name: hard
  data_files:
  - {split: train, path: hard/*.csv}
---
# Sums
"""


def lines(count: int, start: int = 0) -> str:
    return "".join(
        json.dumps({"question": f"q{number}", "answer": number, "day": "2024-01-01"}) + "\n"
        for number in range(start, start + count)
    )


def sums() -> dict[str, str]:
    return {
        "README.md": CARD,
        "easy/train.jsonl": lines(40),
        "easy/test.jsonl": lines(5, 100),
        "hard/a.csv": "question,answer\nagent,007\nprice,1.10\n",
        "hard/b.csv": "question,answer\nnothing,None\n",
    }


def settings(**chosen: Any) -> DatasetSettings:
    return DatasetSettings.model_validate({"source": "alice/sums", "held_out": 0, **chosen})


@pytest.mark.parametrize("streaming", [False, True])
def test_configurations_and_splits_are_those_of_the_card(hub: HubStandIn, streaming: bool) -> None:
    hub.add("dataset", "alice/sums", sums())
    easy = data.load(settings(config="easy", streaming=streaming))
    assert easy.rows_read == 40
    test = data.load(settings(config="easy", split="test", streaming=streaming))
    assert sorted(sample.question for sample in test.train) == [f"q{number}" for number in range(100, 105)]
    hard = data.load(settings(config="hard", streaming=streaming))
    assert {sample.question: sample.answer for sample in hard.train} == {
        "agent": "007", "price": "1.10", "nothing": "None",
    }  # fmt: skip


def test_a_date_stays_the_text_that_was_written(hub: HubStandIn) -> None:
    hub.add("dataset", "alice/sums", sums())
    assert data.head(settings(config="easy"), 1) == [{"question": "q0", "answer": 0, "day": "2024-01-01"}]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({}, "has 2 configurations; set dataset.config to one of easy, hard"),
        ({"config": "medium"}, "no configuration 'medium'; set dataset.config to one of easy, hard"),
        ({"source": "alice/broken", "config": "1-3"}, "no configuration '1-3'; leave dataset.config empty"),
        ({"config": "easy", "split": "validation"}, "no split 'validation'; set dataset.split to one of train, test"),
        ({"config": "easy", "split": "train[:3]"}, "set dataset.split to one of train, test"),
        ({"source": "alice/empty"}, "alice/empty on the Hub has no data files"),
        ({"source": "alice/program"}, "a program of its own, which is never run here"),
        ({"source": "alice/missing"}, "the Hub has no data set alice/missing"),
        ({"source": "sums"}, "there is no file sums"),
        ({"source": "alice/broken"}, "alice/broken/train.jsonl line 2 is not JSON"),
        ({"source": "alice/broken", "streaming": True}, "alice/broken/train.jsonl line 2 is not JSON"),
    ],
)
def test_what_is_wrong_is_one_line_with_what_there_is(hub: HubStandIn, chosen: dict[str, Any], message: str) -> None:
    hub.add("dataset", "alice/sums", sums())
    hub.add("dataset", "alice/empty", {"README.md": "# nothing"})
    hub.add("dataset", "alice/program", {"program.py": "import os", "README.md": "# mine"})
    hub.add("dataset", "alice/broken", {"train.jsonl": '{"prompt": "a"}\n{"prompt":'})
    with pytest.raises(DataError) as caught:
        data.load(settings(**chosen))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_gated_data_set_opens_with_the_token(hub: HubStandIn) -> None:
    hub.add("dataset", "alice/sums", sums(), gated=True)
    with pytest.raises(DataError, match="alice/sums is gated and no Hub token is set here") as caught:
        data.load(settings(config="easy"))
    assert "datasets/alice/sums" in str(caught.value)
    hub.log_in()
    assert data.load(settings(config="easy")).rows_read == 40
    assert data.load(settings(config="hard", streaming=True)).rows_read == 3


def test_head_fetches_a_part_of_the_first_file_alone(hub: HubStandIn) -> None:
    text = lines(2_000)
    padded = text.replace("2024-01-01", "x" * 2_000)  # 4 MB
    hub.add("dataset", "alice/sums", {f"data/train-{part}.jsonl": padded for part in range(3)})
    assert [row["question"] for row in data.head(settings(), 3)] == ["q0", "q1", "q2"]
    assert hub.sent < 1.2 * len(padded) * 2
    assert not any("train-1" in asked and "resolve" in asked for asked in hub.asked)


@pytest.mark.parametrize("streaming", [False, True])
def test_parquet_comes_a_group_of_rows_at_a_time(hub: HubStandIn, tmp_path: Path, streaming: bool) -> None:
    rows = [{"prompt": f"q{number}", "answer": number, "pad": "x" * 500} for number in range(400)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "t.parquet", row_group_size=100, compression="none")
    hub.add("dataset", "alice/sums", {"data/train-00000-of-00001.parquet": (tmp_path / "t.parquet").read_bytes()})
    stream = open_rows(settings(streaming=streaming))
    assert list(itertools.islice(stream.rows, 250)) == rows[:250]
    assert stream.share is not None
    assert 0.5 < stream.share() < 0.8


@pytest.mark.parametrize("streaming", [False, True])
def test_columns_of_media_are_left_out_unless_one_is_mapped(hub: HubStandIn, tmp_path: Path, streaming: bool) -> None:
    import datasets

    features = datasets.Features({"prompt": datasets.Value("string"), "picture": datasets.Image(decode=False)})
    rows = {"prompt": ["a", "b"], "picture": [{"bytes": b"\x89PNG\xff", "path": None}] * 2}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "t.parquet")
    hub.add("dataset", "alice/sums", {"train.parquet": (tmp_path / "t.parquet").read_bytes()})
    splits = data.load(settings(streaming=streaming))
    assert sorted(sample.question for sample in splits.train) == ["a", "b"]
    assert any("picture hold media" in note for note in splits.notes)
    with pytest.raises(DataError, match="column 'picture' of alice/sums holds media"):
        data.load(settings(streaming=streaming, columns={"prompt": "picture"}))


@pytest.mark.parametrize("streaming", [False, True])
def test_files_of_other_kinds_are_read_by_the_library(hub: HubStandIn, streaming: bool) -> None:
    hub.add("dataset", "alice/sums", {"train.txt": "first\nsecond\n"})
    splits = data.load(settings(streaming=streaming, columns={"prompt": "text"}))
    assert sorted(sample.question for sample in splits.train) == ["first", "second"]
    assert any("the library datasets" in note for note in splits.notes)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("down", "cannot reach the Hub"), (503, "the Hub has trouble of its own: 503"), ("offline", "HF_HUB_OFFLINE=1")],
)
def test_without_the_hub_a_whole_copy_does_and_without_one_it_is_told(
    hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, fault: Any, message: str
) -> None:
    hub.add("dataset", "alice/sums", sums())
    data.load(settings(config="easy"))  # which leaves those files alone
    if fault == "offline":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        hub.fault = fault
    splits = data.load(settings(config="easy"))
    assert splits.rows_read == 40
    assert any("its copy in this machine's cache" in note for note in splits.notes)
    for chosen in ({"config": "easy", "split": "test"}, {"config": "hard"}, {}, {"source": "alice/other"}):
        with pytest.raises(DataError, match=message) as caught:
            data.load(settings(**chosen))
        assert "use a local file or a built-in data set" in str(caught.value)


@pytest.mark.parametrize("path", ["{here}/secret.jsonl", "http://127.0.0.1:9/secret.jsonl", "data/../../secret.jsonl"])
@pytest.mark.parametrize("fault", [None, "down"])
def test_a_card_that_names_files_elsewhere_reads_none_of_them(
    hub: HubStandIn, tmp_path: Path, path: str, fault: str | None
) -> None:
    (tmp_path / "secret.jsonl").write_text('{"prompt": "secret", "answer": "1"}')
    card = f"---\nconfigs:\n- config_name: easy\n  data_files:\n  - split: train\n    path: {path.format(here=tmp_path)}\n---\n"
    hub.add("dataset", "alice/sums", {"README.md": card, "data/train.jsonl": lines(3)})
    if fault:
        from huggingface_hub import snapshot_download

        snapshot_download("alice/sums", repo_type="dataset", tqdm_class=None)
        hub.fault = fault
    with pytest.raises(DataError) as caught:
        data.load(settings(config="easy"))
    assert not any("secret" in asked for asked in hub.asked)
    assert str(tmp_path) not in str(caught.value)


def test_a_network_that_breaks_off_while_rows_are_read_is_told_as_that(
    hub: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # the library waits longer before each new attempt
    hub.add("dataset", "alice/sums", {f"data/train-{part}.jsonl": lines(40) for part in range(2)})
    stream = open_rows(settings(streaming=True))
    assert len(list(itertools.islice(stream.rows, 40))) == 40
    hub.fault = "down"
    with pytest.raises(DataError, match="cannot reach the Hub"):
        next(stream.rows)


def test_nothing_is_said_on_stderr_and_no_token_in_any_message(
    hub: HubStandIn, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("dataset", "alice/sums", sums())
    data.load(settings(config="easy"))
    data.load(settings(config="easy", streaming=True))
    captured = capfd.readouterr()
    assert captured.err + captured.out == ""
    for token in ("hf_another", f"{TOKEN}\u2028x", "hf_a b\tc"):
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(DataError, match="set HF_TOKEN to a valid one") as caught:
            data.load(settings(config="easy"))
        assert "hf_" not in str(caught.value)


def test_the_variables_turn_a_process_to_another_hub(hub: HubStandIn, tmp_path: Path) -> None:
    """As a person sets them; parquet that is read in part leaves nothing behind that troubles the process's end."""
    rows = [{"prompt": f"q{number}", "answer": number} for number in range(50)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "t.parquet")
    hub.add("dataset", "alice/sums", {"train.parquet": (tmp_path / "t.parquet").read_bytes()}, private=True)
    hub.log_in()
    code = (
        "from grpo_studio import data; from grpo_studio.config import DatasetSettings as S;"
        "s = S(source='alice/sums', held_out=2);"
        "print(data.head(s, 1), data.load(s).rows_read, data.load(s.model_copy(update={'streaming': True}), 5).rows_read)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=hub.env, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("[{'prompt': 'q0', 'answer': 0}] 50 50\n", "", 0)
