"""Whether anything of a configuration is on the Hub. Where nothing is, the libraries are told not to look there."""

from __future__ import annotations

from grpo_studio.catalog import locate
from grpo_studio.config import RunConfig
from grpo_studio.data import is_on_hub
from grpo_studio.reward_models import on_hub
from grpo_studio.settings import Settings


def reads_hub(config: RunConfig, settings: Settings) -> bool:
    """Whether the model or the data set is read from the Hub.

    Raises:
        ModelError: the model is not to be found.
    """
    return locate(config.model.id, settings.cache).kind == "hub" or is_on_hub(config.dataset.source)


def needs_hub(config: RunConfig, settings: Settings) -> bool:
    """Whether a run reads from the Hub or writes to it.

    Raises:
        ModelError: the model is not to be found.
    """
    reads = reads_hub(config, settings) or any(on_hub(reward, settings.cache) for reward in config.rewards)
    logs = bool(config.algorithm.extra.get("log_completions_hub_repo"))
    return reads or logs or config.report.hub_repo is not None or config.report.to == "trackio"
