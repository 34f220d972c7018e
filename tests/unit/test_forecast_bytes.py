"""Closed forms and the parts of each phase, against published figures and against real generation in test_trace."""

from __future__ import annotations

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.errors import ModelError, UsageError
from grpo_studio.memory.cards import card_for
from grpo_studio.memory.closed_forms import ModelShape, nf4_bytes
from grpo_studio.memory.closed_pass import ClosedPass
from grpo_studio.memory.forecast_notes import notes_of
from grpo_studio.memory.model_configs import packaged
from grpo_studio.memory.phase_bytes import CONTEXT_BYTES, PhaseParts, peak, phases
from grpo_studio.memory.plan import Plan
from grpo_studio.memory.resident import resident_parts

QWEN3_8B = ModelShape.of(packaged("Qwen/Qwen3-8B") or {})
QWEN3_06B = ModelShape.of(packaged("Qwen/Qwen3-0.6B") or {})
GB = 10**9
NAMES = ("model_type", "tie_word_embeddings")


def plan_of(shape: ModelShape = QWEN3_06B, card: str | None = "80", prompt: int = 100, **sections: object) -> Plan:
    config = RunConfig.model_validate({"model": {"id": "Qwen/Qwen3-0.6B", "dtype": "bfloat16"}, **sections})
    return Plan.of(config, shape, None if card is None else card_for(card), prompt)


def found(plan: Plan) -> PhaseParts:
    return phases(plan, ClosedPass(plan), plan.config.memory.loss_backend, plan.micro_batch)


@pytest.mark.parametrize(
    ("model", "millions"),
    [
        ("Qwen/Qwen3-8B", 8190.73536),
        ("Qwen/Qwen3-14B", 14768.3072),
        ("Qwen/Qwen3-4B", 4022.468096),
        ("Qwen/Qwen3-1.7B", 1720.574976),
        ("Qwen/Qwen3-0.6B", 596.04992),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", 7615.616512),
        ("Qwen/Qwen2.5-7B-Instruct", 7615.616512),
        ("Qwen/Qwen2.5-3B", 3085.938688),
        ("Qwen/Qwen2.5-1.5B-Instruct", 1543.714304),
        ("Qwen/Qwen2.5-0.5B-Instruct", 494.032768),
        ("Qwen/Qwen2-0.5B-Instruct", 494.032768),
        ("builtin:smollm2-135m-instruct", 134.515008),
    ],
)
def test_packaged_configs_have_the_published_number_of_parameters(model: str, millions: float) -> None:
    config = packaged(model)
    assert config is not None
    assert ModelShape.of(config).parameters == round(millions * 1e6)


def test_figures_of_qwen3_8b() -> None:
    assert QWEN3_8B.kv_bytes_per_token(2, 2) == 147_456
    assert QWEN3_8B.lora_parameters(8, "all-linear") == 21_823_488
    assert QWEN3_8B.lora_parameters(8, "q_proj, model.layers.0.v_proj") == 36 * 8 * (4096 + 4096 + 4096 + 1024)


def test_nf4_takes_4_127_bits_a_number() -> None:
    assert nf4_bytes(64 * 256) == 64 * 256 // 2 + 256 + 4
    assert 8 * nf4_bytes(10**9) / 10**9 == pytest.approx(4.127, abs=5e-4)


def test_qwen3_8b_in_nf4_takes_about_6_gb_for_its_head_and_embeddings_stay_in_16_bits() -> None:
    plan = plan_of(QWEN3_8B, memory={"adapter": "qlora", "lora_rank": 8})
    parts = resident_parts(plan, ClosedPass(plan).counts)
    assert 6.0 * GB < parts["weights"] < 6.4 * GB
    assert parts["adapter"] == 21_823_488 * 2  # TRL turns it to bfloat16
    assert parts["optimizer"] == 2 * parts["adapter"]


@pytest.mark.parametrize("adapter", ["none", "lora"])
def test_an_adapter_is_float32_beside_16_bit_weights_and_without_one_all_states_have_their_format(adapter: str) -> None:
    plan = plan_of(memory={"adapter": adapter, "lora_rank": 16})
    parts = resident_parts(plan, ClosedPass(plan).counts)
    trained = QWEN3_06B.parameters * 2 if adapter == "none" else QWEN3_06B.lora_parameters(16, "all-linear") * 4
    assert parts["weights"] == QWEN3_06B.parameters * 2
    assert parts["optimizer"] == 2 * trained


