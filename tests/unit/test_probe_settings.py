"""What a probe runs with: chosen backends, one process, each backend's own settings."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.engine_settings import MemorySettings
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.memory.probe_settings import (
    BACKENDS,
    of_backend,
    of_one_process,
    parse_backends,
    parse_dtypes,
    reference_first,
)
from grpo_studio.rules import inspect


def config(**sections: Any) -> RunConfig:
    return RunConfig.model_validate(sections)


def test_all_backends_of_the_settings_can_be_probed() -> None:
    assert set(BACKENDS) == set(get_args(MemorySettings.model_fields["loss_backend"].annotation))


@pytest.mark.parametrize(("text", "names"), [("full", ("full",)), (" liger , full,", ("liger", "full"))])
def test_backends_are_named_by_commas(text: str, names: tuple[str, ...]) -> None:
    assert parse_backends(text) == names


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "--backends names nothing; give some of full,trl,liger"),
        (" , ", "--backends names nothing; give some of full,trl,liger"),
        ("full,trt", "--backends: trt is not known; give some of full,trl,liger, each once"),
        ("full,full", "--backends: full comes twice; give some of full,trl,liger, each once"),
        ("FULL", "--backends: FULL is not known; give some of full,trl,liger, each once"),
        ("fu\x1b[31mll", r"--backends: fu\x1b[31mll is not known; give some of full,trl,liger, each once"),
    ],
    ids=["nothing", "commas", "unknown", "twice", "case", "escapes"],
)
def test_other_names_are_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_backends(text)
    assert str(refused.value) == told


def test_formats_are_refused_by_their_option() -> None:
    assert parse_dtypes("bfloat16,float32") == ("bfloat16", "float32")
    with pytest.raises(UsageError, match="--dtypes: float16 is not known"):
        parse_dtypes("float16")


@pytest.mark.parametrize(
    ("chosen", "order"),
    [
        (("liger", "full", "trl"), ["full", "liger", "trl"]),
        (("trl", "liger"), ["trl", "liger"]),
        (("full",), ["full"]),
    ],
    ids=["full-first", "without-full", "alone"],
)
def test_the_reference_runs_first(chosen: tuple[str, ...], order: list[str]) -> None:
    assert reference_first(chosen) == order


def test_one_process_of_many_is_probed_on_its_share() -> None:
    run = config(
        algorithm={"prompts_per_step": 8, "group_size": 4},
        memory={"micro_batch": 8, "skip_dead_groups": True},
        scale={"processes": 4, "strategy": "fsdp"},
        rollout={"engine": "vllm_colocate"},
        report={"to": "tensorboard"},
    )
    probed, notes = of_one_process(run)
    assert (probed.algorithm.prompts_per_step, probed.memory.micro_batch, probed.gradient_accumulation()) == (2, 8, 1)
    assert (probed.scale.processes, probed.scale.strategy, probed.report.to) == (1, "none", "none")
    assert (probed.rollout.engine, probed.effective_skip_dead_groups()) == ("transformers", False)
    assert [note.partition(",")[0] for note in notes] == [
        "the run has 4 processes (fsdp); one of them is probed",
        "the batch was sampled by transformers",
    ]
    assert inspect(probed.model_dump(mode="json")).problems == []


def test_a_run_of_one_process_is_probed_as_it_is() -> None:
    run = config(algorithm={"prompts_per_step": 4, "group_size": 8})
    probed, notes = of_one_process(run)
    assert notes == []
    assert probed.completions_per_step == run.completions_per_step
    assert probed.memory.micro_batch == run.effective_micro_batch() == 16


def test_a_share_that_a_micro_batch_does_not_divide_gets_a_smaller_one() -> None:
    run = config(
        algorithm={"prompts_per_step": 2, "group_size": 3},
        memory={"micro_batch": 2},
        scale={"processes": 3, "strategy": "ddp"},
    )
    probed, _ = of_one_process(run)
    assert (probed.completions_per_step, probed.memory.micro_batch) == (3, 1)


def test_each_backend_keeps_all_but_what_is_ligers_own() -> None:
    run = config(memory={"loss_backend": "liger", "chunk_size": 2})
    full = of_backend(run, "full", "bfloat16")
    assert (full.memory.loss_backend, full.memory.chunk_size, full.model.dtype) == ("full", None, "bfloat16")
    assert of_backend(run, "liger").memory.chunk_size == 2
    assert inspect(full.model_dump(mode="json")).problems == []


def test_a_loss_that_a_backend_cannot_do_is_told_before_it_is_tried() -> None:
    run = config(algorithm={"loss_type": "luspo"}, memory={"loss_backend": "trl"})
    with pytest.raises(ConfigError, match="luspo"):
        of_backend(run, "liger")
