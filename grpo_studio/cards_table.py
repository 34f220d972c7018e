"""A dated table of cards: what they hold, how fast they are, what an hour of one typically costs.

Speeds are the vendors' data sheets', dense (without sparsity), in TFLOP/s and GB/s. Prices are typical on-demand list
prices of one card, in US dollars, each with who lists it and the day on which it was read: they move, and a person's
own price (`limits.price_per_hour`) always wins. A card without a price that could be verified has none. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TABLE_DATE = "2026-11-30"
"""The day on which the table was put together."""
HUGGING_FACE = "Hugging Face Spaces"
HUGGING_FACE_JOBS = "Hugging Face Jobs"
HUGGING_FACE_READ = "2026-08-22"
PART_OF_A_CARD = r"\bmig\b|\bgrid\b|-\d+[abcq]\b"
RUNPOD = "RunPod Secure Cloud"
RUNPOD_COMMUNITY = "RunPod Community Cloud"


@dataclass(frozen=True)
class Card:
    """One kind of card.

    Args:
        pattern: a regular expression over the name as nvidia-smi prints it, lower case, found anywhere in it.
        memory: gigabytes.
        bfloat16: TFLOP/s with float32 sums; None where the card does not multiply bfloat16 fast.
        float32: TFLOP/s outside the tensor cores, as PyTorch multiplies float32 unless told otherwise.
        bandwidth: of the memory, GB/s.
        price: US dollars an hour; None where none could be verified.
    """

    name: str
    pattern: str
    memory: int
    bfloat16: float | None
    float32: float
    bandwidth: float
    price: float | None = None
    price_source: str = ""
    price_read: str = ""


CARDS: tuple[Card, ...] = (
    Card("B300", r"\bb300\b", 288, 2250, 75, 8000, 7.89, RUNPOD, "2026-10-07"),
    Card("B200", r"\bb200\b", 180, 2250, 75, 8000, 6.79, RUNPOD, "2026-10-07"),
    Card("H200", r"\bh200\b(?! nvl)", 141, 989, 67, 4800, 5.00, HUGGING_FACE_JOBS, HUGGING_FACE_READ),
    Card("H100 NVL", r"\bh100 nvl\b", 94, 835, 60, 3900, 3.19, RUNPOD, "2026-11-09"),
    Card("H100 PCIe", r"\bh100 (?:pcie\b|80gb hbm2e)", 80, 756, 51, 2000, 2.89, RUNPOD, "2026-11-09"),
    Card("H100 SXM", r"\bh100\b", 80, 989, 67, 3350, 3.99, RUNPOD, "2026-11-09"),
    Card("A100 40GB", r"\ba100\b.*\b40gb\b", 40, 312, 19.5, 1555, 1.99, "Lambda", "2026-11-09"),
    Card("A100 80GB PCIe", r"\ba100\b.*(?:80gb pcie|pcie-80gb)", 80, 312, 19.5, 1935, 1.79, RUNPOD, "2026-11-09"),
    Card("A100 80GB", r"\ba100\b.*\b80gb\b", 80, 312, 19.5, 2039, 2.50, HUGGING_FACE, HUGGING_FACE_READ),
    Card("MI300X", r"\bmi300x\b", 192, 1307, 163, 5300),
    Card("RTX PRO 6000", r"\brtx pro 6000\b", 96, 504, 126, 1597, 2.75, HUGGING_FACE_JOBS, HUGGING_FACE_READ),
    Card("L40S", r"\bl40s\b", 48, 362, 91.6, 864, 1.80, HUGGING_FACE, HUGGING_FACE_READ),
    Card("L40", r"\bl40\b", 48, 181, 90.5, 864, 0.69, RUNPOD_COMMUNITY, "2026-03-10"),
    Card("RTX 6000 Ada", r"\brtx 6000 ada\b", 48, 364, 91.1, 960),
    Card("RTX A6000", r"\brtx a6000\b", 48, 155, 38.7, 768, 0.82, "Verda", "2026-10-29"),
    Card("A40", r"\ba40\b", 48, 150, 37.4, 696, 0.44, RUNPOD, "2026-08-19"),
    Card("RTX 5090", r"\brtx 5090\b(?! (?:laptop|d\b))", 32, 209, 105, 1792, 0.69, RUNPOD_COMMUNITY, "2026-03-10"),
    Card("RTX 4090", r"\brtx 4090\b(?! (?:laptop|d\b))", 24, 165, 82.6, 1008, 0.34, RUNPOD_COMMUNITY, "2026-03-10"),
    Card("RTX 3090", r"\brtx 3090\b(?! ti\b)", 24, 71, 35.6, 936, 0.22, RUNPOD_COMMUNITY, "2026-03-10"),
    Card("L4", r"\bl4\b", 24, 121, 30.3, 300, 0.80, HUGGING_FACE, HUGGING_FACE_READ),
    Card("A10G", r"\ba10g\b", 24, 70, 35, 600, 1.00, HUGGING_FACE, HUGGING_FACE_READ),
    Card("A10", r"\ba10\b", 24, 125, 31.2, 600),
    Card("V100 32GB", r"\bv100\b.*\b32gb\b", 32, None, 15.7, 900),
    Card("V100 16GB", r"\bv100\b.*\b16gb\b", 16, None, 15.7, 900),
    Card("T4", r"\bt4\b", 16, None, 8.1, 320, 0.40, HUGGING_FACE, HUGGING_FACE_READ),
)


@dataclass(frozen=True)
class SpacesHardware:
    """What a Hugging Face Space can run on; `price` in US dollars an hour, `cards` of the kind `card` (None: CPU)."""

    name: str
    card: str | None
    cards: int
    price: float


SPACES: tuple[SpacesHardware, ...] = (
    SpacesHardware("CPU basic", None, 0, 0.0),
    SpacesHardware("CPU upgrade", None, 0, 0.03),
    SpacesHardware("Nvidia T4 small", "T4", 1, 0.40),
    SpacesHardware("Nvidia T4 medium", "T4", 1, 0.60),
    SpacesHardware("1x Nvidia L4", "L4", 1, 0.80),
    SpacesHardware("4x Nvidia L4", "L4", 4, 3.80),
    SpacesHardware("1x Nvidia L40S", "L40S", 1, 1.80),
    SpacesHardware("4x Nvidia L40S", "L40S", 4, 8.30),
    SpacesHardware("8x Nvidia L40S", "L40S", 8, 23.50),
    SpacesHardware("Nvidia A10G small", "A10G", 1, 1.00),
    SpacesHardware("Nvidia A10G large", "A10G", 1, 1.50),
    SpacesHardware("2x Nvidia A10G large", "A10G", 2, 3.00),
    SpacesHardware("4x Nvidia A10G large", "A10G", 4, 5.00),
    SpacesHardware("Nvidia A100 large", "A100 80GB", 1, 2.50),
    SpacesHardware("4x Nvidia A100", "A100 80GB", 4, 10.00),
    SpacesHardware("8x Nvidia A100", "A100 80GB", 8, 20.00),
)
"""Read on `HUGGING_FACE_READ` in the Hub's documentation (hub/spaces-gpus)."""


def find_card(name: str) -> Card | None:
    """The card that goes by a name as nvidia-smi prints it; None for one that the table does not hold.

    A part of a card (MIG, a virtual GPU) is none of them: it is neither as fast nor as dear.
    """
    lower = name.lower()
    if re.search(PART_OF_A_CARD, lower):
        return None
    return next((card for card in CARDS if re.search(card.pattern, lower)), None)
