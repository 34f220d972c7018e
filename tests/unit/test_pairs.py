"""Two runs that differ in one setting: what is refused, that both are made or none, and that halves are found again."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sample_pair import PAIR_ID, SamplePair, finished_pair

from grpo_studio import commands, dispatcher, pairs, supervisor
from grpo_studio.command_output import print_summary
from grpo_studio.config import RunConfig
from grpo_studio.config_files import read_preset
from grpo_studio.errors import ConfigError, RunNotFoundError, StoreError, UsageError
from grpo_studio.exporting.archive import archive
from grpo_studio.exporting.importing import import_archive
from grpo_studio.job_queue import JobQueue
from grpo_studio.looks import ScanCache
from grpo_studio.pair_check import CheckedPair, check_pair
from grpo_studio.pair_differ import parse_differ, split_values
from grpo_studio.pair_records import PAIR_FILE, find_pair, pairs_of, record_of, same_pair
from grpo_studio.pair_settings import (
    equal_in_effect,
    notes_on,
    refuse_other_uses,
    require_setting,
    title_of,
    with_value,
)
from grpo_studio.pairs import start_checked, start_pair
from grpo_studio.rules import inspect
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run, run_folders
from grpo_studio.store.reader import RunReader
from grpo_studio.ui.launch_actions import LaunchActions
from grpo_studio.ui.launch_command import complete

FIELD = "memory.loss_backend"
SMALL = {"dataset": {"held_out": 0}, "algorithm": {"steps": 2}}


@pytest.fixture(autouse=True)
def unserved(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Nothing is started: the queue is what these tests look at. What was asked for is noted."""
    asked: list[Settings] = []
    monkeypatch.setattr(dispatcher, "ensure_running", asked.append)
    return asked


@pytest.fixture
def checked(tiny_model: Path) -> CheckedPair:
    """Two sound settings, as a check found them."""
    data = SMALL | {"model": {"id": str(tiny_model)}}
    configs = tuple(RunConfig.model_validate(with_value(data, FIELD, value)) for value in ("liger", "trl"))
    return CheckedPair(FIELD, ("liger", "trl"), (configs[0], configs[1]), [], [])


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises((UsageError, ConfigError)) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What --differ says


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("liger,full", ["liger", "full"]),
        (" liger , full ", ["liger", "full"]),
        (",4", ["", "4"]),
        ("[a, b],[c]", ["[a, b]", "[c]"]),
        ("{a: 1, b: [2, 3]},{}", ["{a: 1, b: [2, 3]}", "{}"]),
        ("'a, b','c'", ["'a, b'", "'c'"]),
        ('"say \\", then",b', ['"say \\", then"', "b"]),
        ("'it''s, so',b", ["'it''s, so'", "b"]),
        ("don't,do", ["don't", "do"]),
        ("[{pattern: ',]'}],[]", ["[{pattern: ',]'}]", "[]"]),
        ("{prompt} a,{prompt} b", ["{prompt} a", "{prompt} b"]),
        ("x:'a,b", ["x:'a", "b"]),
        ("a,b,c", ["a", "b", "c"]),
        ("a]],b", ["a]]", "b"]),
        ("", [""]),
    ],
)
def test_commas_in_brackets_and_quotes_part_no_values(text: str, parts: list[str]) -> None:
    assert split_values(text) == parts


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("memory.loss_backend=liger,full", ("liger", "full")),
        ("algorithm.learning_rate=1e-5,2e-5", (1e-5, 2e-5)),
        ("memory.micro_batch=,4", (None, 4)),
        ("memory.gradient_checkpointing=true,false", (True, False)),
        ('memory.lora_targets="q_proj, v_proj",all-linear', ("q_proj, v_proj", "all-linear")),
        ("dataset.system_prompt=Don't think.,Think.", ("Don't think.", "Think.")),
        ("dataset.system_prompt='It''s, well, short',", ("It's, well, short", None)),
        ("model.revision=1.10,1.20", ("1.10", "1.20")),
        ("algorithm.extra={entropy_coef: 0.01},{}", ({"entropy_coef": 0.01}, {})),
        ("algorithm.extra.entropy_coef=0,0.01", (0, 0.01)),
        ("rewards.0.weight=1,0.5", (1, 0.5)),
        ("rewards=[{verifier: a}],[{verifier: b}]", ([{"verifier": "a"}], [{"verifier": "b"}])),
        ("dataset.prompt_template={prompt}=,{prompt}", ("{prompt}=", "{prompt}")),
    ],
)
def test_values_are_read_as_set_reads_them(text: str, values: tuple[Any, Any]) -> None:
    assert parse_differ(text) == (text.partition("=")[0], values)


