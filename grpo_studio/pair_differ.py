"""What `--differ a.b=x,y` says: a setting and its two values. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from grpo_studio.config_files import with_overrides
from grpo_studio.errors import ConfigError, UsageError
from grpo_studio.shown import shown


def parse_differ(text: str) -> tuple[str, tuple[Any, Any]]:
    """The setting and its two values out of `a.b=x,y`.

    Each value is read as `--set` reads it; commas inside brackets or quotes are part of it. A text in quotes is what
    stands between them.

    Raises:
        UsageError: there is no '=', or there are not two values.
    """
    field, equals, rest = text.partition("=")
    field = field.strip()
    if not equals or not field:
        raise UsageError(f"--differ {shown(text)!r} has no '='; write it like --differ memory.loss_backend=liger,full")
    parts = split_values(rest)
    if len(parts) != 2:
        raise UsageError(
            f"--differ {shown(field)} takes two values, and this has {len(parts)}: {shown(rest)!r}; write "
            f"{shown(field)}=x,y and put a value with a comma of its own in quotes"
        )
    return field, (_value(field, parts[0]), _value(field, parts[1]))


def split_values(text: str) -> list[str]:
    """The parts between commas that stand outside brackets and quotes, without the spaces around them.

    A quote opens where a value begins, as in YAML: that of "don't" is a letter.

    Raises:
        UsageError: a bracket or quote is not closed.
    """
    parts, begun, depth, quote, before, at = [], 0, 0, "", ",", 0
    while at < len(text):
        char = text[at]
        if quote:
            if (quote == '"' and char == "\\") or (quote == "'" and text[at : at + 2] == "''"):
                at += 1
            elif char == quote:
                quote = ""
        elif char in "\"'" and (before in "[{," or (before == ":" and depth > 0)):
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char == "," and depth <= 0:
            parts.append(text[begun:at].strip())
            begun, depth = at + 1, 0
        before = before if char.isspace() else char
        at += 1
    if quote or depth > 0:
        what = "quote" if quote else "bracket"
        raise UsageError(f"--differ has a {what} that is not closed: {shown(text)!r}; close it")
    return [*parts, text[begun:].strip()]


def _value(field: str, text: str) -> Any:
    """One value by itself, as `--set` reads it."""
    try:
        found: Any = with_overrides({}, [f"{field}={text}"])
    except (ConfigError, UsageError) as error:
        raise type(error)(str(error).replace("--set", "--differ", 1)) from error
    for part in field.split("."):
        found = found[part]
    return _unquoted(found) if isinstance(found, str) else found


def _unquoted(text: str) -> str:
    """A text setting stands as it is; quotes around all of it are there for the commas in it."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":
        return text
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return found if isinstance(found, str) else text
