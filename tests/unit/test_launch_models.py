"""What the launch page asks about models and while a person types: answers, bounds, and nothing for a stranger."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grpo_studio import hub_search
from grpo_studio.errors import HubError
from grpo_studio.settings import Settings
from grpo_studio.ui import launch_models
from grpo_studio.ui.frame import guarded
from grpo_studio.ui.path_rows import MOST_ROWS, path_rows
from grpo_studio.ui.same_origin import asked_from_here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one of each: a model, a plain folder, files for models and for data, one that is hidden."""
    for name in ("data/a.jsonl", "data/B.CSV", "data/c.gguf", "data/d.txt", "data/.hidden.csv", "data/sub/e.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 7)
    (tmp_path / "data/tiny").mkdir()
    (tmp_path / "data/tiny/config.json").write_text("{}")
    return tmp_path / "data"


@pytest.fixture
def from_here() -> Iterator[None]:
    token = asked_from_here.set(True)
    yield
    asked_from_here.reset(token)


def ask(settings: Settings, name: str, request: Any) -> dict[str, Any]:
    functions = {function.__name__: guarded(function) for function in launch_models.functions(settings)}
    return functions[name](request)


def values(kind: Any, text: object) -> list[str]:
    return [row["value"] for row in path_rows(kind, str(text))]


def test_files_of_the_kind_come_first_and_folders_lead_on(folder: Path) -> None:
    assert path_rows("dataset", f"{folder}/") == [
        {"value": f"{folder}/a.jsonl", "kind": "file", "bytes": 7},
        {"value": f"{folder}/B.CSV", "kind": "file", "bytes": 7},
        {"value": f"{folder}/sub/", "kind": "folder"},
        {"value": f"{folder}/tiny/", "kind": "folder"},
    ]
    assert path_rows("model", f"{folder}/") == [
        {"value": f"{folder}/c.gguf", "kind": "file", "bytes": 7},
        {"value": f"{folder}/tiny", "kind": "model"},
        {"value": f"{folder}/sub/", "kind": "folder"},
    ]


def test_a_name_is_completed_in_either_case_and_a_hidden_one_when_asked_for(folder: Path) -> None:
    assert values("dataset", folder / "b") == [f"{folder}/B.CSV"]
    assert values("dataset", folder / ".h") == [f"{folder}/.hidden.csv"]
    assert values("dataset", folder / "none") == []


def test_a_beginning_is_kept_as_it_was_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    for start, shown in (("./", "./"), (".", "./"), ("~", "~/"), ("~/", "~/"), ("../data/", "../data/")):
        assert values("dataset", start)[0] == f"{shown}a.jsonl", start


@pytest.mark.parametrize("text", ["", "alice/tiny", "builtin:x", "/no/such/", "/\0/", "~nobody/x", "a.csv", "/" * 400])
def test_text_that_is_no_path_of_here_gives_no_rows_and_no_error(text: str) -> None:
    assert isinstance(path_rows("dataset", text), list)
    if not text.startswith("//"):
        assert path_rows("dataset", text) == []


def test_names_that_no_page_can_show_and_broken_links_are_left_out(folder: Path) -> None:
    (folder / "line\nbreak.csv").write_text("x")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.csv")).write_text("x")
    (folder / "gone.csv").symlink_to(folder / "nothing")
    assert values("dataset", f"{folder}/") == [f"{folder}/{name}" for name in ("a.jsonl", "B.CSV", "sub/", "tiny/")]


def test_a_full_folder_gives_no_more_than_fits_a_list(folder: Path) -> None:
    for number in range(MOST_ROWS + 20):
        (folder / f"part-{number:03}.csv").write_text("x")
    assert len(values("dataset", folder / "part")) == MOST_ROWS


def test_paths_are_told_to_the_one_who_sits_here_alone(folder: Path, settings: Settings, from_here: None) -> None:
    request = {"kind": "dataset", "text": f"{folder}/"}
    answer = ask(settings, "complete_path", request)
    assert len(answer["rows"]) == 4
    assert answer["starts"] == ["~/", "./"]
    nothing = {"rows": [], "starts": []}
    assert ask(replace(settings, host="0.0.0.0"), "complete_path", request) == nothing
    asked_from_here.set(False)
    assert ask(settings, "complete_path", request) == nothing


@pytest.mark.parametrize("request_", [None, [], {"text": 3}, {"kind": [], "text": {}}, {"text": "x" * 5000}])
def test_requests_of_any_shape_are_answered(settings: Settings, from_here: None, request_: Any) -> None:
    assert ask(settings, "complete_path", request_)["rows"] == []
    assert ask(settings, "search_hub", request_) == {"rows": []}


def test_the_hub_is_asked_from_two_characters_on(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def search(kind: str, text: str) -> list[dict[str, str]]:
        asked.append((kind, text))
        return [{"value": "alice/tiny", "note": ""}]

    monkeypatch.setattr(hub_search, "search", search)
    assert ask(settings, "search_hub", {"kind": "model", "text": " q "}) == {"rows": []}
    assert ask(settings, "search_hub", {"kind": "dataset", "text": " qw "})["rows"][0]["value"] == "alice/tiny"
    assert asked == [("dataset", "qw")]


def test_a_hub_that_cannot_be_reached_is_one_line(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(kind: str, text: str) -> list[dict[str, str]]:
        raise HubError("cannot reach the Hub; check the network")

    monkeypatch.setattr(hub_search, "search", search)
    answer = ask(settings, "search_hub", {"kind": "model", "text": "qwen"})
    assert answer == {"error": "cannot reach the Hub; check the network"}


def test_the_card_says_whether_the_model_has_a_template_whatever_is_used(tiny_model: Path, settings: Settings) -> None:
    for chosen, used in ((None, "own"), ("plain", "plain"), ("chatml", "chatml")):
        model = {"id": str(tiny_model), "dtype": "float32", "chat_template": chosen, "trust_remote_code": True}
        card = ask(settings, "model_card", {"model": model})["card"]
        assert (card["chat_template"], card["has_chat_template"]) == (used, True)


def test_what_a_hostile_folder_says_is_short_and_can_be_sent(
    tiny_model: Path, tmp_path: Path, settings: Settings
) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "odd"))
    for name, change in (
        ("config.json", {"architectures": ["\ud800" + "A" * 9_000]}),
        ("tokenizer_config.json", {"pad_token": "\u202e\udfff</script>"}),
    ):
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    card = ask(settings, "model_card", {"model": {"id": str(folder), "dtype": "float32"}})["card"]
    assert len(json.dumps(card, ensure_ascii=False).encode()) < 5_000
    assert card["vocabulary"] > 0


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"id": ""}, "at least 1 character"),
        ({"id": 3.5, "dtype": "int3"}, "model.dtype: "),
        ({"id": "builtin:none"}, "no built-in model"),
        ({"id": "x" * 300_000}, "bytes"),
    ],
)
def test_a_model_that_cannot_be_is_told_in_one_line(settings: Settings, model: Any, said: str) -> None:
    error = ask(settings, "model_card", {"model": model})["error"]
    assert said in error
    assert "\n" not in error


def test_a_folder_of_this_machine_is_no_business_of_visitors(tiny_model: Path, settings: Settings) -> None:
    public = replace(settings, host="0.0.0.0")
    answers = [ask(public, "model_card", {"model": {"id": str(path)}}) for path in (tiny_model, "/no/such/folder")]
    assert answers[0] == answers[1]
    assert "outside the folders" in answers[0]["error"]
