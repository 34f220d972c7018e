"""The launch form: everything in it is read from RunConfig and the verifiers; a draft is a command again."""

from __future__ import annotations

import shlex
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from grpo_studio import config_files, supervisor
from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.declaration import fields_of
from grpo_studio.looks import ScanCache
from grpo_studio.rules import inspect
from grpo_studio.settings import BUNDLED_PRESETS, Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.ui.checks import Checks
from grpo_studio.ui.form import describe_form, describe_verifier
from grpo_studio.ui.launch_actions import LaunchActions
from grpo_studio.ui.launch_command import as_yaml, command_for, complete, differences
from grpo_studio.ui.launch_data import DataActions
from grpo_studio.ui.launch_requests import LARGEST_REQUEST_BYTES
from grpo_studio.verifiers.discovery import discover

KINDS = {"text", "textarea", "int", "number", "bool", "choice", "map"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_env({"GRPO_STUDIO_HOME": str(tmp_path / "home"), "GRPO_STUDIO_CACHE": str(tmp_path / "cache")})


@pytest.fixture
def actions(settings: Settings) -> LaunchActions:
    return LaunchActions(settings, ScanCache())


def all_fields() -> dict[str, dict[str, Any]]:
    return {field["name"]: field for section in describe_form()["sections"] for field in section["fields"]}


# The description of the form


def test_every_setting_of_a_run_is_in_the_form_once() -> None:
    names = [field["name"] for section in describe_form()["sections"] for field in section["fields"]]
    assert sorted(names) == sorted(set(fields_of(RunConfig)) - {"rewards"})
    assert [field["name"] for field in describe_form()["reward_fields"]] == list(RewardSettings.model_fields)


def test_every_setting_has_a_title_a_help_text_and_a_kind_that_the_page_can_draw() -> None:
    for name, field in all_fields().items():
        assert field["title"], name
        assert field["help"], name
        assert field["kind"] in KINDS, name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "algorithm.group_size",
            {"kind": "int", "min": 2, "max": 4096, "main": True, "nullable": False, "default": 8},
        ),
        ("algorithm.learning_rate", {"kind": "number", "above": 0, "max": 1}),
        ("algorithm.epsilon_high", {"kind": "number", "nullable": True, "default": None, "min": 0}),
        ("algorithm.loss_type", {"kind": "choice", "default": "dapo"}),
        ("model.attn_implementation", {"kind": "choice", "nullable": True}),
        ("algorithm.mask_truncated", {"kind": "bool"}),
        ("dataset.system_prompt", {"kind": "textarea", "nullable": True}),
        ("dataset.columns.answer", {"kind": "text", "nullable": True}),
        ("algorithm.extra", {"kind": "map"}),
    ],
)
def test_kinds_and_bounds_are_those_of_the_declaration(name: str, expected: dict[str, Any]) -> None:
    field = all_fields()[name]
    assert {key: field[key] for key in expected} == expected


def test_the_default_in_the_form_is_the_default_of_the_declaration() -> None:
    defaults = describe_form()["defaults"]
    for name, field in all_fields().items():
        value: Any = defaults
        for part in name.split("."):
            value = value[part]
        assert field["default"] == value, name


def test_settings_that_are_not_built_yet_say_what_they_wait_for() -> None:
    assert all_fields()["alerts"]["not_yet"] == "alert rules"
    assert all_fields()["algorithm.steps"]["not_yet"] is None


def test_verifier_parameters_become_fields(settings: Settings) -> None:
    spec = discover(settings.rewards_dirs).get("regex_match")
    params = {param["name"]: param for param in describe_verifier(spec)["params"]}
    assert params["pattern"]["required"]
    assert params["match"]["choices"] == ["word", "search", "full"]
    assert params["flags"] | {"kind": "text", "default": ""} == params["flags"]
    assert "anywhere" in params["match"]["help"]


# A draft as a command


def test_a_command_names_only_what_differs_from_the_preset() -> None:
    preset = {"algorithm": {"steps": 30}}
    draft = complete(preset)
    draft["algorithm"] |= {"group_size": 4, "steps": 30}
    assert command_for("quickstart", preset, draft, None) == (
        "python -m grpo_studio train --preset quickstart --set algorithm.group_size=4"
    )


