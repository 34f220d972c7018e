"""Held-out rows scored greedily and by samples, in the run and after it, and what two scorings have in common."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_model import make_tiny_model
from trained_here import Trained, trainer_of

from grpo_studio.checkpoints import find_checkpoint
from grpo_studio.commands import run as command
from grpo_studio.errors import CheckpointError, ModelError, UsageError
from grpo_studio.evaluate_command import evaluate
from grpo_studio.evaluation_passing import pass_rule
from grpo_studio.queries.evaluated import evaluated_rows, evaluations_of
from grpo_studio.settings import Settings
from grpo_studio.store.reader import RunReader

ROWS, SAMPLES = 5, 3
COMMON = (
    f"dataset.held_out={ROWS + 2}",
    f"evaluation.rows={ROWS}",
    "evaluation.every=1",
    "checkpoint.every=1",
    "rewards=[{verifier: regex_match, name: letter, params: {pattern: '[a-m]', match: search}},"
    " {verifier: length_range, name: short, weight: 0.5, params: {max_chars: 4}}]",
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("evaluated")
    return Settings(home, home / "runs", home / "cache")


@pytest.fixture(scope="module")
def runs(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Trained]:
    """The same run without samples and with them."""
    train = trainer_of(make_tiny_model(tmp_path_factory.mktemp("tiny") / "model"), settings)
    return train(*COMMON), train(*COMMON, f"evaluation.samples={SAMPLES}")


def rows_of(trained: Trained, split: str, step: int | None = None) -> list[tuple[Any, ...]]:
    with RunReader(trained.folder.database) as reader:
        return reader.rows(
            "SELECT g.step, g.prompt, g.answer, c.idx, c.text, c.reward, c.advantage FROM prompt_group g "
            "JOIN completion c ON c.group_id = g.id WHERE g.split = ? AND (? IS NULL OR g.step = ?) ORDER BY c.id",
            (split, step, step),
        )


def asked(run: str, **options: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"run": run, "checkpoint": "newest", "rows": None, "samples": None} | options)


def quiet(what: str, share: float) -> None:
    pass


def test_sampled_evaluation_leaves_training_as_it_was(runs: tuple[Trained, Trained]) -> None:
    without, with_samples = runs
    assert rows_of(without, "train") == rows_of(with_samples, "train")
    assert len(rows_of(without, "train")) == 16
    assert rows_of(without, "eval") == rows_of(with_samples, "eval")
    for name in ("optim/loss", "optim/grad_norm", "reward/mean", "eval/reward", "eval/letter/mean", "eval/passed"):
        assert without.metrics[name] == with_samples.metrics[name]
    assert rows_of(without, "eval_sampled") == []
    assert not [name for name in without.metrics if "pass@" in name or "sampled" in name]


def test_each_held_out_row_is_sampled_and_none_that_is_trained_on(runs: tuple[Trained, Trained]) -> None:
    trained = {row[1] for row in rows_of(runs[1], "train")}
    for step in (0, 1, 2):
        greedy, sampled = rows_of(runs[1], "eval", step), rows_of(runs[1], "eval_sampled", step)
        assert len(greedy) == ROWS
        assert [(row[1], row[2]) for row in sampled] == [(row[1], row[2]) for row in greedy for _ in range(SAMPLES)]
        assert not trained & {row[1] for row in sampled}
    texts = [row[4] for row in rows_of(runs[1], "eval_sampled", 0)]
    assert len(set(texts)) > ROWS, "samples of a row are drawn, not repeated"
    assert texts != [row[4] for row in rows_of(runs[1], "eval_sampled", 1)], "each step has luck of its own"


def test_metrics_of_samples_are_those_of_their_rows(runs: tuple[Trained, Trained]) -> None:
    metrics = runs[1].metrics
    rule = pass_rule(runs[1].folder.config())
    assert (rule.reward, rule.score) == ("letter", 1.0)
    first = evaluations_of(runs[1].folder)[0]
    rows = evaluated_rows(first, rule).rows
    samples = [row.sampled for row in rows if row.sampled is not None]
    assert [(one.count, one.judged) for one in samples] == [(SAMPLES, SAMPLES)] * ROWS
    assert metrics["eval/pass@1"][0] == pytest.approx(sum(one.passed for one in samples) / (ROWS * SAMPLES))
    assert metrics["eval/pass@3"][0] == pytest.approx(sum(one.passed > 0 for one in samples) / ROWS)
    assert metrics["eval/sampled/reward"][0] == pytest.approx(sum(one.reward or 0 for one in samples) / ROWS)
    assert metrics["eval/passed"][0] == sum(row.scores["letter"] == 1 for row in rows) / ROWS
    assert metrics["eval/abstained"][0] == metrics["eval/sampled/abstained"][0] == 0


def test_evaluating_a_checkpoint_later_gives_what_the_run_itself_saw(
    runs: tuple[Trained, Trained], settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs[1]
    found = [evaluate(asked(run.folder.run_id, checkpoint=name), settings, quiet) for name in ("1", "final")]
    for (document, _, code), step in zip(found, (1, 2), strict=True):
        assert (code, document["step"], document["rows"]) == (0, step, ROWS)
        assert document["scores"]["reward"]["before"]["value"] == pytest.approx(run.metrics["eval/reward"][step])
        later = next(one for one in evaluations_of(run.folder) if one.key == document["evaluation"])
        with RunReader(later.database) as reader:
            texts = [row[0] for row in reader.rows("SELECT text FROM completion ORDER BY id")]
        own = [row[4] for split in ("eval", "eval_sampled") for row in rows_of(run, split, step)]
        assert texts == own, "greedy and, by the same seed, sampled completions are those of the run"
    assert found[1][0]["comparison"]["before"]["key"] == "step-0"
    assert found[1][0]["comparison"]["rows"] == ROWS
    assert "difference" in "\n".join(found[1][1])
    assert list(run.folder.evaluations.glob("*")) == list(run.folder.evaluations.glob("*.db"))
    told = capsys.readouterr()
    assert "loading final" in told.err
    assert told.out == ""


def test_the_command_line_prints_one_document_and_asks_for_other_sizes(
    runs: tuple[Trained, Trained],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GRPO_STUDIO_HOME", str(settings.home))
    monkeypatch.setenv("GRPO_STUDIO_CACHE", str(settings.cache))
    run = runs[0]
    line = ["evaluate", "--json", "--checkpoint=base", "--rows=7", "--samples=2", "--", run.folder.run_id]
    assert command(line) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["checkpoint"], document["step"], document["rows"]) == ("base", 0, 7)
    assert (document["comparison"]["rows"], document["comparison"]["only_after"]) == (ROWS, 2)
    assert document["comparison"]["flips"]["gained"] == document["comparison"]["flips"]["lost"] == 0
    assert [row["k"] for row in document["scores"]["pass_at"]] == [1, 2]
    assert command(["evaluate", "--checkpoint", "7", run.folder.run_id]) == 1
    assert "checkpoint-7" in capsys.readouterr().err
    with pytest.raises(UsageError, match="--rows is 0"):
        evaluate(asked(run.folder.run_id, rows=0), settings, quiet)


def test_a_damaged_checkpoint_is_refused_and_leaves_no_evaluation(
    runs: tuple[Trained, Trained], settings: Settings
) -> None:
    folder = runs[0].folder
    before = {one.key for one in evaluations_of(folder)}
    weights = folder.checkpoints / "checkpoint-1" / "model.safetensors"
    whole = weights.read_bytes()
    try:
        weights.write_bytes(whole[:1000])
        with pytest.raises(CheckpointError, match="damaged"):
            evaluate(asked(folder.run_id, checkpoint="1"), settings, quiet)
        weights.write_bytes(b"\xff" * len(whole))
        with pytest.raises(ModelError, match=r"cannot load the checkpoint checkpoint-1.*; take another"):
            evaluate(asked(folder.run_id, checkpoint="1"), settings, quiet)
    finally:
        weights.write_bytes(whole)
    assert {one.key for one in evaluations_of(folder)} == before


def test_a_checkpoint_that_lacks_weights_is_no_model(
    runs: tuple[Trained, Trained], settings: Settings, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    from grpo_studio.training.checkpoint_model import load_model

    final = find_checkpoint(runs[0].folder, "final")
    copy = tmp_path / "final"
    copy.mkdir()
    for file in final.path.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    weights = load_file(final.path / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lacks 1 of the model's weights, such as model\.norm\.weight; take another"):
        load_model(runs[0].folder.config(), settings, replace(final, path=copy), lambda what: None)


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ["lora", "qlora"])
def test_an_adapter_is_evaluated_on_its_base_model_as_in_the_run(
    adapter: str, settings: Settings, tmp_path: Path
) -> None:
    train = trainer_of(make_tiny_model(tmp_path / "model"), settings)
    run = train(*COMMON, f"memory.adapter={adapter}", "memory.lora_rank=4", "algorithm.learning_rate=0.5")
    for name, step in (("base", 0), ("1", 1), ("final", 2)):
        document, _, _ = evaluate(asked(run.folder.run_id, checkpoint=name), settings, quiet)
        later = next(one for one in evaluations_of(run.folder) if one.key == document["evaluation"])
        with RunReader(later.database) as reader:
            texts = [row[0] for row in reader.rows("SELECT text FROM completion ORDER BY id")]
        assert texts == [row[4] for row in rows_of(run, "eval", step)]
    assert rows_of(run, "eval", 0) != rows_of(run, "eval", 2)
