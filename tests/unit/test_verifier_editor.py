"""Verifiers in the browser: which names and texts are taken, what is checked first, and who may write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RewardSettings
from grpo_studio.errors import ConfigError, UsageError, VerifierError
from grpo_studio.settings import BUNDLED_REWARDS, Settings
from grpo_studio.ui.same_origin import SameOrigin, asked_from_here
from grpo_studio.ui.verifiers_catalogue import Catalogue
from grpo_studio.ui.verifiers_code import run_code
from grpo_studio.ui.verifiers_editor import EditorActions
from grpo_studio.ui.verifiers_files import LARGEST_BYTES, OwnFiles
from grpo_studio.ui.verifiers_trust import require_sandbox
from grpo_studio.verifiers.sandbox import FORCE_VARIABLE

RULE = '''from grpo_studio.verifiers import verifier


@verifier(examples=[("yes", {{}}, {expected})])
def {name}(completion):
    """It says yes."""
    return {returned}
'''


def rule(name: str = "says_yes", returned: str = "float(completion == 'yes')", expected: str = "1.0") -> str:
    return RULE.format(name=name, returned=returned, expected=expected)


@pytest.fixture
def editor(settings: Settings) -> Iterator[EditorActions]:
    """The editor as somebody at this machine sees it."""
    token = asked_from_here.set(True)
    yield editor_of(settings)
    asked_from_here.reset(token)


def editor_of(settings: Settings) -> EditorActions:
    return EditorActions(settings, Catalogue(settings.rewards_dirs, settings.own_rewards))


def own(editor: EditorActions) -> Path:
    return editor.settings.own_rewards


# Names


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/x", "a/b", "a\\b", "..", ".", "", " ", ".hidden", "x.py.py", "x.sh", "a b", "é", "x" * 80, "x\0", "1x", "__init__", "-x", "x\ny", None, 3, ["x"]],
)  # fmt: skip
def test_a_name_that_is_no_plain_file_name_is_refused(editor: EditorActions, name: Any) -> None:
    for call in (editor.verifiers_new, editor.verifiers_save):
        with pytest.raises(UsageError, match="name for a file"):
            call({"name": name, "file": name, "code": rule()})
    assert not own(editor).exists()


@pytest.mark.parametrize("name", ["class", "math_numeric", "Math_Numeric.py", "_regex_match"])
def test_a_word_of_python_and_the_name_of_a_built_in_file_are_refused(editor: EditorActions, name: str) -> None:
    with pytest.raises(UsageError, match="another name"):
        editor.verifiers_save({"file": name, "code": rule()})


def test_only_files_of_the_own_folder_can_be_opened_or_deleted(editor: EditorActions, settings: Settings) -> None:
    outside = settings.home / "secret.py"
    outside.write_text("x = 1")
    own(editor).mkdir()
    for name in ("../secret.py", str(outside), "secret.py", "math_numeric.py", f"{BUNDLED_REWARDS}/math_numeric.py"):
        for call in (editor.verifiers_open, editor.verifiers_delete):
            with pytest.raises(UsageError, match="there is no file"):
                call({"file": name})
    assert outside.exists()


# Saving


def test_the_template_can_be_saved_as_it_is_and_is_then_in_use(editor: EditorActions) -> None:
    new = editor.verifiers_new({"name": "my_rule"})
    answer = editor.verifiers_save(new)
    assert (answer["saved"], answer["report"]["ok"]) == ("my_rule.py", True)
    assert [one["passed"] for one in answer["report"]["examples"]] == [True] * 3
    assert "my_rule" in editor.catalogue.read()[1].specs
    assert editor.verifiers_open({"file": "my_rule.py"}) == {**new, "seen": answer["seen"]}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def f(:\n    pass", "line 1"),
        ("x = 1\nraise RuntimeError('no')", "no (line 2)"),
        ("x = 1", "no function marked with @verifier"),
        ("import os\nos._exit(3)", "exit status 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
        ("raise SystemExit", "SystemExit"),
    ],
)
def test_a_file_that_does_not_load_is_not_saved(editor: EditorActions, code: str, told: str) -> None:
    answer = editor.verifiers_save({"file": "bad", "code": code})
    assert set(answer) == {"report"}
    assert told in " ".join(answer["report"]["problems"])
    assert editor.files.names() == []


@pytest.mark.parametrize("returned", ["[1.0]", "'1.0'", "float('nan')", "float('inf')", "None", "0.5", "1 / 0"])
def test_a_verifier_that_fails_its_own_example_is_not_saved_but_can_be_a_draft(
    editor: EditorActions, returned: str
) -> None:
    request = {"file": "bad", "code": rule(returned=returned)}
    answer = editor.verifiers_save(request)
    assert set(answer) == {"report"}
    [example] = answer["report"]["examples"]
    assert not example["passed"]
    assert answer["report"]["problems"][0].startswith("says_yes")
    assert editor.verifiers_save({**request, "draft": True})["saved"] == "_bad.py"
    assert editor.files.names() == ["_bad.py"]
    assert "says_yes" not in editor.catalogue.read()[1].specs


@pytest.mark.parametrize(
    ("example", "returned", "told"),
    [
        ('("yes", {"size": 2, "answer": "1"}, 1.0)', "1.0", ""),
        ('("yes", {"size": 2, "answer": "1"}, None)', "None", ""),
        ('("yes", {"answer": "1"}, 1.0)', "1.0", " lacks 'size'"),
        ('("yes", {"size": 2}, 1.0)', "1.0", " lacks 'answer'"),
        ('("yes", {"size": 2, "answer": "1", "colour": 3}, 1.0)', "1.0", " gives 'colour', which the verifier does not take"),
        ('("yes", {"size": 2, "answer": "1"}, None)', "1.0", ": expected None (abstain), got 1"),
        ('("yes", {"size": 2, "answer": "1"}, 1.0)', "None", ": expected 1, got None"),
        ('("yes", {"size": 2, "answer": "1"}, 1.0)', "[1.0]", ": sized returned [1.0] (list)"),
        ('("yes", {"size": 2, "answer": "1"}, 1.0)', "1 / 0", " raised or ended its process: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_each_example_is_judged_and_what_is_wrong_with_it_is_told(
    editor: EditorActions, example: str, returned: str, told: str
) -> None:
    sound = '("no", {"size": 1, "answer": "1"}, 0.0)'
    code = f"""from grpo_studio.verifiers import verifier

