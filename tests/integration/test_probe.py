"""`probe`: loss backends on one frozen batch, by the real trainer; the sweep, and memory that really runs out."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from studio_process import ROOT

from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.memory.probe_process import Answer, ask
from grpo_studio.memory.probe_settings import of_backend
from grpo_studio.settings import Settings

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # as in a child on a CPU, and before torch is imported
LETTERS = "rewards=[{verifier: regex_match, params: {pattern: '[a-m]', match: search}}]"


@dataclass
class Heard:
    """Stands in for the pipe of a child: keeps what it is told."""

    facts: dict[str, Any] = field(default_factory=dict)

    def tell(self, what: str) -> None:
        assert what

    def found(self, facts: Mapping[str, Any]) -> None:
        self.facts |= facts


@dataclass
class Frozen:
    """A batch that the rollout's child froze; backends run on it in this process by the mains of their children."""

    folder: Path
    config: RunConfig
    rollout: dict[str, Any]

    @classmethod
    def of(cls, folder: Path, model: Path, *overrides: str) -> Frozen:
        from grpo_studio.training.probe_rollout_child import main

        base = {
            "model": {"id": str(model), "dtype": "float32"},
            "dataset": {"held_out": 0, "prompt_template": "{prompt}"},
            "algorithm": {"prompts_per_step": 4, "group_size": 8, "max_completion_length": 12, "steps": 1},
            "memory": {"micro_batch": 16, "skip_dead_groups": False},
        }
        config = RunConfig.model_validate(with_overrides(base, [LETTERS, *overrides]))
        folder.mkdir(exist_ok=True)
        heard = Heard()
        main(cls(folder, config, {}).spec(config), heard)  # type: ignore[arg-type]
        return cls(folder, config, heard.facts)

    def spec(self, config: RunConfig, **more: Any) -> dict[str, Any]:
        plain, batch = config.model_dump(mode="json"), str(self.folder / "batch.safetensors")
        return {"config": plain, "folder": str(self.folder), "batch": batch, **more}

    def backend(self, name: str, reference: bool = False) -> dict[str, Any]:
        from grpo_studio.training.probe_backend_child import main

        heard, gradient = Heard(), str(self.folder / "gradient.bin")
        source = self.rollout["source"]
        spec = self.spec(of_backend(self.config, name), source=source, gradient=gradient, reference=reference)
        main(spec, heard)  # type: ignore[arg-type]
        return heard.facts


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRPO_STUDIO_HOME", str(home))
        patch.setenv("GRPO_STUDIO_CACHE", str(home / "cache"))
        Settings.from_env().require_writable()
    return home


@pytest.fixture(scope="module")
def frozen(home: Path, tiny_model: Path) -> Frozen:
    return Frozen.of(home / "frozen", tiny_model)


@pytest.fixture(scope="module")
def found(frozen: Frozen) -> dict[str, dict[str, Any]]:
    return {name: frozen.backend(name, reference=name == "full") for name in ("full", "trl", "liger")}


def test_the_batch_is_what_a_run_would_train_on(frozen: Frozen) -> None:
    batch = frozen.rollout["batch"]
    assert (batch["prompts"], batch["group_size"]) == (4, 8)
    assert batch["mixed"] + batch["all_good"] + batch["all_bad"] == pytest.approx(1)
    assert 0 < batch["completion_tokens_mean"] <= frozen.rollout["completion_tokens"] <= 12
    assert 0 < batch["prompt_tokens_mean"] <= frozen.rollout["prompt_tokens"]


def test_backends_agree_on_loss_and_gradient(found: dict[str, dict[str, Any]]) -> None:
    full = found["full"]
    assert full["grad_norm"] > 0
    for name in ("trl", "liger"):
        assert found[name]["loss"] == pytest.approx(full["loss"], abs=1e-5)
        assert found[name]["grad_norm"] == pytest.approx(full["grad_norm"], rel=1e-5)
        assert 0 < found[name]["grad_relative_difference"] < 1e-5, name
    assert full["grad_relative_difference"] == 0


def test_each_phase_has_a_peak_above_what_is_held(found: dict[str, dict[str, Any]]) -> None:
    for one in found.values():
        held, peaks = one["held"], one["peak_by_phase"]
        assert set(peaks) == {"loss", "optimizer"}
        assert held["weights"] == held["gradients"] + 32  # the rotary frequencies are not trained
        assert held["optimizer"] == pytest.approx(2 * held["gradients"], rel=0.01)
        assert peaks["optimizer"] >= held["weights"] + held["gradients"] + held["optimizer"]
        assert peaks["loss"] > held["weights"] + held["optimizer"]
        assert one["peak_bytes"] == max(peaks.values())
    assert found["liger"]["peak_bytes"] < found["full"]["peak_bytes"]


