"""`python -m grpo_studio.costs_table`: the tables of docs/costs.md, from `cards_table`."""

from __future__ import annotations

from collections.abc import Iterator

from grpo_studio.cards_table import CARDS, HUGGING_FACE_READ, SPACES, TABLE_DATE, Card
from grpo_studio.settings import PACKAGE_DIR

TARGET = PACKAGE_DIR.parent / "docs" / "costs.md"
BEGIN, END = "<!-- tables: python -m grpo_studio.costs_table -->", "<!-- end of tables -->"


def render() -> str:
    """Both tables in Markdown."""
    return "\n".join([*_cards(), "", *_spaces(), ""])


def _cards() -> Iterator[str]:
    yield f"Table of {TABLE_DATE}. Speeds are the vendors' data sheets', dense; prices are of one card, in US dollars."
    yield ""
    yield "| card | memory, GB | bfloat16, TFLOP/s | float32, TFLOP/s | bandwidth, GB/s | an hour | listed by | read |"
    yield "|---|---|---|---|---|---|---|---|"
    for card in CARDS:
        bfloat16 = "-" if card.bfloat16 is None else f"{card.bfloat16:g}"
        yield (
            f"| {card.name} | {card.memory} | {bfloat16} | {card.float32:g} | {card.bandwidth:g} | {_price(card)} | "
            f"{card.price_source or '-'} | {card.price_read or '-'} |"
        )


def _price(card: Card) -> str:
    return "-" if card.price is None else f"${card.price:.2f}"


def _spaces() -> Iterator[str]:
    yield f"Hugging Face Spaces, read {HUGGING_FACE_READ} in the Hub's documentation (Using GPU Spaces):"
    yield ""
    yield "| hardware | an hour |"
    yield "|---|---|"
    for space in SPACES:
        yield f"| {space.name} | {'free' if space.price == 0 else f'${space.price:.2f}'} |"


def page(text: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{render()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    TARGET.write_text(page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
