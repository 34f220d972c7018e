"""What the launch page asks about a draft's data: columns, prompts, settings of made data, a scan in the background."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.data_scan import ScanReport
from grpo_studio.looks import ScanCache
from grpo_studio.settings import Settings
from grpo_studio.ui.launch_command import complete
from grpo_studio.ui.launch_data import DataActions
from grpo_studio.ui.launch_requests import capped, config_for_prompts


@pytest.fixture
def actions(settings: Settings) -> DataActions:
    return DataActions(settings, ScanCache())


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Write rows to a file; returns the draft that reads it."""

    def write_(rows: list[dict[str, Any]], **dataset: Any) -> dict[str, Any]:
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return complete({"dataset": {"source": str(path), "held_out": 0, **dataset}})

    return write_


def ended(actions: DataActions, key: str, answer: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while answer["state"] == "running":
        assert time.monotonic() < deadline
        answer = actions.scan_progress({"key": key})
    return answer


def test_columns_come_with_what_they_are_taken_for_and_are_cut(actions: DataActions, write: Any) -> None:
    draft = write([{"question": "x" * 10_000, "answer": "a", "solution": "b"}] * 3)
    answer = actions.look_at_data({"data": draft})
    assert [column["name"] for column in answer["mapping"]["columns"]] == ["question", "answer", "solution"]
    assert answer["mapping"]["prompt"] == "question"
    assert answer["ask"]["field"] == "dataset.columns.answer"
    assert len(json.dumps(answer)) < 3_000


def test_a_file_of_many_columns_and_long_names_is_told_in_bounds(actions: DataActions, write: Any) -> None:
    draft = write([{"question": "a", **{f"{'c' * 5_000}{n}": "v" * 5_000 for n in range(300)}}])
    assert len(json.dumps(actions.look_at_data({"data": draft}))) < 400_000


def test_columns_and_prompts_do_not_wait_for_the_rest_of_the_draft(
    actions: DataActions, write: Any, tiny_model: Path
) -> None:
    draft = write([{"question": f"{n} + 1?\u202e", "answer": f"so #### {n + 1}"} for n in range(5)])
    draft["algorithm"]["group_size"] = "many"
    draft["dataset"]["limit"] = -1
    draft["rewards"] = []
    draft["model"]["id"] = str(tiny_model)
    assert actions.look_at_data({"data": draft})["mapping"]["gold_form"] == "gsm8k"
    prompts = actions.preview_prompts({"data": draft})["prompts"]
    assert [prompt["gold"] for prompt in prompts] == ["1", "2", "3"]
    assert {kind for _, kind in prompts[0]["parts"]} == {"text", "special", "control"}
    assert "\u202e" not in json.dumps(prompts, ensure_ascii=False)


@pytest.mark.parametrize("field", ["source", "columns", "prompt_template"])
def test_prompts_wait_for_what_they_are_made_of(write: Any, field: str) -> None:
    draft = write([{"prompt": "a"}])
    draft["dataset"][field] = []
    with pytest.raises(ValueError, match=rf"dataset\.{field}"):
        config_for_prompts(draft)


def test_only_the_newest_question_about_columns_is_answered(actions: DataActions, write: Any) -> None:
    draft = write([{"prompt": "a"}])
    assert "mapping" in actions.look_at_data({"data": draft, "page": "p", "ticket": 2})
    assert actions.look_at_data({"data": draft, "page": "p", "ticket": 1}) == {"superseded": True}
    assert "prompts" not in actions.preview_prompts({"data": draft, "page": "p", "ticket": 1.5})


def test_made_data_brings_its_settings_and_its_reward(actions: DataActions) -> None:
    answer = actions.made_settings({"source": "reasoning_gym:chain_sum", "params": {"size": 5}})
    assert {"min_terms", "size"} <= {field["name"] for field in answer["fields"]}
    assert answer["reward"]["verifier"] == "reasoning_gym"
    assert actions.made_settings({"source": "builtin:countdown"})["reward"]["verifier"] == "countdown"
    assert actions.made_settings({"source": "openai/gsm8k"}) == {"fields": [], "reward": None}
    assert "no_such" in actions.made_settings({"source": "reasoning_gym:no_such_task"})["error"]
    for odd in (None, 3, ["builtin:countdown"], "builtin:" + "x" * 5_000):
        assert len(json.dumps(actions.made_settings({"source": odd}))) < 1_000


def test_a_scan_runs_in_the_background_and_is_known_afterwards(
    actions: DataActions, write: Any, tiny_model: Path
) -> None:
    draft = write([{"question": f"{n} + 1?", "answer": str(n + 1)} for n in range(40)] + [{"question": ""}])
    draft["model"]["id"] = str(tiny_model)
    request = {"key": "scan-00000001", "page": "p", "data": draft}
    answer = ended(actions, request["key"], actions.scan_begin(request))
    assert answer["state"] == "done"
    assert answer["result"]["rows"] == 41
    assert [finding["rows"] for finding in answer["result"]["findings"] if finding["kind"] == "empty_prompt"] == [[41]]
    assert answer["result"]["golds"][0]["readable"] == 40
    assert sum(answer["result"]["lengths"]["counts"]) == 40
    assert actions.scan_progress({"key": "scan-of-nobody"}) == {"unknown": True}


class Slow(ScanCache):
    """Scans until it is told to end."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    def scan(self, config: RunConfig, settings: Settings, progress: Any = None) -> ScanReport:
        self.begun.set()
        while True:
            progress("counting tokens", 0.25)
            time.sleep(0.002)


def test_a_newer_scan_of_a_page_ends_the_older_one(settings: Settings, write: Any) -> None:
    scans = Slow()
    actions, draft = DataActions(settings, scans), write([{"prompt": "a"}])
    first = actions.scan_begin({"key": "scan-00000001", "page": "p", "data": draft})
    assert scans.begun.wait(20)
    told = actions.scan_progress({"key": "scan-00000001"})
    assert (first["state"], told["message"], told["done"] / told["wanted"]) == ("running", "counting tokens", 0.25)
    other = actions.scan_begin({"key": "scan-00000002", "page": "q", "data": draft})
    assert other["message"] == "waiting", "one at a time"
    actions.scan_begin({"key": "scan-00000003", "page": "p", "data": draft})
    assert ended(actions, "scan-00000001", first)["state"] == "cancelled"
    for key in ("scan-00000002", "scan-00000003"):
        assert ended(actions, key, actions.scan_cancel({"key": key}))["state"] == "cancelled"


def test_a_scan_that_cannot_read_the_data_says_why(actions: DataActions, write: Any) -> None:
    draft = write([{"prompt": "a"}])
    draft["dataset"]["source"] += ".missing.jsonl"
    request = {"key": "scan-00000001", "page": "p", "data": draft}
    answer = ended(actions, request["key"], actions.scan_begin(request))
    assert "missing.jsonl" in json.dumps(answer)
    draft["algorithm"]["group_size"] = 1
    assert "group_size" in actions.scan_begin(request | {"key": "scan-00000002"})["error"]


def test_data_of_any_shape_is_cut_to_size() -> None:
    small = capped({"a": ["b" * 5_000] * 500, 3: {"c": float("inf"), "e": 1.5}, "d": object()}, longest=10, most=5)
    assert [len(text) for text in small["a"]] == [11] * 5
    assert small["3"] == {"c": None, "e": 1.5}
    assert len(small["d"]) == 11
