"""Where a run's model and data come from, as anybody may be told: public ids, and names instead of paths."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_studio import hub
from grpo_studio.catalog import BUILTIN_MODELS, locate
from grpo_studio.config import BUILTIN_MODEL, RunConfig
from grpo_studio.data import kind_of
from grpo_studio.declaration import fields_of, value_at
from grpo_studio.errors import ModelError
from grpo_studio.exporting.redaction import Redaction
from grpo_studio.model_facts import facts_of
from grpo_studio.settings import Settings

PUBLIC_ORIGINS = {BUILTIN_MODEL: "HuggingFaceTB/SmolLM2-135M-Instruct"}
"""Hub ids of the models that the built-in files were made from."""
OF_THIS_MACHINE = (
    "report.",
    "scale.machine_rank",
    "scale.main_process",
    "rollout.server_url",
    "rollout.server_devices",
)
"""Settings that say where a run ran, not what it was."""


@dataclass(frozen=True)
class Origin:
    """The base model.

    Args:
        name: as it can be told.
        hub_id: its public id, None when it has none.
        public: anybody may look at that id, as far as is known.
        exact: that id stands for the very weights that were trained on.
        licence: as its card or file says; None when that is not known here.
    """

    name: str
    hub_id: str | None
    revision: str | None
    exact: bool
    licence: str | None
    public: bool = True


def origin_of(config: RunConfig, settings: Settings, ask_hub: bool = False) -> Origin:
    """What is known of the base model; the Hub is asked for its licence only when that is wanted.

    A model that is not on this machine any more is told by its name alone.
    """
    model = config.model
    try:
        kind = locate(model.id, settings.cache).kind
    except ModelError:
        return Origin(Path(model.id).name or "a local model", None, None, False, None)
    if kind == "builtin":
        known = BUILTIN_MODELS[model.id]
        return Origin(known.title, PUBLIC_ORIGINS.get(model.id), None, False, known.licence)
    licence = None
    if kind != "hub" or ask_hub:
        try:
            licence = facts_of(model, settings).licence
        except ModelError:  # the card goes without it
            licence = None
    if kind == "hub":
        public = not ask_hub or hub.is_public(model.id, "model")
        return Origin(model.id, model.id, model.revision, True, licence, public)
    return Origin(Path(model.id).name, None, None, False, licence)


def dataset_of(config: RunConfig, ask_hub: bool = False) -> tuple[str, str | None]:
    """The data set's name, and its id when it is on the Hub and, as far as is known, public."""
    source = config.dataset.source
    kind = kind_of(source)
    if kind == "file":
        return Path(source).name, None
    public = kind == "hub" and (not ask_hub or hub.is_public(source, "dataset"))
    return source, source if public else None


def settings_that_differ(config: RunConfig, redaction: Redaction) -> dict[str, Any]:
    """Settings with values other than their defaults, nested as in a file; model, data and rewards always.

    Paths of this machine are cut to their names, and what says where the run ran is left out.
    """
    found: dict[str, Any] = {}
    whole = config.model_dump(mode="json")
    for name, field in fields_of(RunConfig).items():
        if name.startswith(OF_THIS_MACHINE):
            continue
        always = name in ("model.id", "dataset.source", "rewards")
        if not always and value_at(config, name) == field.get_default(call_default_factory=True):
            continue
        *sections, last = name.split(".")
        value, place = whole, found
        for section in sections:
            value, place = value[section], place.setdefault(section, {})
        place[last] = _told(value[last], redaction)
    return found


def _told(value: Any, redaction: Redaction) -> Any:
    if isinstance(value, dict):
        kept = {str(key): _told(item, redaction) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None} if "verifier" in kept else kept
    if isinstance(value, list):
        return [_told(item, redaction) for item in value]
    return redaction.text(_without_place(value)) if isinstance(value, str) else value


def _without_place(text: str) -> str:
    """The name of a file or folder that is given by its whole path; any other text as it is."""
    if len(text) > 1000 or "\n" in text or not text.startswith(("/", "~")):
        return text
    path = Path(text)
    try:
        known = path.expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        known = False
    return path.name if path.name and (known or len(path.parts) > 3) else text
