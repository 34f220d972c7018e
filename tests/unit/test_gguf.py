"""A GGUF file as a model: what its head says, turned back whole, and told apart when it cannot be used."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_gguf import write_tiny_gguf
from transformers import AutoModelForCausalLM

from grpo_studio.catalog import CONVERTED_MARK, locate
from grpo_studio.config import ModelSettings, RunConfig
from grpo_studio.errors import ModelError
from grpo_studio.gguf_files import ARCHITECTURES, read_gguf
from grpo_studio.model_card import model_card
from grpo_studio.model_preflight import model_problems
from grpo_studio.settings import Settings
from grpo_studio.supervisor import with_whole_paths
from grpo_studio.training.model_source import model_source, tokenizer_source
from grpo_studio.training.tokenization import load_tokenizer, render

QUESTION = [{"role": "user", "content": "What is 3 + 4?"}]


@pytest.fixture(scope="module")
def gguf(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tiny_model, tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def config_for(path: Path) -> RunConfig:
    return RunConfig.model_validate({"model": {"id": str(path)}})


def test_it_is_turned_back_into_the_same_model_once(gguf: Path, tiny_model: Path, settings: Settings) -> None:
    told: list[str] = []
    folder = Path(model_source(config_for(gguf), settings.cache, told.append))
    assert told[0] == "converting tiny.gguf, 10%"
    assert told[-1] == "converting tiny.gguf, 100%"
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    found, wanted = (
        AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)(ids).logits for path in (folder, tiny_model)
    )
    assert torch.allclose(found, wanted, atol=1e-5)
    own, turned = load_tokenizer(str(tiny_model)), load_tokenizer(str(folder))
    assert render(turned, QUESTION) == render(own, QUESTION)
    assert turned(render(own, QUESTION))["input_ids"] == own(render(own, QUESTION))["input_ids"]
    assert [turned.eos_token, turned.pad_token, turned.bos_token] == ["<|im_end|>", "<|end|>", "<|im_start|>"]
    location = locate(str(gguf), settings.cache)
    assert (location.kind, location.ready, location.path) == ("gguf", True, folder)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "nothing is left beside it"
    assert model_source(config_for(gguf), settings.cache, told.append) == str(folder)
    os.utime(gguf, ns=(1, 1))
    assert not locate(str(gguf), settings.cache).ready, "another file of that name is another model"


def test_its_own_end_and_begin_tokens_are_taken(tiny_model: Path, settings: Settings, tmp_path: Path) -> None:
    path = write_tiny_gguf(tiny_model, tmp_path / "own.gguf", eos=0, eot=2, add_bos=True)
    folder = model_source(config_for(path), settings.cache, lambda what: None)
    generation = json.loads((Path(folder) / "generation_config.json").read_text())
    assert generation["eos_token_id"] == [0, 2]
    tokenizer = load_tokenizer(folder)
    assert tokenizer.eos_token == "<|end|>"
    assert tokenizer("a")["input_ids"][0] == tokenizer.bos_token_id
    assert model_card(ModelSettings(id=str(path)), settings).end_tokens == ["<|end|>", "<|im_end|>"]


def test_before_a_run_the_tokenizer_alone_is_turned_back(gguf: Path, settings: Settings) -> None:
    source = Path(tokenizer_source(str(gguf), settings.cache))
    assert (source / CONVERTED_MARK).is_file()
    assert not list(source.glob("*.safetensors"))
    assert render(load_tokenizer(str(source)), QUESTION).startswith("<|im_start|>user\nWhat")


def test_its_card_and_check_come_from_its_head(gguf: Path, settings: Settings) -> None:
    card = model_card(ModelSettings(id=str(gguf), dtype="float32"), settings).as_dict()
    wanted = {
        "kind": "gguf",
        "title": "Tiny",
        "architecture": "llama",
        "vocabulary": 277,
        "context_length": 512,
        "chat_template": "own",
        "pad_token": "<|end|>",
        "end_tokens": ["<|im_end|>"],
        "licence": "apache-2.0",
        "download_bytes": 0,
        "gated": None,
        "readable": True,
    }
    assert {name: card[name] for name in wanted} == wanted
    problems, notes = model_problems(config_for(gguf), settings)
    assert problems == []
    assert notes == ["tiny.gguf is turned into a folder of weights at the first start, once"]


def test_its_path_is_made_whole_for_the_worker(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(gguf.parent)
    assert with_whole_paths(config_for(Path("tiny.gguf"))).model.id == str(gguf.resolve())


def test_transformers_still_knows_the_architectures() -> None:
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING, GGUF_TO_FAST_CONVERTERS

    known = {name.replace("_", "") for name in GGUF_CONFIG_MAPPING}
    with_tokenizer = {name.replace("_", "").removesuffix("text") for name in GGUF_TO_FAST_CONVERTERS}
    assert {name.replace("-", "") for name in ARCHITECTURES} <= known & with_tokenizer


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"architecture": "clip"}, "the architecture 'clip', which cannot be turned back"),
        ({"architecture": "qwen5"}, "did you mean qwen"),
        ({"tokenizer": False}, "holds no tokenizer"),
        ({"weights": False}, "holds no weights"),
        ({"split": 3}, "one of 3 parts"),
    ],
)
def test_a_file_that_holds_no_usable_model_is_told(
    tiny_model: Path, tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    path = write_tiny_gguf(tiny_model, tmp_path / "odd.gguf", **changes)
    with pytest.raises(ModelError, match=what) as caught:
        read_gguf(path)
    assert "odd.gguf" in str(caught.value)
    assert "; " in str(caught.value)


@pytest.mark.parametrize("share", [0.0001, 0.02, 0.1, 0.9, 0.9999])
def test_a_file_that_is_cut_off_is_told_wherever_it_ends(gguf: Path, tmp_path: Path, share: float) -> None:
    whole = gguf.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: max(5, int(len(whole) * share))])
    with pytest.raises(ModelError, match=r"cut\.gguf is cut off: it ends after [\d,]+ bytes"):
        read_gguf(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "begins with 'nothing'"),
        (b"<!DOCTYPE html>", "begins with '<!DO'"),
        (b"PK\x03\x04", "begins with 'PK"),
        (b"GGUF" + struct.pack("<I", 1), "GGUF version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 1), "damaged|cut off"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62), "damaged|cut off"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", 9, 9, 2**40) + b"x" * 64, "damaged|cut off"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"a", 99) + b"x" * 64, "unknown kind 99"),
    ],
)
def test_bytes_that_are_no_gguf_are_told_at_once(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=what):
        read_gguf(path)
    if not content.startswith(b"GGUF"):
        with pytest.raises(ModelError, match="no GGUF file"):
            locate(str(path), tmp_path)


def test_a_quantisation_that_cannot_be_read_is_named(tiny_model: Path, gguf: Path, tmp_path: Path) -> None:
    name = b"output_norm.weight"
    whole = gguf.read_bytes()
    at = whole.index(name) + len(name) + 4 + 8  # behind the number of dimensions and the only one
    path = tmp_path / "odd.gguf"
    for kind, shown in ((15, "Q8_K"), (250, "type 250")):
        path.write_bytes(whole[:at] + struct.pack("<I", kind) + whole[at + 4 :])
        with pytest.raises(ModelError, match=shown):
            read_gguf(path)


def test_a_folder_of_gguf_files_proposes_them(gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "b.gguf").write_bytes(gguf.read_bytes())
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"holds GGUF files; give .*b\.gguf"):
        locate(str(tmp_path), tmp_path)
