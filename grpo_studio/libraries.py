"""The libraries of `grpo_studio.training`, brought in whole before a thread uses them.

While transformers is being imported, a second thread that imports from it gets a module without its names. Importing
the package `grpo_studio.training` waits until another thread has imported it; importing one of its modules does not.
A process that answers several requests at once therefore calls `load_libraries` before it imports any of them.
"""

from __future__ import annotations


def load_libraries() -> None:
    """Import torch and transformers, which takes seconds the first time; other threads wait until it is done."""
    import grpo_studio.training  # noqa: F401
