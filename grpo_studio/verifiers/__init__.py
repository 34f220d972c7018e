"""The verifier contract, discovery by path, and judging in child processes. Standard library only.

A verifier file needs one line: `from grpo_studio.verifiers import Verdict, verifier`. The judge and the case runner
are imported from their own modules, so that a child process that only judges stays quick to start.
"""

from grpo_studio.verifiers.contract import Verdict, VerifierSpec, text_of, verifier
from grpo_studio.verifiers.discovery import LoadFailure, Registry, discover, problems_of

__all__ = [
    "LoadFailure",
    "Registry",
    "Verdict",
    "VerifierSpec",
    "discover",
    "problems_of",
    "text_of",
    "verifier",
]
