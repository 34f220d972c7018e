"""The fields of the installed GRPOConfig, read without loading it, and which values they take."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.errors import ConfigError
from grpo_studio.trl_fields import TrlField, installed_fields, trl_version


def field(annotation: str, *choices: str) -> TrlField:
    return TrlField("a_field", annotation, None, "", choices)


def test_the_fields_are_those_of_the_class_that_a_run_will_use() -> None:
    import trl

    real = {one.name: one for one in dataclasses.fields(trl.GRPOConfig) if one.init}
    found = installed_fields()
    assert set(found) == set(real)
    assert trl_version() == trl.__version__
    for name, one in found.items():
        if one.default is not dataclasses.MISSING:
            assert one.default == real[name].default, name
        assert one.help == real[name].metadata["help"], name


def test_every_field_takes_the_default_that_its_source_gives() -> None:
    literal = [one for one in installed_fields().values() if one.default is not dataclasses.MISSING]
    assert len(literal) > 150
    assert [one.name for one in literal if not one.accepts(one.default)] == []


@pytest.mark.parametrize(
    ("name", "annotation", "default"),
    [
        ("entropy_coef", "float", 0.0),
        ("learning_rate", "float", 1e-6),
        ("bf16", "bool | None", None),
        ("max_steps", "int", -1),
    ],
)
def test_a_field_that_is_declared_again_has_the_type_and_default_of_the_last(
    name: str, annotation: str, default: Any
) -> None:
    found = installed_fields()[name]
    assert (found.annotation, found.default) == (annotation, default)


def test_choices_are_known_where_the_source_lists_them() -> None:
    backend = installed_fields()["ddp_backend"]
    assert backend.accepts("gloo")
    assert backend.accepts(None)
    assert not backend.accepts("glo")
    assert backend.takes.startswith("one of nccl, gloo")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("float", 0.1), ("float", 1), ("float | None", None), ("int", 3), ("bool", True), ("str", "text"),
        ("list[float] | None", [1, 2.5]), ("list[str]", []), ("dict | str | None", {"a": 1}), ("dict[str, Any]", {"a": [1]}),
        ("Optional[int]", None), ("Union[int, str]", "auto"), ("None | str | Literal[False]", False), ("Literal['a', 'b']", "b"),
        ("SchedulerType | str", "linear"), ("SchedulerType", "linear"), ("a_module.AClass[int]", "anything"), ("AClass[int]", "anything"),
    ],
)  # fmt: skip
def test_a_field_takes_what_its_annotation_says(annotation: str, value: Any) -> None:
    assert field(annotation).accepts(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("float", "0.1"), ("float", True), ("float", None), ("float", [0.1]), ("int", True), ("int", 1.0), ("int", "3"),
        ("bool", 1), ("bool", "true"), ("str", 3), ("str", None), ("list[float]", [0.1, "0.2"]), ("list[float]", 0.1),
        ("list[float]", [True]), ("dict[str, bool] | None", {"a": 1}), ("Literal['a', 'b']", "c"), ("Optional[int]", "3"),
    ],
)  # fmt: skip
def test_a_field_takes_nothing_else(annotation: str, value: Any) -> None:
    assert not field(annotation).accepts(value)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("float", "a number"),
        ("int | None", "a whole number or null"),
        ("None | str | list[str]", "text or a list, each entry text or null"),
        ("list", "a list"),
        ("dict[str, Any] | str | None", "a mapping or text or null"),
        ("str | Literal[False]", "text or False"),
        ("SomeEnum", "any value"),
    ],
)
def test_what_a_field_takes_is_said_in_words(annotation: str, words: str) -> None:
    assert field(annotation).takes == words


@pytest.fixture
def only_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only place where packages are found."""
    for package in ("trl", "transformers"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def read_anew() -> dict[str, TrlField]:
    """The fields as a process finds them that has not read them yet."""
    return installed_fields.__wrapped__()


def test_a_package_that_is_missing_is_named_with_what_to_do(only_in: Path) -> None:
    with pytest.raises(ConfigError, match="transformers is not installed; run pip install"):
        read_anew()


def test_a_folder_of_the_packages_name_is_not_the_package(only_in: Path) -> None:
    (only_in / "transformers").mkdir()
    with pytest.raises(ConfigError, match="transformers is not installed"):
        read_anew()


@pytest.mark.parametrize("source", [None, "class AnotherName:\n    seed: int = 1\n"])
def test_a_version_that_is_built_otherwise_is_refused(only_in: Path, source: str | None) -> None:
    package = only_in / "transformers"
    package.mkdir()
    (package / "__init__.py").touch()
    if source is not None:
        (package / "training_args.py").write_text(source)
    with pytest.raises(ConfigError, match=r"no TrainingArguments in training_args.py; install the version in req"):
        read_anew()
