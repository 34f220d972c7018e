"""Load a tokenizer and render prompts exactly as the trainer's model will see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import AutoTokenizer

from grpo_studio.config import RunConfig
from grpo_studio.data import Sample
from grpo_studio.errors import ConfigError, ModelError


def load_tokenizer(source: str, revision: str | None = None) -> Any:
    """The tokenizer of a model folder or Hub id, with a pad token.

    Raises:
        ModelError: it cannot be found or read.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, revision=revision)
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"cannot load the tokenizer of {source}: {reason}; give a model with tokenizer files"
        ) from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def prompt_for(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> Any:
    """What TRL is given as the prompt: chat messages, or plain text for a model that has no chat template."""
    if tokenizer.chat_template is not None:
        return [dict(message) for message in messages]
    return "\n\n".join(message["content"] for message in messages)


def render(
    tokenizer: Any, messages: Sequence[Mapping[str, str]], template_arguments: Mapping[str, Any] | None = None
) -> str:
    """The prompt as text with its special tokens; `template_arguments` go to the chat template."""
    prompt = prompt_for(tokenizer, messages)
    if isinstance(prompt, str):
        return prompt
    return str(
        tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True, **(template_arguments or {}))
    )


def token_count(tokenizer: Any, rendered: str) -> int:
    """Tokens of a rendered prompt."""
    return len(tokenizer(rendered, add_special_tokens=tokenizer.chat_template is None)["input_ids"])


def require_room(config: RunConfig, tokenizer: Any, samples: Sequence[Sample]) -> None:
    """Refuse prompts that leave no room for a completion in the context that vLLM was given.

    Raises:
        ConfigError: the longest prompt and completion together are longer.
    """
    context = config.rollout.max_model_length
    if context is None or not config.uses_vllm:
        return
    template = config.algorithm.extra.get("chat_template_kwargs")
    longest = max(token_count(tokenizer, render(tokenizer, sample.messages, template)) for sample in samples)
    needed = longest + config.algorithm.max_completion_length
    if needed > context:
        raise ConfigError(
            f"rollout.max_model_length is {context}, but the longest prompt has {longest} tokens and a completion may "
            f"have {config.algorithm.max_completion_length}; use {needed} or more, or leave it empty"
        )
