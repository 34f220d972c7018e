"""Everything that can be wrong with a configuration by itself, found at once: field errors and cross-field rules.

Pure: settings in, problems out; nothing is read or fetched (that is `preflight`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from grpo_studio.algorithm_settings import CISPO_CLAMP, CLIPPED_LOSSES
from grpo_studio.config import RunConfig
from grpo_studio.data.sources import is_made
from grpo_studio.declaration import fields_of, value_at
from grpo_studio.engine_rules import combination_problems
from grpo_studio.evaluation_passing import passing_problems
from grpo_studio.naming import nearest_names
from grpo_studio.problem import Problem
from grpo_studio.rollout_checks import rollout_problems
from grpo_studio.scale_checks import scale_problems


@dataclass(frozen=True)
class Inspection:
    """What raw settings are.

    Args:
        config: the configuration, or None when a field is wrong.
        repaired: the same with defaults in the place of wrong fields, so that the rest can be checked; None when
            there is too little left.
        problems: field errors first, then the cross-field rules over what is right.
    """

    config: RunConfig | None
    repaired: RunConfig | None
    problems: list[Problem]

    def is_wrong(self, field: str) -> bool:
        """Whether there is a problem with that field, a field in it, or what it is part of, already."""
        return any(
            field == known.field or field.startswith(f"{known.field}.") or known.field.startswith(f"{field}.")
            for known in self.problems
        )


def inspect(data: Mapping[str, Any]) -> Inspection:
    """Validate raw settings and find all problems, so that a person mends everything in one go."""
    try:
        config = RunConfig.model_validate(dict(data))
    except ValidationError as error:
        problems = [_field_problem(data, detail) for detail in error.errors()]
        repaired = _without(data, [detail["loc"] for detail in error.errors()])
        try:
            rest = RunConfig.model_validate(repaired)
        except ValidationError:
            return Inspection(None, None, problems)
        fields = Inspection(None, rest, problems)
        more = [problem for problem in cross_field_problems(rest) if not fields.is_wrong(problem.field)]
        return Inspection(None, rest, problems + more)
    return Inspection(config, config, list(cross_field_problems(config)))


def cross_field_problems(config: RunConfig) -> Iterator[Problem]:
    """Rules between settings, in order of the form."""
    yield from _not_yet(config)
    yield from _model_rules(config)
    yield from _reward_rules(config)
    yield from _algorithm_rules(config)
    yield from combination_problems(config)
    yield from scale_problems(config)
    yield from rollout_problems(config)
    yield from _data_rules(config)
    yield from passing_problems(config)


def _not_yet(config: RunConfig) -> Iterator[Problem]:
    for name, info in fields_of(RunConfig).items():
        extra = info.json_schema_extra
        waits_for = extra.get("not_yet") if isinstance(extra, dict) else None
        if waits_for is None:
            continue
        value = value_at(config, name)
        if value != info.default:
            yield Problem(
                name,
                f"not yet: {waits_for} is not built in this version (found {value!r})",
                f"use {info.default!r}",
            )


def _model_rules(config: RunConfig) -> Iterator[Problem]:
    if config.model.trust_remote_code:
        yield Problem(
            "model.trust_remote_code",
            "a model's own code is never run here: it could read your files and tokens and start programs",
            "use false, and a model whose architecture transformers knows",
        )


def _reward_rules(config: RunConfig) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, reward in enumerate(config.rewards):
        if reward.label in seen:
            yield Problem(
                f"rewards.{index}.name",
                f"the name {reward.label!r} is taken by reward {seen[reward.label] + 1}",
                "give one of them another name",
            )
        seen.setdefault(reward.label, index)
    total = sum(reward.weight for reward in config.rewards)
    if total <= 0:
        yield Problem(
            "rewards",
            f"the weights add up to {total:g}, so no answer is worth reaching",
            "make the sum of the weights positive",
        )


def _algorithm_rules(config: RunConfig) -> Iterator[Problem]:
    algorithm = config.algorithm
    if algorithm.loss_type == "cispo" and config.effective_epsilon_high() < 1:
        yield Problem(
            "algorithm.epsilon_high",
            f"cispo clamps the ratio itself to {config.effective_epsilon_high():g}, which shrinks every gradient",
            f"use {CISPO_CLAMP:g}, or leave it empty",
        )
    elif algorithm.loss_type in CLIPPED_LOSSES and config.effective_epsilon_high() < algorithm.epsilon:
        yield Problem(
            "algorithm.epsilon_high",
            f"{algorithm.epsilon_high:g} is below epsilon {algorithm.epsilon:g}",
            f"use {algorithm.epsilon:g} or more",
        )
    if algorithm.delta is not None and algorithm.loss_type not in CLIPPED_LOSSES:
        yield Problem(
            "algorithm.delta",
            f"loss type {algorithm.loss_type} has no second clip bound",
            f"leave it empty, or use {_listed(CLIPPED_LOSSES)}",
        )
    if algorithm.warmup_ratio > 0 and algorithm.lr_schedule == "constant":
        yield Problem(
            "algorithm.warmup_ratio",
            f"the constant schedule has no warm-up (found {algorithm.warmup_ratio:g})",
            "use 0, or the schedule constant_with_warmup",
        )
    if algorithm.num_iterations > algorithm.steps:
        yield Problem(
            "algorithm.num_iterations",
            f"{algorithm.num_iterations} passes over each batch, but only {algorithm.steps} steps",
            f"use at most {algorithm.steps}",
        )


def _data_rules(config: RunConfig) -> Iterator[Problem]:
    if config.dataset.params and not is_made(config.dataset.source):
        yield Problem(
            "dataset.params",
            f"{config.dataset.source!r} is read, not made in place, and takes no parameters",
            "leave them empty",
        )
    template = config.dataset.prompt_template
    if template is not None and "{prompt}" not in template:
        yield Problem(
            "dataset.prompt_template",
            "the template has no place for the question",
            "put {prompt} where it belongs",
        )
    limit = config.dataset.limit
    held_out = 0 if is_made(config.dataset.source) else config.dataset.held_out
    if limit is not None and limit - held_out < config.algorithm.prompts_per_step:
        needed = held_out + config.algorithm.prompts_per_step
        yield Problem(
            "dataset.limit",
            f"{limit} rows less {held_out} held out leave fewer than the "
            f"{config.algorithm.prompts_per_step} prompts of a step",
            f"use at least {needed}, or hold out fewer rows",
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _field_problem(data: Mapping[str, Any], detail: Any) -> Problem:
    field = ".".join(str(part) for part in detail["loc"]) or "config"
    if detail["type"] == "extra_forbidden":
        section, _, key = field.rpartition(".")
        known = _keys_of(section)
        return Problem(field, f"unknown setting {key!r}", nearest_names(key, known), unknown_key=True)
    found = detail.get("input")
    context = detail.get("ctx", {})
    return Problem(field, f"{_lower(detail['msg'])} (found {_shown(found)})", _fix(detail["type"], context))


def _fix(kind: str, context: Mapping[str, Any]) -> str:
    bounds = {"ge": "{} or more", "gt": "more than {}", "le": "{} or less", "lt": "less than {}"}
    for name, words in bounds.items():
        if name in context:
            return "use " + words.format(context[name])
    if "min_length" in context:
        return f"give at least {context['min_length']}"
    if "max_length" in context:
        return f"give at most {context['max_length']}"
    if kind == "literal_error":
        return f"use {context['expected']}"
    kinds = {
        "int": "a whole number",
        "float": "a number",
        "finite": "a finite number",
        "bool": "true or false",
        "string": "text",
    }
    for start, words in kinds.items():
        if kind.startswith(start):
            return f"give {words}"
    return "see the settings table in docs/settings.md"


def _keys_of(section: str) -> list[str]:
    prefix = f"{section}." if section else ""
    names = [name[len(prefix) :] for name in fields_of(RunConfig) if name.startswith(prefix)]
    if section.startswith("rewards."):
        from grpo_studio.config import RewardSettings

        names = list(RewardSettings.model_fields)
    return list(dict.fromkeys(name.split(".")[0] for name in names))


def _without(data: Any, locations: list[tuple[int | str, ...]]) -> Any:
    """`data` less the entries at `locations`, so that the rest can be checked with defaults in their places."""
    if any(not location for location in locations):
        return {}
    if isinstance(data, Mapping):
        kept = {}
        for key, value in data.items():
            below = [location[1:] for location in locations if location[0] == key]
            if any(len(rest) == 0 for rest in below):
                continue
            kept[key] = _without(value, below) if below else value
        return kept
    if isinstance(data, list | tuple):
        return [
            _without(value, [location[1:] for location in locations if location[0] == index])
            if any(location[0] == index and len(location) > 1 for location in locations)
            else value
            for index, value in enumerate(data)
            if (index,) not in locations
        ]
    return data


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
