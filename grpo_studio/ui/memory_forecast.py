"""The Memory page's forecast: of the settings as they are, and as lines over completions in one pass. No gradio."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grpo_studio import rules
from grpo_studio.cards_table import CARDS
from grpo_studio.config import RunConfig
from grpo_studio.memory.cards import card_for
from grpo_studio.memory.forecast import CardSize
from grpo_studio.memory.service import ForecastService, forecast_service_of
from grpo_studio.plots.probe import PeakLine, peak_figure, shows_card
from grpo_studio.settings import Settings
from grpo_studio.ui import frame, strings
from grpo_studio.ui.memory_source import Source

BACKENDS = ("full", "trl", "liger")
USUAL_CARD = "H100 SXM"
"""What a forecast is held against on a machine without a card, until a person chooses another."""
NO_CARD = "none"
MOST_AT_ONCE = 1024
AT_ONCE_WITHOUT_CARD = 64
PAST_CARD = 1.25
"""Lines end where they are so far past the card."""
ENDLESS = 1 << 60
DRAWN_FOR = 12.0
"""Seconds after which no more points are asked for; what is there is drawn."""

Answer = dict[str, Any]


def chosen_card(request: Mapping[str, Any]) -> CardSize | None:
    """The card under `card`; without one this machine's, else the usual one; None for "none".

    Raises:
        UsageError: there is no such card.
    """
    asked = frame.text_of(request, "card", 60)
    if asked == NO_CARD:
        return None
    return card_for(asked) if asked is not None else card_for(None) or card_for(USUAL_CARD)


def listed_cards() -> Answer:
    """This machine's card, or None, and those of the table."""
    own = card_for(None)
    return {
        "own": None if own is None else {"name": own.name, "bytes": own.bytes},
        "usual": USUAL_CARD,
        "table": [{"name": card.name, "gigabytes": card.memory} for card in CARDS],
    }


def forecast_of(source: Source, card: CardSize | None, settings: Settings) -> Answer:
    """The forecast of the settings.

    Raises:
        StudioError: the settings cannot work, or nothing is known of the model.
    """
    found = forecast_service_of(settings).ask(source.valid_config(), source.prompt_tokens, card)
    return found.as_dict() | {"backend": source.valid_config().memory.loss_backend}


def forecast_lines(source: Source, card: CardSize | None, settings: Settings) -> Answer:
    """{"figure", "left_out", "card_shown"}: peak over completions in one pass, a line a backend.

    `left_out` are the backends that refuse these settings.
    """
    config, service = source.valid_config(), forecast_service_of(settings)
    words = strings.load()["memory"]["chart"]
    usable = [backend for backend in BACKENDS if _works(config, backend)]
    until = time.monotonic() + DRAWN_FOR
    lines = [_line(config, backend, source.prompt_tokens, card, service, until) for backend in usable]
    size = None if card is None else card.bytes
    highest = max((peak for one in lines for _, peak in one.points), default=0.0)
    return {
        "figure": peak_figure(lines, size, f"forecast {source.key}", words),
        "left_out": [backend for backend in BACKENDS if backend not in usable],
        "card_shown": size is not None and shows_card(highest, size),
    }


def _line(
    config: RunConfig,
    backend: str,
    prompt_tokens: int | None,
    card: CardSize | None,
    service: ForecastService,
    until: float,
) -> PeakLine:
    points: list[tuple[float, float]] = []
    for count in _counts(AT_ONCE_WITHOUT_CARD if card is None else MOST_AT_ONCE):
        if time.monotonic() > until:
            break
        peak = service.ask(at_once(config, backend, count), prompt_tokens, _without_end(config, card)).total_bytes
        points.append((count, peak))
        if card is not None and peak > PAST_CARD * card.bytes:
            break
    names = strings.load()["memory"]["backends"]
    return PeakLine(names[backend], backend, "", points)


def at_once(config: RunConfig, backend: str, count: int) -> RunConfig:
    """The settings with so many completions in one pass; as many as before are sampled at once."""
    memory = config.memory.model_copy(update={"loss_backend": backend, "micro_batch": count})
    return config.model_copy(update={"memory": memory})


def _without_end(config: RunConfig, card: CardSize | None) -> CardSize | None:
    """The card as if all fitted: changes that make a point fit are not wanted. vLLM takes a share of the card."""
    return card if card is None or config.uses_vllm else replace(card, bytes=ENDLESS)


def _counts(most: int) -> Sequence[int]:
    """1, 2, 4, ... and the middle of each wide step, so that a line's end near the card is not far from it."""
    doubles = [1 << power for power in range(most.bit_length())]
    return sorted({*doubles, *(3 * half // 2 for half in doubles if half >= 16 and 3 * half // 2 <= most)})


def _works(config: RunConfig, backend: str) -> bool:
    changed = config.model_copy(update={"memory": config.memory.model_copy(update={"loss_backend": backend})})
    problems = rules.inspect(changed.model_dump(mode="json")).problems
    return not any(problem.field == "memory.loss_backend" for problem in problems)