@pytest.mark.parametrize(
    "text",
    ["memory.loss_backend", "=a,b", "memory.loss_backend=", "memory.loss_backend=liger", "algorithm.beta=1,2,3",
     "algorithm.extra={a: 1,b", "dataset.system_prompt='a,b"],
)  # fmt: skip
def test_what_is_not_one_setting_with_two_values_is_refused_with_exit_2(text: str) -> None:
    with pytest.raises(UsageError, match="--differ"):
        parse_differ(text)


def test_a_value_that_is_no_yaml_is_told_by_the_option_that_holds_it() -> None:
    assert refusal(parse_differ, "algorithm.beta=a: b: c,1").startswith("--differ algorithm.beta is not YAML")


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("memory.loss_backnd", "did you mean memory.loss_backend"),
        ("memory", "is a section"),
        ("dataset.columns", "is a section"),
        ("model.id.x", "unknown setting"),
        ("rewards.4.weight", "there is no reward 4"),
        ("rewards.0.wieght", "did you mean weight"),
        ("rewards.0.weight.x", "unknown setting"),
        ("", "unknown setting"),
        ("a\nb; c", "unknown setting"),
        ("algorithm.extra.", "unknown setting"),
        ("algorithm.extra..a", "unknown setting"),
    ],
)
def test_what_is_no_setting_is_refused_with_exit_2(field: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_setting(field, {})
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "field",
    [FIELD, "rewards", "rewards.0.params", "rewards.0.params.pattern", "algorithm.extra.entropy_coef", "alerts"],
)
def test_every_setting_may_differ_also_a_key_that_is_free(field: str) -> None:
    require_setting(field, {})


@pytest.mark.parametrize(
    ("overrides", "fine"),
    [
        ([f"{FIELD}=trl"], False),
        ([f" {FIELD} =trl"], False),
        (["memory.micro_batch=2"], True),
        (["rewards=[]"], True),
        ([], True),
    ],
)
def test_the_setting_that_differs_is_not_also_set(overrides: list[str], fine: bool) -> None:
    if fine:
        refuse_other_uses(FIELD, overrides)
    else:
        assert "leave that --set out" in refusal(refuse_other_uses, FIELD, overrides)
    assert "rewards.0.weight" in refusal(refuse_other_uses, "rewards", ["rewards.0.weight=1"])


def test_one_value_is_put_in_and_nothing_else_moves() -> None:
    data = {"memory": {"micro_batch": 2}, "rewards": [{"verifier": "a", "params": {}}]}
    before = json.dumps(data)
    assert with_value(data, FIELD, "trl") == {**data, "memory": {"micro_batch": 2, "loss_backend": "trl"}}
    assert with_value(data, "rewards.0.params.x", 1)["rewards"] == [{"verifier": "a", "params": {"x": 1}}]
    assert with_value({}, "rewards.0.weight", 2)["rewards"][0]["verifier"] == "math_numeric"
    assert with_value({"algorithm": None}, "algorithm.extra.a", 1) == {"algorithm": {"extra": {"a": 1}}}
    assert json.dumps(data) == before


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"memory": 3}, FIELD),
        ({"memory": [1]}, FIELD),
        ({"rewards": [5]}, "rewards.0.weight"),
        ({"rewards": {"a": 1}}, "rewards.0.weight"),
        ({"rewards": [{"params": [1]}]}, "rewards.0.params.0"),
        ({"algorithm": {"extra": [1]}}, "algorithm.extra.a"),
    ],
    ids=range(6),
)
def test_settings_with_no_place_for_a_value_stay_wrong(data: dict[str, Any], field: str) -> None:
    before = json.dumps(data)
    assert inspect(with_value(data, field, 1)).problems
    assert json.dumps(data) == before


