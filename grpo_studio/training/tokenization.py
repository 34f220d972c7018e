"""Load a tokenizer and render prompts exactly as the trainer's model will see them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from transformers import AutoTokenizer

from grpo_studio.chat_templates import PLAIN, READY, Verdict, one_of, template_text, verdict_on
from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import DataError, ModelError
from grpo_studio.shown import shown
from grpo_studio.training.token_lengths import TokenLengths

ROWS_AT_ONCE = 1000


def load_tokenizer(source: str, revision: str | None = None, chat_template: str | None = None) -> Any:
    """The tokenizer of a model folder or Hub id, with a pad token and the template that was chosen.

    Args:
        chat_template: as `model.chat_template`. Where a chosen template ends an answer in a token of this model's
            vocabulary, that becomes the end token, so that completions end there.

    Raises:
        ModelError: it cannot be found or read, or its own template could hang what renders it.
        ConfigError: the chosen template cannot be used.
    """
    tokenizer = _read(source, revision)
    if tokenizer.eos_token is None:
        raise ModelError(f"the tokenizer of {source} has no end token; give a model whose tokenizer has an eos_token")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if chat_template == PLAIN:
        tokenizer.chat_template = None
    elif chat_template is not None:
        text = template_text(chat_template)
        begins = chat_template in READY and _begins_with_bos(tokenizer)
        tokenizer.chat_template = ("{{ bos_token }}" if begins else "") + text
        if end := end_of_turn(tokenizer):
            tokenizer.eos_token = end
    elif tokenizer.chat_template is not None and (verdict := _verdict(tokenizer)).harmful:
        raise ModelError(f"{source}: {(verdict.fault or '').rpartition('; ')[0]}; set model.chat_template to another")
    return tokenizer


def _read(source: str, revision: str | None) -> Any:
    try:
        # Left out, it would be asked for on the terminal.
        tokenizer = AutoTokenizer.from_pretrained(source, revision=revision, trust_remote_code=False)
    except Exception as error:  # the boundary to transformers and tokenizers, which raise many kinds, bare ones too
        reason = shown(str(error), 200)
        raise ModelError(
            f"cannot load the tokenizer of {source}: {reason}; give a model with tokenizer files"
        ) from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and type(backend.model).__name__ == "BPE":
        tokenizer.clean_up_tokenization_spaces = False  # transformers does not do it for these, but warns of it
    return tokenizer


def _begins_with_bos(tokenizer: Any) -> bool:
    """Whether the model expects its begin token before plain text; no template's text gets one by itself."""
    ids = tokenizer("a")["input_ids"]
    return tokenizer.bos_token_id is not None and ids[:1] == [tokenizer.bos_token_id]


def end_of_turn(tokenizer: Any) -> str | None:
    """The token in which the template ends an answer, when it is one that this tokenizer knows as a special one."""
    if tokenizer.chat_template is None:
        return None
    return _verdict(tokenizer).end_of_turn(special_tokens(tokenizer))


def special_tokens(tokenizer: Any) -> set[str]:
    """Tokens that are no text: the tokenizer's special and added ones."""
    return {token for token in (*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()) if token.strip()}


def _verdict(tokenizer: Any) -> Verdict:
    text = one_of(tokenizer.chat_template)
    if text is None:
        return Verdict(None)
    return verdict_on(text, tokenizer.eos_token or "", tokenizer.bos_token or "")


def prompt_for(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> Any:
    """What TRL is given as the prompt: chat messages, or plain text for a model that has no chat template.

    A template that drops or refuses a system message gets its text at the head of the user's first message instead.
    """
    if tokenizer.chat_template is None:
        return "\n\n".join(message["content"] for message in messages)
    turns = [dict(message) for message in messages]
    if turns[0]["role"] == "system" and len(turns) > 1 and not _verdict(tokenizer).takes_system:
        system = turns.pop(0)["content"]
        first = next((turn for turn in turns if turn["role"] == "user"), turns[0])
        first["content"] = f"{system}\n\n{first['content']}"
    return turns


def render(
    tokenizer: Any, messages: Sequence[Mapping[str, str]], template_arguments: Mapping[str, Any] | None = None
) -> str:
    """The prompt as text with its special tokens; `template_arguments` go to the chat template."""
    return _rendered(tokenizer, [messages], template_arguments)[0]


def _rendered(
    tokenizer: Any, conversations: Sequence[Sequence[Mapping[str, str]]], arguments: Mapping[str, Any] | None
) -> list[str]:
    prompts = [prompt_for(tokenizer, messages) for messages in conversations]
    if tokenizer.chat_template is None:
        return prompts
    return list(tokenizer.apply_chat_template(prompts, tokenize=False, add_generation_prompt=True, **(arguments or {})))


def token_counts(
    tokenizer: Any, samples: Sequence[Sample], template_arguments: Mapping[str, Any] | None = None
) -> list[int]:
    """Tokens of each sample's rendered prompt: a thousand at once, without making the ids.

    Raises:
        DataError: the chat template refuses a row; it is named.
    """
    return list(itertools.chain.from_iterable(count_in_parts(tokenizer, samples, template_arguments)))


def count_in_parts(
    tokenizer: Any, samples: Sequence[Sample], template_arguments: Mapping[str, Any] | None = None
) -> Iterator[list[int]]:
    """`token_counts`, a part at a time, so that what shows progress can tell it.

    Raises:
        DataError: as `token_counts`.
    """
    parts = [samples[start : start + ROWS_AT_ONCE] for start in range(0, len(samples), ROWS_AT_ONCE)]
    lengths = TokenLengths(tokenizer, special=tokenizer.chat_template is None)
    # The template is Python, the tokenizer is not: the next part is rendered while this one is counted.
    with ThreadPoolExecutor(1, thread_name_prefix="render") as ahead:
        rendered = [ahead.submit(render_all, tokenizer, part, template_arguments) for part in parts[:1]]
        for number in range(1, len(parts) + 1):
            texts = rendered.pop().result()
            rendered += [ahead.submit(render_all, tokenizer, part, template_arguments) for part in parts[number:][:1]]
            yield lengths.of(texts)


def render_all(
    tokenizer: Any, samples: Sequence[Sample], template_arguments: Mapping[str, Any] | None = None
) -> list[str]:
    """Each sample's prompt as `render` gives it.

    Raises:
        DataError: the chat template refuses a row; it is named.
    """
    try:
        return _rendered(tokenizer, [sample.messages for sample in samples], template_arguments)
    except Exception as error:  # whatever the template's own code raises
        if len(samples) > 1:
            return [text for sample in samples for text in render_all(tokenizer, [sample], template_arguments)]
        reason = shown(str(error), 200)
        roles = ", ".join(message["role"] for message in samples[0].messages)[:100]
        raise DataError(
            f"row {samples[0].row}: the model's chat template refuses its messages ({roles}): {reason}; mend the row, "
            "or set model.chat_template to another"
        ) from error


def stop_at_end_token(arguments: Any, config: RunConfig, tokenizer: Any) -> None:
    """Let vLLM end completions at the end token of a chosen template: by itself it knows the model's own alone."""
    if config.uses_vllm and config.model.chat_template not in (None, PLAIN):
        asked = dict(arguments.generation_kwargs or {})
        stops = [*(asked.get("stop_token_ids") or ()), tokenizer.eos_token_id]
        arguments.generation_kwargs = asked | {"stop_token_ids": list(dict.fromkeys(stops))}
