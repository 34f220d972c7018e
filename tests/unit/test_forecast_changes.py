"""From parts to a forecast: biggest micro-batch, changes, the cache; with a trace put together by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.config_files import preset_names, read_preset
from grpo_studio.memory import cache as cache_module
from grpo_studio.memory.cache import TraceCache
from grpo_studio.memory.calibrated import Calibrated, model_with
from grpo_studio.memory.cards import card_for
from grpo_studio.memory.changes import changes_for
from grpo_studio.memory.closed_forms import ModelShape
from grpo_studio.memory.closed_pass import ClosedPass
from grpo_studio.memory.forecast import Forecast
from grpo_studio.memory.forecasting import forecast
from grpo_studio.memory.known_forecast import over_card_note
from grpo_studio.memory.largest import largest_micro_batches
from grpo_studio.memory.model_configs import config_of, packaged
from grpo_studio.memory.phase_bytes import peak, phases
from grpo_studio.memory.plan import Measured, Plan
from grpo_studio.memory.traced import LOSS_PARTS, ModelBytes, Traced, TracedBatch, TraceRequest
from grpo_studio.memory.tracer import TraceError
from grpo_studio.memory.tracing import TracedModel, request_of
from grpo_studio.rules import inspect
from grpo_studio.settings import BUNDLED_PRESETS, Settings

MIB, GB = 1 << 20, 10**9
CONFIG = packaged("Qwen/Qwen3-0.6B") or {}
SHAPE = ModelShape.of(CONFIG)
ROW = {"full": 900 * MIB, "trl": 60 * MIB, "liger": 50 * MIB}
"""Bytes that one more completion takes, by backend."""


def run_config(**sections: Any) -> RunConfig:
    return RunConfig.model_validate({"model": {"id": "Qwen/Qwen3-0.6B", "dtype": "bfloat16"}, **sections})


def plan_of(config: RunConfig, card: str | None = "80") -> Plan:
    return Plan.of(config, SHAPE, None if card is None else card_for(card), 128)


def traced_by_hand(plan: Plan) -> Traced:
    """Parts that grow along a line; without checkpointing activations are ten times as large."""
    closed = ClosedPass(plan).counts
    kept = 1 if plan.config.memory.gradient_checkpointing else 10

    def batch(backend: str, rows: int) -> TracedBatch:
        parts = {"gradients": 4 * closed.trainable, "activations": kept * rows * 100 * MIB, "other": 0}
        parts["logits_and_loss"] = rows * ROW[backend]
        return TracedBatch(rows, {"backward": parts}, {"backward": parts})

    passes = {backend: (batch(backend, 1), batch(backend, 2)) for backend in ROW}
    model = ModelBytes(
        parameters=closed.parameters,
        trainable=closed.trainable,
        adapter_parameters=closed.adapter,
        weights=2 * closed.parameters,
        quantizable=closed.quantizable,
        largest_linear=closed.largest_linear,
        layer=closed.layer,
        embeddings=closed.vocabulary,
        buffers=0,
        layers=SHAPE.layers,
    )
    return Traced(model, passes, passes)


def measure(config: RunConfig, card: str = "80") -> tuple[Plan, Measured]:
    plan = plan_of(config, card)
    return plan, TracedModel(traced_by_hand(plan), plan.completions, tied=True)


def changed_inside(text: str, change: Callable[[dict[str, Any]], Any]) -> str:
    """A kept trace with something else in it."""
    kept = json.loads(text)
    change(kept["traced"])
    return json.dumps(kept)


def changes_of(card: str, **sections: Any) -> tuple[Plan, list[tuple[dict[str, Any], bool, bool | None]]]:
    config = run_config(**sections)
    plan, measured = measure(config, card)
    total = peak(phases(plan, measured, config.memory.loss_backend, plan.micro_batch))
    found = changes_for(plan, measured, total, lambda changed: measure(changed, card))
    return plan, [(dict(one.change.settings), one.change.keeps, one.change.fits) for one in found]


class TestLargest:
    def test_it_fits_and_one_more_does_not(self) -> None:
        plan, measured = measure(run_config(memory={"gradient_checkpointing": True}))
        found = largest_micro_batches(plan, measured)
        assert set(found) == set(ROW)
        assert plan.card is not None
        for backend, most in found.items():
            assert peak(phases(plan, measured, backend, most)) <= plan.card.bytes
            assert peak(phases(plan, measured, backend, most + 1)) > plan.card.bytes
        assert found["full"] < found["trl"] < found["liger"]

    def test_it_is_0_where_sampling_alone_is_too_much(self) -> None:
        plan, measured = measure(run_config(algorithm={"prompts_per_step": 4096}), "24")
        assert set(largest_micro_batches(plan, measured).values()) == {0}

    def test_nothing_is_said_without_a_card(self) -> None:
        plan = plan_of(run_config(), None)
        assert largest_micro_batches(plan, ClosedPass(plan)) == {}

    def test_it_ends_at_the_setting_s_bound(self) -> None:
        plan = plan_of(run_config(algorithm={"max_completion_length": 1}), "999999")
        assert set(largest_micro_batches(plan, ClosedPass(plan)).values()) == {65_536}


class TestChanges:
    def test_none_when_it_fits(self) -> None:
        assert changes_of("80", memory={"micro_batch": 1})[1] == []

    def test_the_backend_comes_first_and_those_that_keep_the_update_before_the_others(self) -> None:
        _, found = changes_of("48", memory={"loss_backend": "full", "micro_batch": 32})
        assert found[0] == ({"memory.loss_backend": "liger"}, True, True)
        kept = [keeps for _, keeps, _ in found]
        assert kept == sorted(kept, reverse=True)
        assert all(fits for _, _, fits in found)
        assert len(found) <= 5

    def test_a_smaller_micro_batch_divides_what_a_process_samples(self) -> None:
        plan, found = changes_of("20", algorithm={"prompts_per_step": 3, "group_size": 8}, memory={"micro_batch": 24})
        sizes = [settings["memory.micro_batch"] for settings, _, _ in found if list(settings) == ["memory.micro_batch"]]
        assert sizes
        assert all(plan.completions % size == 0 for size in sizes)

    def test_every_change_is_a_setting_that_check_accepts(self) -> None:
        for sections in ({"memory": {"loss_backend": "full", "micro_batch": 32}}, {"model": {"dtype": "float32"}}):
            config = run_config(**sections)
            for settings, _, _ in changes_of("16", **sections)[1]:
                data = config.model_dump(mode="json")
                for name, value in settings.items():
                    section, _, key = name.partition(".")
                    data[section][key] = value
                assert inspect(data).problems == []

    def test_two_together_where_one_is_not_enough(self) -> None:
        odd = {"prompts_per_step": 7, "group_size": 5}  # so many completions do not divide by 2, 4 or 8 cards
        _, found = changes_of("3", algorithm=odd, memory={"micro_batch": 1})
        fitting = [settings for settings, _, fits in found if fits]
        assert fitting
        assert all(len(settings) >= 2 for settings in fitting)
        assert any("memory.adapter" in settings for settings in fitting)

    def test_the_closest_are_told_when_nothing_fits(self) -> None:
        plan, found = changes_of("1", memory={"micro_batch": 32})
        assert plan.card is not None
        assert found
        assert not any(fits for _, _, fits in found)

    def test_what_sampling_takes_is_brought_down_by_fewer_prompts(self) -> None:
        _, found = changes_of("24", algorithm={"prompts_per_step": 256, "group_size": 8}, memory={"micro_batch": 1})
        prompts = [
            settings["algorithm.prompts_per_step"]
            for settings, _, _ in found
            if "algorithm.prompts_per_step" in settings
        ]
        assert prompts
        assert max(prompts) < 256

    def test_vllm_s_share_goes_down_to_what_the_trainer_leaves(self) -> None:
        _, found = changes_of(
            "80", rollout={"engine": "vllm_colocate", "gpu_memory": 0.9}, memory={"micro_batch": 8, "adapter": "lora"}
        )
        shares = [settings["rollout.gpu_memory"] for settings, _, _ in found if "rollout.gpu_memory" in settings]
        assert shares
        assert all(0.1 < share < 0.9 for share in shares)


class TestCache:
    def request(self, **changes: Any) -> TraceRequest:
        return request_of(plan_of(run_config(**changes)), CONFIG)

    def never(self, request: TraceRequest) -> Traced:
        raise AssertionError("it was traced again")

    def test_it_is_read_back_from_disk_by_another_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request, traced = self.request(), traced_by_hand(plan_of(run_config()))
        TraceCache(tmp_path).get(request, lambda _: traced)
        monkeypatch.setattr(cache_module, "_IN_MEMORY", cache_module.Remembered(8))
        again = TraceCache(tmp_path).get(request, self.never)
        assert again.loss_parts("full", 3) == traced.loss_parts("full", 3)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda text: "",
            lambda text: text[: len(text) // 2],
            lambda text: "[]",
            lambda text: json.dumps({"made_by": {"torch": "1"}, "traced": json.loads(text)["traced"]}),
            lambda text: json.dumps(json.loads(text) | {"traced": {}}),
            lambda text: json.dumps(json.loads(text) | {"traced": 5}),
            lambda text: changed_inside(text, lambda traced: traced["model"].update(parameters=None)),
            lambda text: changed_inside(text, lambda traced: traced["model"].update(parameters=-5)),
            lambda text: changed_inside(text, lambda traced: traced["loss"].update(full=[])),
            lambda text: changed_inside(text, lambda traced: traced["loss"]["full"].reverse()),
            lambda text: changed_inside(text, lambda traced: traced["loss"]["trl"][0].update(first={})),
            lambda text: changed_inside(
                text, lambda traced: traced["loss"]["trl"][0]["first"].update(a={"other": "x"})
            ),
            lambda text: changed_inside(text, lambda traced: traced["forward"].pop("trl")),
            lambda text: changed_inside(text, lambda traced: traced.update(notes=[7])),
        ],
        ids=[
            *("empty", "cut off", "no object", "other versions", "no trace", "a number", "no count", "below zero"),
            *("no batches", "out of order", "no moments", "text for bytes", "half a backend", "no text"),
        ],
    )
    def test_a_damaged_or_older_file_is_traced_anew(
        self, damage: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request, traced = self.request(), traced_by_hand(plan_of(run_config()))
        TraceCache(tmp_path).get(request, lambda _: traced)
        (file,) = (tmp_path / "forecasts").iterdir()
        file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
        monkeypatch.setattr(cache_module, "_IN_MEMORY", cache_module.Remembered(8))
        assert TraceCache(tmp_path).known(request) is None
        assert TraceCache(tmp_path).get(request, lambda _: traced) is traced

    def test_a_disk_that_cannot_be_written_to_keeps_none(self, tmp_path: Path) -> None:
        (tmp_path / "forecasts").write_text("a file", encoding="utf-8")
        traced = traced_by_hand(plan_of(run_config()))
        assert TraceCache(tmp_path).get(self.request(), lambda _: traced) is traced

    @pytest.mark.parametrize(
        "changes",
        [
            {"memory": {"micro_batch": 4}},
            {"memory": {"loss_backend": "full"}},
            {"algorithm": {"prompts_per_step": 16}},
            {"algorithm": {"group_size": 4}},
            {"algorithm": {"learning_rate": 1e-4}},
        ],
        ids=["micro_batch", "backend", "prompts", "group", "learning rate"],
    )
    def test_what_a_trace_does_not_depend_on_needs_no_new_one(self, changes: dict[str, Any]) -> None:
        assert self.request(**changes) == self.request()

    @pytest.mark.parametrize(
        "changes",
        [
            {"memory": {"gradient_checkpointing": True}},
            {"memory": {"adapter": "lora"}},
            {"algorithm": {"beta": 0.1}},
            {"algorithm": {"num_iterations": 2}},
            {"algorithm": {"max_completion_length": 99}},
            {"algorithm": {"loss_type": "grpo"}},
        ],
        ids=["checkpointing", "adapter", "beta", "iterations", "length", "loss"],
    )
    def test_what_it_depends_on_does(self, changes: dict[str, Any]) -> None:
        assert self.request(**changes) != self.request()

    def test_qlora_is_traced_as_lora(self) -> None:
        assert self.request(memory={"adapter": "qlora"}) == self.request(memory={"adapter": "lora"})


class TestNumbersThatAConfigDoesNotTell:
    """A mixture of experts: ten times the numbers that its config's sizes come to."""

    @pytest.mark.parametrize("adapter", ["none", "lora", "qlora"])
    @pytest.mark.parametrize("traced", [True, False], ids=["traced", "counted alone"])
    def test_a_change_is_forecast_with_the_counted_ones(self, adapter: str, traced: bool) -> None:
        plan = plan_of(run_config())
        model = replace(traced_by_hand(plan).model, parameters=10 * SHAPE.parameters, trainable=10 * SHAPE.parameters)
        other = plan_of(run_config(memory={"adapter": adapter, "gradient_checkpointing": True}))
        near = ClosedPass(plan, model)
        found: Measured = Calibrated(other, plan, near) if traced else ClosedPass(other, model_with(other, plan, model))
        assert found.counts.parameters == 10 * SHAPE.parameters
        trained = 10 * SHAPE.parameters if adapter == "none" else SHAPE.lora_parameters(16, "all-linear")
        assert found.counts.trainable == trained
        assert found.loss_parts("trl", 1)["gradients"] == trained * other.traced_bytes

    def test_an_adapter_that_was_counted_stays(self) -> None:
        plan = plan_of(run_config(memory={"adapter": "lora"}))
        model = replace(traced_by_hand(plan).model, adapter_parameters=77, trainable=77)
        again = plan_of(run_config(memory={"adapter": "qlora"}))
        assert Calibrated(again, plan, ClosedPass(plan, model)).counts.trainable == 77
        without = plan_of(run_config())
        assert Calibrated(without, plan, ClosedPass(plan, model)).counts.trainable == SHAPE.parameters


