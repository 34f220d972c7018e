"""`reasoning_gym:<task>`: rows that follow from their settings alone, kept on disk, made in a process of their own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grpo_studio import data
from grpo_studio.config import DatasetSettings
from grpo_studio.data.made import gym_child, made_fields, made_reward, made_rows, made_sources, open_made
from grpo_studio.data.made.gym_cache import GymCache
from grpo_studio.data.made.gym_child import refuse_odd_text
from grpo_studio.data.made.gym_process import ask
from grpo_studio.data.made.gym_tasks import TASKS, default_size, is_slow
from grpo_studio.errors import DataError
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.verifiers.discovery import load_file

# Its library walks over sets and draws from the process's own random state: the hash seed must not matter.
TASK = "reasoning_gym:isomorphic_strings"
SIZE = 205


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache for all tests of this file, in which the rows of one task have been made."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRPO_STUDIO_CACHE", str(folder))
        patch.setenv("PYTHONHASHSEED", "1")
        list(open_made(chosen()).rows)
        yield folder


def chosen(source: str = TASK, **settings: Any) -> DatasetSettings:
    return DatasetSettings.model_validate({"source": source, "params": {"size": SIZE}} | settings)


def test_rows_have_the_columns_of_their_verifier_which_pays_their_gold(cache: Path) -> None:
    [verifier] = load_file(BUNDLED_REWARDS / "reasoning_gym.py")
    reward = made_reward(TASK)
    assert reward == {"verifier": "reasoning_gym", "params": {"task": "isomorphic_strings"}}
    for row in itertools.islice(open_made(chosen()).rows, 5):
        assert list(row) == ["prompt", "answer", "metadata", "task"]
        assert verifier.function(row["answer"], row["metadata"], row["answer"], **reward["params"]).score == 1.0
        assert verifier.function("neither", row["metadata"], row["answer"], **reward["params"]).score == 0.0


def test_a_run_gets_every_row_once_and_no_question_on_both_sides(cache: Path) -> None:
    splits = data.load(chosen())
    asked = {sample.question for sample in splits.held_out}
    assert (len(splits.held_out), splits.rows_read) == (32, SIZE)
    assert not asked & {sample.question for sample in splits.train}
    rows = list(open_made(chosen()).rows)
    assert all(rows[sample.row - 1]["prompt"] == sample.question for sample in (*splits.train, *splits.held_out))
    assert made_rows(chosen(held_out_seed=1))[1] != made_rows(chosen())[1]
    assert made_rows(chosen(limit=7))[0] == made_rows(chosen())[0][:7]


def test_a_damaged_file_is_made_anew_and_the_rows_are_the_same(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(open_made(chosen()).rows)
    [last] = cache.glob("made/isomorphic_strings-*/200.json")
    whole = last.read_bytes()
    last.write_bytes(whole.replace(b"True", b"Trve", 1))
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    assert list(open_made(chosen()).rows) == before
    assert last.read_bytes() == whole
    assert [path.name for path in last.parent.iterdir() if path.suffix != ".json"] == []


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[]", b"0" * 64 + b"\n[]"])
def test_no_damage_is_taken_for_what_was_kept(cache: Path, damage: bytes) -> None:
    kept = GymCache("test", "1", {"size": 1})
    kept.write("0", [{"a": "\ud800"}])
    assert kept.read("0") == [{"a": "\ud800"}]
    [path] = cache.glob("made/test-*/0.json")
    path.write_bytes(damage)
    assert kept.read("0") is None


@pytest.mark.parametrize("text", ["os.system", "__class__", "print(1)", "/etc/passwd", "a;b", "a\nb", "'", "x[0]"])
def test_text_that_could_be_code_or_a_path_is_no_setting(text: str) -> None:
    with pytest.raises(ValueError, match="neither plain words nor one of"):
        refuse_odd_text("symbols", ["y", {"key": text}], ("x", "**"))


def test_words_numbers_times_and_what_is_its_own_default_are_settings() -> None:
    refuse_odd_text(
        "any", ["Åsa Lind", "3.5", "10:30:00.5", "2020-01-31", "**", "data.txt", 7, None], ["**", "data.txt"]
    )


def test_another_version_or_another_setting_is_another_key(cache: Path) -> None:
    GymCache("key", "1", {"size": 1}).write("0", 1)
    assert GymCache("key", "2", {"size": 1}).read("0") is None
    assert GymCache("key", "1", {"size": 2}).read("0") is None


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GRPO_STUDIO_CACHE", str(tmp_path / "file"))
    kept = GymCache("task", "1", {})
    kept.write("0", [1])
    assert kept.read("0") is None


def test_only_the_newest_choices_of_settings_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_STUDIO_CACHE", str(tmp_path))
    for number in range(105):
        GymCache("task", "1", {"seed": number}).write("0", number)
        for age, folder in enumerate(sorted((tmp_path / "made").iterdir(), key=lambda one: one.stat().st_mtime_ns)):
            os.utime(folder, (age, age))
    assert len(list((tmp_path / "made").iterdir())) == 100
    assert GymCache("task", "1", {"seed": 104}).read("0") == 104
    assert GymCache("task", "1", {"seed": 0}).read("0") is None


def test_a_row_that_does_not_come_ends_in_an_error_and_no_process() -> None:
    request = {"task": "gcd", "params": {"seed": 0, "size": 1, "min_numbers": 10**9, "max_numbers": 10**9}, "first": 0}
    with pytest.raises(DataError, match=r"row 1 of reasoning_gym:gcd takes longer than 0\.2 s; choose easier settings"):
        list(ask("reasoning_gym:gcd", request, row_limit=0.2))


def test_the_library_says_what_is_wrong_with_a_setting(cache: Path) -> None:
    with pytest.raises(DataError, match="reasoning_gym:gcd has no setting 'min_valu'; did you mean min_value"):
        list(open_made(chosen("reasoning_gym:gcd", params={"min_valu": 3})).rows)


@pytest.mark.parametrize(
    ("task", "params", "message"),
    [
        ("gcd", {"min_value": 30, "max_value": 3}, "max_value must be > min_value"),
        ("gcd", {"min_value": True}, "min_value is True, not a number"),
        ("gcd", {"data_file": "/etc/passwd"}, "data_file"),
        ("puzzle24", {"operators": ["+", "__import__('os')"]}, "which is neither plain words nor one of"),
    ],
)
def test_the_child_tells_what_is_wrong_in_one_document(task: str, params: dict[str, Any], message: str) -> None:
    request = {"task": task, "params": {"seed": 0, "size": 3} | params, "first": 0}
    [document] = gym_child._answers(request)  # here, for the library takes a second to import in each child
    assert message in document.get("problem", document.get("unknown"))
    assert "\n" not in str(document)


@pytest.mark.parametrize(
    ("source", "settings", "message"),
    [
        ("knight_swp", {}, "no task 'knight_swp'; did you mean knight_swap"),
        ("", {}, f"pick one of its {len(TASKS)}, such as"),
        ("../../etc", {}, r"no task '\.\./\.\./etc'; "),
        ("composite", {}, "mixes other tasks"),
        ("gcd", {"config": "main"}, "has no configurations"),
        ("gcd", {"params": {"size": 0}}, "size is 0; give a whole number from 1 to"),
        ("gcd", {"params": {"size": True}}, "size is True; give"),
        ("gcd", {"params": {"size": 10**9}}, "size is 1000000000; give"),
        ("gcd", {"params": {"seed": -1}}, "seed is -1; give"),
        ("gcd", {"params": {"seed": "x"}}, "seed is 'x'; give"),
        ("gcd", {"params": {"min_value": float("nan")}}, "no plain data"),
        ("gcd", {"params": {"min_value": 10**5000}}, "no plain data"),
        ("knight_swap", {"params": {}}, r"32 of the 12 rows.*take long to make; set dataset\.held_out to 2 or less"),
        ("gcd", {"params": {"size": 20}}, r"32 of the 20 rows of reasoning_gym:gcd leaves none to train on"),
    ],
)
def test_what_cannot_work_is_told_before_anything_is_made(source: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        made_rows(chosen(f"reasoning_gym:{source}", **settings))


def test_a_reading_can_be_ended_and_says_how_far_it_has_come(cache: Path) -> None:
    shares: list[float] = []

    def stop_half_way(_: str, share: float) -> None:
        shares.append(share)
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_rows(chosen(), stop_half_way)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(0.5, abs=0.01)
    stream = open_made(chosen())
    next(stream.rows)
    assert stream.share is not None
    assert stream.share() == 1 / SIZE


def test_all_tasks_of_the_library_can_be_picked_by_a_name_in_words() -> None:
    from reasoning_gym.factory import DATASETS

    categories = {name: kind.__module__.split(".")[1] for name, (kind, _) in DATASETS.items()}
    assert {name: category for name, category in categories.items() if name != "composite"} == TASKS
    sources = {source["value"]: source for source in made_sources()}
    assert len(sources) == 2 + len(TASKS)
    assert sources["reasoning_gym:knight_swap"] == {
        "value": "reasoning_gym:knight_swap",
        "title": "Knight swap",
        "note": "Knight swap: games, slow: 12 rows unless set",
    }
    assert {"builtin:arithmetic", "builtin:countdown"} < set(sources)
    assert [task for task in TASKS if is_slow(task) != (default_size(task) < 1000)] == []


def test_the_settings_of_every_task_are_described(cache: Path) -> None:
    for task in TASKS:
        fields = {field["name"]: field for field in made_fields(f"reasoning_gym:{task}")}
        assert fields["seed"]["default"] == 0
        assert (fields["size"]["kind"], fields["size"]["default"]) == ("int", default_size(task))
        assert all(field["kind"] in ("text", "int", "number", "bool", "choice", "map") for field in fields.values())
    board = {field["name"]: field for field in made_fields("reasoning_gym:knight_swap")}
    assert board["min_nodes"]["help"] == "Minimum number of squares on the board."
    style = next(field for field in made_fields("reasoning_gym:basic_arithmetic") if field["name"] == "format_style")
    assert (style["kind"], style["choices"]) == ("choice", ["simple", "natural"])
    # A file of this machine, which its questions would show.
    assert "data_file" not in {field["name"] for field in made_fields("reasoning_gym:spell_backward")}


def test_scorers_that_look_at_settings_are_told_them() -> None:
    params = {"min_value": 1, "max_value": 6, "seed": 3, "size": 50}
    assert made_reward("reasoning_gym:puzzle24", params) == {
        "verifier": "reasoning_gym",
        "params": {"task": "puzzle24", "config": {"min_value": 1, "max_value": 6}},
    }
    assert made_reward("reasoning_gym:gcd", params) == {"verifier": "reasoning_gym", "params": {"task": "gcd"}}


def test_the_library_is_not_loaded_into_this_process(cache: Path) -> None:
    code = (
        "import sys; from grpo_studio.config import DatasetSettings; from grpo_studio.data import made; "
        f"rows = made.made_rows(DatasetSettings(source={TASK!r}, params={{'size': {SIZE}}})); "
        "print(len(rows[0]) + len(rows[1]), {'reasoning_gym', 'numpy', 'torch', 'sympy'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.split(maxsplit=1)[1] == "set()\n"
    assert shown.stderr == ""
