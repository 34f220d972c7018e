"""Where others can reach the app, paths of a draft stay inside the home folder and the folders that were named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.errors import ConfigError
from grpo_studio.looks import QuickLook, ScanCache
from grpo_studio.settings import Settings
from grpo_studio.ui.launch_actions import LaunchActions
from grpo_studio.ui.launch_data import DataActions
from grpo_studio.ui.readable import check_inside, path_problems, require_inside
from grpo_studio.ui.verifiers_bench import BenchActions
from grpo_studio.verifiers_used import RewardSettings

ROW = '{"prompt": "the secret question", "answer": "1"}\n'


@pytest.fixture
def open_to_others(settings: Settings, tmp_path: Path) -> Settings:
    return replace(settings, host="0.0.0.0", data_dirs=(tmp_path / "shared",))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.jsonl"
    path.write_text(ROW * 40)
    return path


def fields(settings: Settings, **sections: Any) -> list[str]:
    return [problem.field for problem in path_problems(sections, settings)]


def test_on_this_machine_alone_every_path_may_be_read(settings: Settings, secret: Path) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        assert fields(replace(settings, host=host), dataset={"source": str(secret)}, model={"id": "/"}) == []


@pytest.mark.parametrize(
    "source",
    [
        "/etc/passwd",
        "/etc/no-such-file.jsonl",
        "~/.ssh/id_rsa",
        "~nobody-of-this-name/x.csv",
        "../x.jsonl",
        "./x.jsonl",
        "rows.jsonl",
        "owner/rows.csv",
        "a/b/c",
        "/proc/self/environ",
        "a\0b",
        "\\\\server\\share\\x.csv",
        "file:///etc/passwd",
        ".env",
        "owner/..",
        "builtin",
        "x" * 900,
        "",
    ],
)
def test_what_could_be_a_path_elsewhere_is_refused_whether_it_is_there_or_not(
    open_to_others: Settings, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "builtin").mkdir()
    assert fields(open_to_others, dataset={"source": source}) == ["dataset.source"]
    assert fields(open_to_others, model={"id": source}) == ["model.id"]


def test_the_line_is_the_same_for_what_is_there_and_what_is_not(open_to_others: Settings, secret: Path) -> None:
    there = path_problems({"dataset": {"source": str(secret)}}, open_to_others)
    missing = path_problems({"dataset": {"source": str(secret.with_name("missing.jsonl"))}}, open_to_others)
    assert there == missing
    assert "outside the folders that the app may read" in str(there[0])


@pytest.mark.parametrize(
    "source", ["builtin:arithmetic", "reasoning_gym:chain_sum", "openai/gsm8k", "gsm8k", "Qwen/Qwen3-0.6B", "a/b.c"]
)
def test_what_is_no_path_is_none_of_its_business(open_to_others: Settings, source: str) -> None:
    assert fields(open_to_others, dataset={"source": source}) == []


def test_the_home_folder_and_the_named_folders_may_be_read_but_not_through_a_link(
    open_to_others: Settings, secret: Path, tmp_path: Path
) -> None:
    for folder in (open_to_others.uploads, tmp_path / "shared" / "deep"):
        folder.mkdir(parents=True)
        own, link = folder / "rows.jsonl", folder / "link.jsonl"
        own.write_text(ROW)
        link.symlink_to(secret)
        assert fields(open_to_others, dataset={"source": str(own)}) == []
        assert fields(open_to_others, dataset={"source": str(link)}) == ["dataset.source"]
        assert fields(open_to_others, dataset={"source": f"{folder}/../../secret.jsonl"}) == ["dataset.source"]
    assert fields(open_to_others, dataset={"source": f"{tmp_path}/shared-too/x.jsonl"}) == ["dataset.source"]


def test_folders_come_from_the_environment(tmp_path: Path) -> None:
    settings = Settings.from_env(
        {"GRPO_STUDIO_DATA_DIRS": f"{tmp_path}/a/../b::{tmp_path}/c", "GRPO_STUDIO_HOST": "0.0.0.0"}
    )
    assert settings.data_dirs == (tmp_path / "b", tmp_path / "c")
    assert Settings.from_env({}).data_dirs == ()


def test_reward_models_are_paths_as_well(open_to_others: Settings) -> None:
    inner = {"verifier": "reward_model", "params": {"model": "/etc"}}
    rewards = [{"verifier": "math_numeric"}, inner, {"verifier": "ensemble", "params": {"parts": [inner]}}]
    assert fields(open_to_others, rewards=rewards) == ["rewards.1.params", "rewards.2.params"]
    for odd in (None, 3, "x", [None, 3, {"params": 3}, {"params": {"parts": 3, "model": 4}}]):
        assert fields(open_to_others, rewards=odd, model=odd, dataset=odd) == []


def asks(settings: Settings) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    scans = ScanCache()
    launch, data, bench = LaunchActions(settings, scans), DataActions(settings, scans), BenchActions(settings)

    def begun_bench(request: dict[str, Any]) -> dict[str, Any]:
        try:
            return bench.verifiers_bench_begin(request | {"kind": "gold"})
        except ConfigError as error:
            return {"error": str(error)}

    def started(request: dict[str, Any]) -> dict[str, Any]:
        answer = launch.start_run(request)
        while not {"run", "error"} & set(answer):
            answer = launch.start_progress(request)
        return answer

    return {
        "check": launch.check_draft,
        "start": started,
        "look": data.look_at_data,
        "preview": data.preview_prompts,
        "scan": data.scan_begin,
        "bench": begun_bench,
    }


@pytest.mark.parametrize("ask", ["check", "start", "look", "preview", "scan", "bench"])
def test_no_question_of_a_page_reads_a_file_outside(open_to_others: Settings, secret: Path, ask: str) -> None:
    rewards = [RewardSettings(verifier="math_numeric").model_dump()]
    draft = {"dataset": {"source": str(secret), "held_out": 0}, "rewards": rewards}
    answer = str(asks(open_to_others)[ask]({"key": "key-12345678", "data": draft}))
    assert "outside the folders that the app may read" in answer
    assert "secret question" not in answer
    draft["dataset"]["source"] = "builtin:arithmetic"
    draft["model"] = {"id": str(secret.parent)}
    assert "outside the folders that the app may read" in str(
        asks(open_to_others)[ask]({"key": "key-12345678", "data": draft})
    )


def test_a_draft_inside_is_checked_as_ever(open_to_others: Settings) -> None:
    open_to_others.uploads.mkdir(parents=True)
    path = open_to_others.uploads / "rows.jsonl"
    path.write_text("".join(f'{{"prompt": "{n} + 1?", "answer": "{n + 1}"}}\n' for n in range(40)))
    draft = {"dataset": {"source": str(path), "held_out": 0}}
    report = check_inside(draft, open_to_others, QuickLook(ScanCache()))
    assert [problem.field for problem in report.problems] == []
    assert report.config is not None
    require_inside(report.config, open_to_others)
