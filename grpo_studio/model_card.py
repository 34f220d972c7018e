"""A model as a person should know it before a run: from its config and tokenizer alone, nothing large is fetched."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from grpo_studio import chat_templates
from grpo_studio.chat_templates import PLAIN, READY, Verdict, verdict_on
from grpo_studio.config import ModelSettings
from grpo_studio.devices import current_device
from grpo_studio.libraries import load_libraries
from grpo_studio.model_facts import ModelFacts, facts_of
from grpo_studio.settings import PACKAGE_DIR, Settings

BYTES_OF = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class ModelCard:
    """Facts of a model; one that is not known is None.

    Args:
        kind: builtin, local, gguf or hub.
        dtype: the number format that its weights will be loaded in here, and `dtype_note` what that means.
        chat_template: own, none, plain, the name of a ready one, or custom; None when the model could not be looked at.
        templates: the ready ones that can be chosen.
        pad_token: the one that will be used.
        end_tokens: all at which a completion will end.
        gated: whether its terms must be accepted first; None where that is no question.
        download_bytes: what a start of a run would still fetch.
    """

    id: str
    kind: str
    title: str
    architecture: str | None
    parameters: int | None
    vocabulary: int | None
    context_length: int | None
    dtype: str
    dtype_note: str
    chat_template: str | None
    templates: list[dict[str, str]]
    pad_token: str | None
    end_tokens: list[str]
    gated: bool | None
    readable: bool
    licence: str | None
    download_bytes: int | None
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def model_card(model: ModelSettings, settings: Settings) -> ModelCard:
    """The card of a model with the template that was chosen for it.

    Raises:
        ModelError: there is no such model, it cannot be read, or the Hub cannot be asked (each told by its own words).
    """
    facts = facts_of(model, settings)
    dtype, note = _dtype(model)
    parameters = facts.parameters if facts.parameters is not None else _counted(facts, model.revision)
    if parameters is not None:
        note = f"{parameters * BYTES_OF[dtype] / 1e9:.2f} GB of weights{note}"
    used = template_in_use(facts, model.chat_template)
    template = chat_templates.kind_of(model.chat_template)
    if template == "own" and facts.template is None:
        template = "none"
    ends = facts.end_tokens
    if model.chat_template is not None and (end := end_of_turn(facts, used)):
        ends = tuple(dict.fromkeys([end, *ends]))
    return ModelCard(
        id=model.id,
        kind=facts.kind,
        title=facts.title,
        architecture=facts.architecture,
        parameters=parameters,
        vocabulary=facts.vocabulary,
        context_length=facts.context_length,
        dtype=dtype,
        dtype_note=note.removeprefix("; "),
        chat_template=template if facts.template_known or template not in ("own", "none") else _unknown(facts),
        templates=chat_templates.listed(),
        pad_token=facts.pad_token or next(iter(facts.end_tokens), None),
        end_tokens=list(ends),
        gated=facts.gated,
        readable=facts.readable,
        licence=facts.licence,
        download_bytes=facts.download_bytes,
        notes=[*facts.notes, *model_notes(facts, model.chat_template)],
    )


def _unknown(facts: ModelFacts) -> str | None:
    """A built-in model that was not fetched is known to have a template; of a gated one nothing is known."""
    return "own" if facts.kind == "builtin" else None


def _dtype(model: ModelSettings) -> tuple[str, str]:
    if model.dtype == "mixed":
        return "float32", "; matrices are multiplied in bfloat16"
    return model.dtype or _derived_dtype(current_device().kind == "cpu"), ""


@functools.lru_cache(maxsize=2)
def _derived_dtype(in_process: bool) -> str:
    """What `training.precision` says. A child asks a GPU: this process would hold memory on it from then on."""
    if in_process:
        load_libraries()
        from grpo_studio.training.precision import effective_dtype

        return effective_dtype(ModelSettings())
    asked = "from grpo_studio.training.precision import *; print(effective_dtype(ModelSettings()))"
    child = subprocess.run([sys.executable, "-c", asked], cwd=PACKAGE_DIR.parent, capture_output=True, text=True)
    said = child.stdout.split()
    return said[-1] if said and said[-1] in BYTES_OF else "float32"


def _counted(facts: ModelFacts, revision: str | None) -> int | None:
    """Counted from the config, without weights, where no file says how many numbers they hold."""
    if not facts.readable or facts.own_code or facts.kind not in ("local", "hub"):
        return None
    load_libraries()
    from grpo_studio.training.model_files import counted_parameters

    return counted_parameters(facts.source, revision)


def template_in_use(facts: ModelFacts, choice: str | None) -> str | None:
    """The text that will render this model's chats; None for plain text, or where a choice is no template."""
    if choice is None:
        return facts.template
    if choice == PLAIN:
        return None
    return READY[choice].text if choice in READY else choice


def judged(facts: ModelFacts, template: str) -> Verdict:
    """How a template does with this model's tokens."""
    return verdict_on(template, next(iter(facts.end_tokens), ""), facts.bos_token or "")


def end_of_turn(facts: ModelFacts, template: str | None) -> str | None:
    """The token in which a template ends an answer, when it is one that the model knows as a special one."""
    return None if template is None else judged(facts, template).end_of_turn(facts.added_tokens)


def model_notes(facts: ModelFacts, choice: str | None) -> Iterator[str]:
    """What of a model and the template chosen for it is worth knowing, and is no problem."""
    if facts.readable and facts.has_tokenizer and facts.template_known:
        yield from _template_notes(facts, choice)
        if facts.pad_token is None and facts.end_tokens:
            yield (
                f"its tokenizer has no pad token: {facts.end_tokens[0]} pads, and still ends a completion where the "
                "model writes it"
            )
    if facts.own_code:
        yield "it comes with Python code of its own, which is never run here: transformers' own class is used"


def _template_notes(facts: ModelFacts, choice: str | None) -> Iterator[str]:
    if choice is None and facts.template is None:
        yield (
            "it has no chat template (a base model?), so prompts are plain text; model.chat_template offers others, "
            f"such as {', '.join(READY)}"
        )
        return
    template = template_in_use(facts, choice)
    if template is None or judged(facts, template).fault is not None:
        return
    tail = judged(facts, template).after_answer.strip()
    if choice is not None and tail.startswith("<") and end_of_turn(facts, template) is None and facts.added_tokens:
        spelt = tail.partition(">")[0] + ">"
        if spelt not in facts.end_tokens:
            yield (
                f"the model has no token {spelt}, in which this chat template ends an answer: it would have to spell "
                f"it, and completions end at {', '.join(facts.end_tokens)} alone; user_assistant needs no such token"
            )
    if choice is None and (end := end_of_turn(facts, template)) and end not in facts.end_tokens:
        yield (
            f"its chat template ends an answer in {end}, which is not among its end tokens "
            f"({', '.join(facts.end_tokens) or 'none'}); with a chosen model.chat_template completions end there, too"
        )


def require_template(choice: str | None) -> None:
    """Refuse a choice that is no template.

    Raises:
        ConfigError: it is no ready name and no template, or the template cannot be used.
    """
    if choice not in (None, PLAIN):
        chat_templates.template_text(choice or "")
