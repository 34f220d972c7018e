"""What the launch page asks about a model, and while a person types: facts, repositories of the Hub, paths here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from grpo_studio import hub_search, rules
from grpo_studio.config import ModelSettings
from grpo_studio.errors import ConfigError
from grpo_studio.model_card import model_card
from grpo_studio.model_facts import facts_of
from grpo_studio.settings import Settings
from grpo_studio.ui.frame import Answer, ServerFunction, text_of
from grpo_studio.ui.launch_requests import capped, checked
from grpo_studio.ui.path_rows import Kind, path_rows
from grpo_studio.ui.readable import confined, path_problems
from grpo_studio.ui.same_origin import asked_from_here

CARD_SETTINGS = ("id", "revision", "dtype", "attn_implementation", "chat_template")
"""What the card depends on. `trust_remote_code` is not among them: it is never done, and `check` says so."""
LONGEST_PATH = 1_000
LONGEST_SEARCH = 100
STARTS = ("~/", "./")


def functions(settings: Settings) -> list[ServerFunction]:
    """The server functions `model_card`, `search_hub` and `complete_path`."""
    return [_card_function(settings), search_hub, _path_function(settings)]


def _card_function(settings: Settings) -> ServerFunction:
    def model_card_(request: Mapping[str, Any]) -> Answer:
        """{"card": what `model_card` tells of the model of a draft, and whether it has a template of its own}."""
        asked = checked(request).get("model")
        wanted = {key: asked[key] for key in CARD_SETTINGS if key in asked} if isinstance(asked, Mapping) else {}
        draft = {"model": wanted}
        if problems := path_problems(draft, settings):
            raise ConfigError(f"{problems[0].message}; {problems[0].fix}")
        inspected = rules.inspect(draft)
        if inspected.config is None:
            raise ConfigError(str(inspected.problems[0]))
        model = inspected.config.model
        card = {**model_card(model, settings).as_dict(), "has_chat_template": _has_template(model, settings)}
        return {"card": _sendable(card)}

    model_card_.__name__ = "model_card"
    return model_card_


def _has_template(model: ModelSettings, settings: Settings) -> bool | None:
    """Whether the model has a template of its own, whatever is used instead; None when that is not known."""
    facts = facts_of(model, settings)
    return facts.template is not None if facts.template_known else None


def _sendable(value: Any) -> Any:
    """What files and the Hub say, kept short; half a character (a lone surrogate) has no form in an answer."""
    return json.loads(json.dumps(capped(value, longest=500), ensure_ascii=False).encode("utf-8", "replace"))


def search_hub(request: Mapping[str, Any]) -> Answer:
    """{"rows": [{"value", "note"}]}: repositories of the Hub for a text of two characters and more."""
    kind, text = _kind(request), text_of(request, "text", LONGEST_SEARCH)
    if text is None or len(text.strip()) < 2:
        return {"rows": []}
    return {"rows": _sendable(hub_search.search(kind, text.strip()))}


def _path_function(settings: Settings) -> ServerFunction:
    def complete_path(request: Mapping[str, Any]) -> Answer:
        """{"rows", "starts"}: paths that begin with the text; only for one who sits at this machine."""
        if confined(settings) or not asked_from_here.get():
            return {"rows": [], "starts": []}
        text = text_of(request, "text", LONGEST_PATH)
        return {"rows": path_rows(_kind(request), text) if text else [], "starts": list(STARTS)}

    return complete_path


def _kind(request: Mapping[str, Any]) -> Kind:
    return "dataset" if request.get("kind") == "dataset" else "model"