# What both come to


def configured(field: str, *values: Any, **more: Any) -> list[RunConfig]:
    found = [inspect(with_value(more, field, value)).config for value in values]
    return [config for config in found if config is not None]


@pytest.mark.parametrize(
    ("field", "values", "same"),
    [
        (FIELD, ("liger", "liger"), "liger"),
        ("algorithm.learning_rate", (1e-5, "0.00001"), "1e-05"),
        ("memory.micro_batch", (None, 16), "16"),
        ("memory.skip_dead_groups", (None, True), "true"),
        ("algorithm.epsilon_high", (None, 0.2), "0.2"),
        ("rollout.importance_sampling_mode", (None, "sequence_mask"), "sequence_mask"),
        ("memory.lora_targets", ("q_proj,v_proj", "v_proj, q_proj"), "q_proj, v_proj"),
        ("rewards.0.name", (None, "math_numeric"), "math_numeric"),
        ("evaluation.passed_by", (None, "math_numeric"), "math_numeric"),
        (FIELD, ("liger", "full"), None),
        ("memory.micro_batch", (None, 8), None),
        ("memory.chunk_size", (None, 2), None),
        ("algorithm.extra", ({}, {"entropy_coef": 0.1}), None),
    ],
)
def test_two_values_that_come_to_one_are_found(field: str, values: tuple[Any, Any], same: str | None) -> None:
    a, b = configured(field, *values)
    assert equal_in_effect(field, a, b) == same


@pytest.mark.parametrize(
    ("field", "values", "told"),
    [
        (FIELD, ("liger", "trl"), "memory and time alone"),
        ("memory.skip_dead_groups", (True, False), "memory and time alone"),
        ("algorithm.seed", (1, 2), "which prompts"),
        ("dataset.held_out", (4, 8), "which prompts"),
        ("algorithm.prompts_per_step", (4, 8), "which prompts"),
        ("memory.lora_rank", (8, 16), "does nothing here: memory.adapter is none"),
        ("rollout.gpu_memory", (0.2, 0.3), "does nothing here: rollout.engine is transformers"),
        ("algorithm.learning_rate", (1e-5, 2e-5), None),
        ("algorithm.loss_type", ("grpo", "dapo"), None),
    ],
)
def test_what_to_expect_of_the_comparison_is_noted(field: str, values: tuple[Any, Any], told: str | None) -> None:
    notes = notes_on(field, *configured(field, *values))
    assert notes == [] if told is None else told in notes[0]


def test_a_setting_goes_by_its_title_in_the_form() -> None:
    assert title_of(FIELD) == "Loss backend"
    assert title_of("rewards.1.weight") == "Reward 2: Weight"
    assert title_of("algorithm.extra.entropy_coef") == "algorithm.extra.entropy_coef"


# Both are judged before anything is started


def judged(settings: Settings, data: dict[str, Any], field: str, *values: Any) -> CheckedPair:
    from grpo_studio.preflight import check

    return check_pair(data, field, (values[0], values[1]), lambda raw: check(raw, settings))


def test_problems_tell_whose_they_are(settings: Settings, tiny_model: Path) -> None:
    data = SMALL | {"model": {"id": str(tiny_model)}}
    found = judged(settings, data, "memory.micro_batch", 8, 7)
    assert [(one.side, one.problem.field) for one in found.problems] == [("B", "memory.micro_batch")]
    assert str(found.problems[0]).startswith("B: memory.micro_batch")
    assert found.exit_code == 1
    both = judged(settings, {"model": {"id": str(tiny_model)}, "algorithm": {"beta": -1}}, FIELD, "liger", "tlr")
    assert {(one.side, one.problem.field) for one in both.problems} == {("both", "algorithm.beta"), ("B", FIELD)}
    assert judged(settings, {"memroy": {}}, FIELD, "liger", "trl").exit_code == 2


