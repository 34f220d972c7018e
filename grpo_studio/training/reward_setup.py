"""Makes the rewards of a run ready before anything is trained: its verifier files kept, its reward models loaded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from accelerate import PartialState
from transformers.integrations.deepspeed import set_hf_deepspeed_config, unset_hf_deepspeed_config
from trl import GRPOConfig

from grpo_studio.code_runs import sandbox_in_force
from grpo_studio.config import RunConfig
from grpo_studio.errors import VerifierError
from grpo_studio.exporting.foreign_verifiers import require_own_verifiers
from grpo_studio.reward_models import place_problem
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import newest_attempt
from grpo_studio.store.verifier_files import keep_verifiers
from grpo_studio.store.writer import RunWriter
from grpo_studio.training.reward_model import RewardModel
from grpo_studio.training.rewards import JudgedRewards
from grpo_studio.verifiers import Registry, discover
from grpo_studio.verifiers_used import runs_code


def prepare_rewards(
    config: RunConfig, settings: Settings, folder: RunFolder, writer: RunWriter, arguments: GRPOConfig
) -> JudgedRewards:
    """The rewards of an attempt, judged by the files that are now kept in its folder.

    Raises:
        VerifierError: a verifier is not there, or a reward model cannot be used.
        StoreError: the files cannot be kept.
    """
    kept_in = folder.verifiers(writer.attempt)
    with PartialState().local_main_process_first():
        found = discover(settings.rewards_dirs)
        if arguments.local_process_index == 0:
            kept = keep_verifiers(config.rewards, found, kept_in)
            files = [one.as_dict() for one in kept]
            named = ", ".join(f"{one.file} (sha256 {one.sha256[:12]})" for one in kept)
            writer.event("verifiers", f"judged by {named}, kept in {kept_in.name}", data={"files": files})
            if running := runs_code([name for one in kept for name in one.verifiers], found):
                sandbox = sandbox_in_force()
                writer.event("sandbox", sandbox.told(running), level="info" if sandbox.walled else "warning")
    for reward in config.rewards:
        if problem := place_problem(found.get(reward.verifier)):
            raise VerifierError(problem)
    directories = (kept_in, *settings.rewards_dirs)
    with _whole_weights(arguments):
        tell = functools.partial(writer.event, "preparing")
        scorers = _reward_models(config, settings, tell, arguments.device, discover(directories))
    return JudgedRewards(config.rewards, directories, scorers=scorers)


def kept_rewards(
    config: RunConfig, settings: Settings, folder: RunFolder, device: torch.device, tell: Callable[[str], object]
) -> JudgedRewards:
    """The rewards of a run as its newest attempt judges: by the files kept in its folder, where it got so far.

    Raises:
        VerifierError: a verifier is not there, or a reward model cannot be used.
    """
    attempts = range(newest_attempt(folder.database).attempt, 0, -1)
    kept = [place for attempt in attempts if (place := folder.verifiers(attempt)).is_dir()]
    for place in kept[:1]:
        require_own_verifiers(folder, settings, place)
    directories = (*kept[:1], *settings.rewards_dirs)
    scorers = _reward_models(config, settings, tell, device, discover(directories))
    return JudgedRewards(config.rewards, directories, scorers=scorers)


def _reward_models(
    config: RunConfig, settings: Settings, tell: Callable[[str], object], device: torch.device, registry: Registry
) -> dict[int, RewardModel]:
    """The reward models of a run by the places of their rewards; equal ones are loaded once."""
    loaded: dict[str, RewardModel] = {}
    scorers = {}
    for place, reward in enumerate(config.rewards):
        spec = registry.get(reward.verifier)
        if spec.place != "trainer":
            continue
        params = spec.with_defaults(reward.params)
        if "model" not in params:
            raise VerifierError(f"{spec.name} is to be scored by the trainer, and no param names its model; set model")
        key = repr(sorted(params.items()))
        if key not in loaded:
            tell(f"loading the reward model {params['model']}")
            loaded[key] = RewardModel(params, device, settings.cache)
        scorers[place] = loaded[key]
    return scorers


@contextmanager
def _whole_weights(arguments: GRPOConfig) -> Iterator[None]:
    """Within, transformers loads whole models: ZeRO-3 would share them out among the processes, unasked."""
    config = getattr(arguments, "hf_deepspeed_config", None)
    if config is None:
        yield
        return
    unset_hf_deepspeed_config()
    try:
        yield
    finally:
        set_hf_deepspeed_config(config)
