"""Where the reward models of a run come from, known without loading one. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grpo_studio import hub, model_files
from grpo_studio.catalog import locate
from grpo_studio.config import RewardSettings
from grpo_studio.errors import ModelError
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.loading import is_shipped

REWARD_MODEL = "reward_model"
"""Name of the verifier whose param `model` is one."""
WRONG_KIND = "it is no sequence-classification model (its config says {found}); give one with a trained head"


def place_problem(spec: VerifierSpec) -> str | None:
    """Why the trainer cannot score by this verifier that asks it to; None when it can, or when a judge does."""
    if spec.place != "trainer" or (spec.name == REWARD_MODEL and is_shipped(spec.path)):
        return None
    return (
        f"{spec.name} is to be scored by the trainer, which scores by the shipped {REWARD_MODEL} alone; leave out "
        "place='trainer' in its @verifier"
    )


def source_of(model: str, revision: str | None, cache: Path) -> str:
    """What transformers loads a reward model from: a folder or a Hub id that may be read.

    Raises:
        ModelError: there is none, it is gated, or its config names another kind of model.
    """
    location = locate(model, cache)
    if location.path is None:
        hub.require_readable(location.id, "model", revision)
        return location.id
    if location.kind == "gguf":
        raise ModelError("a GGUF file is no sequence-classification model; give a folder or a Hub id of one")
    named = model_files.read_json(model_files.in_folder(location.path), "config.json").get("architectures")
    architectures = named if isinstance(named, list) else []
    if not is_classifier(architectures):
        raise ModelError(WRONG_KIND.format(found=", ".join(map(str, architectures))))
    return str(location.path)


def is_classifier(architectures: Sequence[str] | None) -> bool:
    """Whether a config's `architectures` allow for a classification head; those that name none are tried."""
    return not architectures or any(str(name).endswith("ForSequenceClassification") for name in architectures)


def on_hub(reward: RewardSettings, cache: Path) -> bool:
    """Whether scoring by this reward loads a model from the Hub."""
    if reward.verifier != REWARD_MODEL:
        return False
    try:
        return locate(str(reward.params.get("model", "")), cache).kind == "hub"
    except ModelError:  # met again, and told, when it is loaded
        return False


def with_whole_path(reward: RewardSettings) -> RewardSettings:
    """The reward with the path of its model made absolute: the worker runs in another folder than who asked."""
    model = reward.params.get("model")
    if reward.verifier != REWARD_MODEL or not isinstance(model, str) or not Path(model).expanduser().exists():
        return reward
    return reward.model_copy(update={"params": {**reward.params, "model": str(Path(model).expanduser().resolve())}})
