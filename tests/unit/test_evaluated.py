"""Which evaluations a run has, how two of them are put side by side, and what the page of results is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from grpo_studio import queries
from grpo_studio.config import RunConfig
from grpo_studio.errors import RunNotFoundError, StoreError, StudioError, UsageError
from grpo_studio.evaluation_passing import PassRule, labels_of, pass_rule
from grpo_studio.evaluation_store import write_evaluation
from grpo_studio.evaluation_text import as_json, lines_of
from grpo_studio.queries.before_after import Comparison, compared, texts_of
from grpo_studio.queries.evaluated import evaluated_rows, evaluations_of, find_evaluation
from grpo_studio.rules import inspect
from grpo_studio.run_state import RunState
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder, create_run
from grpo_studio.store.reader import RunReader
from grpo_studio.store.records import CompletionRecord, GroupRecord, ScoreRecord
from grpo_studio.store.writer import RunWriter
from grpo_studio.ui.live_charts import charts
from grpo_studio.ui.live_run import LiveRun
from grpo_studio.ui.results import ResultsActions, newest_of
from grpo_studio.ui.results_evaluate import arguments_of

RULE = PassRule("right", 1.0)
Row = tuple[str, str | None, float | None]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    rewards = [
        {"verifier": "math_numeric", "name": "right"},
        {"verifier": "regex_match", "name": "a_style", "weight": 0.5},
    ]
    return create_run(tmp_path / "runs", RunConfig.model_validate({"rewards": rewards}), "evaluated")


def completion(score: float | None, text: str = "text") -> CompletionRecord:
    scores = (ScoreRecord("right", score, 1.0, reason="because"), ScoreRecord("a_style", 0.5, 0.5))
    return CompletionRecord(text, 3, False, None if score is None else score + 0.25, None, scores)


def groups_of(rows: Sequence[Row], samples: Sequence[Sequence[float | None]] = ()) -> list[GroupRecord]:
    greedy = [
        GroupRecord(prompt, gold, (completion(score, f"to {prompt}"),), score, None, "eval")
        for prompt, gold, score in rows
    ]
    sampled = [
        GroupRecord(prompt, gold, tuple(map(completion, scores)), None, None, "eval_sampled")
        for (prompt, gold, _), scores in zip(rows, samples, strict=False)
    ]
    return [*greedy, *sampled]


def record(folder: RunFolder, step: int, groups: Sequence[GroupRecord], attempt: int = 1) -> None:
    writer = RunWriter(folder.database, attempt)
    with writer.transaction():
        writer.groups(step, groups)
        writer.metrics(step, {"eval/reward": 0.5})
    writer.close()


def comparison(folder: RunFolder, before: int = 0, after: int = 10) -> Comparison:
    sides = [find_evaluation(folder, f"step-{step}") for step in (before, after)]
    first, second = [evaluated_rows(side, RULE) for side in sides if side is not None]
    return compared(first, second, RULE, ("right", "a_style"))


def test_rows_are_matched_by_prompt_answer_and_occurrence_and_not_by_place(folder: RunFolder) -> None:
    record(
        folder, 0, groups_of([("a", "1", 0.0), ("b", "2", 1.0), ("b", "2", 0.0), ("b", "3", 1.0), ("gone", None, 1.0)])
    )
    record(
        folder, 10, groups_of([("b", "3", 0.0), ("b", "2", 1.0), ("new", "1", 1.0), ("a", "1", 1.0), ("b", "2", 1.0)])
    )
    found = comparison(folder)
    assert [pair.outcome for pair in found.pairs] == ["lost", "right", "gained", "gained"]
    assert (found.only_before, found.only_after) == (1, 1)
    assert found.flips().p == 1.0
    assert found.passed().before.value == 0.5
    assert found.passed().difference.value == pytest.approx(0.25)


def test_a_prompt_and_an_answer_are_not_mixed_up(folder: RunFolder) -> None:
    record(folder, 0, groups_of([("a", "b c", 1.0), ("x", None, 1.0)]))
    record(folder, 10, groups_of([("a b", "c", 1.0), ("x", "None", 1.0)]))
    assert comparison(folder).pairs == ()


def test_an_abstention_is_in_no_figure_and_counted(folder: RunFolder) -> None:
    record(folder, 0, groups_of([("a", "1", None), ("b", "2", 0.0), ("c", "3", 1.0)]))
    record(folder, 10, groups_of([("a", "1", 1.0), ("b", "2", 1.0), ("c", "3", None)]))
    found = comparison(folder)
    assert [pair.outcome for pair in found.pairs] == ["unjudged", "gained", "unjudged"]
    assert (found.passed().before.rows, found.passed().before.left_out) == (2, 1)
    assert (found.reward().difference.rows, found.reward().difference.left_out) == (1, 2)
    assert [change.name for change in found.verifiers()] == ["right", "a_style"], "in the run's order"


def test_samples_give_pass_at_k_over_rows(folder: RunFolder) -> None:
    record(folder, 0, groups_of([("a", "1", 0.0), ("b", "2", 0.0)], [[0, 0, 1, None], [0, 0, 0, 0]]))
    record(folder, 10, groups_of([("b", "2", 1.0), ("a", "1", 0.0)], [[1, 1, 0, 0], [1, 1, 1, 1]]))
    found = dict(comparison(folder).pass_at())
    assert sorted(found) == [1, 2, 4]
    assert found[1].before.value == pytest.approx((1 / 3 + 0) / 2)
    assert found[1].after.value == pytest.approx((0.5 + 1) / 2)
    assert found[2].after.value == pytest.approx((1 - 1 / 6 + 1) / 2)
    assert (found[4].before.rows, found[4].before.left_out) == (1, 1), "a row with an abstention has too few for k = 4"
    sampled = comparison(folder).sampled_reward()
    assert sampled is not None
    assert sampled.before.value == pytest.approx((1 / 3 + 0.25 + 0.25) / 2)


def test_evaluations_that_a_resume_supersedes_are_gone_and_the_baseline_stays(folder: RunFolder) -> None:
    for step in (0, 4, 8):
        record(folder, step, groups_of([("a", "1", float(step > 0))]))
    writer = RunWriter(folder.database, 2)
    writer.attempt_began(5, "checkpoint-5", "resumed")
    writer.close()
    assert [one.key for one in evaluations_of(folder)] == ["step-0", "step-4"]
    assert find_evaluation(folder, "step-8") is None
    record(folder, 8, groups_of([("a", "1", 0.0)]), attempt=2)
    assert [one.key for one in evaluations_of(folder)] == ["step-0", "step-4", "step-8"]
    assert [pair.outcome for pair in comparison(folder, 4, 8).pairs] == ["lost"]


def test_evaluations_made_later_are_listed_and_a_damaged_one_hides_no_other(folder: RunFolder) -> None:
    record(folder, 0, groups_of([("a", "1", 0.0)]))
    name = write_evaluation(folder, "checkpoint-7", 7, groups_of([("a", "1", 1.0)]), {"eval/reward": 1.0}, {})
    (folder.evaluations / "broken.db").write_bytes(b"no database at all" * 100)
    (folder.evaluations / ".new-half.db").write_bytes(b"")
    found = evaluations_of(folder)
    assert [(one.key, one.step, one.checkpoint) for one in found] == [("step-0", 0, None), (name, 7, "checkpoint-7")]
    assert find_evaluation(folder, name) == found[1]
    assert newest_of(found) == found[1]
    assert [path.name for path in folder.evaluations.glob(f"*{name}*")] == [f"{name}.db"], "one plain file"


@pytest.mark.parametrize(
    "key", ["", "../run", "step-99", "step--1", "broken", "a/b", "STEP-0", "step-0; DROP", "x" * 300]
)
def test_no_other_key_finds_anything(folder: RunFolder, key: str) -> None:
    record(folder, 0, groups_of([("a", "1", 0.0)]))
    assert find_evaluation(folder, key) is None


def test_a_run_without_evaluations_has_none(folder: RunFolder) -> None:
    assert evaluations_of(folder) == []
    record(folder, 3, [GroupRecord("a", "1", (completion(1.0),), 1.0, None, "train")])
    assert evaluations_of(folder) == []


def test_texts_are_cut_and_a_page_is_bounded(folder: RunFolder) -> None:
    rows: list[Row] = [(f"{place} " + "p" * 9000, "1", 1.0) for place in range(60)]
    record(folder, 0, groups_of(rows))
    evaluation = find_evaluation(folder, "step-0")
    assert evaluation is not None
    with RunReader(folder.database) as reader:
        found = texts_of(reader, evaluated_rows(evaluation, RULE).rows, 100)
    assert len(found) == 50
    first = next(iter(found.values()))
    assert (len(first["prompt"]), first["prompt_length"], len(first["text"])) == (100, 9002, 100)
    assert [score["verifier"] for score in first["scores"]] == ["a_style", "right"]


def test_the_comparison_is_plain_json_and_lines(folder: RunFolder) -> None:
    record(folder, 0, groups_of([("a", "1", 0.0), ("b", "2", 1.0)]))
    record(folder, 10, groups_of([("a", "1", 1.0), ("b", "2", 1.0)], [[1.0], [0.0]]))
    found = comparison(folder)
    document = json.loads(json.dumps(as_json(found), allow_nan=False))
    assert document["flips"] == {"gained": 1, "lost": 0, "right": 1, "wrong": 0, "unjudged": 0}
    assert document["passed"]["difference"]["value"] == 0.5
    lines = "\n".join(lines_of(found))
    assert "before training -> step 10" in lines
    assert "pass@1" in lines
    assert "wrong before, right after" in lines


def test_what_solves_a_row_is_the_reward_of_the_greatest_weight_unless_another_is_named() -> None:
    rewards: list[dict[str, Any]] = [
        {"verifier": "regex_match", "name": "style", "weight": 0.5, "params": {"pattern": "a"}},
        {"verifier": "math_numeric", "name": "first"},
        {"verifier": "math_numeric", "name": "second"},
    ]
    config = RunConfig.model_validate({"rewards": rewards})
    assert (pass_rule(config), labels_of(config)) == (PassRule("first", 1.0), ("style", "first", "second"))
    named = {"rewards": rewards, "evaluation": {"passed_by": "style", "pass_score": 0.3}}
    assert pass_rule(RunConfig.model_validate(named)) == PassRule("style", 0.3)
    assert inspect(named).problems == []
    problem = inspect(named | {"evaluation": {"passed_by": "second "}}).problems
    assert [(one.field, one.fix) for one in problem] == [("evaluation.passed_by", "use one of style, first, second")]


@pytest.fixture
def page(folder: RunFolder, tmp_path: Path) -> ResultsActions:
    return ResultsActions(Settings(tmp_path, tmp_path / "runs", tmp_path / "cache"))


def test_the_page_takes_the_baseline_and_the_newest_unless_others_are_named(
    page: ResultsActions, folder: RunFolder
) -> None:
    asked: dict[str, Any] = {"run": folder.run_id}
    assert (page.results_tick(asked)["a"], page.results_tick(asked)["b"]) == (None, None)
    record(folder, 0, groups_of([("a", "1", 0.0)]))
    only = page.results_tick(asked)
    assert (only["a"], only["b"], "comparison" in only) == ("step-0", None, False)
    for step in (5, 10):
        record(folder, step, groups_of([("a", "1", 1.0)]))
    found = page.results_tick(asked)
    assert (found["a"], found["b"], found["comparison"]["flips"]["gained"]) == ("step-0", "step-10", 1)
    assert page.results_tick(asked | {"version": found["version"]}) == {"version": found["version"]}
    named = page.results_tick(asked | {"a": "step-10", "b": "step-5", "version": found["version"]})
    assert (named["a"], named["b"]) == ("step-10", "step-5")
    assert page.results_tick(asked | {"a": "gone", "b": 7})["a"] == "step-0"


def test_the_page_gives_fifty_rows_and_both_texts_of_one(page: ResultsActions, folder: RunFolder) -> None:
    record(folder, 0, groups_of([(f"q{place}", "1", 0.0) for place in range(120)]))
    record(folder, 10, groups_of([(f"q{place}", "1", float(place % 10 != 0)) for place in range(120)]))
    asked: dict[str, Any] = {"run": folder.run_id, "a": "step-0", "b": "step-10"}
    first = page.results_rows(asked | {"outcomes": ["gained"]})
    assert (len(first["rows"]), first["total"], first["pages"]) == (50, 108, 3)
    last = page.results_rows(asked | {"outcomes": ["gained"], "page": 99})
    assert (len(last["rows"]), last["page"]) == (8, 2)
    assert page.results_rows(asked | {"outcomes": ["lost"]})["rows"] == []
    row = page.results_row(asked | {"group": first["rows"][0]["group"]})
    assert (row["before"]["text"], row["after"]["text"]) == ("to q1", "to q1")
    assert [score["verifier"] for score in row["after"]["scores"]] == ["right", "a_style"]
    whole = {"run": folder.run_id, "evaluation": "step-0", "kind": "completion", "id": row["before"]["completion"]}
    assert page.results_text(whole) == {"text": "to q1"}


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("results_rows", {"a": "step-0", "b": "../x"}),
        ("results_row", {"a": "step-0", "b": "step-0", "group": 10**9}),
        ("results_text", {"evaluation": "step-0", "kind": "secret", "id": 1}),
        ("results_text", {"evaluation": "../run", "kind": "prompt", "id": 1}),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    page: ResultsActions, folder: RunFolder, name: str, request_: dict[str, Any]
) -> None:
    record(folder, 0, groups_of([("a", "1", 0.0)]))
    with pytest.raises((RunNotFoundError, UsageError)):
        getattr(page, name)({"run": folder.run_id, **request_})


def test_the_page_asks_the_command_line_and_lets_no_text_become_an_option(
    page: ResultsActions, folder: RunFolder
) -> None:
    asked = {"run": folder.run_id, "checkpoint": "base", "rows": 8, "samples": 0}
    wanted = ["evaluate", "--checkpoint=base", "--rows=8", "--samples=0", "--", folder.run_id]
    assert arguments_of(asked, page.settings) == wanted
    for wrong in ({"checkpoint": "--json"}, {"checkpoint": "3"}, {"rows": 0}, {"samples": "4"}, {"run": "evaluated"}):
        with pytest.raises(StudioError):
            arguments_of(asked | wrong, page.settings)


def test_the_live_page_lists_means_of_verifiers_and_no_other_figure_of_an_evaluation(folder: RunFolder) -> None:
    others = ("abstained", "passed", "sampled/reward", "sampled/abstained", "pass@1", "pass@2")
    figures = {f"eval/{name}": 1.0 for name in ("reward", "right/mean", "a_style/mean", *others)}
    writer = RunWriter(folder.database, 1)
    writer.metrics(0, figures)
    writer.metrics(1, {"optim/loss": 0.0, "reward/mean": 0.5, "reward/std": 0.1})
    writer.close()
    run = LiveRun(folder, folder.config(), RunState("running", ""))
    with RunReader(folder.database) as reader:
        drawn = charts(run, reader, queries.steps(reader))
    assert sorted(row["name"] for row in drawn["facts"]["held_out"]) == ["a_style", "reward", "right"]


def test_an_evaluation_that_cannot_be_written_leaves_nothing_behind(folder: RunFolder) -> None:
    groups = groups_of([("a", "1", 1.0)])
    with pytest.raises(TypeError):
        write_evaluation(folder, "final", 1, groups, {}, {"no": object()})
    assert list(folder.evaluations.iterdir()) == []
    folder.evaluations.rmdir()
    folder.evaluations.write_text("in the way")
    with pytest.raises(StoreError, match="cannot write the evaluation"):
        write_evaluation(folder, "final", 1, groups, {}, {})
    assert evaluations_of(folder) == []
