"""Two sides of a trained run answer in a process of their own, which gives the memory back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import alive, ends
from studio_process import as_json, studio, tiny_train, wait_for

from grpo_studio.errors import CheckpointError, UsageError
from grpo_studio.play.process import PlayProcess, SaidBySide
from grpo_studio.play.talk import Sampling
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.ui.play import PlayActions

QUESTION = [{"role": "user", "content": "What is 2 + 3?"}]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def folder(home: Path, tiny_model: Path) -> RunFolder:
    """A finished run of the tiny model with an adapter."""
    more = ("memory.adapter=lora", "memory.lora_rank=4", "algorithm.learning_rate=0.05", "algorithm.steps=2")
    result = tiny_train(tiny_model, home, *(part for one in more for part in ("--set", one)), "--wait")
    assert result.returncode == 0, result.stderr
    return RunFolder(home / "runs" / as_json(result)["run"])


@pytest.fixture
def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("GRPO_STUDIO_HOME", str(home))
    monkeypatch.setenv("GRPO_STUDIO_CACHE", str(home / "cache"))
    return Settings.from_env()


@pytest.fixture
def chat(folder: RunFolder, settings: Settings) -> Iterator[PlayProcess]:
    chat = PlayProcess(folder, settings, ["base", "final"])
    yield chat
    chat.close()


def replies(chat: PlayProcess, turn: str) -> list[SaidBySide]:
    wait_for(lambda: all(said.done for said in chat.replies(turn)), what="the replies")
    return chat.replies(turn)


def test_both_sides_answer_until_one_is_killed_and_nothing_is_left(chat: PlayProcess) -> None:
    with pytest.raises(UsageError, match="not ready"):
        chat.say("0", [QUESTION, QUESTION], Sampling())
    wait_for(lambda: chat.state != "loading", what="the models")
    assert (chat.state, chat.message) == ("ready", "")
    chat.say("0", [QUESTION, QUESTION], Sampling(max_tokens=8))
    first = replies(chat, "0")
    assert all(said.text and not said.error and 1 <= (said.tokens or 0) <= 8 for said in first), first
    assert first[0].text != first[1].text, "the adapter is on for one side alone"
    chat.say("1", [QUESTION, QUESTION], Sampling(max_tokens=8))
    assert [said.text for said in replies(chat, "1")] == [said.text for said in first], "greedy replies are the same"

    chat.say("2", [QUESTION, QUESTION], Sampling(temperature=5.0, max_tokens=8000))
    with pytest.raises(UsageError, match="still being written"):
        chat.say("3", [QUESTION, QUESTION], Sampling())
    wait_for(lambda: chat.replies("2")[0].text != "", what="the first words")
    chat.stop_turn()
    assert all(said.truncated and not said.error for said in replies(chat, "2"))

    chat.say("4", [QUESTION, QUESTION], Sampling(temperature=5.0, max_tokens=8000))
    os.kill(chat.pid, signal.SIGKILL)
    wait_for(lambda: chat.state == "failed", what="the end")
    assert "signal 9" in chat.message
    assert all(said.error == chat.message for said in replies(chat, "4"))
    assert ends(chat.pid)


def test_a_closed_chat_gives_its_memory_back(folder: RunFolder, settings: Settings) -> None:
    chat = PlayProcess(folder, settings, ["base", "base"])
    assert alive(chat.pid)
    chat.close()
    assert not alive(chat.pid)
    assert (chat.state, chat.message) == ("ended", "")


def test_the_page_offers_what_there_is_and_says_what_there_is_not(folder: RunFolder, settings: Settings) -> None:
    actions, run = PlayActions(settings), {"run": folder.run_id}
    about = actions.play_about(run)
    assert [side["name"] for side in about["sides"]] == ["base", "final"]
    assert len(about["questions"]) == 4
    assert about["questions"][0].startswith("What is ")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        actions.play_open(run | {"key": "k", "a": "base", "b": "checkpoint-99"})
    assert actions.play_state({"key": "k"}) == {"state": "ended"}
    with pytest.raises(UsageError, match="memory freed"):
        actions.play_say({"key": "k", "turn": "0", "chats": [QUESTION, QUESTION]})


def test_the_command_asks_both_sides(home: Path, folder: RunFolder) -> None:
    asked = ("chat", folder.run_id, "--prompt", "What is 2 + 3?", "--max-tokens", "8", "--json")
    document: dict[str, Any] = as_json(studio(*asked, home=home))
    assert document["sides"] == ["base", "newest"]
    said = document["turns"][0]["replies"]
    assert [reply["side"] for reply in said] == ["base", "newest"]
    assert all(0 < reply["tokens"] <= 8 for reply in said)
