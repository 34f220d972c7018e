"""The parts of this program that a script needs, copied under another name: found by walking their imports."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grpo_studio.errors import VerifierError
from grpo_studio.settings import PACKAGE_DIR

OWN = "grpo_studio"
SUPPORT = "run_support"
"""Name of the package in the script's folder."""
JUDGE = ("grpo_studio.verifiers.judge", "grpo_studio.training.dead_groups")
"""What every script imports."""
_NAME = re.compile(r"grpo_studio(\.[A-Za-z_]\w*)+", re.ASCII)
_WORD = re.compile(r"\bgrpo_studio\b")


@dataclass(frozen=True)
class Support:
    """`files`: path below the script's folder -> text. `packages`: what else they import, by its top name."""

    files: Mapping[Path, str]
    packages: frozenset[str]


def support_of(verifier_files: Iterable[Path]) -> Support:
    """The modules that the script and these verifier files need, those that they need in turn, all renamed.

    Raises:
        VerifierError: a verifier file is no Python that can be read.
    """
    waiting, packages = list(JUDGE), set[str]()
    for path in verifier_files:
        imported = list(_imported(_parsed(path)))
        waiting += [name for name in imported if _top(name) == OWN]
        packages |= {_top(name) for name in imported} - {OWN}
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        module = _file_of(name)
        if name in found or module is None:
            continue
        found[name] = module
        parts = name.split(".")
        waiting += [".".join(parts[:count]) for count in range(1, len(parts))]
        names = _names_of(module)
        waiting += [one for one in names if _top(one) == OWN]
        packages |= {_top(one) for one in names} - {OWN}
    files = {
        Path(SUPPORT, *path.relative_to(PACKAGE_DIR).parts): _WORD.sub(SUPPORT, path.read_text("utf-8"))
        for path in found.values()
    }
    return Support(files, frozenset(packages - sys.stdlib_module_names))


def renamed(path: Path) -> bytes:
    """A verifier file with its imports of this program changed to those of the script's package.

    Only names and whole strings that name a module are touched, so its comments and texts stay as they were; and it
    stays in the encoding that it says it is in.

    Raises:
        VerifierError: it is no Python that can be read.
    """
    text = _source(path)
    lines = io.StringIO(text).readlines()  # as tokenize counts them: only a newline ends one
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError) as error:
        raise _unreadable(path, error) from error
    for token in reversed(tokens):
        if token.start[0] != token.end[0] or not _names_us(token):
            continue
        row, (start, end) = token.start[0] - 1, (token.start[1], token.end[1])
        lines[row] = lines[row][:start] + token.string.replace(OWN, SUPPORT, 1) + lines[row][end:]
    with path.open("rb") as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
    return "".join(lines).encode(encoding)


def _names_us(token: tokenize.TokenInfo) -> bool:
    if token.type == tokenize.NAME:
        return token.string == OWN
    return token.type == tokenize.STRING and _NAME.fullmatch(token.string.strip("\"'")) is not None


@cache
def _names_of(path: Path) -> tuple[str, ...]:
    return tuple(_imported(ast.parse(path.read_text("utf-8"))))


def _imported(tree: ast.Module) -> Iterator[str]:
    """All names that may be modules: imported ones, and strings that a child process is started by.

    What stands under TYPE_CHECKING is never executed, so it is left out.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value):
            yield node.value
            yield from _whole_package(node.value)


def _whole_package(name: str) -> Iterator[str]:
    """The modules of a package that is named by a string: its files are read one by one, and not imported."""
    path = _file_of(name)
    if path is not None and path.name == "__init__.py":
        yield from (f"{name}.{other.stem}" for other in sorted(path.parent.glob("*.py")) if other != path)


def _file_of(name: str) -> Path | None:
    """The file of a module of this program; None for what is none, such as a function."""
    if _top(name) != OWN:
        return None
    place = PACKAGE_DIR.joinpath(*name.split(".")[1:])
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(_source(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error


def _source(path: Path) -> str:
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> VerifierError:
    return VerifierError(f"the verifier file {path} cannot be read as Python: {error}; mend it and start the run again")
