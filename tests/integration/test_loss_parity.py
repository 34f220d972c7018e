"""Every loss backend computes what TRL's own trainer computes: same loss, same gradients, same metrics, step by step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from frozen_batch import (
    BACKENDS,
    GROUP,
    LOSS_TYPES,
    PLAIN,
    Batch,
    Course,
    Setting,
    difference,
    norm,
    small_work,
    trained,
)
from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss

from grpo_studio import rules
from grpo_studio.errors import ConfigError, ModelError

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

LEVELS = ("token", "sequence")
CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
TRL_NAMES = {
    "policy/kl": "kl",
    "policy/entropy": "entropy",
    "policy/clip_low": "clip_ratio/low_mean",
    "policy/clip_high": "clip_ratio/high_mean",
}


OWN_NAMES = {
    "cispo": {"policy/clip_high": "cispo_clip_ratio"},
    "vespo": {"policy/vespo_weight_mean": "vespo/phi_seq_mean"},
}


class Cell(NamedTuple):
    """One place of the matrix."""

    loss_type: str
    beta: float
    accumulation: int
    iterations: int
    level: str

    def overrides(self) -> list[str]:
        return [
            f"algorithm.loss_type={self.loss_type}",
            f"algorithm.beta={self.beta}",
            f"algorithm.num_iterations={self.iterations}",
            f"algorithm.steps={self.iterations}",
            f"algorithm.importance_sampling_level={self.level}",
            f"memory.micro_batch={2 * GROUP // self.accumulation}",
        ]

    def traits(self) -> dict[str, Any]:
        """Of its batch: completions that pass both clip bounds by token or as a whole."""
        return {"reference": self.beta > 0, "drift": 0.0 if self.level == "token" else 0.5}

    def liger_cannot(self) -> bool:
        """FINDINGS.md, "Loss backends agree": where Liger computes something else, or refuses."""
        if self.loss_type == "luspo":
            return self.level != "sequence" or self.beta > 0
        return self.level == "sequence" and self.loss_type in ("cispo", "sapo", "vespo")

    def __str__(self) -> str:
        return f"{self.loss_type}-beta{self.beta:g}-accumulation{self.accumulation}-mu{self.iterations}-{self.level}"


MATRIX = [Cell(*values) for values in itertools.product(LOSS_TYPES, (0.0, 0.04), (1, 4), (1, 2), LEVELS)]
# A quarter of the other axes' 16 places for each loss type, another one for each of four; `test_the_core_...` says what
# is among them.
CORE = [
    cell
    for cell in MATRIX
    for sort in [LOSS_TYPES.index(cell.loss_type)]
    if ((cell.beta > 0) ^ (cell.accumulation > 1)) == (sort // 2) % 2
    and ((cell.beta > 0) ^ (cell.accumulation > 1) ^ (cell.iterations > 1) ^ (cell.level == "sequence")) == sort % 2
]
PLACES = [
    pytest.param(cell, backend, id=f"{cell}-{backend}", marks=[] if cell in CORE else [pytest.mark.slow])
    for cell in MATRIX
    for backend in BACKENDS
]


@pytest.fixture(scope="module")
def setting(tiny_model: Path) -> Iterator[Setting]:
    with small_work():
        yield Setting(tiny_model)


Plain = Callable[..., Course]


@pytest.fixture(scope="module")
def plain(setting: Setting) -> Plain:
    """TRL's own course on the batch of these traits, run once for all backends."""

    @cache
    def run(*overrides: str, **traits: Any) -> Course:
        return setting.run(PLAIN, setting.batch(**traits), *overrides)

    return run


def refused(setting: Setting, backend: str, *overrides: str) -> bool:
    data = setting.config(backend, *overrides).model_dump(mode="json")
    return any(problem.field == "memory.loss_backend" for problem in rules.inspect(data).problems)


