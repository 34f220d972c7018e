"""The completion is one JSON document that a schema accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from grpo_studio.verifiers import Verdict, verifier
from grpo_studio.verifiers.answer_text import after_thinking
from grpo_studio.verifiers.json_text import last_json, read_json, unfenced
from grpo_studio.verifiers.time_bound import OutOfTime, time_bound

_SECONDS = 1.0
# Keywords whose values are data, not schemas.
_DATA = frozenset({"enum", "const", "default", "examples"})
_SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def check(schema: dict[str, Any], extract: bool) -> str | None:
    """The schema is one, its patterns compile, and what it refers to is in it."""
    from jsonschema.exceptions import SchemaError
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    try:
        checker = _checker(_text(schema))
        checker.check_schema(schema)
        for pattern in _patterns(schema):
            re.compile(pattern)
        root = Resource.from_contents(schema, default_specification=DRAFT202012)
        for resolver, reference in _references(schema, Registry().resolver_with_root(root)):
            resolver.lookup(reference)
        next(checker.iter_errors(None), None)
    except SchemaError as error:
        return f"schema is no valid JSON Schema: at {_place(error.absolute_path)}: {error.message:.200}"
    except re.error as error:
        return f"schema holds the pattern {error.pattern!r:.80}, which is not a regular expression: {error}"
    except Unresolvable as error:
        return f"schema refers to {error.ref!r:.100}, which it does not hold; nothing is fetched, so put it into $defs"
    except RecursionError:
        return "schema refers to itself without end, or is nested too deeply"
    except (TypeError, ValueError) as error:
        return f"schema is not JSON data: {error}"
    return None


def warm(schema: dict[str, Any], extract: bool) -> None:
    """Importing the validator and building it once takes longer than many items."""
    _checker(_text(schema))


@verifier(
    examples=[
        ('{"n": 3}', {"schema": _SCHEMA}, 1.0),
        ('```json\n{"n": 3.0}\n```', {"schema": _SCHEMA}, 1.0),
        ('{"n": "3"}', {"schema": _SCHEMA}, 0.0),
        ('Sure! {"n": 3}', {"schema": _SCHEMA}, 0.0),
        ('Sure! {"n": 3}', {"schema": _SCHEMA, "extract": True}, 1.0),
        ('{"n": 3} {"n": 4}', {"schema": _SCHEMA}, 0.0),
        ('{"n": 3, "n": 4}', {"schema": _SCHEMA}, 0.0),
        ('{"n": NaN}', {"schema": {"type": "object"}}, 0.0),
    ],
    check=check,
    warm=warm,
)
def json_schema(completion: str, *, schema: dict[str, Any], extract: bool = False) -> Verdict:
    """The completion is one JSON document that `schema` accepts: 1 or 0.

    `schema` is read as JSON Schema 2020-12, or as the draft that its `$schema` names; 3.0 is an integer, `format` is
    not checked, and nothing is fetched. The JSON may stand in one Markdown code block and after a thinking part. Prose
    around it scores 0; with `extract` the last object or array in the text is taken instead.

    JSON is read strictly: no NaN, no key twice, no number beyond a double's range, no more than 4,300 digits or 400
    levels. A document on which the schema's patterns backtrack for over a second scores 0.
    """
    try:
        value, written = _document(completion, extract)
    except ValueError as error:
        return Verdict(0.0, str(error))
    try:
        with time_bound(_SECONDS):
            return _judged(value, written, _text(schema))
    except OutOfTime:
        return Verdict(0.0, f"checking this document took longer than {_SECONDS:g} s", written)
    except (RecursionError, OverflowError) as error:
        return Verdict(0.0, f"this document cannot be checked: {type(error).__name__}", written)


def _judged(value: Any, written: str, schema: str) -> Verdict:
    from referencing.exceptions import Unresolvable

    try:
        error = next(_checker(schema).iter_errors(value), None)
    except Unresolvable as unknown:
        return Verdict(None, f"the schema refers to what it does not hold: {unknown}", written)
    if error is None:
        return Verdict(1.0, "", written)
    broken = error.message if len(error.message) <= 200 else f"not what {error.validator} asks for"
    return Verdict(0.0, f"at {_place(error.absolute_path)}: {broken}", written)


def _document(completion: str, extract: bool) -> tuple[Any, str]:
    """The value and its text. Thinking is left out only when the whole is no JSON: a string may hold such tags."""
    try:
        return read_json(unfenced(completion)), unfenced(completion).strip()
    except ValueError:
        rest = after_thinking(completion)
        if rest is None:
            raise ValueError("the thinking never ends") from None
        if not extract:
            return read_json(unfenced(rest)), unfenced(rest).strip()
    found = last_json(rest)
    if found is None:
        raise ValueError("no JSON object or array in the text")
    return found


def _text(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema)


@lru_cache(maxsize=8)
def _checker(schema: str) -> Any:
    """A validator for a schema given as JSON; imported here, since every start of the app loads this file."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    document = json.loads(schema)
    exact = extend(validator_for(document, default=Draft202012Validator), {"multipleOf": _multiple_of})
    # An empty registry: the default one would fetch what a remote $ref names.
    return exact(document, registry=Registry())


def _multiple_of(validator: Any, factor: Any, value: Any, schema: Any) -> Iterator[Any]:
    """By the decimals that are written: 19.99 is a multiple of 0.01, whatever a division of doubles leaves."""
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "number") and _exact(value) % _exact(factor):
        yield ValidationError(f"{value!r:.80} is not a multiple of {factor!r}")


def _exact(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _references(schema: Any, resolver: Any) -> Iterator[tuple[Any, str]]:
    """Each reference of the schema, with the resolver of the place where it stands."""
    from referencing.jsonschema import DRAFT202012

    if isinstance(schema, list):
        for item in schema:
            yield from _references(item, resolver)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("$id"), str):
        resolver = resolver.in_subresource(DRAFT202012.create_resource(schema))
    for key, value in schema.items():
        if key in ("$ref", "$dynamicRef") and isinstance(value, str):
            yield resolver, value
        elif key not in _DATA:
            yield from _references(value, resolver)


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _patterns(item)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str):
            yield value
        elif key == "patternProperties" and isinstance(value, dict):
            yield from value
        if key not in _DATA:
            yield from _patterns(value)


def _place(path: Any) -> str:
    return "/".join(str(part) for part in path) or "the top"
