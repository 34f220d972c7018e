"""The card that a forecast is held against: this machine's GPU, one of the table of cards, or a size."""

from __future__ import annotations

import math
import re

from grpo_studio.cards_table import CARDS, find_card
from grpo_studio.devices import current_device
from grpo_studio.errors import UsageError
from grpo_studio.memory.forecast import CardSize
from grpo_studio.naming import nearest_names
from grpo_studio.shown import shown

GB = 10**9
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(gb|gib)?", re.IGNORECASE)
_UNITS = {"gb": GB, "gib": 1 << 30}


def card_for(asked: str | None) -> CardSize | None:
    """The card that goes by a name ("H100 SXM") or a size in gigabytes ("80", "80 GB", "79.1 GiB").

    Asked for none it is this machine's GPU; None on a machine without one.

    Raises:
        UsageError: no card goes by that name, or the size is none.
    """
    if asked is None:
        return _of_this_machine()
    text = asked.strip()
    if size := _SIZE.fullmatch(text):
        count = float(size[1]) * _UNITS[(size[2] or "gb").lower()]
        if not math.isfinite(count) or count < 1:
            raise UsageError(f"a card of {shown(text, 40)!r} holds nothing; give its gigabytes, such as 80")
        return CardSize(f"{size[1]} {'GiB' if (size[2] or '').lower() == 'gib' else 'GB'}", int(count), "asked for")
    known = {card.name.lower(): card for card in CARDS}
    card = known.get(" ".join(text.lower().split())) or find_card(text)
    if card is None:
        hint = nearest_names(text, [card.name for card in CARDS])
        raise UsageError(f"no card is called {shown(text, 60)!r}, and it is no size in gigabytes such as 80; {hint}")
    return CardSize(card.name, card.memory * GB, "table of cards")


def _of_this_machine() -> CardSize | None:
    device = current_device()
    if device.kind != "cuda" or device.total <= 0:
        return None
    return CardSize(device.name, device.total, "this machine")


def multiplies_bfloat16(card: CardSize | None) -> bool | None:
    """Whether a card multiplies bfloat16 fast; True for one that the table does not hold, None without a card."""
    if card is None:
        return None
    known = next((entry for entry in CARDS if entry.name == card.name), None) or find_card(card.name)
    return known is None or known.bfloat16 is not None
