"""Every task of Reasoning Gym, judged by its own scorer."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from grpo_studio.naming import nearest_names
from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import after_thinking, inside_answer_tags, last_box
from grpo_studio.verifiers.harmless import calls_nothing, is_arithmetic
from grpo_studio.verifiers.time_bound import OutOfTime, time_bound

_SECONDS = 2.0
_LONGEST = 50_000
# Their gold stands in these fields of the metadata: `answer` is None, and any solution of the puzzle counts.
_NO_GOLD = {
    "boxnet": ("initial_state",),
    "graph_color": ("puzzle",),
    "propositional_logic": ("premises", "variables"),
    "rubiks_cube": ("cube_size", "scramble_moves"),
    "rush_hour": ("board_config",),
}
# Their scorers give the answer to eval(): only what cannot call anything gets there.
_EVALUATED = frozenset({"binary_matrix", "n_queens", "number_sorting", "spiral_matrix", "string_insertion"})
# Theirs give it to SymPy's parser, which runs it as Python: only arithmetic on names gets there.
_PARSED = frozenset(
    {"countdown", "intermediate_integration", "polynomial_multiplication", "puzzle24", "simple_integration"}
)
# An exponent that would be worked out digit by digit.
_HUGE_EXPONENT = re.compile(r"[0-9.][eE][+-]?[0-9]{4}")
_MANY_MOVES = re.compile(r"[0-9]{3}")


def check(task: str, config: dict[str, Any] | None) -> str | None:
    """The task exists and can be made with this configuration."""
    if not task:
        return "config needs a task; name it as well" if config else None
    if task not in (known := _tasks()):
        return f"no task {task!r:.60}; {nearest_names(task, known)}"
    try:
        _dataset(task, json.dumps(config or {}))
    except Exception as error:
        return f"task {task} cannot be made with config {config!r:.100}: {type(error).__name__}: {error}"
    return None


def warm(task: str, config: dict[str, Any] | None) -> None:
    """Import the library and make the task, which takes seconds."""
    if task:
        _dataset(task, json.dumps(config or {}))
    else:
        _tasks()


def ideal(answer: Any = None, metadata: Any = None, task: str = "", **columns: Any) -> str | None:
    """The gold in answer tags, or the solution that the metadata holds; two tasks come with none."""
    entry = _entry(answer, metadata)
    if entry is None:
        return None
    details, name = entry["metadata"], task or entry["metadata"].get("source_dataset")
    if name == "graph_color" and isinstance(details.get("possible_answer"), dict):
        return f"<answer>{json.dumps(details['possible_answer'])}</answer>"
    gold = entry["answer"]
    if name in _NO_GOLD:
        gold = details.get("example_answer") or details.get("example_correct_answer")
    return f"<answer>{gold}</answer>" if gold else None


@verifier(
    examples=[
        ("<answer>42</answer>", {"answer": "42", "metadata": {"source_dataset": "basic_arithmetic"}}, 1.0),
        ("<answer>41</answer>", {"answer": "42", "metadata": {"source_dataset": "basic_arithmetic"}}, 0.0),
        ("42", {"answer": 42, "metadata": "{}", "task": "basic_arithmetic"}, 1.0),
    ],
    check=check,
    warm=warm,
    ideal=ideal,
)
def reasoning_gym(
    completion: str, metadata: Any, answer: Any = None, *, task: str = "", config: dict[str, Any] | None = None
) -> Verdict:
    """The answer as the scorer of its Reasoning Gym task rates it, from 0 to 1.

    The columns are those of the library's entries: `metadata` (an object, or its JSON) and `answer`, which is empty for
    the five tasks where any solution counts. `task` names the task; without it the metadata's `source_dataset` does.
    `config` holds settings that the entries were made with, for the few scorers that look at them.

    The answer is what the answer tags hold, or the last box, or the whole text, after the thinking. Scorers give
    partial credit as they see fit: most for a text that contains the answer, some 0.01 to 0.05 for any text. Here an
    empty answer scores 0. Where a scorer would run the answer as Python (ten tasks) only plain data or arithmetic
    reaches it, and anything else scores 0. Full marks that coin_flip, complex_arithmetic, game_of_life_halting and
    puzzle24 give for wrong answers are taken back.
    """
    entry = _entry(answer, metadata)
    if entry is None:
        return Verdict(None, "metadata is no object; give the metadata column of the library's entries")
    name = task or entry["metadata"].get("source_dataset") or ""
    if not isinstance(name, str) or name not in _tasks():
        return Verdict(None, f"no task {name!r:.60}: set the param 'task', or have 'source_dataset' in the metadata")
    if fault := _gold_fault(name, entry):
        return Verdict(None, fault)
    text = _answer(completion)
    if not text:
        return Verdict(0.0, "no answer" if text is not None else "the thinking never ends")
    if fault := _text_fault(name, text):
        return Verdict(0.0, fault, text)
    return _scored(name, json.dumps(config or {}), text, entry)


def _scored(name: str, config: str, text: str, entry: dict[str, Any]) -> Verdict:
    """The scorer's word, when the gold has full marks from it: with a part of the metadata missing nothing has."""
    score, reason = _rated(name, config, text, entry)
    if score >= 1 and (fault := _overpaid(name, text, entry)):
        return Verdict(0.0, f"{fault}, although the scorer of {name} would pay it", text)
    if score >= 1:
        return Verdict(1.0, "", text)
    if name not in _NO_GOLD and (fault := _gold_trouble(name, config, entry["answer"], json.dumps(entry["metadata"]))):
        return Verdict(None, fault, text)
    return Verdict(score, reason, text)


