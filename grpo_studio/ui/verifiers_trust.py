"""What a visitor of the Verifiers page may make this machine run.

Code from a browser runs with the rights of the app. It is taken only where the setting allows it and, unless a person
switched it on, only from this machine itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grpo_studio.code_runs import sandbox_in_force
from grpo_studio.config import RewardSettings
from grpo_studio.errors import VerifierError
from grpo_studio.settings import Settings
from grpo_studio.ui.same_origin import asked_from_here
from grpo_studio.verifiers import discover
from grpo_studio.verifiers_used import runs_code, used_by_all

OFF_BY_SETTING = "Writing code in the browser is off: GRPO_STUDIO_EDIT_CODE is off."
OFF_BY_ADDRESS = (
    "Writing code in the browser is off, because this app can be reached from other machines. Put files into the "
    "folder instead, or set GRPO_STUDIO_EDIT_CODE=on if everybody who can reach it may run code on this machine."
)


def editor_off(settings: Settings) -> str | None:
    """Why the one who asks may not write code here; None when they may."""
    if settings.edit_code is False:
        return OFF_BY_SETTING
    if not settings.effective_edit_code() or (settings.edit_code is None and not asked_from_here.get()):
        return OFF_BY_ADDRESS
    return None


def require_editor(settings: Settings) -> None:
    """Raises VerifierError when the one who asks may not write code here."""
    if off := editor_off(settings):
        raise VerifierError(off)


def sandbox_state() -> dict[str, Any]:
    """{"level", "full", "note"}: how code in completions is kept apart on this machine, tried out once."""
    found = sandbox_in_force()
    return {"level": found.level, "full": found.walled, "note": found.detail}


def require_sandbox(settings: Settings, rewards: Sequence[RewardSettings]) -> None:
    """Code in a visitor's completion or data set is run only in the full sandbox, unless they may write code anyway.

    Raises:
        VerifierError: names the verifier and the level in force.
    """
    if not editor_off(settings):
        return
    registry = discover(settings.rewards_dirs)
    running = runs_code(used_by_all(rewards, registry), registry)
    if running and not (found := sandbox_in_force()).walled:
        raise VerifierError(
            f"{running[0]} runs code, and the sandbox in force here ({found.level}) is too weak for code of visitors"
        )
