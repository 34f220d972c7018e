"""Push to the Hub, against a stand-in that takes uploads: what arrives, what each refusal says, what is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hub_stand_in import TOKEN, HubStandIn
from sample_run import SampleRun

from grpo_studio.checkpoints import Manifest, write_manifest
from grpo_studio.commands import run as command
from grpo_studio.config import BUILTIN_MODEL
from grpo_studio.exporting.pushing import push_final
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder

pytest_plugins = ("hub_stand_in",)
# huggingface_hub warns of odds and ends of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")


@pytest.fixture
def folder(settings: Settings) -> RunFolder:
    """A run with its final weights; nothing of them is loaded on the way to the Hub."""
    run = SampleRun(settings.home)
    run.begin()
    run.advance(3)
    run.end("run_finished", "all steps done")
    run.writer.close()
    for name, step in (("checkpoint-2", 2), ("final", 3)):
        place = run.folder.checkpoints / name
        place.mkdir(parents=True)
        (place / "model.safetensors").write_bytes(name.encode() * 9)
        (place / "config.json").write_text(
            json.dumps({"model_type": "llama", "use_cache": False, "_name_or_path": "/x"})
        )
        (place / "training_args.bin").write_bytes(b"of the training")
        write_manifest(place, Manifest(step, 1, name != "final", "hash", {}))
    return run.folder


@pytest.fixture
def there(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> HubStandIn:
    """The Hub, for somebody with a token."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return hub


def push(folder: RunFolder, *more: str) -> int:
    return command(["push", folder.run_id, *more])


def is_clean(folder: RunFolder) -> bool:
    """Whether no folder of a push is left, and no weights but those of the checkpoints."""
    left = list(folder.path.rglob(".exporting-*"))
    return not left


