"""Whether a text may be given to a library that evaluates it as Python: data or bounded arithmetic, nothing else.

The test is by what is allowed, never by what is forbidden. Standard library only.
"""

from __future__ import annotations

import ast
import re

_CALLS_NOTHING = re.compile(r"""[\w\s.,'"\[\]-]*""")
_LONGEST = 2000
_LARGEST_POWER = 64
_LONGEST_NUMBER = 40
_FUNCTIONS = frozenset(
    {"Abs", "acos", "asin", "atan", "cos", "cosh", "cot", "csc", "exp", "ln", "log", "sec", "sin", "sinh", "sqrt"}
    | {"tan", "tanh"}
)


def calls_nothing(text: str) -> bool:
    """Whether it has letters, digits, quotes, commas and square brackets only: evaluated, it can at most fail."""
    return _CALLS_NOTHING.fullmatch(text) is not None


def is_arithmetic(text: str) -> bool:
    """Whether it is arithmetic on numbers, names and known functions, with powers too small to cost anything."""
    if len(text) > _LONGEST:
        return False
    try:
        return _harmless(ast.parse(text.strip(), mode="eval").body, powers=2)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _harmless(node: ast.AST, powers: int) -> bool:
    """Powers are nested at most `powers` times."""
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float) and len(str(value)) <= _LONGEST_NUMBER
        case ast.Name(id=name):
            return "_" not in name
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            return _harmless(operand, powers)
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return powers > 0 and _harmless(left, powers - 1) and _harmless(right, 0) and _small(right)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), left=left, right=right):
            return _harmless(left, powers) and _harmless(right, powers)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name in _FUNCTIONS and len(arguments) <= 2 and all(_harmless(one, powers) for one in arguments)
    return False


def _small(exponent: ast.AST) -> bool:
    """Whether the product of its numbers is; an exponent has no power of its own."""
    product = 1.0
    for node in ast.walk(exponent):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            product *= max(1.0, abs(float(node.value)))
    return product <= _LARGEST_POWER
