"""`train --dry-run`: what one real iteration took, and from it time and cost of the whole run, here and elsewhere."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import Any

from grpo_studio.cards_table import TABLE_DATE, find_card
from grpo_studio.child_environment import search_path
from grpo_studio.config import RunConfig
from grpo_studio.devices import worker_environment
from grpo_studio.dry_run import DryRun, dry_run
from grpo_studio.dry_run_estimate import OnCard, Speed, Whole, across_cards, costs, longest, speed_of_card, whole_run
from grpo_studio.dry_run_text import lines_of_cards, lines_of_iteration, lines_of_whole
from grpo_studio.errors import TrainingError
from grpo_studio.progress import Progress
from grpo_studio.settings import Settings
from grpo_studio.spending import Price, price_per_hour

MEASURE_WITHIN = 120.0
UNKNOWN = (
    "The first steps stand for all: completions get longer or shorter as the model learns, groups that teach nothing "
    "are skipped, and a file that was read once is read faster.",
    "Other cards are carried over by bandwidth and multiplication alone: small models wait for the processor on any "
    "card, so fast cards come out too good.",
)


def add_dry_run_arguments(train: argparse.ArgumentParser) -> None:
    """What `train` takes besides its other arguments."""
    train.add_argument(
        "--dry-run", action="store_true", help="run one iteration of everything, tell what the whole would cost"
    )
    train.add_argument("--anyway", action="store_true", help="with --dry-run: also on GPUs that a run is using")


def tell_dry_run(
    config: RunConfig, options: argparse.Namespace, settings: Settings, progress: Progress
) -> tuple[dict[str, Any], list[str], int]:
    """The JSON document, the lines for people, the exit code.

    Raises:
        StudioError: an iteration failed, with the reason of the run.
    """
    try:
        found = dry_run(config, settings, options.anyway, progress)
    except KeyboardInterrupt:
        raise TrainingError("the dry run was interrupted; nothing of it is left, start it again") from None
    one, price = found.iteration, price_per_hour(config, found.device.name)
    whole, at_most = whole_run(config, one), whole_run(config, one, longest(config, one))
    here, notes = _speed(config, found), [*found.notes]
    if here is None:
        notes.append("this machine's speed could not be measured, so other cards are not compared")
    cards = [] if here is None else across_cards(config, one, here, found.device.kind == "cuda")
    notes += UNKNOWN
    document = {
        "device": found.device.name,
        "dtype": found.setup.get("dtype"),
        "measured": asdict(one) | {"step_seconds": one.step_seconds},
        "whole": _as_dict(whole, price),
        "at_most": _as_dict(at_most, price),
        "price": None if price is None else {"per_hour": price.value, "source": price.source},
        "rough": here is None or here.measured,
        "cards": [_card_as_dict(card) for card in cards],
        "table_date": TABLE_DATE,
        "notes": notes,
    }
    lines = [
        *lines_of_iteration(found),
        *lines_of_whole(config, whole, at_most, price),
        *lines_of_cards(cards, here, found.device.name),
    ]
    return {"dry_run": document}, [*lines, "", *(f"note: {note}" for note in notes)], 0


def _as_dict(whole: Whole, price: Price | None) -> dict[str, Any]:
    return asdict(whole) | {"seconds": whole.seconds, "cost": costs(whole, price)}


def _card_as_dict(on: OnCard) -> dict[str, Any]:
    return {
        "card": on.card.name,
        "cards": on.cards,
        "memory_gb": on.card.memory,
        "step_seconds": on.step_seconds,
        "hours_per_1000_steps": on.hours,
        "cost_per_1000_steps": on.cost,
        "price_per_hour": on.card.price,
        "price_source": on.card.price_source,
        "price_read": on.card.price_read,
        "fits": on.fits,
    }


def _speed(config: RunConfig, found: DryRun) -> Speed | None:
    """This machine's speed: by the table where it holds the card, else measured in a child; None when it cannot be."""
    card, dtype = find_card(found.device.name), str(found.setup.get("dtype"))
    if card is not None:
        return speed_of_card(config, card)
    multiplied = "bfloat16" if dtype == "bfloat16" or config.model.dtype == "mixed" else "float32"
    environment = os.environ | worker_environment(config) | search_path()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "grpo_studio.training.speed", multiplied],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=MEASURE_WITHIN, check=True,
        )  # fmt: skip
        told = json.loads(done.stdout.splitlines()[-1])
        speed = Speed(float(told["tflops"]), float(told["bandwidth"]), 2 if dtype == "bfloat16" else 4, measured=True)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, IndexError):
        return None
    return speed if speed.tflops > 0 and speed.bandwidth > 0 else None
