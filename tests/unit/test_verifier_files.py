"""The verifier files that a run keeps."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from grpo_studio.config import RewardSettings
from grpo_studio.errors import VerifierError
from grpo_studio.settings import BUNDLED_REWARDS
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.verifier_files import keep_verifiers
from grpo_studio.verifiers import discover

RULE = (
    "from grpo_studio.verifiers import verifier\n\n\n"
    "@verifier(examples=[('a', {{}}, {value})])\ndef {name}(completion, *, parts=()):\n    return {value}\n"
)


def rule(folder: Path, file: str, *names: str, value: float = 1.0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_text("".join(RULE.format(name=name, value=value) for name in names))
    return path


def kept_by(*rewards: RewardSettings, of: list[Path], folder: Path) -> dict[str, tuple[str, ...]]:
    return {one.file: one.verifiers for one in keep_verifiers(rewards, discover(of), folder)}


def test_only_the_files_of_the_run_are_kept_byte_for_byte(tmp_path: Path) -> None:
    used = rule(tmp_path / "rewards", "used.py", "used")
    rule(tmp_path / "rewards", "other.py", "other")
    used.write_bytes(b"\xef\xbb\xbf# h\xc3\xa9\r\n" + used.read_bytes())
    [kept] = keep_verifiers([RewardSettings(verifier="used")], discover([tmp_path / "rewards"]), tmp_path / "kept")
    assert (tmp_path / "kept" / "used.py").read_bytes() == used.read_bytes()
    assert kept.sha256 == hashlib.sha256(used.read_bytes()).hexdigest()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["used.py"]


def test_a_file_of_several_verifiers_is_kept_once(tmp_path: Path) -> None:
    rule(tmp_path / "rewards", "pack.py", "one", "two", "three")
    rewards = [RewardSettings(verifier=name) for name in ("two", "one")]
    assert kept_by(*rewards, of=[tmp_path / "rewards"], folder=tmp_path / "kept") == {"pack.py": ("two", "one")}


def test_files_of_one_name_are_both_kept_and_both_found(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for folder, name in zip(folders, ("one", "two", "three"), strict=True):
        rule(folder, "rules.py", name)
    rewards = [RewardSettings(verifier=name) for name in ("one", "two", "three")]
    kept = kept_by(*rewards, of=folders, folder=tmp_path / "kept")
    assert kept == {"rules.py": ("one",), "rules-2.py": ("two",), "rules-3.py": ("three",)}
    assert set(discover([tmp_path / "kept"]).specs) == {"one", "two", "three"}


def test_parts_named_in_params_are_kept_at_any_depth(tmp_path: Path) -> None:
    for name in ("mixed", "inner", "leaf", "unused"):
        rule(tmp_path / "rewards", f"{name}.py", name)
    parts = [{"verifier": "inner", "params": {"parts": [{"verifier": "leaf"}, {"verifier": "nowhere"}]}}]
    rewards = RewardSettings(verifier="mixed", params={"parts": parts})
    kept = kept_by(rewards, of=[tmp_path / "rewards"], folder=tmp_path / "kept")
    assert set(kept) == {"mixed.py", "inner.py", "leaf.py"}


def test_a_verifier_that_is_called_by_default_is_kept(tmp_path: Path) -> None:
    kept = kept_by(RewardSettings(verifier="wrong_and_long"), of=[BUNDLED_REWARDS], folder=tmp_path / "kept")
    assert set(kept) == {"wrong_and_long.py", "math_numeric.py"}


def test_the_kept_file_stands_before_the_one_it_came_from(tmp_path: Path) -> None:
    rule(tmp_path / "rewards", "used.py", "used", value=0.25)
    keep_verifiers([RewardSettings(verifier="used")], discover([tmp_path / "rewards"]), tmp_path / "kept")
    rule(tmp_path / "rewards", "used.py", "used", value=0.75)
    registry = discover([tmp_path / "kept", tmp_path / "rewards"])
    assert registry.get("used").function("a") == 0.25


def test_a_verifier_that_is_not_there_keeps_nothing(tmp_path: Path) -> None:
    with pytest.raises(VerifierError, match="no verifier 'used'"):
        keep_verifiers([RewardSettings(verifier="used")], discover([tmp_path]), tmp_path / "kept")


def test_each_attempt_keeps_its_own(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.verifiers(1) == tmp_path / "verifiers"
    assert folder.verifiers(2) == tmp_path / "verifiers" / "attempt-2"
