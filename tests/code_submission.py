"""A piece of code as a model would hand it in, judged by tests in a real sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grpo_studio.verifiers import Verdict, discover

code_asserts = discover([Path(__file__).resolve().parents[1] / "rewards"]).get("code_asserts").function

TESTS = "assert twice(4) == 8\nassert twice(-1) == -2"
RIGHT = "def twice(n):\n    return 2 * n"


def judged(code: str, tests: Any = TESTS, **params: Any) -> Verdict:
    """The verdict on `code`, which stands in a fenced block."""
    verdict = code_asserts(f"```python\n{code}\n```", tests, **params)
    assert isinstance(verdict, Verdict)
    return verdict