@lru_cache(maxsize=1024)  # a whole group of completions shares its gold
def _gold_trouble(name: str, config: str, gold: str, metadata: str) -> str:
    entry = _entry(gold, metadata)
    score, reason = _rated(name, config, gold, entry) if entry else (0.0, "")
    return "" if score >= 1 else f"the scorer of {name} does not accept the gold; is its metadata whole? {reason}"


def _rated(name: str, config: str, text: str, entry: dict[str, Any]) -> tuple[float, str]:
    try:
        with time_bound(_SECONDS):
            score = float(_score(name, config, text, entry))
    except OutOfTime:
        return 0.0, f"scoring it took longer than {_SECONDS:g} s"
    except Exception as error:
        return 0.0, f"the scorer of {name} fails on it: {type(error).__name__}: {error!s:.100}"
    if not math.isfinite(score):
        return 0.0, f"the scorer of {name} returned {score}"
    return score, f"rated {score:.4g} by the scorer of {name}"


def _score(name: str, config: str, text: str, entry: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of text that is no matrix
        return _dataset(name, config).score_answer(text, entry)


def _overpaid(name: str, text: str, entry: dict[str, Any]) -> str:
    """Why an answer with full marks does not deserve them, or ''. These scorers of version 0.1.25 are too kind."""
    gold, details = str(entry["answer"]), entry["metadata"]
    if name == "game_of_life_halting" and text.strip(" .").lower() != gold.lower():
        return f"it is not {gold}"  # any text is paid
    if name == "complex_arithmetic" and "nan" in text.lower():
        return "it is no number"  # NaN counts as no distance
    if name == "coin_flip" and abs(Fraction(text.replace(",", "")) - Fraction(gold.replace(",", ""))) > Fraction(
        1, 10**4
    ):
        return f"it is not {gold}"  # so is a number that the gold begins with: 0 for 0.25
    if name == "puzzle24" and sorted(map(int, re.findall(r"[0-9]+", text))) != sorted(details.get("numbers") or []):
        return "it does not use the given numbers"  # any four are paid
    return ""


def _answer(completion: str) -> str | None:
    text = after_thinking(completion)
    if text is None:
        return None
    inside = inside_answer_tags(text)
    box = last_box(inside) if inside == text else None
    return ((box[1] or "") if box else inside).strip()


def _entry(answer: Any, metadata: Any) -> dict[str, Any] | None:
    """An entry as the library makes it. Rows come as JSON, which knows no tuples."""
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except ValueError:
            return None
    if not isinstance(metadata, Mapping):
        return None
    metadata = dict(metadata)
    if isinstance(metadata.get("output"), list):  # the board of the ARC tasks, compared as a tuple of tuples
        metadata["output"] = tuple(tuple(row) if isinstance(row, list) else row for row in metadata["output"])
    return {"question": "", "answer": _gold(answer), "metadata": metadata}


def _gold(answer: Any) -> Any:
    """Gold as text. A number or truth value of the data set was text in the library."""
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    return str(answer) if isinstance(answer, (bool, int, float)) else answer


def _gold_fault(name: str, entry: dict[str, Any]) -> str:
    gold = entry["answer"]
    if missing := [field for field in _NO_GOLD.get(name, ()) if not entry["metadata"].get(field)]:
        return f"the metadata of {name} lacks '{missing[0]}'"
    if name not in _NO_GOLD:
        if not isinstance(gold, str) or not gold.strip():
            return f"the gold answer of {name} must be a text: {gold!r:.100}"
        if fault := _text_fault(name, gold):
            return f"the gold answer: {fault}"
    integrand = entry["metadata"].get("integrand")
    if name in _PARSED and integrand is not None and _text_fault(name, str(integrand)):
        return "the integrand in the metadata is not arithmetic on names"
    return ""


def _text_fault(name: str, text: str) -> str:
    """Why this text must not reach the scorer, or ''."""
    if len(text) > _LONGEST:
        return f"an answer of over {_LONGEST:,} characters"
    if _HUGE_EXPONENT.search(text):
        return "a number with a huge exponent"
    if name in _EVALUATED and not calls_nothing(text):
        return "it is not plain data, and the scorer would run it"
    if name in _PARSED and not is_arithmetic(text):
        return "it is not arithmetic, and the scorer would run it"
    if name in ("rubiks_cube", "rush_hour") and _MANY_MOVES.search(text):
        return "a move that is repeated hundreds of times"
    return ""


@lru_cache(maxsize=1)
def _tasks() -> frozenset[str]:
    """All tasks but the mixture of others, whose entries name their own."""
    from reasoning_gym.factory import DATASETS

    return frozenset(DATASETS) - {"composite"}


@lru_cache(maxsize=128)
def _dataset(name: str, config: str) -> Any:
    import reasoning_gym as library

    return library.create_dataset(name, **json.loads(config))
