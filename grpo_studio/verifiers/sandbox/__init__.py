"""Runs code that nobody vouches for, and reports what it did as plain data."""

from grpo_studio.verifiers.sandbox.asserts import GoldTests, Report, close_idle, run_tests
from grpo_studio.verifiers.sandbox.box import BoxEnded
from grpo_studio.verifiers.sandbox.command import Limits
from grpo_studio.verifiers.sandbox.level import FORCE_VARIABLE, LevelName, SandboxLevel, level
from grpo_studio.verifiers.sandbox.limited import limit_problem, limits_of, try_out
from grpo_studio.verifiers.sandbox.programs import Printed, run_program
from grpo_studio.verifiers.sandbox.submission import submitted_code

__all__ = [
    "FORCE_VARIABLE",
    "BoxEnded",
    "GoldTests",
    "LevelName",
    "Limits",
    "Printed",
    "Report",
    "SandboxLevel",
    "close_idle",
    "level",
    "limit_problem",
    "limits_of",
    "run_program",
    "run_tests",
    "submitted_code",
    "try_out",
]
