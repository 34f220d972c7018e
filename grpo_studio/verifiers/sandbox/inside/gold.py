"""The tests as a program: read, checked, and rewritten so that each assertion is counted by itself."""

from __future__ import annotations

import ast
import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_KNOWN = {
    **dict.fromkeys(("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"), "collections"),
    **dict.fromkeys(("isclose", "sqrt", "pi", "inf", "nan", "isnan", "floor", "ceil", "fabs", "gcd"), "math"),
    **dict.fromkeys(("deepcopy",), "copy"),
    **dict.fromkeys(("Fraction",), "fractions"),
    **dict.fromkeys(("Decimal",), "decimal"),
}
# What tests call the submission when they import it whole. `from x import name` may call it anything.
_SUBMISSIONS = frozenset(
    {"solution", "submission", "candidate", "main", "answer", "program", "your_module", "my_module"}
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Gold:
    """A compiled test program, and what its text says about it."""

    def __init__(self, text: str) -> None:
        """Raises SyntaxError, ValueError, RecursionError or MemoryError for what is not Python."""
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        self.asserts = sum(isinstance(node, ast.Assert) or _is_assertion(node) for node in nodes)
        self.defined = {node.name: node for node in tree.body if isinstance(node, _DEFINITIONS)}
        self.used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        bound |= {node.name for node in nodes if isinstance(node, _DEFINITIONS)}
        bound |= {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}
        self.free = self.used - bound
        bases = [node.value for node in nodes if isinstance(node, ast.Attribute)]
        modules = self.free & {node.id for node in bases if isinstance(node, ast.Name)}
        self.modules = {name for name in modules if name in sys.stdlib_module_names or name == "np"}
        self.handed = _handed(nodes)
        ordinary = {name for name in self.free - self.modules if not hasattr(builtins, name) and name not in _KNOWN}
        foreign = any(isinstance(node, ast.ImportFrom) and _foreign(node.module) for node in imports)
        # `abs` in `abs(f(2) - 4) < 1` must not be the submission's; in `sum(10, 15) == 6` it can be nothing else.
        self.own_builtins = not (ordinary or foreign or "check" in self.defined)
        self.code = compile(ast.fix_missing_locations(_Counted().visit(tree)), "<tests>", "exec")

    def is_safe(self, name: str) -> bool:
        """Whether a name that the tests use without defining it may be the submission's."""
        ordinary = self.own_builtins or not (hasattr(builtins, name) or name in _KNOWN)
        return name in self.handed or (ordinary and name not in self.modules)

    def test_functions(self) -> Iterator[str]:
        """Functions that a test runner would call, and that nothing here calls."""
        for name, node in self.defined.items():
            if name.startswith("test") and isinstance(node, ast.FunctionDef) and name not in self.used:
                yield name


def library(name: str) -> object:
    """What a well-known name means that the tests use without importing it. Raises KeyError."""
    if name in _KNOWN:
        return getattr(__import__(_KNOWN[name]), name)
    if name in sys.stdlib_module_names or name == "np":
        return __import__("numpy" if name == "np" else name)
    raise KeyError(name)


def _handed(nodes: list[ast.AST]) -> set[str]:
    """The names that are handed to `check`: what they name is under test, whatever else is called so."""
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    checks = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "check"]
    return {arg.id for node in checks for arg in node.args if isinstance(arg, ast.Name)}


def _is_assertion(node: ast.AST) -> bool:
    """`self.assertEqual(...)`, `pytest.raises(...)` and the like."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.lower().startswith("assert") or name in ("raises", "fail")


def _foreign(module: str | None) -> bool:
    """A module that is nowhere: it stands for the submission (`from solution import add`)."""
    top = (module or "").partition(".")[0]
    if not top or top in sys.stdlib_module_names or top in ("pytest", "numpy"):
        return not top
    from importlib.util import find_spec

    return find_spec(top) is None


class _Counted(ast.NodeTransformer):
    def visit_Module(self, node: ast.Module) -> ast.Module:
        body: list[ast.stmt] = []
        for statement in node.body:
            new = self.visit(statement)
            if isinstance(statement, (*_DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assert)):
                body.append(new)
            else:
                body.append(_under("__statement__", new, statement.lineno))
        node.body = body
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.With:
        return _under("__counted__", node, node.lineno)

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        alias = node.names[0]
        if alias.name not in _SUBMISSIONS or not _foreign(alias.name):
            return node
        return _assigned(alias.asname or alias.name, "__submission__", [])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if node.module == "__future__" or not _foreign(node.module):
            return node
        pairs = [(alias.asname or alias.name, alias.name) for alias in node.names if alias.name != "*"]
        statements: list[ast.stmt] = [_assigned(name, "__named__", [ast.Constant(origin)]) for name, origin in pairs]
        return ast.copy_location(ast.If(ast.Constant(True), statements or [ast.Pass()], []), node)


def _assigned(name: str, function: str, args: list[ast.expr]) -> ast.stmt:
    value = ast.Call(ast.Name(function, ast.Load()), args, [])
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=1)


def _under(name: str, statement: ast.stmt, line: int) -> ast.With:
    call = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(line)], [])
    return ast.copy_location(ast.With([ast.withitem(call)], [statement]), statement)