def test_without_any_advantage_a_fixed_pattern_stands_in_and_is_told(home: Path, tiny_model: Path) -> None:
    never = "rewards=[{verifier: regex_match, params: {pattern: 'never written', match: search}}]"
    dead = Frozen.of(home / "dead", tiny_model, never)
    assert dead.rollout["batch"]["all_bad"] == 1
    assert [note for note in dead.rollout["notes"] if "replaced by a fixed pattern" in note]
    full, liger = dead.backend("full", reference=True), dead.backend("liger")
    assert full["grad_norm"] > 0
    assert liger["grad_relative_difference"] < 1e-5


def test_completions_that_are_all_masked_are_used_whole_and_that_is_told(home: Path, tiny_model: Path) -> None:
    masked = Frozen.of(
        home / "masked", tiny_model, "algorithm.mask_truncated=true", "algorithm.max_completion_length=2"
    )
    assert masked.rollout["batch"]["truncated"] == 1
    assert [note for note in masked.rollout["notes"] if "all sampled completions were cut off" in note]
    full, liger = masked.backend("full", reference=True), masked.backend("liger")
    assert full["grad_norm"] > 0
    assert liger["grad_relative_difference"] < 1e-5


def test_a_reference_and_old_log_probs_are_a_phase_of_their_own(home: Path, tiny_model: Path) -> None:
    more = ("algorithm.beta=0.1", "algorithm.num_iterations=2", "memory.adapter=lora", "memory.lora_rank=2")
    lora = Frozen.of(home / "lora", tiny_model, *more)
    full, liger = lora.backend("full", reference=True), lora.backend("liger")
    assert liger["loss"] == pytest.approx(full["loss"], abs=1e-5)
    assert liger["grad_relative_difference"] < 1e-5
    assert set(full["peak_by_phase"]) == {"reference", "loss", "optimizer"}
    assert full["held"]["gradients"] < full["held"]["weights"] / 4
    assert full["peak_by_phase"]["loss"] > full["peak_by_phase"]["reference"]


def swept(frozen: Frozen, axis: str, to: int | None, bytes_more: int | None = None, **more: Any) -> tuple[Answer, Any]:
    """A line of a sweep in a process of its own, which may take so many bytes more than when it has loaded."""
    config = of_backend(frozen.config, "full")
    asked: dict[str, Any] = {"axis": axis, "to": to, "limit": None, "seconds": None} | more
    points: list[dict[str, Any]] = []

    def take(said: dict[str, Any]) -> None:
        if "point" in said:
            points.append(said["point"])
        if bytes_more is not None and said.get("trying") == 2:
            (child,) = (one for one in psutil.Process().children() if "probe_sweep_child" in " ".join(one.cmdline()))
            resource.prlimit(child.pid, resource.RLIMIT_AS, (child.memory_info().vms + bytes_more, -1))

    environment = os.environ | {"TORCHDYNAMO_DISABLE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    spec = frozen.spec(config, source=frozen.rollout["source"], **asked)
    answer = ask("grpo_studio.training.probe_sweep_child", spec, frozen.folder, environment, lambda what: None, take)
    return answer, points


@pytest.mark.slow
def test_a_sweep_ends_where_memory_does(frozen: Frozen) -> None:
    answer, points = swept(frozen, "completions", None, bytes_more=150 << 20)
    assert answer.error is None, answer.error
    ended = answer.found["ended"]
    fitted = [point["x"] for point in points]
    assert ended["ended_by"] == "memory"
    assert "allocate" in ended["reason"]
    assert fitted[:2] == [1, 2]
    assert fitted == sorted(fitted)
    assert fitted[-1] < ended["end_x"] == 2 * max(x for x in fitted if x & (x - 1) == 0)
    peaks = [point["peak_bytes"] for point in points]
    assert peaks == sorted(peaks)


@pytest.mark.slow
def test_a_sweep_ends_where_it_was_asked_to_where_the_context_does_and_where_nothing_more_is_free(
    frozen: Frozen,
) -> None:
    answer, points = swept(frozen, "completions", 16)  # two such passes are the step that was probed
    assert points[-1]["peak_bytes"] == pytest.approx(frozen.backend("full")["peak_bytes"], rel=0.02)
    answer, points = swept(frozen, "tokens", 48)
    assert answer.found["ended"] == {"ended_by": "asked", "end_x": 48, "reason": None}
    assert [point["x"] for point in points] == [32, 48]
    answer, points = swept(frozen, "tokens", None)
    room = 512 - frozen.rollout["prompt_tokens"]
    assert answer.found["ended"] == {
        "ended_by": "limit",
        "end_x": room,
        "reason": "the model's context ends at 512 tokens",
    }
    assert points[-1]["x"] == room
    answer, points = swept(frozen, "completions", None, limit=3_000_000)
    assert answer.found["ended"]["ended_by"] == "limit"
    assert points[-1]["peak_bytes"] < 3_000_000 < 2 * points[-1]["peak_bytes"]
