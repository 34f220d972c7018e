"""What a child process needs in its environment to be this very program, on the same folders."""

from __future__ import annotations

import os
from collections.abc import Mapping

from grpo_studio.settings import PACKAGE_DIR, Settings


def search_path(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variable by which a child finds this program, wherever it is started; what it holds already stays behind."""
    known = (os.environ if environment is None else environment).get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE_DIR.parent), known]))}


def of_program(settings: Settings) -> dict[str, str]:
    """The variables of a child that works on the folders of `settings`; to be put over those of this process."""
    return {
        **search_path(),
        "GRPO_STUDIO_HOME": str(settings.home),
        "GRPO_STUDIO_CACHE": str(settings.cache),
    }