def test_a_command_reads_back_as_the_same_run() -> None:
    preset: dict[str, Any] = {"dataset": {"config": "2"}, "algorithm": {"learning_rate": 1e-5}}
    draft = complete(preset)
    draft["dataset"] |= {"config": "1-3", "system_prompt": 'say: "no" # really\nno', "limit": 200}
    draft["dataset"]["columns"]["answer"] = None
    draft["algorithm"] |= {"learning_rate": 5e-6, "epsilon_high": 0.28, "mask_truncated": True}
    draft["rewards"] = [{"verifier": "regex_match", "name": None, "weight": 0.5, "params": {"pattern": r"^\d+'s: $"}}]
    words = shlex.split(command_for("p", preset, draft, "it's mine"))
    overrides = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    assert words[-1] == "it's mine"
    assert inspect(config_files.with_overrides(preset, overrides)).config == inspect(draft).config


@pytest.mark.parametrize(
    "value",
    [
        "1",
        "true",
        "null",
        "",
        " x",
        "a: b",
        "1e-5",
        "#no",
        "ü",
        5e-06,
        1e22,
        0.1,
        3,
        True,
        None,
        [1],
        {"a": None},
    ],
)
def test_a_value_survives_the_command_line(value: Any) -> None:
    assert yaml.safe_load(f"value: {as_yaml(value)}")["value"] == value


def test_the_same_draft_has_no_differences() -> None:
    assert differences({}, complete({})) == {}
    assert differences({}, complete({"algorithm": {"steps": 7}})) == {"algorithm.steps": 7}


# What the page asks of the server


def test_the_description_holds_presets_verifiers_and_suggestions(actions: LaunchActions) -> None:
    described = actions.describe_launch({})
    assert described["first_preset"] == "quickstart"
    assert "math_numeric" in [verifier["name"] for verifier in described["verifiers"]]
    assert "builtin:arithmetic" in [row["value"] for row in described["suggestions"]["dataset.source"]]


def test_a_broken_preset_or_verifier_is_listed_and_breaks_nothing(actions: LaunchActions, settings: Settings) -> None:
    for folder, name, text in (("presets", "bad.yaml", "a: ["), ("rewards", "bad.py", "1 / 0")):
        path = settings.home / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    described = actions.describe_launch({})
    assert {failure["file"] for failure in described["failures"]} == {"bad.yaml", "bad.py"}
    assert described["presets"]


def test_a_check_answers_with_problems_beside_fields_and_derived_numbers(actions: LaunchActions) -> None:
    assert actions.check_draft({"data": complete({})})["derived"]["completions_per_step"] == 32
    report = actions.check_draft({"data": complete({"algorithm": {"group_size": 1}})})
    assert not report["ok"]
    assert [problem["field"] for problem in report["problems"]] == ["algorithm.group_size"]


@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        "x",
        {},
        {"data": None},
        {"data": {"model": {"id": "x" * (LARGEST_REQUEST_BYTES + 1)}}},
        {"data": {"a": float("nan")}},
    ],
)
def test_a_malformed_or_oversized_request_is_refused_in_one_line(actions: LaunchActions, request_: Any) -> None:
    data = DataActions(actions.settings, ScanCache())
    of_data = (data.look_at_data, data.preview_prompts, data.scan_begin)
    for action in (actions.check_draft, actions.start_run, actions.save_preset, *of_data):
        error = action(request_)["error"]
        assert error
        assert "\n" not in error


def test_settings_of_any_shape_are_problems_not_failures(actions: LaunchActions) -> None:
    for data in (
        {"model": 3},
        {"rewards": {"a": 1}},
        {"rewards": [None]},
        {"algorithm": []},
        {"dataset": {"columns": "x"}},
    ):
        report = actions.check_draft({"data": data})
        assert report["problems"], data


