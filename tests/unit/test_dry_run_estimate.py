"""From one measured iteration to the whole run, and to other cards: sums that can be done by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grpo_studio.cards_table import CARDS, find_card
from grpo_studio.config import RunConfig
from grpo_studio.dry_run import shortened
from grpo_studio.dry_run_estimate import (
    REACHED,
    Iteration,
    Speed,
    across_cards,
    costs,
    longest,
    speed_of_card,
    whole_run,
)
from grpo_studio.dry_run_record import read_iteration
from grpo_studio.dry_run_text import duration, lines_of_cards, lines_of_whole
from grpo_studio.spending import Price
from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import CompletionRecord, GroupRecord
from grpo_studio.store.writer import RunWriter

STEP = {"rollout": 6.0, "score": 1.0, "loss": 2.0, "optimizer": 0.5, "other": 0.5}
ONE = Iteration(loading=30.0, step=STEP, evaluate=20.0, save=4.0, tokens=800, length=100.0, peaks={"loss": 30 * 10**9})


def config_with(steps: int = 100, evaluate: int = 0, save: int = 0, **sections: Any) -> RunConfig:
    algorithm = {"steps": steps, "max_completion_length": 250, **sections.pop("algorithm", {})}
    return RunConfig.model_validate(
        {"algorithm": algorithm, "evaluation": {"every": evaluate}, "checkpoint": {"every": save}, **sections}
    )


def test_the_whole_is_loading_steps_evaluations_and_checkpoints() -> None:
    whole = whole_run(config_with(100, evaluate=30, save=25), ONE)
    assert (whole.loading, whole.steps) == (30.0, 1000.0)
    assert (whole.evaluation_count, whole.evaluations) == (5, 100.0), "before, 30, 60, 90 and after the last"
    assert (whole.checkpoint_count, whole.checkpoints) == (4, 16.0)
    assert whole.seconds == 1146.0
    assert whole.tokens == 80_000


@pytest.mark.parametrize(("every", "evaluations", "checkpoints"), [(0, 2, 1), (1, 101, 100), (50, 3, 2), (1000, 2, 1)])
def test_evaluations_and_checkpoints_are_counted_as_the_run_does_them(
    every: int, evaluations: int, checkpoints: int
) -> None:
    whole = whole_run(config_with(100, evaluate=every, save=every), ONE)
    assert (whole.evaluation_count, whole.checkpoint_count) == (evaluations, checkpoints)


def test_without_held_out_rows_nothing_is_evaluated() -> None:
    one = Iteration(1.0, STEP, None, 1.0, 800, 100.0)
    assert whole_run(config_with(evaluate=5), one).evaluation_count == 0


def test_longer_completions_stretch_what_reads_and_writes_them() -> None:
    config = config_with(10)
    assert longest(config, ONE) == 2.5
    whole = whole_run(config, ONE, longest(config, ONE))
    assert whole.steps == pytest.approx(10 * (2.5 * (6.0 + 2.0) + 1.0 + 0.5 + 0.5))
    assert whole.evaluations == 2 * 2.5 * 20.0
    assert whole.tokens == 20_000
    assert longest(config, Iteration(1.0, STEP, None, 1.0, 0, 0.0)) == 1.0, "no completion at all"
    assert longest(config, Iteration(1.0, STEP, None, 1.0, 9, 300.0)) == 1.0, "none is cut shorter"


def test_a_batch_that_is_used_twice_is_sampled_once() -> None:
    config = config_with(101, algorithm={"num_iterations": 2})
    assert whole_run(config, ONE).tokens == 51 * 800
    assert shortened(config).algorithm.steps == 4


def test_a_card_of_half_the_bandwidth_takes_twice_as_long_to_sample() -> None:
    """From a card of the table: peaks against peaks."""
    config = config_with(1000)
    l4 = find_card("NVIDIA L4")
    assert l4 is not None
    here = Speed(l4.bfloat16 or 0.0, 2 * l4.bandwidth, 2, measured=False)
    on = {one.card.name: one for one in across_cards(config, ONE, here, on_gpu=True)}["L4"]
    assert on.step_seconds == pytest.approx(2 * (6.0 + 0.5) + 2.0 + 1.0 + 0.5)
    assert on.hours == pytest.approx(1000 * on.step_seconds / 3600)
    assert on.cost == pytest.approx(on.hours * 0.80)
    assert on.fits is False, "30 GB do not fit on 24 GB"


def test_the_card_that_it_was_measured_on_comes_out_as_measured() -> None:
    config = config_with(1000, evaluate=10, save=100)
    for card in CARDS:
        found = {
            one.card.name: one for one in across_cards(config, ONE, speed_of_card(config, card), on_gpu=True)
        }[card.name]  # fmt: skip
        assert found.step_seconds == pytest.approx(ONE.step_seconds), card.name
        assert found.hours == pytest.approx(1000 * (10.0 + 20.0 / 10 + 4.0 / 100) / 3600), card.name


def test_from_a_measured_speed_cards_are_taken_at_a_share_of_their_data_sheets() -> None:
    """float32 here, bfloat16 there: half the bytes."""
    config = config_with(1000)
    here = Speed(tflops=0.1, bandwidth=20.0, weight_bytes=4, measured=True)
    on = {one.card.name: one for one in across_cards(config, ONE, here, on_gpu=False)}
    a100 = on["A100 80GB"]
    by_bandwidth, by_flops = 20.0 / (2039 * REACHED) * 2 / 4, 0.1 / (312 * REACHED)
    assert a100.step_seconds == pytest.approx(6.5 * by_bandwidth + 2.0 * by_flops + 1.5)
    assert a100.fits is None, "a CPU's peak says nothing of a card's"
    assert on["T4"].step_seconds == pytest.approx(6.5 * 20.0 / (320 * REACHED) + 2.0 * 0.1 / (8.1 * REACHED) + 1.5)


def test_cheapest_first_and_those_without_a_price_last() -> None:
    found = across_cards(config_with(), ONE, Speed(1.0, 100.0, 4, measured=True), on_gpu=False)
    prices = [one.cost for one in found]
    known = [price for price in prices if price is not None]
    assert known == sorted(known)
    assert prices == [*known, *[None] * (len(prices) - len(known))]
    assert len(found) == len(CARDS)


def test_several_cards_cost_as_many() -> None:
    one = across_cards(config_with(), ONE, Speed(1.0, 100.0, 4, measured=True), on_gpu=False)[0]
    two = across_cards(
        config_with(scale={"processes": 2, "strategy": "ddp"}), ONE, Speed(1.0, 100.0, 4, measured=True), on_gpu=False
    )[0]
    assert two.cards == 2
    assert two.cost == pytest.approx(2 * (one.cost or 0))


def test_precision_decides_which_figure_of_a_card_counts() -> None:
    t4, a100 = find_card("Tesla T4"), find_card("NVIDIA A100-SXM4-80GB")
    assert t4 is not None
    assert a100 is not None
    assert speed_of_card(config_with(), a100) == Speed(312, 2039, 2, measured=False)
    assert speed_of_card(config_with(model={"dtype": "float32"}), a100).tflops == 19.5
    assert speed_of_card(config_with(model={"dtype": "mixed"}), a100) == Speed(312, 2039, 4, measured=False)
    assert speed_of_card(config_with(), t4) == Speed(8.1, 320, 4, measured=False)


def test_money_is_told_only_where_a_price_is_known() -> None:
    config = config_with(100)
    whole = whole_run(config, ONE)
    assert costs(whole, None) is None
    told = "\n".join(lines_of_whole(config, whole, whole, None))
    assert "set limits.price_per_hour" in told
    assert "$" not in told
    priced = "\n".join(lines_of_whole(config, whole, whole_run(config, ONE, 2.5), Price(3.6, "a table")))
    assert "17 min 54 s, $1.07, 80,000 tokens" in priced
    assert "at most, if each completion is cut off at 250 tokens" in priced
    assert "$3.60 an hour (a table)" in priced


def test_a_rough_estimate_is_called_one() -> None:
    cards = across_cards(config_with(), ONE, Speed(1.0, 100.0, 4, measured=True), on_gpu=False)
    rough = list(lines_of_cards(cards, Speed(1.0, 100.0, 4, measured=True), "CPU, 2 cores"))
    assert "a rough estimate from CPU, 2 cores" in rough[1]
    assert not any("rough" in line for line in lines_of_cards(cards, Speed(1.0, 100.0, 4, measured=False), "L4"))
    assert list(lines_of_cards([], None, "CPU")) == []


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0.00 s"), (9.994, "9.99 s"), (12.34, "12.3 s"), (59.97, "1 min 00 s"), (61, "1 min 01 s"),
     (3599.6, "1 h 00 min"), (7500, "2 h 05 min"), (273_600, "3 d 4 h")],
)  # fmt: skip
def test_durations_for_people(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_a_dry_run_leaves_out_what_leaves_the_machine_and_what_would_stop_it() -> None:
    config = config_with(
        1000, evaluate=50, save=100, report={"to": "wandb", "hub_repo": "me/it"}, limits={"hours": 1, "tokens": 5}
    )
    short = shortened(config)
    assert (short.algorithm.steps, short.checkpoint.every, short.evaluation.every) == (2, 1, 0)
    assert (short.report.to, short.report.hub_repo) == ("none", None)
    assert (short.limits.hours, short.limits.tokens) == (None, None)
    assert short.limits.abstained == config.limits.abstained, "a grader that is down is to be found"
    kept = ("model", "dataset", "rewards", "memory", "rollout", "scale")
    assert all(getattr(short, name) == getattr(config, name) for name in kept)


def group(tokens: int, split: str = "train") -> GroupRecord:
    return GroupRecord(
        "q", "1", tuple(CompletionRecord("", tokens, False, 1.0, 0.0) for _ in range(2)), 1.0, 0.0, split
    )


def test_the_second_batch_is_what_counts(tmp_path: Path) -> None:
    """Two steps a batch: steps 1 and 2 warm up, 3 and 4 are measured."""
    writer = RunWriter(tmp_path / "run.db", attempt=1)
    writer.event("preparing", "loading")
    writer.phase_times(0, {"evaluate": 0.0})
    writer.event("training_started", "begins")
    for step, factor in ((1, 10.0), (2, 10.0), (3, 1.0), (4, 2.0)):
        if step % 2:
            writer.groups(step, [group(5 * step), group(7 * step), group(99, split="eval")])
            writer.metrics(step, {"group/effective_batch": 2.0 * step})
        writer.phase_times(step, {"rollout": factor, "loss": 2 * factor, "save": 0.3 * step})
        writer.metrics(step, {"memory/peak/loss": 100.0 / step, "memory/peak/rollout": 7.0})
    writer.phase_times(4, {"evaluate": 3.0, "save": 9.0})
    writer.close()
    config = config_with(algorithm={"num_iterations": 2, "prompts_per_step": 2, "group_size": 4})
    with RunReader(tmp_path / "run.db") as reader:
        one = read_iteration(reader, config)
    assert one.step == {"rollout": 1.5, "loss": 3.0}
    assert one.step_seconds == 4.5
    assert one.evaluate == 3.0
    assert one.save == pytest.approx(0.3)
    assert (one.tokens, one.length) == (2 * 15 + 2 * 21, 18.0)
    assert one.peaks == {"loss": 100, "rollout": 7}
    assert one.live == 6.0 / 8
