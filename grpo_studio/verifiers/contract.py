"""What a verifier is: a function of one completion, marked with `@verifier` and described by a `VerifierSpec`.

    @verifier(examples=[("The answer is 12.", {"answer": "12"}, 1.0)])
    def my_rule(completion: str, answer: str, *, strict: bool = True) -> float | None | Verdict: ...

The first parameter is the completion's text. The other positional parameters name the data columns that it is
called with, and nothing else is passed (one with a default is optional; `**columns` asks for all of them).
Keyword-only parameters are its `params`, set by whoever configures the run. It returns a number, `None` (cannot
judge) or a `Verdict`.

Besides the columns of the data set a verifier may name those of `GIVEN_COLUMNS`, which whoever samples the completion
provides.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from grpo_studio.errors import VerifierError

Function = TypeVar("Function", bound=Callable[..., Any])
Check = Callable[..., "str | None"]
Place = Literal["judge", "trainer"]
GIVEN_COLUMNS: Final = ("prompt", "completion_tokens")
"""Given with every sampled completion: the prompt's text, and the completion's length in tokens (an int)."""
SPEC_ATTRIBUTE: Final = "__verifier_spec__"
MARKED: Final = "__marked_verifiers__"
"""The global name under which a module keeps every spec made in it: also of a function whose name was taken over."""
_THOUGHT_BLOCKS: Final = frozenset({"thinking", "reasoning", "redacted_thinking"})


class Required(Enum):
    """The 'default' of a param that has none: it must be given."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED


@dataclass(frozen=True)
class Verdict:
    """A score with its reason and what was read as the answer; `score=None` abstains."""

    score: float | None
    reason: str = ""
    extracted: str | None = None


@dataclass(frozen=True)
class Example:
    """One line of a verifier's own specification; `values` holds columns, and params by their names."""

    completion: Any
    values: Mapping[str, Any]
    expected: float | None


