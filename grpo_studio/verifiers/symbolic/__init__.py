"""Reads a mathematical answer whole, or not at all, and compares two of them at a bounded cost.

Standard library and mpmath; math-verify with sympy comes in only for what `second_opinion` is asked about. A reading
never drops a part of the text, and every size is estimated before anything is computed, so that a text of a few
characters cannot stand for a number that fills the memory.
"""

from grpo_studio.verifiers.symbolic.answer import Answer, read_answer
from grpo_studio.verifiers.symbolic.find import in_completion, in_gold
from grpo_studio.verifiers.symbolic.match import difference
from grpo_studio.verifiers.symbolic.second_opinion import warm_up

__all__ = ["Answer", "difference", "in_completion", "in_gold", "read_answer", "warm_up"]