@verifier(examples=[{sound}, {example}])
def sized(completion, answer, *, size: int):
    'It says yes.'
    return {returned} if completion == "yes" else 0.0
"""
    report = editor.verifiers_check({"file": "sized", "code": code})
    assert [one["passed"] for one in report["examples"]] == [True, not told]
    assert report["examples"][0]["score"]["value"] == 0.0
    assert len(report["problems"]) == bool(told)
    assert all(problem.startswith(f"sized: example 2{told}") for problem in report["problems"])


def test_an_example_is_judged_once(editor: EditorActions, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    code = rule(returned=f"float(completion == 'yes') + 0 * open({str(calls)!r}, 'a').write('x')")
    assert editor.verifiers_check({"file": "counts", "code": code})["ok"]
    assert calls.read_text() == "x"


def test_a_draft_that_is_mended_takes_its_place(editor: EditorActions) -> None:
    draft = editor.verifiers_save({"file": "mine", "code": rule(returned="2"), "draft": True})
    opened = {"file": "_mine.py", "opened": "_mine.py", "seen": draft["seen"]}
    assert editor.verifiers_save({**opened, "code": rule()})["saved"] == "mine.py"
    assert editor.files.names() == ["mine.py"]


def test_the_name_of_another_verifier_is_refused(editor: EditorActions) -> None:
    editor.verifiers_save({"file": "first", "code": rule("says_yes")})
    for file, name, other in (("second", "says_yes", "first.py"), ("third", "math_numeric", "math_numeric.py")):
        answer = editor.verifiers_save({"file": file, "code": rule(name)})
        assert answer["report"]["problems"] == [f"verifier '{name}' is refused: {other} already has one of that name"]
    assert editor.files.names() == ["first.py"]


def test_what_a_file_prints_does_not_get_into_its_report(editor: EditorActions) -> None:
    noise = "import os\nprint('{}')\nos.write(1, b'{}')\n"
    assert editor.verifiers_check({"file": "loud", "code": noise + rule()})["ok"]


def test_a_file_that_hangs_as_it_is_loaded_is_given_up() -> None:
    answer = run_code("hangs.py", "while True: pass", {"mode": "examples"}, seconds=2)
    assert answer["problems"][0].startswith("the file takes over 2 s to load")


def test_a_text_that_cannot_be_a_file_is_refused(editor: EditorActions) -> None:
    for code in ("x" * (LARGEST_BYTES + 1), "\ud800", "a\0b", None, 3, ["x"]):
        with pytest.raises(UsageError):
            editor.verifiers_save({"file": "odd", "code": code, "draft": True})
    assert editor.files.names() == []


def test_the_environment_of_checked_code_holds_no_secret(
    editor: EditorActions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    report = editor.verifiers_check({"file": "spy", "code": "import os\nraise RuntimeError(dict(os.environ))"})
    [problem] = report["problems"]
    assert "PATH" in problem
    assert "hf_secret" not in problem


def test_unsaved_code_judges_another_text(editor: EditorActions) -> None:
    asked = {"file": "x", "code": rule(), "verifier": "says_yes", "completion": "no", "columns": {}, "params": {}}
    assert editor.verifiers_try_code(asked)["score"]["value"] == 0.0


# Changes made elsewhere


def test_a_change_made_elsewhere_is_not_overwritten_unasked(editor: EditorActions) -> None:
    seen = editor.verifiers_save({"file": "mine", "code": rule()})["seen"]
    path = own(editor) / "mine.py"
    path.write_text("# somebody else's\n")
    mine = {"file": "mine.py", "opened": "mine.py", "seen": seen, "code": rule()}
    assert editor.verifiers_save(mine)["conflict"] == "mine.py was changed since you opened it"
    assert editor.verifiers_delete(mine) == {"conflict": "mine.py was changed since you opened it"}
    assert path.read_text() == "# somebody else's\n"
    assert editor.verifiers_save({**mine, "replace": True})["saved"] == "mine.py"
    path.unlink()
    assert editor.verifiers_save(mine)["conflict"] == "mine.py was deleted since you opened it"


def test_a_new_file_does_not_overwrite_one_that_is_there(editor: EditorActions) -> None:
    editor.verifiers_save({"file": "mine", "code": rule()})
    assert (
        editor.verifiers_save({"file": "mine", "code": rule("other")})["conflict"] == "there is already a file mine.py"
    )
    with pytest.raises(UsageError, match="already a file"):
        editor.verifiers_new({"name": "mine"})


def test_what_is_left_after_saving_is_the_file_alone(editor: EditorActions) -> None:
    editor.verifiers_save({"file": "mine", "code": rule()})
    assert [path.name for path in own(editor).iterdir() if path.name != "__pycache__"] == ["mine.py"]


def test_a_file_that_is_no_text_or_too_large_is_not_opened(settings: Settings) -> None:
    settings.own_rewards.mkdir()
    (settings.own_rewards / "binary.py").write_bytes(b"\xff\xfe\x00")
    (settings.own_rewards / "large.py").write_text("#" * (LARGEST_BYTES + 1))
    files = OwnFiles(settings.own_rewards, BUNDLED_REWARDS)
    for name, told in (("binary.py", "no UTF-8"), ("large.py", "over")):
        with pytest.raises(UsageError, match=told):
            files.read(name)


# Who may write


WRITING = ("new", "open", "check", "try_code", "save", "delete")
REQUEST = {
    "name": "x",
    "file": "x",
    "code": rule(),
    "verifier": "says_yes",
    "completion": "",
    "columns": {},
    "params": {},
}


@pytest.mark.parametrize(
    ("host", "switch", "from_here", "allowed"),
    [
        ("127.0.0.1", None, True, True),
        ("localhost", None, True, True),
        ("::1", None, True, True),
        ("127.0.0.1", None, False, False),  # through a proxy, or by a foreign name
        ("127.0.0.1", False, True, False),
        ("0.0.0.0", None, True, False),
        ("192.168.1.5", None, True, False),
        ("0.0.0.0", True, False, True),
    ],
)
def test_who_may_write_code(settings: Settings, host: str, switch: bool | None, from_here: bool, allowed: bool) -> None:
    editor = editor_of(replace(settings, host=host, edit_code=switch))
    token = asked_from_here.set(from_here)
    try:
        assert (editor.state()["off"] is None) is allowed
        if allowed:
            assert editor.verifiers_new(REQUEST)["file"] == "x.py"
        for name in () if allowed else WRITING:
            with pytest.raises(VerifierError, match="Writing code in the browser is off"):
                getattr(editor, f"verifiers_{name}")(REQUEST)
    finally:
        asked_from_here.reset(token)


@pytest.mark.parametrize(
    ("text", "switch"), [("auto", None), ("", None), ("on", True), ("1", True), ("OFF", False), ("false", False)]
)
def test_the_switch_is_read_from_the_environment(text: str, switch: bool | None) -> None:
    assert Settings.from_env({"GRPO_STUDIO_EDIT_CODE": text}).edit_code is switch


def test_a_switch_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="give auto, on or off"):
        Settings.from_env({"GRPO_STUDIO_EDIT_CODE": "maybe"})


@pytest.mark.parametrize(
    ("client", "headers", "here"),
    [
        ("127.0.0.1", {"host": "127.0.0.1:7860"}, True),
        ("127.0.0.1", {"host": "localhost:7860", "origin": "http://localhost:7860"}, True),
        ("::1", {"host": "[::1]:7860", "origin": "http://[::1]:7860"}, True),
        ("10.0.0.7", {"host": "127.0.0.1:7860"}, False),
        ("127.0.0.1", {"host": "rebound.example:7860", "origin": "http://rebound.example:7860"}, False),
        ("127.0.0.1", {"host": "127.0.0.1:7860", "x-forwarded-for": "10.0.0.7"}, False),
        ("127.0.0.1", {"host": "127.0.0.1:7860", "origin": "https://studio.example", "sec-fetch-site": "same-origin"}, False),
        ("127.0.0.1", {"host": ""}, False),
        ("127.0.0.1", {"host": "[::1"}, False),
        ("127.0.0.1", {}, False),
    ],
)  # fmt: skip
def test_a_request_is_from_here_when_it_says_so_in_every_way(client: str, headers: dict[str, str], here: bool) -> None:
    seen: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(asked_from_here.get())

    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "headers": encoded, "client": (client, 5000)}
    coroutine = SameOrigin(app)(scope, None, None)  # type: ignore[arg-type]
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert seen == [here]
    assert asked_from_here.get() is False


def test_files_that_nobody_has_changed_are_not_loaded_again(settings: Settings) -> None:
    settings.own_rewards.mkdir()
    loads = settings.home / "loads"
    path = settings.own_rewards / "counted.py"
    path.write_text(f"with open({str(loads)!r}, 'a') as file:\n    file.write('x')\n" + rule())
    catalogue = Catalogue([settings.own_rewards], settings.own_rewards)
    first = catalogue.describe()
    so_far = loads.read_text()
    assert catalogue.describe() == first
    assert loads.read_text() == so_far
    path.write_text(path.read_text().replace("says_yes", "says_so"))
    assert [one["name"] for one in catalogue.describe()["verifiers"]] == ["says_so"]
    (settings.own_rewards / "dropped.py").write_text("def f(:")
    assert [one["file"] for one in catalogue.describe()["failures"]] == ["dropped.py"]


def test_a_verifier_that_the_text_does_not_define_is_named(editor: EditorActions) -> None:
    [problem] = editor.verifiers_try_code({**REQUEST, "verifier": "nothing"})["problems"]
    assert problem.startswith("no verifier 'nothing'")


# What visitors may make this machine run


@pytest.mark.parametrize(
    "reward",
    [
        RewardSettings(verifier="code_asserts"),
        RewardSettings(verifier="ensemble", params={"parts": [{"verifier": "code_stdin"}]}),
    ],
)
def test_visitors_code_is_refused_where_the_sandbox_is_weak(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, reward: RewardSettings
) -> None:
    monkeypatch.setenv(FORCE_VARIABLE, "limits")
    closed, opened = replace(settings, edit_code=False), replace(settings, edit_code=True)
    with pytest.raises(VerifierError, match="too weak for code of visitors"):
        require_sandbox(closed, [reward])
    require_sandbox(opened, [reward])
    require_sandbox(closed, [RewardSettings(verifier="math_numeric")])
