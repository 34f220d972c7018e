"""The forecast of a draft while a person types: asked beside the check, which never waits for it. No gradio here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from grpo_studio import rules
from grpo_studio.config import RunConfig
from grpo_studio.devices import current_device
from grpo_studio.looks import ScanCache
from grpo_studio.memory.forecast import CardSize
from grpo_studio.memory.service import forecast_service_of
from grpo_studio.settings import Settings
from grpo_studio.ui.checks import Checks
from grpo_studio.ui.guard import Answer
from grpo_studio.ui.launch_requests import answered, capped, draft_of, page_of
from grpo_studio.ui.memory_forecast import chosen_card, listed_cards
from grpo_studio.ui.readable import path_problems


class ForecastActions:
    """The server functions of the panel "Memory". One object serves all browsers."""

    def __init__(self, settings: Settings, scans: ScanCache) -> None:
        self.settings = settings
        self._scans = scans
        self._asked = Checks()

    @answered
    def forecast_cards(self, request: Mapping[str, Any]) -> Answer:
        """What a forecast can be held against: see `listed_cards`; and `machine`, when it has no card of its own."""
        cards = listed_cards()
        return cards if cards["own"] else {**cards, "machine": vars(_machine())}

    @answered
    def launch_forecast(self, request: Mapping[str, Any]) -> Answer:
        """{"forecast": Forecast.as_dict()} of a draft against a `card`; {"unsound": count} while settings are wrong.

        {"superseded": True} when the page has asked again meanwhile: of its questions only the newest is answered.
        """
        draft = draft_of(request)
        make = partial(self._forecast, draft, request)
        return self._asked.newest(page_of(request), request.get("ticket"), make) or {"superseded": True}

    def _forecast(self, draft: Mapping[str, Any], request: Mapping[str, Any]) -> Answer:
        inspected = rules.inspect(draft)
        wrong = [*path_problems(draft, self.settings), *inspected.problems]
        if inspected.config is None or wrong:
            return {"unsound": max(len(wrong), 1)}
        config = inspected.config
        card = chosen_card(request)
        found = forecast_service_of(self.settings).ask(config, self._longest_prompt(config), card)
        if card is None:  # without a card it is made for a CPU, whose room is the machine's memory
            found = replace(found, card=_machine())
        return {"forecast": capped(found.as_dict(), longest=600), "backend": config.memory.loss_backend}

    def _longest_prompt(self, config: RunConfig) -> int | None:
        """In tokens, where a scan of the whole data set has counted them; None before."""
        scan = self._scans.known(config, self.settings)
        if scan is None or scan.lengths is None:
            return None
        room = scan.lengths.room
        longest = scan.lengths.longest
        # Rows that are too long are left out, or stop the run: those that are trained on fit.
        return (longest if room is None else min(longest, room)) if longest > 0 and (room is None or room > 0) else None


def _machine() -> CardSize:
    return CardSize("this machine", current_device().total, "this machine")
