"""`python -m grpo_studio forecast`: peak memory of a run by phase, predicted before any weight is loaded."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from grpo_studio.command_output import tell
from grpo_studio.config import RunConfig
from grpo_studio.config_arguments import add_config_arguments, raw_settings
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.memory.cards import GB, card_for
from grpo_studio.memory.comparison import hand_sums
from grpo_studio.memory.forecast import PARTS, Change, Forecast
from grpo_studio.memory.forecasting import forecast
from grpo_studio.memory.prompt_guess import guess_prompt_tokens
from grpo_studio.preflight import CheckReport
from grpo_studio.rules import inspect
from grpo_studio.settings import Settings
from grpo_studio.shown import visible

SHOWN = 50_000
"""Bytes from which a part is worth a word."""
LONGEST_PROMPT = 10_000_000
WORDS = {"kv_cache": "KV cache", "vllm_pool": "vLLM pool", "logits_and_loss": "logits and loss"}


def add_forecast_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `forecast` besides those of all commands."""
    add_config_arguments(command, required=False)
    command.add_argument(
        "--card", metavar="NAME|GB", help="what to fit on, such as 'H100 SXM' or 80 (default: this machine's GPU)"
    )
    command.add_argument("--prompt-tokens", type=int, metavar="N", help="tokens of the longest prompt")
    command.add_argument(
        "--hand", action="store_true", help="the usual hand sum for Qwen3-8B, and PPO, DPO and GRPO beside each other"
    )


def forecast_run(options: argparse.Namespace, settings: Settings) -> tuple[dict[str, Any], Sequence[str], int]:
    """The JSON document, the lines for people, and the exit code: 1 when the settings are wrong.

    Raises:
        UsageError: neither settings nor --hand are given, or the card is not known.
        ConfigError: the prompt has no tokens.
        ModelError: the model's config cannot be had.
    """
    sums, lines = hand_sums() if options.hand else ({}, [])
    hand: dict[str, Any] = {"hand": sums} if options.hand else {}
    if options.preset is None and options.config is None:
        if not options.hand or options.set:
            raise UsageError("forecast needs the settings of a run; give --preset NAME, --config FILE, or --hand alone")
        return hand, lines, 0
    card = card_for(options.card)
    tokens = options.prompt_tokens
    if tokens is not None and not 1 <= tokens <= LONGEST_PROMPT:
        raise ConfigError(f"--prompt-tokens is {tokens}; give a number from 1 to {LONGEST_PROMPT:,}, such as 256")
    inspected = inspect(raw_settings(options, settings))
    if inspected.config is None or inspected.problems:
        report = CheckReport(inspected.config, inspected.problems)
        for problem in inspected.problems:
            tell(f"error: {problem}")
        return report.as_dict(), [], report.exit_code
    guess = guess_prompt_tokens(inspected.config) if tokens is None else None
    found = forecast(inspected.config, settings, prompt_tokens=guess.tokens if guess is not None else tokens, card=card)
    if guess is not None:
        found = replace(found, notes=(guess.note, *found.notes))
    document = {"model": inspected.config.model.id, **found.as_dict(), **hand}
    return document, [*forecast_lines(inspected.config, found), *([""] if lines else []), *lines], 0


def forecast_lines(config: RunConfig, found: Forecast) -> Iterator[str]:
    """A forecast for people: the peak, its phases with their parts, what would fit, and notes."""
    yield f"{visible(config.model.id)}: {size(found.total_bytes)} at its peak, in {found.peak_phase}{_against(found)}"
    for phase, total in found.by_phase.items():
        parts = found.parts_by_phase[phase]
        told = ", ".join(f"{_words(part)} {size(parts[part])}" for part in PARTS if parts.get(part, 0) >= SHOWN)
        yield f"  {phase:<10}{size(total):>10}  {told}"
    if found.largest_micro_batch:
        told = ", ".join(f"{backend} {count:,}" for backend, count in found.largest_micro_batch.items())
        yield f"biggest micro-batch that fits: {told} (now {found.micro_batch:,})"
    for place, change in enumerate(found.changes):
        yield f"{'to fit' if place == 0 else 'or':>6}: {change_text(change)}"
    if found.fits is False and not found.changes:
        yield "no single change or pair of changes was found that makes it fit; use a larger card or a smaller model"
    for note in found.notes:
        yield f"note: {visible(note)}"


def change_text(change: Change) -> str:
    """A change as `--set` takes it, and what it brings."""
    told = " ".join(f"--set {name}={_plain(value)}" for name, value in change.settings.items())
    kept = "the update stays the same" if change.keeps else "another update"
    over = ", still too much" if change.fits is False else ""
    return f"{told}  ({size(change.total_bytes)}{over}; {kept})"


def size(count: int) -> str:
    """Bytes in GB or MB, powers of ten; finer than `disk.sized`, so that parts are seen to sum to their phase."""
    return f"{count / GB:,.2f} GB" if count >= GB // 10 else f"{count / 10**6:,.1f} MB"


def _against(found: Forecast) -> str:
    if found.card is None:
        return ""
    room = found.card.bytes - found.total_bytes
    fits = f"fits, {size(room)} left" if found.fits else f"too much by {size(-room)}"
    return f"; {found.card.name} ({size(found.card.bytes)}, {found.card.source}): {fits}"


def _words(part: str) -> str:
    return WORDS.get(part, part.replace("_", " "))


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
