"""Weights carried away: folders that other programs load, with what the run was; refusals that leave nothing.

Marked slow is what loads a model once more in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny_model import CHAT_TEMPLATE
from trained_here import Trained, trainer_of

from grpo_studio.checkpoints import find_checkpoint
from grpo_studio.commands import run as command
from grpo_studio.errors import CheckpointError, DiskFullError, StoreError, UsageError
from grpo_studio.exporting.choice import chosen
from grpo_studio.exporting.pushing import push_final
from grpo_studio.exporting.weights import export_weights
from grpo_studio.settings import Settings

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")
LOADS = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, base = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(base or folder, dtype="auto")
if base:
    from peft import PeftModel
    model = PeftModel.from_pretrained(model, folder)
prompt = tokenizer.apply_chat_template([{"role": "user", "content": "1 + 1"}], add_generation_prompt=True, return_tensors="pt")
made = model.generate(**prompt, max_new_tokens=4, do_sample=False)
logits = model(**prompt).logits[0, -1].float()
print(json.dumps({"tokens": made[0].tolist(), "logits": logits.tolist(), "dtype": str(model.dtype),
                  "prompt": tokenizer.decode(prompt["input_ids"][0])}))
"""


def quiet(what: str) -> None:
    """Progress is of no interest here."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An installation for all tests of this file: each run is trained once."""
    home = tmp_path_factory.mktemp("home")
    settings = Settings.from_env({"GRPO_STUDIO_HOME": str(home), "GRPO_STUDIO_CACHE": str(home / "cache")})
    settings.require_writable()
    return settings


@pytest.fixture(scope="module")
def whole(home: Settings, tiny_model: Path) -> Trained:
    return trainer_of(tiny_model, home)("checkpoint.every=1", "dataset.held_out=4")


@pytest.fixture(scope="module")
def lora(home: Settings, tiny_model: Path) -> Trained:
    return trainer_of(tiny_model, home)("memory.adapter=lora", "algorithm.learning_rate=0.05", "checkpoint.every=1")


@pytest.fixture(scope="module")
def qlora(home: Settings, tiny_model: Path) -> Trained:
    return trainer_of(tiny_model, home)("memory.adapter=qlora", "algorithm.learning_rate=0.05")


