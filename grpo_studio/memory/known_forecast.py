"""What a forecast says of a run, where that is known without waiting for a trace."""

from __future__ import annotations

from grpo_studio.config import RunConfig
from grpo_studio.disk import sized
from grpo_studio.errors import ModelError
from grpo_studio.memory.cache import TraceCache
from grpo_studio.memory.cards import card_for
from grpo_studio.memory.closed_forms import ModelShape
from grpo_studio.memory.forecast import CardSize
from grpo_studio.memory.forecasting import forecast
from grpo_studio.memory.model_configs import config_of, packaged
from grpo_studio.memory.plan import ASSUMED_PROMPT, Plan
from grpo_studio.memory.smallest_change import in_words
from grpo_studio.memory.tracing import request_of
from grpo_studio.settings import Settings


def over_card_note(
    config: RunConfig, settings: Settings, prompt_tokens: int | None = None, card: CardSize | None = None
) -> str | None:
    """That a run's forecast is over the card, and what would fit; None when it fits, or nothing is known at once.

    Args:
        card: None stands for this machine's GPU; without one nothing is said.
    """
    card = card or card_for(None)
    if card is None or packaged(config.model.id) is None:
        return None
    try:
        of_model = config_of(config.model, settings)
        plan = Plan.of(config, ModelShape.of(of_model), card, prompt_tokens or ASSUMED_PROMPT)
        if TraceCache(settings.cache).known(request_of(plan, of_model)) is None:
            return None
        found = forecast(config, settings, prompt_tokens=plan.prompt_tokens, card=card)
    except ModelError:
        return None
    if found.fits is not False:
        return None
    change = next((one for one in found.changes if one.fits), None)
    needed, room = sized(found.total_bytes), sized(card.bytes)
    told = f"the forecast is {needed} in {found.peak_phase}, over the {room} of {card.name}"
    return told if change is None else f"{told}; {in_words(change, change.total_bytes)}"