@pytest.mark.parametrize(
    ("beta", "adapter", "models"), [(0.0, "none", 0), (0.1, "none", 1), (0.1, "lora", 0), (0.1, "qlora", 0)]
)
def test_a_reference_model_is_held_for_a_kl_term_without_an_adapter(beta: float, adapter: str, models: int) -> None:
    plan = plan_of(algorithm={"beta": beta}, memory={"adapter": adapter})
    parts = found(plan)
    assert ("reference" in parts) == (beta > 0)
    assert parts["loss"].get("reference", 0) == models * QWEN3_06B.parameters * 2


@pytest.mark.parametrize(
    ("optimizer", "share"), [("adamw_torch", (0.99, 1.01)), ("sgd", (-0.01, 0.0)), ("adafactor", (0.0001, 0.01))]
)
def test_states_of_optimizers(optimizer: str, share: tuple[float, float]) -> None:
    plan = plan_of(algorithm={"optimizer": optimizer})
    states = resident_parts(plan, ClosedPass(plan).counts)["optimizer"]
    assert share[0] <= states / (2 * 2 * QWEN3_06B.parameters) <= share[1]


def test_the_cache_holds_all_completions_of_a_step_whatever_the_micro_batch() -> None:
    sizes = [
        found(plan_of(algorithm={"prompts_per_step": 4, "group_size": 8}, memory={"micro_batch": micro}))["rollout"]
        for micro in (1, 4, 32)
    ]
    assert sizes[0] == sizes[1] == sizes[2]
    tokens = 32 * (100 + 256)
    cache = tokens * QWEN3_06B.kv_bytes_per_token(2, 2)
    assert cache <= sizes[0]["kv_cache"] < 1.1 * cache


def test_nothing_is_added_on_a_cpu_and_a_reserve_is_named_on_a_card() -> None:
    on_cpu, on_card = found(plan_of(card=None)), found(plan_of())
    assert all("allocator_reserve" not in parts for parts in on_cpu.values())
    assert all(parts["allocator_reserve"] >= CONTEXT_BYTES for parts in on_card.values())


def test_mixed_precision_multiplies_in_bfloat16_over_float32_weights() -> None:
    mixed, half = plan_of(model={"dtype": "mixed"}), plan_of()
    assert (mixed.weight_bytes, mixed.compute_bytes, mixed.autocasts) == (4, 2, True)
    assert (half.weight_bytes, half.autocasts) == (2, True)
    assert plan_of(card=None).autocasts is False
    assert found(mixed)["rollout"]["other"] == QWEN3_06B.parameters * 2  # autocast keeps copies for a pass


def test_a_card_without_fast_bfloat16_loads_float32_unless_told() -> None:
    assert plan_of(card="T4", model={"dtype": None}).weight_bytes == 4
    assert plan_of(card="L4", model={"dtype": None}).weight_bytes == 2
    assert plan_of(card="T4").weight_bytes == 2


class TestEngines:
    def test_vllm_beside_the_trainer_holds_its_share_all_through(self) -> None:
        parts = found(plan_of(rollout={"engine": "vllm_colocate", "gpu_memory": 0.3}))
        assert [parts[phase]["vllm_pool"] for phase in ("rollout", "loss", "optimizer", "sync")] == [24 * GB] * 4
        assert all("kv_cache" not in sizes for sizes in parts.values())

    def test_a_sleeping_one_gives_it_back(self) -> None:
        extra = {"extra": {"vllm_enable_sleep_mode": True}}
        parts = found(plan_of(rollout={"engine": "vllm_colocate"}, algorithm=extra))
        assert "vllm_pool" in parts["rollout"]
        assert "vllm_pool" not in parts["loss"]

    def test_a_server_is_elsewhere(self) -> None:
        parts = found(plan_of(rollout={"engine": "vllm_server"}))
        assert all("vllm_pool" not in sizes and "kv_cache" not in sizes for sizes in parts.values())
        assert "sync" in parts


class TestSeveralCards:
    def scale(self, world: int, strategy: str, **memory: object) -> PhaseParts:
        scale = {"processes": world, "strategy": strategy}
        return found(plan_of(scale=scale, memory={"micro_batch": 1, **memory}))

    def test_fsdp_divides_weights_and_states_and_gathers_layers(self) -> None:
        one, four = self.scale(1, "none", adapter="lora")["loss"], self.scale(4, "fsdp", adapter="lora")["loss"]
        assert four["weights"] == one["weights"] // 4
        assert four["optimizer"] == one["optimizer"] // 4
        layer, vocabulary = QWEN3_06B.layer_parameters, 151_936 * 1024
        assert four["other"] >= 2 * (2 * layer + vocabulary)

    def test_fsdp_trains_in_float32_where_matrices_are_multiplied_in_bfloat16(self) -> None:
        assert self.scale(2, "fsdp")["loss"]["weights"] == QWEN3_06B.parameters * 4 // 2

    def test_ddp_divides_nothing_and_sends_copies_of_gradients(self) -> None:
        one, two = self.scale(1, "none")["loss"], self.scale(2, "ddp")["loss"]
        assert two["weights"] == one["weights"]
        assert two["other"] == QWEN3_06B.parameters * 2

    def test_zero2_keeps_weights_whole_and_divides_a_float32_copy_of_them(self) -> None:
        parts = self.scale(4, "zero2", loss_backend="trl")["loss"]
        assert parts["weights"] == QWEN3_06B.parameters * 2
        assert parts["optimizer"] == QWEN3_06B.parameters * 12 // 4
        assert parts["gradients"] == QWEN3_06B.parameters * 2 // 4

    def test_zero3_gathers_the_whole_model_to_sample(self) -> None:
        parts = self.scale(4, "zero3", loss_backend="trl")
        assert parts["rollout"]["weights"] == QWEN3_06B.parameters * 2 // 4
        assert parts["rollout"]["other"] >= QWEN3_06B.parameters * 2