def weights_in(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(next(folder.glob("*.safetensors")))


def loaded(folder: Path, base: Path | None = None) -> dict[str, Any]:
    """What a program that knows nothing of this one makes of the folder, in a process of its own."""
    child = subprocess.run(
        [sys.executable, "-c", LOADS, str(folder), str(base or "")], capture_output=True, text=True, cwd=folder, check=False
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    found: dict[str, Any] = json.loads(child.stdout)
    return found


def texts_in(folder: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in sorted(folder.rglob("*")) if path.is_file())


class TestAWholeModel:
    def test_its_weights_are_those_of_the_checkpoint(self, whole: Trained, home: Settings, tmp_path: Path) -> None:
        import torch

        for asked, name in ((None, "final"), ("1", "checkpoint-1"), ("newest", "final")):
            done = export_weights(whole.folder, home, tmp_path / str(asked), asked, False, quiet)
            assert (done.kind, done.checkpoint.name) == ("whole", name)
            saved, exported = weights_in(whole.folder.checkpoints / name), weights_in(done.to)
            assert saved.keys() == exported.keys()
            assert all(torch.equal(saved[key], exported[key]) for key in saved)
        assert not (tmp_path / "None" / "optimizer.pt").exists()
        assert not (tmp_path / "1" / "training_args.bin").exists()

    def test_it_comes_with_all_that_is_needed_and_no_path(
        self, whole: Trained, home: Settings, tmp_path: Path, tiny_model: Path
    ) -> None:
        done = export_weights(whole.folder, home, tmp_path / "out", None, False, quiet)
        assert {"config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja", "README.md"} <= set(
            done.files
        )
        assert (done.to / "chat_template.jinja").read_text() == CHAT_TEMPLATE
        assert json.loads((done.to / "config.json").read_text())["use_cache"] is True
        text = texts_in(done.to)
        assert str(home.home) not in text
        assert str(tiny_model.parent) not in text
        assert [entry.name for entry in tmp_path.iterdir()] == ["out"]

    def test_its_card_tells_the_run(self, whole: Trained, home: Settings, tmp_path: Path) -> None:
        done = export_weights(whole.folder, home, tmp_path / "out", None, False, quiet)
        card = (done.to / "README.md").read_text()
        assert "before training" in card
        assert "mean reward" in card
        assert "tiny trained by GRPO" in card
        told = yaml.safe_load((done.to / "run.yaml").read_text())
        assert told["model"]["id"] == "tiny"
        assert told["checkpoint"] == {"every": 1}
        assert (done.to / "reward.svg").read_text().startswith("<svg")

    @pytest.mark.slow
    def test_a_clean_process_loads_it_and_generates(self, whole: Trained, home: Settings, tmp_path: Path) -> None:
        done = export_weights(whole.folder, home, tmp_path / "out", None, False, quiet)
        found = loaded(done.to)
        assert "<|im_start|>user\n1 + 1<|im_end|>\n<|im_start|>assistant\n" in found["prompt"]
        assert len(found["tokens"]) > 0
        assert found["dtype"] == f"torch.{done_dtype(whole)}"


def done_dtype(trained: Trained) -> str:
    return str(trained.data("setup")["dtype"])


class TestAnAdapter:
    def test_alone_it_names_its_base_model_and_no_path(self, lora: Trained, home: Settings, tmp_path: Path) -> None:
        done = export_weights(lora.folder, home, tmp_path / "out", None, False, quiet)
        assert done.kind == "adapter"
        assert json.loads((done.to / "adapter_config.json").read_text())["base_model_name_or_path"] == "tiny"
        assert not (done.to / "config.json").exists()
        assert done.notes == (
            "to use it, load the base model tiny and put it on by PeftModel.from_pretrained (README.md)",
        )
        assert str(home.home.parent) not in texts_in(done.to)

    def test_merged_it_does_what_the_adapter_did(self, lora: Trained, home: Settings, tmp_path: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        from grpo_studio.training.checkpoint_model import load_model

        done = export_weights(lora.folder, home, tmp_path / "out", None, True, quiet)
        assert (done.kind, done.notes) == ("merged", ())
        config = lora.folder.config()
        with_adapter, _ = load_model(config, home, find_checkpoint(lora.folder, "final"), quiet)
        base, _ = load_model(config, home, None, quiet)
        merged = AutoModelForCausalLM.from_pretrained(done.to, dtype="auto")
        tokens = torch.arange(3, 40)[None]
        with torch.no_grad():
            wanted, found, before = (model(tokens).logits.float() for model in (with_adapter, merged, base))
        coarse = done_dtype(lora) == "bfloat16"
        assert torch.allclose(found, wanted, atol=5e-2 if coarse else 1e-5)
        assert (wanted - before).abs().max() > (found - wanted).abs().max() * 5, "the adapter does something"
        assert not (done.to / "adapter_config.json").exists()
        assert len({path.stat().st_mode for path in done.to.iterdir()}) == 1, "all may be read by the same people"
        assert str(home.home.parent) not in texts_in(done.to)

    @pytest.mark.slow
    def test_beside_four_bit_weights_it_is_merged_into_what_these_stand_for(
        self, qlora: Trained, home: Settings, tmp_path: Path
    ) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        from grpo_studio.training.checkpoint_model import load_model

        done = export_weights(qlora.folder, home, tmp_path / "out", None, True, quiet)
        assert done.notes == (
            "the 4-bit weights of the base model were dequantized to bfloat16 and the adapter merged into those",
        )
        assert "quantization_config" not in json.loads((done.to / "config.json").read_text())
        assert {str(value.dtype) for value in weights_in(done.to).values()} == {"torch.bfloat16"}
        config = qlora.folder.config()
        with_adapter, _ = load_model(config, home, find_checkpoint(qlora.folder, "final"), quiet)
        never_packed, _ = load_model(
            config.model_copy(update={"memory": config.memory.model_copy(update={"adapter": "lora"})}),
            home, find_checkpoint(qlora.folder, "final"), quiet,
        )  # fmt: skip
        merged = AutoModelForCausalLM.from_pretrained(done.to, dtype=torch.float32)
        tokens = torch.arange(3, 40)[None]
        with torch.no_grad():
            wanted, found, other = (model(tokens).logits.float() for model in (with_adapter, merged, never_packed))
        off = (found - wanted).abs().max()
        assert off < 0.05 * wanted.abs().max()
        assert off < (other - wanted).abs().max() / 2, "nearer than the base model that was never packed"

    @pytest.mark.slow
    def test_a_clean_process_puts_it_on_its_base_model(
        self, lora: Trained, home: Settings, tmp_path: Path, tiny_model: Path
    ) -> None:
        alone = export_weights(lora.folder, home, tmp_path / "alone", None, False, quiet)
        merged = export_weights(lora.folder, home, tmp_path / "merged", None, True, quiet)
        one, other = loaded(alone.to, tiny_model), loaded(merged.to)
        assert one["logits"] == pytest.approx(other["logits"], abs=5e-2 if done_dtype(lora) == "bfloat16" else 1e-5)

    def test_there_is_nothing_to_merge_in_whole_weights(self, whole: Trained, home: Settings, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="final holds a whole model, so there is nothing to merge"):
            export_weights(whole.folder, home, tmp_path / "out", None, True, quiet)
        assert not (tmp_path / "out").exists()


class TestWhatIsChosen:
    def test_the_final_weights_else_the_newest(self, whole: Trained) -> None:
        assert chosen(whole.folder, None)[1] == "the final weights, after 2 steps"
        final, aside = whole.folder.checkpoints / "final", whole.folder.checkpoints / "away"
        final.rename(aside)
        try:
            assert chosen(whole.folder, None)[1] == "checkpoint-2, the newest"
        finally:
            aside.rename(final)

    @pytest.mark.parametrize("asked", ["7", "checkpoint-7", "../final", "", "first"])
    def test_one_that_is_not_there_is_told_with_those_that_are(
        self, whole: Trained, home: Settings, tmp_path: Path, asked: str
    ) -> None:
        with pytest.raises(CheckpointError, match="checkpoint-1, checkpoint-2, final"):
            export_weights(whole.folder, home, tmp_path / "out", asked, False, quiet)
        assert not (tmp_path / "out").exists()

    def test_a_damaged_one_is_told_and_no_other_is_taken_for_it(
        self, whole: Trained, home: Settings, tmp_path: Path
    ) -> None:
        weights = whole.folder.checkpoints / "final" / "model.safetensors"
        data = weights.read_bytes()
        weights.write_bytes(data[:-10])
        try:
            with pytest.raises(CheckpointError, match="the checkpoint final is damaged"):
                export_weights(whole.folder, home, tmp_path / "out", None, False, quiet)
        finally:
            weights.write_bytes(data)
        assert not (tmp_path / "out").exists()


class TestThePlace:
    def test_a_folder_with_something_in_it_is_refused(self, whole: Trained, home: Settings, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("mine")
        for target in (tmp_path, tmp_path / "mine.txt"):
            with pytest.raises(StoreError, match="is there already"):
                export_weights(whole.folder, home, target, None, False, quiet)
        assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]

    def test_an_empty_folder_and_one_in_a_folder_that_is_missing_are_taken(
        self, whole: Trained, home: Settings, tmp_path: Path
    ) -> None:
        (tmp_path / "empty").mkdir()
        for target in (tmp_path / "empty", tmp_path / "a" / "b"):
            export_weights(whole.folder, home, target, None, False, quiet)
            assert (target / "model.safetensors").is_file()

    def test_the_run_s_own_exports_are_a_place(self, whole: Trained, home: Settings) -> None:
        done = export_weights(whole.folder, home, whole.folder.exports / "model", None, False, quiet)
        assert (done.to / "README.md").is_file()
        assert [entry.name for entry in whole.folder.exports.iterdir()] == ["model"]

    def test_without_room_it_is_refused_before_it_begins(
        self, whole: Trained, home: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("grpo_studio.disk.free_bytes", lambda path: 1000)
        with pytest.raises(DiskFullError, match="the export of final needs"):
            export_weights(whole.folder, home, tmp_path / "a" / "out", None, False, quiet)
        assert list(tmp_path.iterdir()) == []

    def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
        self, whole: Trained, home: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """/dev/full is a disk without room: the last file of the folder is written there."""
        from grpo_studio.exporting import weights

        def writes_on_a_full_disk(aside: Path, facts: Any) -> None:
            (aside / "README.md").symlink_to("/dev/full")
            (aside / "README.md").write_text("a card")

        monkeypatch.setattr(weights, "_write_card", writes_on_a_full_disk)
        with pytest.raises(DiskFullError, match=r"the disk .* is full: the export of final needs"):
            export_weights(whole.folder, home, tmp_path / "out", None, False, quiet)
        assert list(tmp_path.iterdir()) == []

    def test_an_export_that_is_asked_to_end_leaves_nothing(self, tmp_path: Path) -> None:
        assert ended_by("SIGTERM", tmp_path) == 143
        assert list(tmp_path.iterdir()) == []

    def test_what_a_killed_export_left_is_cleared_by_the_next(
        self, whole: Trained, home: Settings, tmp_path: Path
    ) -> None:
        assert ended_by("SIGKILL", tmp_path) == -9
        assert [entry.name.startswith(".exporting-out-") for entry in tmp_path.iterdir()] == [True]
        export_weights(whole.folder, home, tmp_path / "other", None, False, quiet)
        assert [entry.name for entry in tmp_path.iterdir()] == ["other"]


def ended_by(name: str, folder: Path) -> int:
    """The exit code of a process that gets a signal while it writes to `out` in a folder."""
    code = f"""
import os, signal, time
from pathlib import Path
from grpo_studio.export_command import tidied_up
from grpo_studio.exporting.aside import folder_aside
with tidied_up(), folder_aside(Path({str(folder)!r}) / "out", 0, "x") as aside:
    (aside / "half").write_text("x")
    os.kill(os.getpid(), signal.{name})
    time.sleep(60)
"""
    return subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2]).returncode


def test_the_command_says_which_weights_it_took(
    whole: Trained, home: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export", whole.folder.run_id, "--runs-dir", str(home.runs_dir), "--to"]
    assert command([*arguments, str(tmp_path / "one"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["checkpoint"], document["step"]) == ("whole", "final", 2)
    assert document["bytes"] == sum(path.stat().st_size for path in (tmp_path / "one").iterdir())
    assert command([*arguments, str(tmp_path / "two"), "--checkpoint", "1"]) == 0
    assert f"(checkpoint-1) is in {tmp_path / 'two'}" in capsys.readouterr().out
    assert command([*arguments, str(tmp_path / "one")]) == 1
    assert "is there already and not empty; give a folder that is not there yet" in capsys.readouterr().err


def test_an_imported_run_exports_its_weights_like_any_other(
    lora: Trained, home: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its card and its adapter are those of the run that it is a copy of."""
    own, there = ["--runs-dir", str(home.runs_dir)], ["--runs-dir", str(tmp_path / "there")]
    run, file = lora.folder.run_id, str(tmp_path / "run.tar.gz")
    assert command(["export", run, *own, "--to", file, "--archive", "--with-checkpoints"]) == 0
    assert command(["import", file, *there]) == 0
    for where, name in ((own, "one"), (there, "two")):
        assert command(["export", run, *where, "--to", str(tmp_path / name)]) == 0
    assert texts_in(tmp_path / "one") == texts_in(tmp_path / "two")
    assert command(["import", file, *there, "--json"]) == 1
    assert "is here already" in capsys.readouterr().err


def test_the_final_weights_of_a_run_without_a_hub_are_safe(
    whole: Trained, home: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run pushes by itself at its end may fail; nothing of it is left, and its weights are as they were."""
    from grpo_studio.errors import ModelError

    def refuses(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.HfApi.upload_folder", refuses)
    before = weights_in(whole.folder.checkpoints / "final")
    with pytest.raises(ModelError, match="cannot push to alice/x: no network"):
        push_final(whole.folder, home, "alice/x", quiet)
    assert not list(whole.folder.exports.glob("*push*"))
    assert weights_in(whole.folder.checkpoints / "final").keys() == before.keys()
