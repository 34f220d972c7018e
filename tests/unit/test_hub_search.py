"""Search on the Hub while a person types: what is found, what is remembered, and a clear word without a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hub_stand_in import HubStandIn
from huggingface_hub import constants

from grpo_studio import hub_search
from grpo_studio.errors import HubError

pytest_plugins = ("hub_stand_in",)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    hub_search.forget()
    yield
    hub_search.forget()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the search sees; it stands still until a test moves it."""
    now = [1000.0]
    monkeypatch.setattr("grpo_studio.hub_search.time.monotonic", lambda: now[0])
    return now


def asked(hub: HubStandIn) -> int:
    return sum(line.startswith("GET /api/models?") or line.startswith("GET /api/datasets?") for line in hub.asked)


def values(kind: Any, text: str) -> list[str]:
    return [row["value"] for row in hub_search.search(kind, text)]


def test_models_by_a_part_of_their_name_the_most_downloaded_first(hub: HubStandIn) -> None:
    for number in range(15):
        hub.add("model", f"alice/tiny-{number:02}", {}, info={"downloads": number * 1000})
    hub.add("model", "bob/Tiny-Gated", {}, gated=True, info={"downloads": 2_345_678})
    hub.add("dataset", "alice/tiny-data", {})
    found = hub_search.search("model", " tiny ")
    assert len(found) == 10
    assert found[0] == {"value": "bob/Tiny-Gated", "note": "2.35M downloads a month, gated"}
    assert found[1] == {"value": "alice/tiny-14", "note": "14k downloads a month"}
    assert values("dataset", "tiny") == ["alice/tiny-data"]
    assert any("pipeline_tag=text-generation" in line and "limit=10" in line for line in hub.asked)


def test_a_whole_id_is_found_whatever_the_model_is_for(hub: HubStandIn) -> None:
    hub.add("model", "alice/judge", {}, info={"pipeline_tag": "text-classification"})
    hub.add("model", "alice/judge-chat", {}, info={"pipeline_tag": "text-generation"})
    assert values("model", "judge") == ["alice/judge-chat"]
    assert values("model", "alice/judge") == ["alice/judge", "alice/judge-chat"]


@pytest.mark.parametrize("text", ["", "  ", "\t\n"])
def test_nothing_typed_asks_nothing(hub: HubStandIn, text: str) -> None:
    assert hub_search.search("model", text) == []
    assert asked(hub) == 0


def test_answers_are_remembered_for_minutes(hub: HubStandIn, clock: list[float]) -> None:
    hub.add("model", "alice/tiny", {})
    assert values("model", "tiny") == values("model", "TINY ") == ["alice/tiny"]
    assert asked(hub) == 1
    hub.fault = "down"
    clock[0] += 299
    assert values("model", "tiny") == ["alice/tiny"]
    clock[0] += 2
    with pytest.raises(HubError):
        hub_search.search("model", "tiny")


def test_a_failure_is_remembered_for_seconds_so_typing_is_not_slow(hub: HubStandIn, clock: list[float]) -> None:
    hub.add("model", "alice/tiny", {})
    hub.fault = "down"
    for text in ("t", "ti", "tin"):
        with pytest.raises(HubError) as caught:
            hub_search.search("model", text)
        assert str(caught.value).startswith("cannot reach the Hub: RemoteProtocolError; check the network")
        assert "built-in models, local folders and GGUF files work without the Hub" in str(caught.value)
    with pytest.raises(HubError, match="reasoning_gym tasks and local files work without"):
        hub_search.search("dataset", "tin")
    assert asked(hub) == 1
    hub.fault = None
    clock[0] += 21
    assert values("model", "tin") == ["alice/tiny"]


def test_a_hub_that_hangs_is_given_up_on(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub_search.TIMEOUT_SECONDS == 4
    monkeypatch.setattr(hub_search, "TIMEOUT_SECONDS", 0.1)
    hub.fault = "hang"
    with pytest.raises(HubError, match="the Hub does not answer; check the network"):
        hub_search.search("model", "tiny")


@pytest.mark.parametrize(("fault", "message"), [(503, "refuses to be searched: 503"), (429, "searched: 429")])
def test_a_hub_in_trouble_says_its_number(hub: HubStandIn, fault: int, message: str) -> None:
    hub.fault = fault
    with pytest.raises(HubError, match=message):
        hub_search.search("model", "tiny")


def test_offline_by_will_asks_nothing_and_says_what_works(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE=1 keeps this machine off the Hub, so it cannot be searched"):
        hub_search.search("dataset", "tiny")
    assert hub.asked == []


def test_a_wrong_token_is_not_shown(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    for token in ("hf_secret\u2028x", "hf_se\tcret"):
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(HubError, match="set HF_TOKEN to a valid one") as caught:
            hub_search.search("model", "tiny")
        assert "secret" not in str(caught.value)
        hub_search.forget()


@pytest.mark.parametrize("answer", ["{}", "null", "", "[1, null]", '[{"downloads": "many"}]'])
def test_an_answer_of_another_form_finds_nothing(hub: HubStandIn, answer: str) -> None:
    hub.fault = answer.encode()
    assert hub_search.search("model", "tiny") == []
