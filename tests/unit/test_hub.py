"""What the Hub says of a repository, asked with the present token: readable, missing, gated, unreachable, offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hub_stand_in import SHA, TOKEN, HubStandIn
from huggingface_hub import constants

from grpo_studio import hub as the_hub
from grpo_studio import hub_asking
from grpo_studio.errors import DataError, ModelError
from grpo_studio.hub import repo_facts, require_readable

pytest_plugins = ("hub_stand_in",)
PROBLEM: dict[str, type[Exception]] = {"model": ModelError, "dataset": DataError}
INSTEAD = {"model": "use a local folder or a built-in model", "dataset": "use a local file or a built-in data set"}
KINDS = pytest.mark.parametrize("kind", ["model", "dataset"])


def refusal(repo_id: str, kind: Any, revision: str | None = None) -> str:
    with pytest.raises(PROBLEM[kind]) as caught:
        require_readable(repo_id, kind, revision)
    text = str(caught.value)
    assert "\n" not in text
    assert "hf_" not in text
    return text


def offline(monkeypatch: pytest.MonkeyPatch, switch: str = "HF_HUB_OFFLINE") -> None:
    monkeypatch.setenv(switch, "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@KINDS
def test_missing_gated_down_and_offline_are_told_apart(
    hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    hub.add(kind, "alice/open", {"config.json": "{}"})
    hub.add(kind, "alice/gated", {"config.json": "{}"}, gated=True)
    hub.add(kind, "alice/private", {"config.json": "{}"}, private=True)
    require_readable("alice/open", kind)  # type: ignore[arg-type]
    told = [refusal("alice/missing", kind), refusal("alice/gated", kind)]
    assert refusal("alice/private", kind) == told[0].replace("missing", "private")
    hub.fault = "down"
    told.append(refusal("alice/open", kind))
    hub.fault = None
    offline(monkeypatch)
    told.append(refusal("alice/open", kind))
    named = "data set" if kind == "dataset" else "model"
    assert told[0].startswith(f"the Hub has no {named} alice/missing, or it is private and no Hub token is set here")
    assert told[1].startswith("alice/gated is gated and no Hub token is set here; accept its terms")
    assert told[2].startswith("cannot reach the Hub: RemoteProtocolError (asked for alice/open)")
    assert told[3].startswith(f"HF_HUB_OFFLINE=1 keeps this machine off the Hub, where the {named} alice/open is")
    assert all(INSTEAD[kind] in text.rsplit("; ", 1)[1] for text in told)


@KINDS
def test_the_token_that_the_worker_will_have_opens_what_is_gated_or_private(hub: HubStandIn, kind: Any) -> None:
    hub.add(kind, "alice/gated", {}, gated=True)
    hub.add(kind, "alice/private", {}, private=True)
    hub.log_in()
    require_readable("alice/gated", kind)
    require_readable("alice/private", kind)
    assert "this machine's Hub token may not read it" in refusal("alice/missing", kind)


@pytest.mark.parametrize("token", ["hf_another", f"{TOKEN}\u2028x", "hf_with\ttab", "hf_ü"])
def test_a_wrong_token_is_told_and_not_shown(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    hub.add("model", "alice/open", {})
    monkeypatch.setenv("HF_TOKEN", token)
    assert "set HF_TOKEN to a valid one" in refusal("alice/open", "model")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (429, "no more requests for now: 429 (asked for alice/open); wait"),
        (500, "trouble of its own: 500 (asked for alice/open); try again later"),
        (403, "the Hub refuses: 403 (asked for alice/open); check that HF_TOKEN may read it"),
        ("hang", "the Hub does not answer (asked for alice/open); check the network"),
    ],
)
def test_other_faults_of_the_hub(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, fault: Any, message: str) -> None:
    monkeypatch.setattr(hub_asking.ask, "__kwdefaults__", {"timeout": 0.2})
    hub.add("model", "alice/open", {})
    hub.fault = fault
    assert message in refusal("alice/open", "model")


@pytest.mark.parametrize("repo_id", ["alice/a--b", "../x", "alice/..", "alice/x y", "a/b/c", "alice/x?y", "alice/"])
def test_what_is_no_id_is_not_asked_for(hub: HubStandIn, repo_id: str) -> None:
    assert "is no Hub id; give owner/name" in refusal(repo_id, "model")
    assert hub.asked == []


def test_a_revision_that_is_not_there(hub: HubStandIn) -> None:
    hub.add("model", "alice/open", {})
    require_readable("alice/open", "model", SHA)
    assert "alice/open has no revision 'refs/pr/9'" in refusal("alice/open", "model", "refs/pr/9")


@pytest.mark.parametrize("switch", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_the_variable_that_was_set_is_named(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    offline(monkeypatch, switch)
    assert refusal("alice/open", "model").startswith(f"{switch}=1 keeps")


def sharded() -> dict[str, str]:
    shards = [f"model-{part:05}-of-00002.safetensors" for part in (1, 2)]
    index = json.dumps({"weight_map": dict(zip("ab", shards, strict=True))})
    return {"config.json": "{}", "model.safetensors.index.json": index, **dict.fromkeys(shards, "x")}


@pytest.mark.parametrize(
    ("files", "fetched", "enough"),
    [
        ({"config.json": "{}", "model.safetensors": "x"}, ["config.json", "model.safetensors"], True),
        ({"config.json": "{}", "pytorch_model.bin": "x"}, ["config.json", "pytorch_model.bin"], True),
        ({"config.json": "{}", "model.safetensors": "x"}, ["config.json"], False),  # as a look at its config leaves it
        (sharded(), list(sharded()), True),
        (sharded(), list(sharded())[:-1], False),
        ({"model.safetensors": "x"}, ["model.safetensors"], False),
    ],
)
def test_a_model_whose_weights_are_cached_needs_no_hub(
    hub: HubStandIn, files: dict[str, str], fetched: list[str], enough: bool
) -> None:
    from huggingface_hub import hf_hub_download

    hub.add("model", "alice/open", files)
    for name in fetched:
        hf_hub_download("alice/open", name)
    hub.fault = "down"
    if enough:
        require_readable("alice/open", "model")
    else:
        assert "cannot reach the Hub" in refusal("alice/open", "model")


def test_facts_of_a_model(hub: HubStandIn) -> None:
    files = {
        "config.json": "1" * 10,
        "tokenizer.json": "1" * 100,
        "model-00001-of-00002.safetensors": "1" * 1000,
        "model-00002-of-00002.safetensors": "1" * 1000,
        "model.safetensors.index.json": "1",
        "pytorch_model.bin": "1" * 5000,
        "original/consolidated.00.pth": "1" * 5000,
        "onnx/model.onnx": "1" * 5000,
    }
    info = {"safetensors": {"parameters": {"BF16": 7}, "total": 7}, "cardData": {"license": "mit"}}
    hub.add("model", "alice/tiny", files, info=info)
    facts = repo_facts("alice/tiny", "model")
    assert (facts.gated, facts.readable, facts.licence, facts.parameters) == (False, True, "mit", 7)
    assert facts.download_bytes == 2111
    assert facts.files["pytorch_model.bin"] == 5000


@pytest.mark.parametrize(
    ("info", "licence"),
    [
        ({}, None),
        ({"tags": ["en", "license:apache-2.0"]}, "apache-2.0"),
        ({"cardData": {"license": ["mit", "gpl"]}}, "mit, gpl"),
        ({"cardData": {"license": "other", "license_name": "llama3"}}, "llama3"),
        ({"cardData": None, "tags": None, "siblings": None}, None),
    ],
)
def test_a_licence_is_what_the_card_or_a_tag_says(hub: HubStandIn, info: dict[str, Any], licence: str | None) -> None:
    hub.add("model", "alice/tiny", {"README.md": "x"}, info=info)
    facts = repo_facts("alice/tiny", "model")
    assert (facts.licence, facts.parameters, facts.download_bytes) == (licence, None, None)


@KINDS
def test_facts_of_a_gated_repository_say_whether_it_opens(hub: HubStandIn, kind: Any) -> None:
    hub.add(kind, "alice/gated", {"pytorch_model.bin": "1" * 30, "config.json": "1"}, gated=True)
    facts = repo_facts("alice/gated", kind)
    assert (facts.gated, facts.readable, facts.download_bytes) == (True, False, 31)
    hub.log_in()
    assert repo_facts("alice/gated", kind).readable


@pytest.mark.parametrize("fault", ["down", 502, "missing"])
def test_facts_that_cannot_be_had_are_one_error(hub: HubStandIn, fault: Any) -> None:
    hub.fault = None if fault == "missing" else fault
    with pytest.raises(ModelError, match="use a local folder or a built-in model"):
        repo_facts("alice/tiny", "model")


@pytest.mark.parametrize(
    "answer", ["[]", "null", "no JSON", "", '{"siblings": 5}', '{"siblings": [{}]}', '{"safetensors": 5, "tags": 5}']
)
def test_an_answer_that_is_no_description(hub: HubStandIn, answer: str) -> None:
    hub.fault = answer.encode()
    with pytest.raises(ModelError, match="alice/tiny"):
        repo_facts("alice/tiny", "model")


def test_the_tiny_model_comes_from_the_stand_in_as_from_the_hub(hub: HubStandIn, tiny_model: Path) -> None:
    from transformers import AutoTokenizer

    hub.add("model", "alice/tiny", tiny_model)
    assert AutoTokenizer.from_pretrained("alice/tiny").eos_token == "<|im_end|>"
    facts = repo_facts("alice/tiny", "model")
    assert facts.download_bytes == sum(path.stat().st_size for path in tiny_model.iterdir())
    assert the_hub.WEIGHTS[0] in facts.files