def test_equal_values_are_a_problem_and_not_a_pair(settings: Settings, tiny_model: Path) -> None:
    data = SMALL | {"model": {"id": str(tiny_model)}}
    found = judged(settings, data, "memory.micro_batch", None, 16)
    assert [one.side for one in found.problems] == ["both"]
    assert "empty and 16 both come to 16 here" in str(found.problems[0])
    sound = judged(settings, data, FIELD, "liger", "trl")
    assert sound.ok
    assert sound.notes[0].startswith(f"{FIELD} changes memory and time alone")
    assert json.loads(json.dumps(sound.as_dict()))["values"] == ["liger", "trl"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--differ", "memory.loss_backnd=a,b"), 2, "did you mean"),
        (("--differ", "memory.loss_backend=liger"), 2, "two values"),
        (("--differ", "memory.loss_backend=liger,trl", "--set", "memory.loss_backend=full"), 2, "leave that --set out"),
        (("--differ", "memory.loss_backend=liger,liger"), 1, "both values are liger"),
        (("--differ", "algorithm.beta=0,-1"), 1, "B: algorithm.beta"),
    ],
)
def test_the_command_refuses_and_starts_nothing(
    settings: Settings, capsys: pytest.CaptureFixture[str], tiny_model: Path, arguments: tuple[str, ...], code: int,
    told: str,
) -> None:  # fmt: skip
    common = ("--preset", "quickstart", "--set", f"model.id={tiny_model}", "--set", "dataset.held_out=0")
    assert commands.run(["pair", *common, *arguments]) == code
    assert told in capsys.readouterr().err
    assert list(run_folders(settings.runs_dir)) == []
    assert JobQueue(settings.queue_path).jobs() == []


# Both are made, or none