def assert_same(ours: Course, theirs: Course, steps: int) -> None:
    assert len(ours.losses) == len(ours.gradients) == len(theirs.losses) == len(theirs.gradients) == steps
    for step in range(steps):
        assert ours.losses[step] == pytest.approx(theirs.losses[step], rel=1e-5, abs=1e-5)
        assert norm(theirs.gradients[step]) > 1e-3
        assert difference(ours.gradients[step], theirs.gradients[step]) < 1e-4


@pytest.mark.parametrize(("cell", "backend"), PLACES)
def test_matrix(setting: Setting, plain: Plain, cell: Cell, backend: str) -> None:
    cannot = backend == "liger" and cell.liger_cannot()
    assert refused(setting, backend, *cell.overrides()) is cannot
    if not cannot:
        ours = setting.run(backend, setting.batch(**cell.traits()), *cell.overrides())
        assert_same(ours, plain(*cell.overrides(), **cell.traits()), cell.iterations)


def test_the_core_has_all_pairs_of_values() -> None:
    axes = range(len(Cell._fields))
    for first, second in itertools.combinations(axes, 2):
        assert {(cell[first], cell[second]) for cell in CORE} == {(cell[first], cell[second]) for cell in MATRIX}
    allowed = {cell.loss_type for cell in CORE if not cell.liger_cannot()}
    assert allowed == set(LOSS_TYPES)


# --- settings beyond the matrix: each also changes TRL's own loss, so that it is seen to act ---

