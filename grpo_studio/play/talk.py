"""What is said in a chat and how it is asked for: plain values, checked where they come in. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from grpo_studio.config import DatasetSettings, RunConfig
from grpo_studio.errors import UsageError
from grpo_studio.shown import shown

MOST_MESSAGES, LONGEST_MESSAGE = 200, 100_000
MOST_TOKENS = 8192

Message = dict[str, str]


@dataclass(frozen=True)
class Sampling:
    """How a reply is sampled; temperature 0 is greedy. The same seed gives both sides the same luck."""

    temperature: float = 0.0
    max_tokens: int = 256
    seed: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Reply:
    """What a side said. `truncated`: it ended at the greatest number of tokens, not by itself."""

    text: str
    tokens: int
    truncated: bool


def sampling_of(asked: Mapping[str, Any], config: RunConfig) -> Sampling:
    """The sampling that a request asks for; what it leaves out is greedy and as long as the run's completions.

    Raises:
        UsageError: a value is out of bounds.
    """
    length = min(config.algorithm.max_completion_length, MOST_TOKENS)
    temperature = _number(asked, "temperature", 0.0, least=0.0, most=5.0)
    tokens = _number(asked, "max_tokens", length, least=1, most=MOST_TOKENS)
    seed = _number(asked, "seed", config.algorithm.seed, least=0, most=2**31 - 1)
    return Sampling(float(temperature), int(tokens), int(seed))


def messages_of(asked: Any) -> list[Message]:
    """The chat of a request: turns of user and assistant, the last one of the user.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(asked, Sequence) or isinstance(asked, str) or not 1 <= len(asked) <= MOST_MESSAGES:
        raise UsageError(f"a chat has 1 to {MOST_MESSAGES} messages; begin a new one")
    messages: list[Message] = []
    for item in asked:
        role, content = (item.get("role"), item.get("content")) if isinstance(item, Mapping) else (None, None)
        if role not in ("user", "assistant") or not isinstance(content, str) or len(content) > LONGEST_MESSAGE:
            raise UsageError(
                f"a message has a role (user or assistant) and up to {LONGEST_MESSAGE:,} characters of text"
            )
        messages.append({"role": str(role), "content": content})
    if messages[-1]["role"] != "user" or not messages[-1]["content"].strip():
        raise UsageError("the last message is empty or not the user's; write something")
    return messages


def as_in_training(messages: Sequence[Message], settings: DatasetSettings, template: bool) -> list[Message]:
    """The chat with the run's system prompt before it and, with `template`, its template around each question."""
    around = settings.prompt_template if template else None
    turns: list[Message] = [{"role": "system", "content": settings.system_prompt}] if settings.system_prompt else []
    for message in messages:
        content = message["content"]
        if around is not None and message["role"] == "user":
            content = around.replace("{prompt}", content)
        turns.append(message | {"content": content})
    return turns


def _number(asked: Mapping[str, Any], name: str, default: float, least: float, most: float) -> float:
    value = asked.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise UsageError(f"{name} is {shown(value, 40)}; give a number from {least:g} to {most:g}")
    return value
