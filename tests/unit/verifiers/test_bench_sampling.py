"""Real samples of a real, tiny model: made in a process of its own, kept under a key, gone without a trace if ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from bench_rows import LONG, children, config
from studio_process import ROOT, wait_for

from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError, ModelError, StoreError
from grpo_studio.settings import Settings
from grpo_studio.verifiers.bench import read_bench_rows
from grpo_studio.verifiers.bench.request import SamplingRequest
from grpo_studio.verifiers.bench.sample_cache import read_groups, samples_file, write_groups
from grpo_studio.verifiers.bench.sampling import cached_groups, start_sampling


def sampled(request: SamplingRequest, settings: Settings) -> tuple:
    job = start_sampling(request, settings)
    state = job.wait(120)
    assert state.state == "done", state
    return job.groups()


@pytest.fixture(scope="module")
def shared_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return replace(Settings.from_env(), cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def request_(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> SamplingRequest:
    """Of more prompts than the data set has: three that differ."""
    rows = tmp_path_factory.mktemp("data") / "rows.jsonl"
    rows.write_text(
        "\n".join(
            json.dumps({"prompt": text, "answer": text, "about": {"value": 1.5}}) for text in ("1", "2", "2", "3")
        )
    )
    base = config(tiny_model)
    dataset = base.dataset.model_copy(update={"source": str(rows), "held_out": 0})
    return SamplingRequest.of(base.model_copy(update={"dataset": dataset}), prompts=5, per_prompt=4)


@pytest.fixture(scope="module")
def groups(request_: SamplingRequest, shared_settings: Settings) -> tuple:
    return sampled(request_, shared_settings)


def test_each_prompt_gets_its_completions(groups: tuple) -> None:
    assert [len(group.completions) for group in groups] == [4, 4, 4]
    assert sorted(group.sample.question for group in groups) == ["What is 1?", "What is 2?", "What is 3?"]
    assert groups[0].sample.messages == ({"role": "user", "content": groups[0].sample.question},)
    assert [group.sample.columns["about"] for group in groups] == [{"value": 1.5}] * 3
    assert all(1 <= count <= 6 for group in groups for count in group.tokens)
    assert len({text for group in groups for text in group.completions}) > 1, "they are sampled, not greedy"


def test_they_are_kept_and_nothing_is_left_beside_them(
    groups: tuple, request_: SamplingRequest, shared_settings: Settings
) -> None:
    job = start_sampling(request_, shared_settings)
    state = job.poll()
    assert (state.state, state.done, state.wanted) == ("done", 12, 12)
    assert job.groups() == groups == cached_groups(request_, shared_settings)
    assert [path.name for path in (shared_settings.cache / "samples").iterdir()] == [f"{request_.key()}.json"]
    assert children() == []


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"groups": []}', b'{"groups": [{"sample": 1}]}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_file_counts_as_none(damage: bytes, request_: SamplingRequest, tmp_path: Path) -> None:
    path = samples_file(request_, tmp_path)
    path.parent.mkdir()
    path.write_bytes(damage)
    assert read_groups(request_, tmp_path) is None


def test_a_damaged_file_is_made_anew_with_the_same_samples(
    groups: tuple, request_: SamplingRequest, shared_settings: Settings
) -> None:
    path = samples_file(request_, shared_settings.cache)
    document = json.loads(path.read_text())
    document["groups"][1]["completions"].pop()
    path.write_text(json.dumps(document))
    assert cached_groups(request_, shared_settings) is None
    assert sampled(request_, shared_settings) == groups, "one seed, one machine: the same samples"


def test_the_key_changes_with_what_changes_the_samples(tiny_model: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "a", "answer": 1}\n')
    base = config(tiny_model)
    local = base.model_copy(update={"dataset": base.dataset.model_copy(update={"source": str(rows)})})
    requests = [
        SamplingRequest.of(base, 3, 4),
        SamplingRequest.of(base, 4, 4),
        SamplingRequest.of(base, 3, 5),
        *(SamplingRequest.of(config(tiny_model, **{name: value}), 3, 4) for name, value in (
            ("seed", 2), ("temperature", 0.5), ("top_p", 0.5), ("top_k", 3), ("min_p", 0.1), ("tokens", 7),
            ("extra", {"repetition_penalty": 1.2}), ("extra", {"chat_template_kwargs": {"enable_thinking": False}}),
        )),
        SamplingRequest.of(config("owner/name"), 3, 4),
        SamplingRequest.of(base.model_copy(update={"dataset": base.dataset.model_copy(update={"system_prompt": "x"})}), 3, 4),
        SamplingRequest.of(base.model_copy(update={"model": base.model.model_copy(update={"revision": "x"})}), 3, 4),
        SamplingRequest.of(local, 3, 4),
    ]  # fmt: skip
    before = requests[-1].key()
    assert len({request.key() for request in requests}) == len(requests)
    rows.write_text('{"prompt": "ab", "answer": 1}\n')
    assert requests[-1].key() != before
    same = SamplingRequest.of(config(tiny_model, steps=7, learning_rate=1e-3), 3, 4)
    assert same.key() == requests[0].key(), "training settings change no sample"


@pytest.mark.parametrize(("prompts", "per_prompt"), [(0, 4), (-1, 4), (10_001, 4), (4, 1), (4, 0), (4, 4097)])
def test_numbers_out_of_bounds_are_refused(prompts: int, per_prompt: int) -> None:
    with pytest.raises(ConfigError, match="give a number from"):
        SamplingRequest.of(RunConfig(), prompts, per_prompt)


def test_a_model_that_is_not_there_is_told_before_anything_starts(settings: Settings) -> None:
    with pytest.raises(ModelError, match="there is no folder"):
        start_sampling(SamplingRequest.of(config("/no/such/model"), 2, 2), settings)
    assert children() == []


@pytest.mark.parametrize(("spoilt", "words"), [("tokenizer.json", "tokenizer"), ("model.safetensors", "cannot load")])
def test_a_damaged_model_is_one_line(tiny_model: Path, tmp_path: Path, spoilt: str, words: str) -> None:
    from grpo_studio.training.sampler import Sampler

    broken = tmp_path / "broken"
    shutil.copytree(tiny_model, broken)
    (broken / spoilt).write_bytes(b"nothing")
    with pytest.raises(ModelError, match=words) as caught:
        Sampler(config(broken), tmp_path, lambda message: None)
    assert "\n" not in str(caught.value)


def test_wrong_data_is_one_line(tiny_model: Path, settings: Settings) -> None:
    base = config(tiny_model)
    wrong = base.model_copy(update={"dataset": base.dataset.model_copy(update={"source": "/no/rows.jsonl"})})
    state = start_sampling(SamplingRequest.of(wrong, 2, 2), settings).wait(120)
    assert (state.state, "there is no file" in state.message) == ("failed", True)


def test_a_cache_that_cannot_be_written_is_one_line(groups: tuple, request_: SamplingRequest, tmp_path: Path) -> None:
    (tmp_path / "samples").write_text("in the way")
    with pytest.raises(StoreError, match="cannot keep the samples"):
        write_groups(request_, tmp_path, [])


def test_a_cancelled_job_leaves_nothing(tiny_model: Path, settings: Settings) -> None:
    job = start_sampling(SamplingRequest.of(config(tiny_model, tokens=LONG), 40, 40), settings)
    wait_for(lambda: bool(children()), what="the sampling process")
    job.cancel()
    assert job.poll().state == "cancelled"
    wait_for(lambda: not children(), what="the end of the sampling process")
    assert job.groups() == ()
    assert not (settings.cache / "samples").exists()
    job.cancel()
    assert job.poll().state == "cancelled"


def test_a_killed_process_is_told_with_its_signal(tiny_model: Path, settings: Settings) -> None:
    job = start_sampling(SamplingRequest.of(config(tiny_model, tokens=LONG), 40, 40), settings)
    wait_for(lambda: bool(children()), what="the sampling process")
    children()[0].kill()
    state = job.wait(30)
    assert state.state == "failed"
    assert "signal 9" in state.message


def test_it_dies_with_its_parent_even_by_signal_9(tiny_model: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from grpo_studio.settings import Settings; from grpo_studio.config import RunConfig\n"
        "from grpo_studio.verifiers.bench.request import SamplingRequest\n"
        "from grpo_studio.verifiers.bench.sampling import start_sampling\n"
        "config = RunConfig.model_validate_json(sys.argv[1])\n"
        "start_sampling(SamplingRequest.of(config, 40, 40), Settings.from_env()).wait()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GRPO_STUDIO_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", program, config(tiny_model, tokens=LONG).model_dump_json()]
    parent = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: bool(children(parent.pid)), what="the sampling process")
        child = children(parent.pid)[0]
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, what="the end of the child")


def test_a_batch_that_does_not_fit_is_halved_until_it_does(tiny_model: Path, tmp_path: Path) -> None:
    import torch

    from grpo_studio.training.sampler import Sampler

    sampler = Sampler(config(tiny_model), tmp_path, lambda message: None)
    real, room = sampler._model.generate, 3

    def on_a_small_device(**inputs: torch.Tensor) -> torch.Tensor:
        if len(inputs["input_ids"]) > room:
            raise torch.cuda.OutOfMemoryError("out of memory")
        return real(**inputs)

    sampler._model.generate = on_a_small_device
    samples = read_bench_rows(RunConfig().dataset).samples[:10]
    assert len(sampler.complete(samples)) == sampler.rows == 2
    room = 0
    with pytest.raises(ModelError, match="too little memory"):
        sampler.complete(samples)
