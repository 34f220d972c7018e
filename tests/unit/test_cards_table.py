"""The table of cards: names as nvidia-smi prints them, sane figures, each price with its source and day."""

from __future__ import annotations

import datetime

import pytest

from grpo_studio import costs_table
from grpo_studio.cards_table import CARDS, HUGGING_FACE, HUGGING_FACE_READ, SPACES, TABLE_DATE, Card, find_card

NAMES = {
    "NVIDIA H100 80GB HBM3": "H100 SXM", "NVIDIA H100 PCIe": "H100 PCIe", "NVIDIA H100 80GB HBM2e": "H100 PCIe",
    "NVIDIA H100 NVL": "H100 NVL", "NVIDIA H200": "H200", "NVIDIA B200": "B200", "NVIDIA B300 SXM6 AC": "B300",
    "NVIDIA A100-SXM4-80GB": "A100 80GB", "NVIDIA A100 80GB PCIe": "A100 80GB PCIe",
    "NVIDIA A100-SXM4-40GB": "A100 40GB", "NVIDIA A100-PCIE-40GB": "A100 40GB", "Tesla T4": "T4", "NVIDIA L4": "L4",
    "NVIDIA L40": "L40", "NVIDIA L40S": "L40S", "NVIDIA A10": "A10", "NVIDIA A10G": "A10G", "NVIDIA A40": "A40",
    "NVIDIA GeForce RTX 4090": "RTX 4090", "NVIDIA GeForce RTX 3090": "RTX 3090", "NVIDIA GeForce RTX 5090": "RTX 5090",
    "NVIDIA RTX A6000": "RTX A6000", "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000", "AMD Instinct MI300X": "MI300X",
    "Tesla V100-SXM2-16GB": "V100 16GB", "Tesla V100-SXM2-32GB": "V100 32GB",
}  # fmt: skip
NO_CARDS = (
    "", "CPU, 2 cores", "NVIDIA Future 9000", "NVIDIA GH200 480GB", "NVIDIA GB200", "NVIDIA H800", "NVIDIA H200 NVL",
    "NVIDIA A100X", "NVIDIA RTX A4000", "Quadro RTX 6000", "NVIDIA T400", "NVIDIA GeForce RTX 3090 Ti",
    "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D", "GRID T4-16Q", "NVIDIA A40-8Q", "NVIDIA L4-24C",
    "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
)  # fmt: skip


@pytest.mark.parametrize(("printed", "name"), NAMES.items())
def test_a_card_is_known_by_what_nvidia_smi_prints(printed: str, name: str) -> None:
    card = find_card(printed)
    assert card is not None
    assert card.name == name


@pytest.mark.parametrize("printed", NO_CARDS)
def test_what_is_another_card_or_a_part_of_one_is_not_guessed(printed: str) -> None:
    assert find_card(printed) is None


def test_every_row_can_be_found() -> None:
    assert {card.name for card in CARDS} == set(NAMES.values())


def test_the_days_are_days_and_none_is_after_the_tables() -> None:
    day = datetime.date.fromisoformat(TABLE_DATE)
    for card in CARDS:
        assert (card.price is None) == (card.price_source == "") == (card.price_read == ""), card.name
        if card.price is not None:
            assert 0 < card.price < 20, card.name
            assert datetime.date.fromisoformat(card.price_read) <= day, card.name


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_figures_are_in_their_units(card: Card) -> None:
    """TFLOP/s and GB/s: off by a thousand, or with sparsity counted, a figure leaves these bounds."""
    assert 8 <= card.float32 <= 170
    assert 300 <= card.bandwidth <= 8000
    assert card.bfloat16 is None or 1.9 < card.bfloat16 / card.float32 < 31


def test_a_space_with_one_card_costs_what_the_table_says() -> None:
    cheapest: dict[str, float] = {}
    for space in SPACES:
        if space.card is not None and space.cards == 1:
            cheapest[space.card] = min(space.price, cheapest.get(space.card, space.price))
    listed = {card.name: card.price for card in CARDS if card.price_source == HUGGING_FACE}
    assert listed == cheapest
    assert {card.price_read for card in CARDS if card.price_source == HUGGING_FACE} == {HUGGING_FACE_READ}


def test_the_page_of_costs_is_current() -> None:
    text = costs_table.TARGET.read_text(encoding="utf-8")
    assert text == costs_table.page(text), "run: python -m grpo_studio.costs_table"