def random_sections(chance: random.Random) -> dict[str, Any]:
    """Settings that may be wrong together."""
    pick = chance.choice
    return {
        "model": {"id": "Qwen/Qwen3-0.6B", "dtype": pick(["bfloat16", "float32", "mixed", None])},
        "algorithm": {
            "group_size": pick([2, 3, 8, 16]), "prompts_per_step": pick([1, 3, 4, 32]), "beta": pick([0, 0.04]),
            "max_completion_length": pick([1, 256, 4096]), "optimizer": pick(["adamw_torch", "adafactor", "sgd"]),
            "top_p": pick([1.0, 0.9]),
        },
        "memory": {
            "adapter": pick(["none", "lora", "qlora"]), "loss_backend": pick(["full", "trl", "liger"]),
            "gradient_checkpointing": pick([True, False]), "micro_batch": pick([None, 1, 2, 8]),
        },
        "scale": {"processes": pick([1, 1, 2, 8]), "strategy": pick(["none", "ddp", "fsdp", "zero2", "zero3"])},
        "rollout": {"engine": pick(["transformers", "vllm_colocate", "vllm_server"]), "gpu_memory": pick([0.05, 0.95])},
    }  # fmt: skip


@pytest.mark.parametrize("traced", [True, False], ids=["traced", "closed form"])
def test_parts_sums_and_biggest_batches_agree_for_any_settings(traced: bool) -> None:
    chance, seen = random.Random(7), 0
    while seen < 50:
        inspected = inspect(random_sections(chance))
        if inspected.config is None or inspected.problems:
            continue
        seen += 1
        config, card = inspected.config, chance.choice(["1", "24", "80"])
        plan, measured = measure(config, card) if traced else (plan_of(config, card), ClosedPass(plan_of(config, card)))
        found = phases(plan, measured, config.memory.loss_backend, plan.micro_batch)
        assert all(type(size) is int and size > 0 for parts in found.values() for size in parts.values())
        forecasted = Forecast(found, "traced", 128, plan.completion_tokens, plan.micro_batch, plan.card)
        assert forecasted.total_bytes == max(forecasted.by_phase.values()) == sum(forecasted.parts.values())
        peaks = [peak(phases(plan, measured, config.memory.loss_backend, rows)) for rows in (1, 2, 3, 8, 33)]
        assert peaks == sorted(peaks)
        largest = largest_micro_batches(plan, measured)[config.memory.loss_backend]
        assert (largest >= plan.micro_batch) is forecasted.fits


