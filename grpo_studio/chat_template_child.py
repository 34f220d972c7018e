"""Tries one chat template: a JSON request on stdin, a JSON answer on stdout. Run as a file, with `python -I`.

It imports nothing of this package. The template runs in Jinja's sandbox, as transformers runs it, and the process may
use two seconds of the processor and little memory: what needs more is killed.
"""

from __future__ import annotations

import json
import resource
import sys
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import ext, nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MEMORY_BYTES = 512 << 20
CPU_SECONDS = 2
MOST_CHARACTERS = 200_000
QUESTION = "Wie viel ist 3 + 4?"
ANSWER = "Es sind sieben."
SYSTEM = "Antworte knapp."


class GenerationTag(ext.Extension):
    """The tag by which some templates mark what the assistant said; it changes nothing of the text."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


class TooLongError(Exception):
    """It writes more than any prompt of these conversations needs."""


def environment() -> ImmutableSandboxedEnvironment:
    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, **how: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **how)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return made


def rendered(template: jinja2.Template, turns: list[tuple[str, str]], ask: bool, tokens: dict[str, str]) -> str:
    messages = [{"role": role, "content": content} for role, content in turns]
    parts, size = [], 0
    for part in template.generate(messages=messages, tools=None, documents=None, add_generation_prompt=ask, **tokens):
        size += len(part)
        if size > MOST_CHARACTERS:
            raise TooLongError
        parts.append(part)
    return "".join(parts)


def judged(text: str, tokens: dict[str, str]) -> dict[str, Any]:
    answer: dict[str, Any] = {"fault": None, "harmful": False, "takes_system": False, "after_answer": ""}
    try:
        template = environment().from_string(text)
    except jinja2.TemplateSyntaxError as error:
        return answer | {"fault": f"the chat template does not compile: line {error.lineno}: {error.message}; mend it"}
    except (ValueError, OverflowError, jinja2.TemplateError) as error:
        return answer | {"fault": f"the chat template does not compile: {error}; mend it"}
    try:
        asked = rendered(template, [("user", QUESTION)], True, tokens)
    except TooLongError:
        said = f"writes over {MOST_CHARACTERS:,} characters for one short question"
        return answer | {"fault": f"the chat template {said}; use one that ends", "harmful": True}
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        return answer | {"fault": f"the chat template fails on one short question: {reason[:200]}; mend it"}
    if QUESTION not in asked:
        said = "leaves the user's message out; write {{ message['content'] }} for each of messages"
        return answer | {"fault": f"the chat template {said}"}
    with_system = tried(template, [("system", SYSTEM), ("user", QUESTION)], tokens)
    chat = tried(template, [("user", QUESTION), ("assistant", ANSWER)], tokens)
    longer = tried(template, [("user", QUESTION), ("assistant", ANSWER), ("user", QUESTION * 300)], tokens)
    if TooLongError in (with_system, chat, longer):
        said = f"writes over {MOST_CHARACTERS:,} characters for one short conversation"
        return answer | {"fault": f"the chat template {said}; use one that ends", "harmful": True}
    answer["takes_system"] = isinstance(with_system, str) and SYSTEM in with_system and QUESTION in with_system
    if isinstance(chat, str) and ANSWER in chat:
        answer["after_answer"] = chat.rpartition(ANSWER)[2][:500]
    return answer


def tried(template: jinja2.Template, turns: list[tuple[str, str]], tokens: dict[str, str]) -> Any:
    """What it writes, TooLongError, or None where it refuses, as many do a role that they do not know."""
    try:
        return rendered(template, turns, turns[-1][0] != "assistant", tokens)
    except TooLongError:
        return TooLongError
    except (MemoryError, RecursionError):
        raise
    except Exception:  # whatever its own code raises is its refusal
        return None


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    request = json.load(sys.stdin)
    tokens = {name: request[name] for name in ("eos_token", "bos_token")}
    print(json.dumps(judged(request["template"], tokens)))


if __name__ == "__main__":
    main()
