"""The page of a run's results: two evaluations of the held-out rows beside each other, and the rows that flipped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import gradio as gr

from grpo_studio import queries
from grpo_studio.errors import RunNotFoundError, UsageError
from grpo_studio.evaluation_passing import PassRule, labels_of, pass_rule
from grpo_studio.evaluation_text import about, as_json
from grpo_studio.plots.figure import tidy
from grpo_studio.queries.before_after import OUTCOMES, PAGE_ROWS, Comparison, Outcome, Pair, compared, texts_of
from grpo_studio.queries.evaluated import EvaluatedRow, Evaluation, evaluated_rows, evaluations_of, find_evaluation
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.store.reader import RunReader
from grpo_studio.ui import frame
from grpo_studio.ui.chosen import chosen_run
from grpo_studio.ui.live_run import config_of, run_name
from grpo_studio.ui.results_evaluate import checkpoints_of
from grpo_studio.ui.run_actions import RunActions
from grpo_studio.ui.run_states import state_of

PROMPT_SHOWN = 200
MOST_PAGES = 10_000

Answer = dict[str, Any]


def add_page(demo: gr.Blocks, settings: Settings) -> None:
    """Add the route /results."""
    actions, commands = ResultsActions(settings), RunActions(settings)
    functions: list[frame.ServerFunction] = [
        actions.results_tick, actions.results_rows, actions.results_row, actions.results_text, commands.run_command,
        commands.run_command_progress, commands.run_command_cancel,
    ]  # fmt: skip
    with demo.route("Results", "/results"):
        frame.add_view("results", "results.js", functions, settings)


class ResultsActions:
    """The page's server functions. Requests come from anybody: runs and evaluations are looked up by their keys."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def results_tick(self, request: Mapping[str, Any]) -> Answer:
        """The run, its evaluations, and the comparison of `a` with `b`; `version` alone when nothing is new."""
        folder = chosen_run(self.settings, request)
        config, state = config_of(folder.path), state_of(folder)
        found = evaluations_of(folder)
        a, b = _chosen(folder, found, request)
        told: Answer = {
            "run": folder.run_id,
            "name": run_name(folder.run_id),
            "state": state.state,
            "ended": state.ended,
            "evaluations": [about(one) for one in found],
            "a": None if a is None else a.key,
            "b": None if b is None else b.key,
            "checkpoints": checkpoints_of(folder),
            "held_out": config.dataset.held_out,
            "every": config.evaluation.every,
            "steps": config.algorithm.steps,
            "rows": config.evaluation.rows,
            "samples": config.evaluation.samples,
        }
        version = hashlib.blake2b(repr(told).encode("utf-8", "replace"), digest_size=8).hexdigest()
        if request.get("version") == version:
            return {"version": version}
        if a is not None and b is not None:
            told["comparison"] = as_json(_compared(a, b, pass_rule(config), labels_of(config)))
        return told | {"version": version}

    def results_rows(self, request: Mapping[str, Any]) -> Answer:
        """One page of the rows with these `outcomes`, in their order; texts are on demand."""
        found = self._comparison(request)
        asked = request.get("outcomes")
        outcomes: list[Outcome] = [one for one in OUTCOMES if isinstance(asked, list) and one in asked]
        pairs = found.of(outcomes or OUTCOMES)
        pages = max(1, -(-len(pairs) // PAGE_ROWS))
        page = min(frame.number_of(request, "page", most=MOST_PAGES) or 0, pages - 1)
        shown = pairs[page * PAGE_ROWS : (page + 1) * PAGE_ROWS]
        with RunReader(found.after.evaluation.database) as reader:
            texts = texts_of(reader, [pair.after for pair in shown], PROMPT_SHOWN)
        rows = [_listed(pair, texts[pair.after.group], found.rule) for pair in shown if pair.after.group in texts]
        return {"rows": rows, "total": len(pairs), "page": page, "pages": pages}

    def results_row(self, request: Mapping[str, Any]) -> Answer:
        """Both completions of a row, named by the id of its group in the later evaluation."""
        found = self._comparison(request)
        group = frame.number_of(request, "group", least=1)
        pair = next((pair for pair in found.pairs if pair.after.group == group), None)
        if pair is None:
            raise RunNotFoundError("no such row in these evaluations")
        sides = [(found.before.evaluation, pair.before), (found.after.evaluation, pair.after)]
        before, after = (_side(evaluation, row, found.labels) for evaluation, row in sides)
        return {"outcome": pair.outcome, "before": before, "after": after}

    def results_text(self, request: Mapping[str, Any]) -> Answer:
        """The whole text of a completion or prompt of one of the evaluations."""
        folder = chosen_run(self.settings, request)
        evaluation = find_evaluation(folder, frame.text_of(request, "evaluation") or "")
        row_id, kind = frame.number_of(request, "id", least=1), frame.text_of(request, "kind") or ""
        text = None
        if evaluation is not None and row_id is not None:
            with RunReader(evaluation.database) as reader:
                text = queries.full_text(reader, kind, row_id)
        if text is None:
            raise RunNotFoundError("no such text in this evaluation")
        return {"text": text}

    def _comparison(self, request: Mapping[str, Any]) -> Comparison:
        folder = chosen_run(self.settings, request)
        sides = [find_evaluation(folder, frame.text_of(request, side) or "") for side in ("a", "b")]
        if sides[0] is None or sides[1] is None:
            raise UsageError("the request names no two evaluations of this run under 'a' and 'b'")
        config = config_of(folder.path)
        return _compared(sides[0], sides[1], pass_rule(config), labels_of(config))


def newest_of(found: Sequence[Evaluation]) -> Evaluation | None:
    """The one with the most steps in its weights, of those the one made last."""
    return max(found, key=lambda one: (one.step, one.at or 0.0), default=None)


def _chosen(
    folder: RunFolder, found: Sequence[Evaluation], request: Mapping[str, Any]
) -> tuple[Evaluation | None, Evaluation | None]:
    """The two that are asked for; the earliest and the newest where none is, or where it is gone."""
    sides = [find_evaluation(folder, frame.text_of(request, side) or "") for side in ("a", "b")]
    first = min(found, key=lambda one: (one.step, one.checkpoint is not None), default=None)
    a = sides[0] or first
    newest = newest_of([one for one in found if one != a])
    return a, sides[1] or newest


@lru_cache(maxsize=4)
def _compared(a: Evaluation, b: Evaluation, rule: PassRule, labels: tuple[str, ...]) -> Comparison:
    """Evaluations never change: what `at` tells apart was made anew."""
    return compared(evaluated_rows(a, rule), evaluated_rows(b, rule), rule, labels)


def _listed(pair: Pair, texts: Mapping[str, Any], rule: PassRule) -> Answer:
    return {
        "group": pair.after.group,
        "outcome": pair.outcome,
        "prompt": texts["prompt"],
        "answer": texts["answer"],
        "before": _value(pair.before, rule),
        "after": _value(pair.after, rule),
    }


def _value(row: EvaluatedRow, rule: PassRule) -> float | None:
    return tidy(row.scores.get(rule.reward))


def _side(evaluation: Evaluation, row: EvaluatedRow, labels: Sequence[str]) -> Answer:
    with RunReader(evaluation.database) as reader:
        texts = texts_of(reader, [row])
    if row.group not in texts:
        raise RunNotFoundError("this row was not recorded whole")
    order = {label: place for place, label in enumerate(labels)}
    texts[row.group]["scores"].sort(key=lambda score: order.get(score["verifier"], len(order)))
    sampled = row.sampled
    counts = None if sampled is None else {"judged": sampled.judged, "passed": sampled.passed, "count": sampled.count}
    return texts[row.group] | {"evaluation": evaluation.key, "group": row.group, "samples": counts}