def test_a_preset_is_saved_below_the_home_folder_and_can_be_started_from(
    actions: LaunchActions, settings: Settings
) -> None:
    draft = complete({"algorithm": {"steps": 7}})
    assert actions.save_preset({"name": "../../My Best!", "data": draft})["saved"] == "my-best"
    assert config_files.read_preset("my-best", settings.presets_dirs)["algorithm"]["steps"] == 7
    assert [preset["name"] for preset in actions.describe_launch({})["presets"] if preset["own"]] == ["my-best"]


def test_saving_never_replaces_a_built_in_preset_nor_unasked_ones_own(
    actions: LaunchActions, settings: Settings
) -> None:
    draft = complete({})
    built_in = next(BUNDLED_PRESETS.glob("*.yaml")).stem
    assert "built-in" in actions.save_preset({"name": built_in, "data": draft})["error"]
    assert not (settings.home / "presets" / f"{built_in}.yaml").exists()
    actions.save_preset({"name": "mine", "data": draft})
    changed = complete({"algorithm": {"steps": 9}})
    assert actions.save_preset({"name": "mine", "data": changed}) == {"exists": "mine"}
    assert actions.save_preset({"name": "mine", "data": changed, "replace": True})["saved"] == "mine"


def test_a_preset_that_could_not_start_is_not_saved(actions: LaunchActions, settings: Settings) -> None:
    assert (
        "group_size" in actions.save_preset({"name": "x", "data": complete({"algorithm": {"group_size": 1}})})["error"]
    )
    assert not (settings.home / "presets").exists()


# Start. The model's download is stood in for: the runs themselves are started in the browser tests.


def test_pressing_start_twice_starts_one_run_and_both_hear_of_it(
    actions: LaunchActions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str | None] = []
    fetched = threading.Event()

    def submit(config: RunConfig, settings: Settings, name: str | None, progress: Any) -> RunFolder:
        started.append(name)
        progress("fetching the model", 0.5)
        assert fetched.wait(20)
        return RunFolder(settings.runs_dir / "the-run")

    monkeypatch.setattr(supervisor, "submit", submit)
    request = {"key": "press-0001", "data": complete({}), "name": "first"}
    answers = [actions.start_run(request), actions.start_run(request)]
    assert [answer["fraction"] for answer in answers] == [0.5, 0.5]
    fetched.set()
    deadline = time.monotonic() + 20
    while "run" not in (answer := actions.start_progress({"key": "press-0001"})):
        assert time.monotonic() < deadline
    assert answer == {"run": "the-run"}
    assert actions.start_run(request) == {"run": "the-run"}
    assert started == ["first"]


def test_a_start_with_problems_makes_no_run(actions: LaunchActions, settings: Settings) -> None:
    answer = actions.start_run({"key": "press-0002", "data": complete({"algorithm": {"group_size": 1}})})
    assert "group_size" in answer["error"]
    assert not settings.runs_dir.exists() or not any(settings.runs_dir.iterdir())


# Checks while a person types


def test_only_the_newest_question_of_a_page_is_answered() -> None:
    checks, begun, go = Checks(), threading.Event(), threading.Event()
    asked: list[int] = []
    answers: dict[int, Any] = {}

    def ask(ticket: int) -> None:
        def check() -> dict[str, Any]:
            asked.append(ticket)
            begun.set()
            assert go.wait(20)
            return {"ticket": ticket}

        answers[ticket] = checks.newest("page", ticket, check)

    threads = [threading.Thread(target=ask, args=(ticket,)) for ticket in (1, 2, 3)]
    threads[0].start()
    assert begun.wait(20)
    for thread in threads[1:]:
        thread.start()
    deadline = time.monotonic() + 20
    while checks._pages["page"].newest < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    go.set()
    for thread in threads:
        thread.join(20)
    assert answers == {1: {"ticket": 1}, 2: None, 3: {"ticket": 3}}
    assert asked == [1, 3]
    assert checks.newest("", None, lambda: {"always": True}) == {"always": True}


def test_a_check_that_was_overtaken_says_so(actions: LaunchActions) -> None:
    draft = complete({})
    assert "problems" in actions.check_draft({"data": draft, "page": "p", "ticket": 7})
    assert actions.check_draft({"data": draft, "page": "p", "ticket": 6}) == {"superseded": True}
    assert "problems" in actions.check_draft({"data": draft, "page": "other", "ticket": 1})