class TestCards:
    @pytest.mark.parametrize(
        ("asked", "size", "source"),
        [
            ("80", 80 * GB, "asked for"),
            (" 80GB ", 80 * GB, "asked for"),
            ("79.5 gib", int(79.5 * (1 << 30)), "asked for"),
            ("H100 SXM", 80 * GB, "table of cards"),
            ("h100 sxm", 80 * GB, "table of cards"),
            ("NVIDIA A100-SXM4-40GB", 40 * GB, "table of cards"),
        ],
    )
    def test_by_name_or_size(self, asked: str, size: int, source: str) -> None:
        card = card_for(asked)
        assert card is not None
        assert (card.bytes, card.source) == (size, source)

    @pytest.mark.parametrize("asked", ["H1000", "", "0", "0.0 GB", "-80", "nan", "80 TB", "1e9", "\x1b[31m80"])
    def test_others_are_refused_in_one_line(self, asked: str) -> None:
        with pytest.raises(UsageError) as error:
            card_for(asked)
        assert str(error.value).isprintable()
        assert error.value.exit_code == 2


@pytest.mark.parametrize("missing", ["hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads"])
@pytest.mark.parametrize("value", [None, 0, -4, "8", True, 1.5])
def test_a_config_without_a_size_is_told(missing: str, value: object) -> None:
    config = {**(packaged("Qwen/Qwen3-8B") or {}), missing: value}
    with pytest.raises(ModelError, match=missing):
        ModelShape.of(config)


@pytest.mark.parametrize("name", ["hidden_size", "head_dim", "num_hidden_layers"])
@pytest.mark.parametrize("value", [(1 << 31) + 1, 10**30, 10**4200], ids=["over", "far over", "no float"])
def test_a_config_with_a_size_that_no_model_has_is_told(name: str, value: int) -> None:
    with pytest.raises(ModelError, match=rf"a {name} of .*no model has more"):
        ModelShape.of({**(packaged("Qwen/Qwen3-8B") or {}), name: value})


@pytest.mark.parametrize(
    ("outer", "inner", "tied"),
    [
        ({"model_type": "gemma3_text"}, None, True),
        ({"model_type": "gpt2"}, None, True),
        ({"model_type": "gpt2", "tie_word_embeddings": False}, None, False),
        ({"model_type": "qwen3"}, None, False),
        ({"model_type": "gemma3"}, {"model_type": "gemma3_text"}, True),
        ({"model_type": "llava", "tie_word_embeddings": True}, {"model_type": "llama"}, True),
        ({"model_type": "llava", "tie_word_embeddings": True}, {"model_type": "llama", "tie_word_embeddings": False}, False),
    ],
)  # fmt: skip
def test_whether_the_head_is_the_embedding_where_a_config_does_not_say(
    outer: dict[str, object], inner: dict[str, object] | None, tied: bool
) -> None:
    sizes = {name: value for name, value in (packaged("Qwen/Qwen3-8B") or {}).items() if name not in NAMES}
    config = {**sizes, **outer} if inner is None else {**outer, "text_config": {**sizes, **inner}}
    assert ModelShape.of(config).tied is tied


@pytest.mark.parametrize(("prompt", "told"), [(40_960 - 256, False), (40_961 - 256, True)])
def test_a_row_longer_than_the_model_is_made_for_is_told(prompt: int, told: bool) -> None:
    plan = plan_of(QWEN3_8B, prompt=prompt)
    notes = list(notes_of(plan, ClosedPass(plan).counts, prompt_known=True))
    assert any("is made for 40,960 tokens" in note for note in notes) is told


def test_the_peak_is_the_greatest_sum() -> None:
    parts = found(plan_of())
    assert peak(parts) == max(sum(sizes.values()) for sizes in parts.values())
    assert all(size > 0 for sizes in parts.values() for size in sizes.values())