class TestForecast:
    def make(self, tmp_path: Path, card: str | None = "80", **sections: Any) -> Forecast:
        config = run_config(**sections)
        settings = Settings(tmp_path, tmp_path / "runs", tmp_path / "cache")
        plan = plan_of(config, card)
        TraceCache(settings.cache).get(request_of(plan, CONFIG), lambda _: traced_by_hand(plan))
        return forecast(config, settings, prompt_tokens=128, card=plan.card)

    def test_parts_sum_to_phases_and_the_total_is_the_greatest(self, tmp_path: Path) -> None:
        found = self.make(tmp_path).as_dict()
        assert found["method"] == "traced"
        assert found["total_bytes"] == max(found["by_phase"].values()) == sum(found["parts"].values())
        assert {phase: sum(parts.values()) for phase, parts in found["parts_by_phase"].items()} == found["by_phase"]
        assert found["seconds"] == 0.0
        json.dumps(found, allow_nan=False)

    def test_a_change_that_was_not_traced_is_said_to_be_estimated(self, tmp_path: Path) -> None:
        sections = {"memory": {"micro_batch": 32, "loss_backend": "liger"}}
        found = self.make(tmp_path, "30", **sections)
        named = [set(change.settings) for change in found.changes]
        assert {"memory.gradient_checkpointing"} in named
        assert any("estimated" in note for note in found.notes)

    def test_modules_that_cannot_be_traced_leave_the_closed_form_and_it_says_why(self, tmp_path: Path) -> None:
        config = run_config()
        settings = Settings(tmp_path, tmp_path / "runs", tmp_path / "cache")

        def fail(request: TraceRequest) -> Traced:
            raise TraceError("the modules are odd; go by the closed form")

        plan = plan_of(config)
        with pytest.raises(TraceError):
            TraceCache(settings.cache).get(request_of(plan, CONFIG), fail)
        found = forecast(config, settings, prompt_tokens=128, card=plan.card)
        assert found.method == "closed form"
        assert any("closed form" in note and "the modules are odd" in note for note in found.notes)
        assert set(found.largest_micro_batch) == set(ROW)

    def test_a_prompt_that_nobody_knows_is_an_assumption_that_is_told(self, tmp_path: Path) -> None:
        assert not any("taken to have" in note for note in self.make(tmp_path).notes)