def test_it_makes_a_private_repository_with_weights_and_card(
    folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push(folder, "--to", "alice/sums", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["repo"], document["made"], document["checkpoint"]) == ("alice/sums", True, "final")
    assert document["url"] == f"{there.url}/alice/sums/commit/{'b' * 40}"
    repo = there.repos["model", "alice/sums"]
    assert repo.private
    assert set(repo.files) == {"README.md", "config.json", "model.safetensors", "reward.svg", "run.yaml"}
    assert repo.files["model.safetensors"] == b"final" * 9
    assert b"base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in repo.files["README.md"]
    assert json.loads(repo.files["config.json"]) == {"model_type": "llama", "use_cache": True}
    assert TOKEN.encode() not in b"".join(repo.files.values())
    assert is_clean(folder)


def test_pushing_twice_replaces_what_was_there(folder: RunFolder, there: HubStandIn) -> None:
    assert push(folder, "--to", "alice/sums", "--checkpoint", "2", "--no-private") == 0
    repo = there.repos["model", "alice/sums"]
    assert repo.files["model.safetensors"] == b"checkpoint-2" * 9
    assert not repo.private
    assert push(folder, "--to", "alice/sums") == 0
    assert there.repos["model", "alice/sums"].files["model.safetensors"] == b"final" * 9
    assert not there.repos["model", "alice/sums"].private, "a repository that is there stays as it is"


def test_without_to_it_goes_where_the_run_says(
    folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push(folder) == 2
    assert "the run names no Hub repository (report.hub_repo); give --to owner/name" in capsys.readouterr().err
    text = folder.config_path.read_text()
    assert "hub_repo: null" in text
    folder.config_path.write_text(text.replace("hub_repo: null", "hub_repo: alice/mine"))
    assert push(folder) == 0
    assert ("model", "alice/mine") in there.repos
    assert b"alice/mine" not in there.repos["model", "alice/mine"].files["run.yaml"]


@pytest.mark.parametrize(("private", "named"), [(False, True), (True, False)])
def test_the_card_links_to_what_is_public_alone(
    folder: RunFolder, settings: Settings, there: HubStandIn, private: bool, named: bool
) -> None:
    there.add("dataset", "alice/rows", {"train.jsonl": "{}"}, private=private)
    there.add("model", "alice/base", {"README.md": "x"}, private=private, info={"cardData": {"license": "mit"}})
    text = folder.config_path.read_text()
    for before, after in (("builtin:arithmetic", "alice/rows"), (BUILTIN_MODEL, "alice/base")):
        assert before in text
        text = text.replace(before, after)
    folder.config_path.write_text(text)
    assert push(folder, "--to", "alice/sums") == 0
    card = there.repos["model", "alice/sums"].files["README.md"].decode()
    head = yaml.safe_load(card[4:].split("\n---\n")[0])
    assert (head.get("datasets"), head.get("base_model")) == ((["alice/rows"], "alice/base") if named else (None, None))
    assert head["license"] == "mit"


def test_a_run_pushes_its_final_weights_by_itself_in_the_same_way(
    folder: RunFolder, settings: Settings, there: HubStandIn
) -> None:
    there.add("model", "alice/sums", {}, private=True)
    assert push_final(folder, settings, "alice/sums", lambda what: None).startswith(f"{there.url}/alice/sums/commit/")
    assert "README.md" in there.repos["model", "alice/sums"].files
    assert is_clean(folder)


def refused(folder: RunFolder, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert push(folder, *more) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert TOKEN not in lines[0]
    assert is_clean(folder)
    return lines[0]


def test_without_a_token_it_says_which_variable_holds_it(
    folder: RunFolder, hub: HubStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(folder, capsys, "--to", "alice/sums")
    assert "there is no Hub token to push to alice/sums with; set HF_TOKEN to one that may write there" in message
    assert hub.asked == []


def test_a_token_that_the_hub_does_not_know(
    folder: RunFolder, hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_anotherTokenOfNobody")
    message = refused(folder, capsys, "--to", "alice/sums")
    assert "the Hub does not know the token" in message
    assert "hf_another" not in message


def test_a_repository_of_somebody_else(
    folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "the Hub refuses to make bob/sums" in refused(folder, capsys, "--to", "bob/sums")


@pytest.mark.parametrize("name", ["no-owner/a/b", "alice/", "alice/ä", "../x"])
def test_what_is_no_repository_s_name(
    folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert "is no Hub id; give owner/name" in refused(folder, capsys, "--to", name)


def test_no_network(folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str]) -> None:
    there.fault = "down"
    message = refused(folder, capsys, "--to", "alice/sums")
    assert "cannot reach the Hub for alice/sums" in message
    assert message.endswith("check the network, or export the run to a folder")


@pytest.mark.parametrize("step", ["validate-yaml", "preupload", "commit"])
def test_an_upload_that_fails_takes_back_the_repository_that_it_made(
    folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str], step: str
) -> None:
    there.broken[step] = 403
    assert "cannot push to alice/sums" in refused(folder, capsys, "--to", "alice/sums")
    assert ("model", "alice/sums") not in there.repos
    del there.broken[step]
    assert push(folder, "--to", "alice/sums") == 0


def test_an_upload_that_fails_leaves_a_repository_that_was_there(
    folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    there.add("model", "alice/sums", {"README.md": "of before"})
    there.broken["commit"] = 403
    refused(folder, capsys, "--to", "alice/sums")
    assert there.repos["model", "alice/sums"].files == {"README.md": b"of before"}


def test_a_repository_that_cannot_be_taken_back_is_told(
    folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    there.broken = {"commit": 403, "delete": 403}
    assert push(folder, "--to", "alice/sums") == 1
    assert "the empty repository alice/sums could not be taken back" in capsys.readouterr().err


def test_a_checkpoint_that_is_not_there_makes_nothing_on_the_hub(
    folder: RunFolder, there: HubStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(folder, capsys, "--to", "alice/sums", "--checkpoint", "77")
    assert "checkpoint-77" in message
    assert there.asked == []


def test_the_token_is_never_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["push", "latest", "--token", "x"]) == 2
    assert "unrecognized arguments" in capsys.readouterr().err


def _files(folder: Path) -> dict[str, Any]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_run_s_own_files_are_as_they_were(folder: RunFolder, there: HubStandIn) -> None:
    before = _files(folder.path)
    assert push(folder, "--to", "alice/sums") == 0
    after = _files(folder.path)
    assert {name for name in after if not name.startswith("run.db")} == {
        name for name in before if not name.startswith("run.db")
    }
