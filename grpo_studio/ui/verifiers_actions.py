"""What the Verifiers page asks of the server: the list, and a try of one verifier. No gradio here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from grpo_studio.plots.figure import tidy
from grpo_studio.settings import Settings
from grpo_studio.ui.verifiers_catalogue import Catalogue
from grpo_studio.ui.verifiers_editor import EditorActions
from grpo_studio.ui.verifiers_requests import completion_of, name_of, reward_of, values_of
from grpo_studio.ui.verifiers_trust import require_sandbox, sandbox_state
from grpo_studio.verifiers.bench import try_it
from grpo_studio.verifiers.judge import Score

Answer = dict[str, Any]


class VerifiersActions:
    """The server functions of the list and of the try-it box. One object serves all browsers."""

    def __init__(self, settings: Settings, catalogue: Catalogue, editor: EditorActions) -> None:
        self.settings = settings
        self.catalogue = catalogue
        self.editor = editor

    def verifiers_list(self, request: Mapping[str, Any]) -> Answer:
        """Every verifier and every file that failed; `version` alone when no file changed since that version."""
        state = self.editor.state()
        if request.get("version") == self.catalogue.version() and request.get("editor") == state:
            return {"version": request["version"]}
        return self.catalogue.describe() | {"editor": state, "sandbox": sandbox_state()}

    def verifiers_try(self, request: Mapping[str, Any]) -> Answer:
        """{"score"} of one completion by one verifier."""
        name = name_of(request, "verifier", "a verifier")
        reward = reward_of(name, values_of(request, "params"))
        require_sandbox(self.settings, [reward])
        score = try_it(reward, self.settings.rewards_dirs, completion_of(request), values_of(request, "columns"))
        return {"score": told_score(score)}


def told_score(score: Score) -> Answer:
    """A score as the page shows it."""
    return asdict(score) | {"value": tidy(score.value, 4), "seconds": tidy(score.seconds, 3)}