@pytest.mark.parametrize("preset", preset_names([BUNDLED_PRESETS]))
def test_every_preset_s_model_has_its_config_in_the_package(preset: str, tmp_path: Path) -> None:
    config = RunConfig.model_validate(read_preset(preset, [BUNDLED_PRESETS]))
    found = config_of(config.model, Settings(tmp_path, tmp_path / "runs", tmp_path / "cache"))
    assert packaged(config.model.id) == found
    assert ModelShape.of(found).parameters > 100_000_000


@pytest.mark.parametrize("name", ["../../settings", "Qwen/Qwen3-8B.json", "", "a/../../../etc/passwd", "Qwen/Nothing"])
def test_other_ids_are_not_packaged(name: str) -> None:
    assert packaged(name) is None


def test_a_trace_by_hand_has_the_parts_of_one() -> None:
    assert set(traced_by_hand(plan_of(run_config())).loss_parts("full", 1)) == set(LOSS_PARTS)


def test_a_forecast_over_the_card_is_noted_where_its_trace_is_known(settings: Settings) -> None:
    config = run_config(memory={"loss_backend": "full"}, algorithm={"prompts_per_step": 4, "group_size": 8})
    small, large = card_for("24"), card_for("80")
    assert over_card_note(config, settings, 128, small) is None  # it does not wait for a trace
    plan = plan_of(config, "24")
    TraceCache(settings.cache).get(request_of(plan, CONFIG), lambda request: traced_by_hand(plan))
    note = over_card_note(config, settings, 128, small)
    assert note is not None
    told, _, fix = note.rpartition("; ")
    assert "in loss, over the 24 GB of 24 GB" in told
    assert fix.startswith("set memory.micro_batch=8, for which the forecast is ")
    assert over_card_note(config, settings, 128, large) is None