OPTIONS = {
    "delta": ["algorithm.delta=1.3"],
    "epsilon": ["algorithm.epsilon=0.05"],
    "epsilon_high": ["algorithm.epsilon_high=0.5"],
    "kl_as_it_is": ["algorithm.beta=0.04", "algorithm.extra={use_bias_correction_kl: false}"],
    "kl_as_it_is_per_sequence": [
        "algorithm.beta=0.04", "algorithm.importance_sampling_level=sequence",
        "algorithm.extra={use_bias_correction_kl: false}",
    ],
    "cispo_bound": ["algorithm.loss_type=cispo", "algorithm.epsilon_high=1.2"],
    "sapo_temperatures": [
        "algorithm.loss_type=sapo", "algorithm.extra={sapo_temperature_pos: 0.5, sapo_temperature_neg: 2.0}",
    ],
    "vespo_shape": [
        "algorithm.loss_type=vespo",
        "algorithm.extra={vespo_k_pos: 1.0, vespo_lambda_pos: 2.0, vespo_k_neg: 2.0, vespo_lambda_neg: 1.5}",
    ],
    "dr_grpo_length": ["algorithm.loss_type=dr_grpo", "algorithm.max_completion_length=11"],
}  # fmt: skip
BASES = ("algorithm.loss_type", "algorithm.beta", "algorithm.importance", "memory.")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", OPTIONS)
def test_options(setting: Setting, plain: Plain, backend: str, name: str) -> None:
    options = [*OPTIONS[name], "memory.micro_batch=4"]
    theirs = plain(*options, reference=True)
    without = plain(*[option for option in options if option.startswith(BASES)], reference=True)
    assert theirs.loss(0) != pytest.approx(without.loss(0), rel=1e-3)
    assert not refused(setting, backend, *options)
    assert_same(setting.run(backend, setting.batch(reference=True), *options), theirs, 1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("temperature", [0.7, 1.5])
def test_temperature(setting: Setting, plain: Plain, backend: str, temperature: float) -> None:
    """Log-probs are those of the distribution that was sampled from."""
    options, traits = ["algorithm.beta=0.04", "memory.micro_batch=4"], {"reference": True, "temperature": temperature}
    scaled = [*options, f"algorithm.temperature={temperature}"]
    theirs = plain(*scaled, **traits)
    assert theirs.loss(0) != pytest.approx(plain(*options, **traits).loss(0), rel=1e-3)
    assert_same(setting.run(backend, setting.batch(**traits), *scaled), theirs, 1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", LEVELS)
@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_samplers_ratio(setting: Setting, plain: Plain, backend: str, shape: str, loss_type: str) -> None:
    """vLLM's importance-sampling ratio, one a token or one a sequence."""
    options = [*by_its_level(loss_type), "memory.micro_batch=4"]
    engine = ["rollout.engine=vllm_colocate", f"rollout.importance_sampling_mode={shape}_truncate"]
    cannot = backend == "liger" and loss_type == "luspo"
    assert refused(setting, backend, *options, *engine) is cannot
    if not cannot:
        theirs = plain(*options, ratio=shape)
        assert theirs.loss(0) != pytest.approx(plain(*options).loss(0), rel=1e-4)
        assert_same(setting.run(backend, setting.batch(ratio=shape), *options), theirs, 1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_completions_that_the_mask_takes_out(setting: Setting, plain: Plain, backend: str, loss_type: str) -> None:
    """Some, and with micro-batches of two also all of one micro-batch."""
    options, traits = [*by_its_level(loss_type), "memory.micro_batch=2"], {"truncated": (0, 2, 3, 4, 7)}
    theirs = plain(*options, **traits)
    assert 0.0 in theirs.losses[0]
    assert_same(setting.run(backend, setting.batch(**traits), *options), theirs, 1)


def by_its_level(loss_type: str) -> list[str]:
    """Luspo is one of sequences; the others know the ratio per token."""
    level = "sequence" if loss_type == "luspo" else "token"
    return [f"algorithm.loss_type={loss_type}", f"algorithm.importance_sampling_level={level}"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loss_type", ["dapo", "grpo"])
def test_a_generation_batch_of_two_optimizer_steps(
    setting: Setting, plain: Plain, backend: str, loss_type: str
) -> None:
    options = [
        f"algorithm.loss_type={loss_type}", "algorithm.prompts_per_step=2", "algorithm.steps=2",
        "memory.micro_batch=2", "algorithm.extra={steps_per_generation: 8}",
    ]  # fmt: skip
    theirs = plain(*options, prompts=4)
    assert [len(losses) for losses in theirs.losses] == [4, 4]
    assert_same(setting.run(backend, setting.batch(4), *options), theirs, 2)


# --- the model: adapters, checkpointing, output layers ---


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("checkpointing", ["false", "true"])
@pytest.mark.parametrize("adapter", ["none", "lora"])
def test_adapters_and_checkpointing(
    setting: Setting, plain: Plain, backend: str, adapter: str, checkpointing: str
) -> None:
    options = [
        "algorithm.beta=0.04", "algorithm.num_iterations=3", "algorithm.steps=3", "memory.micro_batch=4",
        f"memory.adapter={adapter}", "memory.lora_rank=4", f"memory.gradient_checkpointing={checkpointing}",
    ]  # fmt: skip
    ours = setting.run(backend, setting.batch(reference=True), *options)
    assert_same(ours, plain(*options, reference=True), 3)
    assert all(("lora" in name) is (adapter == "lora") for name in ours.gradients[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_reference_of_lora_is_the_model_without_its_adapter(setting: Setting, backend: str) -> None:
    options = ["algorithm.beta=0.04", "memory.adapter=lora", "algorithm.steps=3", "algorithm.learning_rate=1"]
    trainer = setting.sampling_trainer(backend, [[1, 0, 0, 1], [0, 1, 1, 0]], *options)
    score, batches = trainer._generate_and_score_completions, []

    def kept(inputs: Any) -> Batch:
        batches.append(score(inputs))
        return batches[-1]

    trainer._generate_and_score_completions = kept
    course = trained(trainer)
    assert len(batches) == 3
    for batch in batches:
        mask = batch["completion_mask"].bool()
        base = setting.logps_of(batch)
        assert batch["ref_per_token_logps"][mask].tolist() == pytest.approx(base[mask].tolist(), abs=1e-5)
    kl = [logs["policy/kl"] for logs in course.recorded]
    assert kl[0] == pytest.approx(0, abs=1e-6)
    assert kl[2] > kl[1] > 1e-5


def _tied() -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(Qwen3Config(**_small(head_dim=8), tie_word_embeddings=True))


def _with_bias() -> Any:
    from transformers import PhiConfig, PhiForCausalLM

    return PhiForCausalLM(PhiConfig(**_small()))


def _divided_logits() -> Any:
    from transformers import GraniteConfig, GraniteForCausalLM

    return GraniteForCausalLM(GraniteConfig(**_small(), logits_scaling=4.0))


def _scaled_logits() -> Any:
    from transformers import CohereConfig, CohereForCausalLM

    return CohereForCausalLM(CohereConfig(**_small(), logit_scale=0.25))


def _capped_logits() -> Any:
    from transformers import Gemma2Config, Gemma2ForCausalLM

    return Gemma2ForCausalLM(Gemma2Config(**_small(head_dim=8), final_logit_softcapping=2.0))


def _mixture() -> Any:
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    small = _small(head_dim=8, moe_intermediate_size=16)
    return Qwen3MoeForCausalLM(
        Qwen3MoeConfig(
            **small, num_experts=4, num_experts_per_tok=2, router_aux_loss_coef=0.1, output_router_logits=True
        )
    )


def _small(**more: int) -> dict[str, Any]:
    return {
        "vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        **more,
    }  # fmt: skip


def _model(make: Any) -> Any:
    torch.manual_seed(3)
    model = make()
    for name, parameter in model.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", [_tied, _with_bias, _divided_logits, _scaled_logits, _capped_logits, _mixture])
def test_output_layers(setting: Setting, backend: str, make: Any) -> None:
    """Tied to the embeddings, with a bias, with scaled logits; capped ones and router losses Liger does not have."""
    model, batch = _model(make), setting.batch()
    if backend == "liger" and make in (_capped_logits, _mixture):
        with pytest.raises((ModelError, ConfigError), match=r"use memory\.loss_backend=trl"):
            setting.trainer(backend, batch, model=model)
        return
    theirs = setting.run(PLAIN, batch, "memory.micro_batch=4", model=model)
    assert_same(setting.run(backend, batch, "memory.micro_batch=4", model=model), theirs, 1)


# --- how Liger is called ---


@pytest.mark.parametrize("chunk", [1, 2, 3, 8, None])
@pytest.mark.parametrize("loss_type", ["dapo", "grpo", "bnpo"])
def test_the_chunk_size_changes_nothing(setting: Setting, plain: Plain, loss_type: str, chunk: int | None) -> None:
    cell = Cell(loss_type, 0.04, 1, 1, "token")
    chunks = [] if chunk is None else [f"memory.chunk_size={chunk}"]
    ours = setting.run("liger", setting.batch(**cell.traits()), *cell.overrides(), *chunks)
    assert_same(ours, plain(*cell.overrides(), **cell.traits()), 1)


@pytest.fixture
def heads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the hidden states that Liger's own loss is called with."""
    seen: list[tuple[int, ...]] = []
    forward = LigerFusedLinearGRPOLoss.forward

    def watched(self: Any, hidden: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        seen.append(tuple(hidden.shape))
        return forward(self, hidden, *args, **kwargs)

    monkeypatch.setattr(LigerFusedLinearGRPOLoss, "forward", watched)
    return seen


@pytest.mark.parametrize(("backend", "calls"), [("liger", 4), ("trl", 0), ("full", 0)])
def test_liger_itself_runs(setting: Setting, heads: list[tuple[int, ...]], backend: str, calls: int) -> None:
    setting.run(backend, setting.batch(), "memory.micro_batch=2")
    assert len(heads) == calls


@pytest.mark.parametrize(
    ("loss_type", "level", "shape"),
    [
        ("dapo", "token", (35, 1, 32)),  # each real token, without padding
        ("dr_grpo", "token", (35, 1, 32)),
        ("dapo", "sequence", (8, 7, 32)),
        ("grpo", "token", (8, 7, 32)),
        ("vespo", "token", (8, 7, 32)),
    ],
)
def test_padding_is_left_out_where_a_loss_is_a_sum_over_tokens(
    setting: Setting, heads: list[tuple[int, ...]], loss_type: str, level: str, shape: tuple[int, ...]
) -> None:
    setting.run(
        "liger",
        setting.batch(),
        f"algorithm.loss_type={loss_type}",
        f"algorithm.importance_sampling_level={level}",
    )
    assert heads == [shape]


# --- the metrics ---


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_metrics_are_those_of_trl(setting: Setting, plain: Plain, loss_type: str, level: str) -> None:
    """With one micro-batch a step; with more, TRL takes the mean of their means, and ours are over all tokens."""
    cell = Cell(loss_type, 0.04, 1, 2, level)
    beta_or_not = cell._replace(beta=0.0) if loss_type == "luspo" and level == "sequence" else cell
    overrides, traits = beta_or_not.overrides(), beta_or_not.traits()
    backends = [name for name in BACKENDS if not (name == "liger" and beta_or_not.liger_cannot())]
    courses = [setting.run(name, setting.batch(**traits), *overrides) for name in backends]
    theirs = plain(*overrides, **traits)
    of_its_own = {
        "cispo": {"policy/clip_high": "cispo_clip_ratio"},
        "vespo": {"policy/vespo_weight_mean": "vespo/phi_seq_mean"},
    }
    names = TRL_NAMES | of_its_own.get(loss_type, {})
    for step in range(2):
        logs = theirs.logs[step]
        expected = {name: logs[other] for name, other in names.items() if other in logs}
        assert ("policy/clip_low" in expected, "policy/clip_high" in expected, "policy/kl" in expected) == (
            loss_type in CLIPPED, loss_type in (*CLIPPED, "cispo"), beta_or_not.beta > 0,
        )  # fmt: skip
        for course in courses:
            policy = {name: value for name, value in course.recorded[step].items() if name.startswith("policy/")}
            assert {name: policy[name] for name in expected} == pytest.approx(expected, abs=1e-5)
            assert policy == pytest.approx({name: courses[0].recorded[step][name] for name in policy}, abs=1e-5)
            assert policy.keys() == expected.keys() | {"policy/ratio_mean", "policy/completions", "policy/tokens"}
            assert (policy["policy/completions"], policy["policy/tokens"]) == (8, 35)
    if loss_type in CLIPPED:
        assert theirs.logs[0]["clip_ratio/low_mean"] > 0
        assert theirs.logs[0]["clip_ratio/high_mean"] > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_metrics_do_not_depend_on_the_micro_batch(setting: Setting, plain: Plain, backend: str) -> None:
    logs = plain("algorithm.beta=0.04", reference=True).logs[0]
    recorded = setting.run(
        backend, setting.batch(reference=True), "algorithm.beta=0.04", "memory.micro_batch=2"
    ).recorded[0]
    assert {name: recorded[name] for name in TRL_NAMES} == pytest.approx(
        {name: logs[other] for name, other in TRL_NAMES.items()}, abs=1e-5
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_mean_ratio(setting: Setting, backend: str) -> None:
    """1 on the policy that sampled; with frozen old log-probs the mean of exp(new - old) over all tokens."""
    batch = setting.batch()
    mask = batch["completion_mask"].bool()
    ratio = (setting.logps_of(batch) - batch["old_per_token_logps"]).exp()[mask].mean().item()
    recorded = setting.run(backend, batch, "memory.micro_batch=2").recorded[0]
    assert recorded["policy/ratio_mean"] == pytest.approx(ratio, abs=1e-5)
    del batch["old_per_token_logps"]
    assert setting.run(backend, batch).recorded[0]["policy/ratio_mean"] == pytest.approx(1, abs=1e-6)