def test_both_runs_lie_there_whole_and_wait_in_their_order(
    settings: Settings, checked: CheckedPair, unserved: list[Settings]
) -> None:
    other = create_run(settings.runs_dir, RunConfig(), "other")
    JobQueue(settings.queue_path).add(other.path)
    pair = start_checked(checked, settings, "My pair")
    assert JobQueue(settings.queue_path).waiting() == [other.path, *(folder.path for folder in pair.folders if folder)]
    assert unserved == [settings]
    for place, side in enumerate("AB"):
        folder = pair.folders[place]
        assert folder is not None
        record = record_of(folder)
        assert record is not None
        assert (record.pair, record.side, record.values) == (pair.id, side, ("liger", "trl"))
        assert folder.config().memory.loss_backend == pair.values[place]
        assert f"my-pair-{side.lower()}-{pair.values[place]}" in folder.run_id
        assert supervisor.summary(folder, settings)["pair"] == record.as_dict() | {"other": pair.runs[1 - place]}
        with RunReader(folder.database) as reader:
            assert [event.kind for event in reader.events()] == ["run_created", "pair"]
    assert find_pair(settings, pair.id) == find_pair(settings, "latest") == find_pair(settings, pair.runs[1]) == pair
    assert supervisor.summary(other, settings)["pair"] is None
    assert sorted(path.name for path in settings.runs_dir.iterdir()) == sorted([other.run_id, *pair.runs])


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_trouble_on_the_way_leaves_no_half(
    settings: Settings, checked: CheckedPair, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """The n-th folder that gets its name meets a full disk: two inside the staging folder, then both halves."""
    made, rename = [0], Path.rename

    def fails(path: Path, target: Path) -> Path:
        made[0] += 1
        if made[0] == call:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(StoreError):
        start_checked(checked, settings, "pair")
    assert list(settings.runs_dir.iterdir()) == []
    assert JobQueue(settings.queue_path).jobs() == []


def test_a_queue_that_nothing_serves_leaves_no_half(
    settings: Settings, checked: CheckedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(of: Settings) -> None:
        raise StoreError("cannot start what serves the queue: no memory; see dispatcher.log")

    monkeypatch.setattr(dispatcher, "ensure_running", fails)
    with pytest.raises(StoreError, match="no memory"):
        start_checked(checked, settings)
    assert list(settings.runs_dir.iterdir()) == []
    assert JobQueue(settings.queue_path).jobs() == []


def test_what_was_begun_meanwhile_is_left_alone(
    settings: Settings, checked: CheckedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = JobQueue(settings.queue_path)

    def taken_and_fails(of: Settings) -> None:
        queue.take(queue.waiting()[0], ["cpu"])
        raise StoreError("no memory")

    monkeypatch.setattr(dispatcher, "ensure_running", taken_and_fails)
    with pytest.raises(StoreError):
        start_checked(checked, settings)
    assert len(list(run_folders(settings.runs_dir))) == len(queue.jobs()) == 2


def test_what_a_killed_start_left_goes_with_a_later_one(settings: Settings, checked: CheckedPair) -> None:
    old, new = (settings.runs_dir / f"{pairs.STAGING}{name}" for name in ("old", "new"))
    for path in (old, new):
        (path / "half").mkdir(parents=True)
    os.utime(old, (time.time() - 7200,) * 2)
    start_checked(checked, settings)
    assert not old.exists()
    assert new.exists()


def test_settings_that_are_wrong_start_nothing(settings: Settings, tiny_model: Path) -> None:
    config = RunConfig.model_validate(SMALL | {"model": {"id": str(tiny_model)}})
    with pytest.raises(ConfigError, match=r"B: memory\.micro_batch"):
        start_pair(config, settings, "memory.micro_batch", (8, 7))
    with pytest.raises(UsageError):
        start_pair(config, settings, "memory.nothing", (8, 7))
    assert list(settings.runs_dir.iterdir()) == []
    pair = start_pair(config, settings, "memory.micro_batch", [8, 16], "batches")
    assert pair.values == (8, 16)


# Halves are found again


def test_a_half_that_is_gone_costs_the_other_nothing(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    pair = SamplePair(settings.home)
    whole = find_pair(settings, pair.id)
    assert whole.whole
    shutil.rmtree(pair.a.folder.path)
    left = same_pair(whole, settings)
    told = supervisor.summary(pair.b.folder, settings)
    assert told["pair"]["other"] is None
    print_summary(told)
    assert "B of a pair that differs in memory.loss_backend; the other is not here" in capsys.readouterr().out
    assert left.folders == (None, pair.b.folder)
    assert left.runs == whole.runs
    shutil.rmtree(pair.b.folder.path)
    with pytest.raises(RunNotFoundError):
        same_pair(left, settings)


def test_a_half_out_of_an_archive_finds_its_place_under_any_id(settings: Settings, tmp_path: Path) -> None:
    pair = finished_pair(settings.home, steps=2, equal=2)
    packed, manifest = archive(pair.b.folder, tmp_path / "b.tar.gz", False, lambda line: None)
    assert PAIR_FILE in manifest.files
    copy, _ = import_archive(packed, settings, "copy", lambda line: None)
    assert find_pair(settings, pair.id).folders == (pair.a.folder, pair.b.folder)
    shutil.rmtree(pair.b.folder.path)
    assert find_pair(settings, pair.id).folders == (pair.a.folder, copy)
    shutil.rmtree(pair.a.folder.path)
    found = find_pair(settings, copy.run_id)
    assert found.folders == (None, copy)
    assert found.runs == (pair.a.folder.run_id, pair.b.folder.run_id)


@pytest.mark.parametrize(
    "content",
    [
        "", "null", "[]", '"A"', "{", "\x00", '{"pair": "../x"}', "[" * 5000, '{"a": 1}' + " " * (1 << 18),
        json.dumps({"pair": PAIR_ID, "side": "C", "field": "a", "values": [1, 2], "runs": ["a", "b"]}),
        json.dumps({"pair": PAIR_ID, "side": "A", "field": "a", "values": [1], "runs": ["a", "b"]}),
        json.dumps({"pair": PAIR_ID, "side": "A", "field": "a", "values": [1, 2], "runs": ["../a", "b"]}),
        json.dumps({"pair": PAIR_ID, "side": "A", "field": "a\nb", "values": [1, 2], "runs": ["a", "b"]}),
        json.dumps({"pair": PAIR_ID, "side": ["A"], "field": "a", "values": [1, 2], "runs": ["a", "b"]}),
        json.dumps({"pair": PAIR_ID, "side": "A", "field": "x" * 999, "values": [1, 2], "runs": ["a", "b"]}),
    ],
    ids=range(15),
)  # fmt: skip
def test_a_record_that_cannot_be_understood_makes_no_pair_and_hides_no_run(settings: Settings, content: str) -> None:
    pair = SamplePair(settings.home)
    (pair.a.folder.path / PAIR_FILE).write_text(content)
    assert record_of(pair.a.folder) is None
    assert [one.folders for one in pairs_of(settings)] == [(None, pair.b.folder)]
    assert supervisor.summary(pair.a.folder, settings)["pair"] is None


def test_a_record_that_is_no_file_is_not_waited_for(settings: Settings) -> None:
    pair = SamplePair(settings.home)
    path = pair.a.folder.path / PAIR_FILE
    path.unlink()
    os.mkfifo(path)
    assert record_of(pair.a.folder) is None


def test_pairs_are_listed_newest_first_and_a_name_that_is_none_is_told(settings: Settings) -> None:
    with pytest.raises(RunNotFoundError, match="none was started yet"):
        find_pair(settings, "latest")
    ids = [f"20261130-12000{number}-sample-ab1{number}" for number in range(3)]
    made = [SamplePair(settings.home, pair=name) for name in ids]
    for number, pair in enumerate(made):  # ids of one second have no order but this one
        for run in (pair.a, pair.b):
            run.writer.close()
            target = run.folder.path.with_name(
                run.folder.run_id.replace(run.folder.run_id[:15], f"2026113{number}-120000")
            )
            run.folder.path.rename(target)
            run.folder = RunFolder(target)
        pair.tell()
    assert [one.id for one in pairs_of(settings)] == ids[::-1]
    with pytest.raises(RunNotFoundError, match=f"did you mean .*{ids[0]}"):
        find_pair(settings, ids[0][:-1])


# From the Launch page


def test_the_launch_page_starts_one_pair_however_often_it_is_asked(
    settings: Settings, tiny_model: Path, unserved: list[Settings]
) -> None:
    actions = LaunchActions(settings, ScanCache())
    data = complete(read_preset("quickstart", settings.presets_dirs))
    data["model"]["id"], data["dataset"]["held_out"] = str(tiny_model), 0
    request = {"data": data, "field": FIELD, "values": ["liger", "trl"], "key": "start-12345678", "name": "twice"}
    told = actions.check_pair(request)
    assert told["ok"], told
    answer = actions.start_pair(request)
    again = actions.start_pair(request)
    while "pair" not in answer:
        assert "error" not in answer, answer
        answer = actions.start_progress({"key": request["key"]})
    assert actions.start_pair(request) == answer
    assert again.get("pair", answer["pair"]) == answer["pair"]
    assert [pair.id for pair in pairs_of(settings)] == [answer["pair"]]
    assert len(JobQueue(settings.queue_path).waiting()) == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"field": "memory.nothing"}, "unknown setting"),
        ({"field": 3}, "no setting under 'field'"),
        ({"values": ["liger"]}, "no two values"),
        ({"values": "liger,trl"}, "no two values"),
        ({"data": None}, "no settings under 'data'"),
    ],
)
def test_a_request_that_names_no_two_runs_is_told_why(settings: Settings, change: dict[str, Any], told: str) -> None:
    actions = LaunchActions(settings, ScanCache())
    request = {"data": {}, "field": FIELD, "values": ["liger", "trl"], "key": "start-12345678"} | change
    assert told in actions.check_pair(request)["error"]
    answer = actions.start_pair(request)
    while "message" in answer:
        answer = actions.start_progress({"key": request["key"]})
    assert told in answer["error"]


def test_a_check_from_the_page_names_the_side(settings: Settings) -> None:
    answer = LaunchActions(settings, ScanCache()).check_pair({"data": {}, "field": FIELD, "values": ["liger", "tlr"]})
    assert not answer["ok"]
    assert [(one["side"], one["field"]) for one in answer["problems"]] == [("B", FIELD)]