@dataclass(frozen=True)
class VerifierSpec:
    """A verifier as the rest of the app sees it.

    `purpose` is the first line of its docstring. `params` maps each name to its default, or to `REQUIRED`.
    `optional_columns` are those of `columns` that have a default; `all_columns`: it takes whatever there is.
    The hooks below are called with the params by name, defaults filled in:
    - `check` returns an error message or None; it runs at set-up, before any completion is judged;
    - `warm` runs once in each judge process before its first item: slow imports and compiled tables belong there;
    - `seconds` returns how long one item may rightly take (code that runs tests); the judge waits at least as long.
    `ideal`, called with the columns and params by name, returns a completion that deserves the highest score for this
    gold, or None when the gold cannot be read. A param of `from_columns` that is not set has the value of the column of
    its name, where there is one. `place` is who scores: a judge process, or the trainer on its device. `runs_code`: it
    runs code that a model wrote, in the sandbox.
    """

    name: str
    purpose: str
    path: Path
    function: Callable[..., Any]
    columns: tuple[str, ...]
    params: Mapping[str, Any]
    examples: tuple[Example, ...]
    check: Check | None = None
    optional_columns: frozenset[str] = frozenset()
    annotations: Mapping[str, Any] = field(default_factory=dict)
    all_columns: bool = False
    warm: Callable[..., None] | None = None
    seconds: Callable[..., float] | None = None
    ideal: Callable[..., str | None] | None = None
    place: Place = "judge"
    from_columns: frozenset[str] = frozenset()
    runs_code: bool = False

    def takes(self, column: str) -> bool:
        """Whether it is called with this column; with `**columns`, a param or the completion hides one of its name."""
        if column in self.columns or column in self.from_columns:
            return True
        return self.all_columns and column != "completion" and column not in self.params

    def with_defaults(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """`params`, with the defaults of those that are not given; a required one that is missing stays missing."""
        return {name: value for name, value in self.params.items() if value is not REQUIRED} | dict(params)


def verifier(
    examples: Sequence[tuple[Any, Mapping[str, Any], float | None]],
    check: Check | None = None,
    *,
    warm: Callable[..., None] | None = None,
    seconds: Callable[..., float] | None = None,
    ideal: Callable[..., str | None] | None = None,
    place: Place = "judge",
    from_columns: Sequence[str] = (),
    runs_code: bool = False,
) -> Callable[[Function], Function]:
    """Mark a function as a verifier. It is returned unchanged, with its spec attached.

    Each example is `(completion, {column or param: value}, expected score or None)`; all else is that
    of `VerifierSpec`. Raises VerifierError when the signature breaks the contract or there is no example.
    """

    def mark(function: Function) -> Function:
        spec = replace(
            _describe(function, examples),
            check=check,
            warm=warm,
            seconds=seconds,
            ideal=ideal,
            place=place,
            from_columns=frozenset(from_columns),
            runs_code=runs_code,
        )
        if strange := sorted(spec.from_columns - set(spec.params)):
            raise VerifierError(f"verifier '{spec.name}' has no param '{strange[0]}' to fill from a column")
        setattr(function, SPEC_ATTRIBUTE, spec)
        function.__globals__.setdefault(MARKED, []).append(spec)
        return function

    return mark


def spec_of(value: object) -> VerifierSpec | None:
    """The spec that `@verifier` attached, or None for anything else."""
    found = getattr(value, "__dict__", {}).get(SPEC_ATTRIBUTE) if inspect.isfunction(value) else None
    return found if isinstance(found, VerifierSpec) else None


def text_of(value: Any) -> str:
    """The text of a completion in any form: str, chat messages (the last assistant turn), content blocks, None.

    Every verifier is given text only, so none of them can mistake a one-message list for a one-character answer.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return _content_text(value["content"]) if "content" in value else _content_text([value])
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        turns = [item for item in value if isinstance(item, Mapping) and ("role" in item or "content" in item)]
        if not turns:
            return _content_text(value)
        spoken = [turn for turn in turns if turn.get("role", "assistant") == "assistant"]
        return _content_text(spoken[-1].get("content")) if spoken else ""
    return str(value)


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, Sequence):
        return str(content)
    return "".join(_block_text(block) for block in content)


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type", "text") not in _THOUGHT_BLOCKS:
        text = block.get("text")
        return text if isinstance(text, str) else ""
    return ""


def _example(name: str, number: int, given: Any) -> Example:
    """Raises VerifierError for what is no example."""
    try:
        completion, values, expected = given
        score = None if expected is None else float(expected)
        if isinstance(expected, str) or not isinstance(values, Mapping) or (score is not None and score != score):
            raise TypeError
    except (TypeError, ValueError):
        form = "(completion, {column or param: value}, expected score or None)"
        raise VerifierError(f"verifier '{name}': example {number} is {given!r:.80}; it must be {form}") from None
    return Example(completion, values, score)


def _describe(
    function: Callable[..., Any],
    examples: Sequence[tuple[Any, Mapping[str, Any], float | None]],
) -> VerifierSpec:
    name = function.__name__
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise VerifierError(f"verifier '{name}' must be a plain function, not a coroutine or a generator")
    if not examples:
        raise VerifierError(f"verifier '{name}' has no examples; give at least one")
    columns: list[str] = []
    optional: set[str] = set()
    params: dict[str, Any] = {}
    all_columns = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and parameter.name == "columns":
            all_columns = True
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise VerifierError(f"verifier '{name}' takes {parameter}; name each column and param instead")
        has_default = parameter.default is not parameter.empty
        if parameter.kind is parameter.KEYWORD_ONLY:
            params[parameter.name] = parameter.default if has_default else REQUIRED
        else:
            columns.append(parameter.name)
            optional |= {parameter.name} if has_default else set()
    if not columns or columns[0] != "completion":
        raise VerifierError(f"verifier '{name}' must take 'completion' as its first parameter")
    try:
        annotations = typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError, SyntaxError):
        annotations = {}  # Names that exist for a type checker only: then the defaults' types decide.
    return VerifierSpec(
        name=name,
        purpose=(inspect.getdoc(function) or "").partition("\n")[0].strip(),
        path=Path(function.__code__.co_filename),
        function=function,
        columns=tuple(columns[1:]),
        params=params,
        examples=tuple(_example(name, number, example) for number, example in enumerate(examples, start=1)),
        optional_columns=frozenset(optional),
        annotations={key: annotations[key] for key in params if key in annotations},
        all_columns=all_columns,
    )
