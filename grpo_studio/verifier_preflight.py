"""What can be known to be wrong with the rewards of a run before it starts: files, columns, params, models, golds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from grpo_studio.code_runs import sandbox_in_force
from grpo_studio.config import RewardSettings, RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import ModelError, StudioError
from grpo_studio.problem import Problem, problem_of
from grpo_studio.remembered import Remembered
from grpo_studio.reward_models import place_problem, source_of
from grpo_studio.settings import Settings
from grpo_studio.verifiers import LoadFailure, Registry, VerifierSpec, discover, parts, problems_of
from grpo_studio.verifiers.contract import GIVEN_COLUMNS
from grpo_studio.verifiers.judge_examples import check_examples
from grpo_studio.verifiers.loading import is_shipped
from grpo_studio.verifiers_used import files_used, runs_code, used_by_all, used_with, verifiers_used

SHOWN = 3
"""At most so many of the examples that fail are told of each verifier."""
_examples: Remembered[list[str]] = Remembered()


@dataclass(frozen=True)
class RewardsChecked:
    """What is wrong with the rewards of a run; `sound` are those without a problem, with their places."""

    registry: Registry
    problems: list[Problem]
    notes: list[str]
    sound: list[tuple[int, RewardSettings]]


def check_rewards(
    config: RunConfig, settings: Settings, samples: Sequence[Sample] | None, columns: Iterable[str] = ()
) -> RewardsChecked:
    """Everything about the rewards but whether they can read the golds.

    `samples` are training rows, None when there are no data; `columns` more columns that rows have.
    """
    registry = discover(settings.rewards_dirs)
    parts.configure(settings.rewards_dirs)  # verifiers that call others look there when they are checked
    used = used_by_all(config.rewards, registry)
    checked = RewardsChecked(registry, [], [], [])
    checked.notes.extend(
        f"{failure.path.name} in rewards/ cannot be used: {failure.message}"
        for failure in registry.failures
        if not any(_concerns(failure, name, registry) for name in used)
    )
    have = None if samples is None else {*columns, *(name for sample in samples for name in sample.columns)}
    for index, reward in enumerate(config.rewards):
        found = list(_problems_of_one(index, reward, registry, settings, have))
        found = found or list(_example_problems(index, reward, registry, settings))
        checked.problems.extend(found)
        if not found:
            checked.sound.append((index, reward))
            checked.notes.extend(_overridden(reward, registry.get(reward.verifier), samples or ()))
    if running := runs_code(used, registry):
        checked.notes.append(sandbox_in_force().told(running))
    return checked


def _problems_of_one(
    index: int,
    reward: RewardSettings,
    registry: Registry,
    settings: Settings,
    found_columns: set[str] | None,
) -> Iterator[Problem]:
    field = f"rewards.{index}"
    names = verifiers_used(reward, registry)
    broken = [(name, failure) for name in names for failure in registry.failures if _concerns(failure, name, registry)]
    if broken:
        name, failure = broken[0]
        fix = "mend the file" if name not in registry.specs else "rename one of them"
        yield Problem(f"{field}.verifier", f"{failure.path.name} cannot be used: {failure.message}", fix)
        return
    try:
        spec = registry.get(reward.verifier)
    except StudioError as error:
        yield problem_of(f"{field}.verifier", error)
        return
    if problem := place_problem(spec):
        yield problem_of(f"{field}.verifier", problem)
        return
    have = _all_columns(names, registry) if found_columns is None else found_columns | set(GIVEN_COLUMNS)
    for message in problems_of(spec, reward.params, have):
        what, _, fix = message.rpartition("; ")
        yield Problem(f"{field}.params", what or message, fix if what else "see the verifier's file")
    for name in names[1:]:
        part = registry.specs.get(name)
        if part is None:
            continue  # the verifier that calls it has told of that
        for column in part.columns:
            if column not in have and column not in part.optional_columns:
                needed = f"{name}, a part of {reward.label}, needs a column '{column}'"
                yield Problem(f"{field}.params", f"{needed}; the data has: {', '.join(sorted(have))}", "leave it out")
    if spec.place == "trainer":
        yield from _model_problems(field, reward, spec, settings)


def _example_problems(index: int, reward: RewardSettings, registry: Registry, settings: Settings) -> Iterator[Problem]:
    """What a person's own verifiers make of their own examples; those of the program pass them in its tests."""
    for name in verifiers_used(reward, registry):
        spec = registry.get(name)
        if is_shipped(spec.path):
            continue
        files = files_used(_used_in_examples(spec, registry), registry)
        key = (name, spec.path, files, tuple(settings.rewards_dirs))
        for message in _examples.get(key, partial(check_examples, spec, settings.rewards_dirs))[:SHOWN]:
            yield Problem(f"rewards.{index}.verifier", message, "mend the verifier, or its example")


def _used_in_examples(spec: VerifierSpec, registry: Registry) -> set[str]:
    params = [{key: value for key, value in one.values.items() if key in spec.params} for one in spec.examples]
    return {name for given in params for name in used_with(spec.name, given, registry)}


def _concerns(failure: LoadFailure, name: str, registry: Registry) -> bool:
    """Whether a failure is why a verifier is not there, by its file's name, or is a second verifier of that name."""
    missing = name not in registry.specs and failure.path.stem == name
    return missing or failure.message.startswith(f"verifier '{name}' of ")


def _all_columns(names: Iterable[str], registry: Registry) -> set[str]:
    """What those verifiers name: there are no data to compare with, which is a problem of its own."""
    return {column for name in names if name in registry.specs for column in registry.specs[name].columns}


def _overridden(reward: RewardSettings, spec: VerifierSpec, samples: Sequence[Sample]) -> Iterator[str]:
    """That a verifier does not see the data's own prompts; other columns of a name that a run gives are renamed."""
    differs = (sample.columns.get("prompt", sample.question) != sample.question for sample in samples)
    if spec.takes("prompt") and any(differs):
        own = "the data set's own column of that name"
        yield f"{reward.label} is given the question as it is asked as 'prompt', not {own}"


def _model_problems(field: str, reward: RewardSettings, spec: VerifierSpec, settings: Settings) -> Iterator[Problem]:
    params = spec.with_defaults(reward.params)
    model = params.get("model")
    if not isinstance(model, str):
        return  # told already: it must be given, as text
    try:
        source_of(model, params.get("revision"), settings.cache)
    except ModelError as error:
        yield problem_of(f"{field}.params", f"the reward model {model}: {error}")
