"""The editor of the Verifiers page: a person's own files, checked before they can be used. No gradio here.

Every function asks `verifiers_trust` first whether this visitor may write code here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grpo_studio.errors import UsageError
from grpo_studio.settings import BUNDLED_REWARDS, Settings
from grpo_studio.ui.verifiers_catalogue import Catalogue
from grpo_studio.ui.verifiers_code import run_code
from grpo_studio.ui.verifiers_files import OwnFiles, encoded
from grpo_studio.ui.verifiers_requests import completion_of, name_of, values_of
from grpo_studio.ui.verifiers_trust import editor_off, require_editor

TEMPLATE = Path(__file__).resolve().parent / "verifier_template.py.txt"

Answer = dict[str, Any]


class EditorActions:
    """The server functions of the editor. One object serves all browsers."""

    def __init__(self, settings: Settings, catalogue: Catalogue, builtin: Path = BUNDLED_REWARDS) -> None:
        self.settings = settings
        self.catalogue = catalogue
        self.files = OwnFiles(settings.own_rewards, builtin)

    def state(self) -> Answer:
        """Whether the editor is on for who asks, why not, and the own files."""
        return {"off": editor_off(self.settings), "folder": str(self.files.folder), "files": self.files.names()}

    def verifiers_new(self, request: Mapping[str, Any]) -> Answer:
        """{"file", "code"} of a new verifier from the template, under the name asked for."""
        require_editor(self.settings)
        file = self.files.target(request.get("name")).lstrip("_")
        if file in self.files.names():
            raise UsageError(f"there is already a file {file}; open it, or give another name")
        return {"file": file, "code": TEMPLATE.read_text(encoding="utf-8").replace("NAME", file.removesuffix(".py"))}

    def verifiers_open(self, request: Mapping[str, Any]) -> Answer:
        """{"file", "code", "seen"} of an own file."""
        require_editor(self.settings)
        file = name_of(request, "file", "a file")
        code, seen = self.files.read(file)
        return {"file": file, "code": code, "seen": seen}

    def verifiers_check(self, request: Mapping[str, Any]) -> Answer:
        """What came of the text: its problem with the line, its verifiers, and each of its own examples."""
        require_editor(self.settings)
        return self._checked(self._usable_name(request), encoded(request.get("code")).decode())

    def verifiers_try_code(self, request: Mapping[str, Any]) -> Answer:
        """{"score"} of one completion by a verifier of the text, or its problems."""
        require_editor(self.settings)
        asked = {
            "mode": "try",
            "verifier": name_of(request, "verifier", "a verifier"),
            "completion": completion_of(request),
            "columns": values_of(request, "columns"),
            "params": values_of(request, "params"),
        }
        code = encoded(request.get("code")).decode()
        return run_code(self._usable_name(request), code, asked, self.settings.rewards_dirs)

    def verifiers_save(self, request: Mapping[str, Any]) -> Answer:
        """{"saved", "seen", "report"}, or {"report"} alone when it cannot be used as it is.

        {"conflict"}: it would lose what the page has not seen, until `replace` says that it may. A draft (`draft`) is
        written unchecked, under a name that is not loaded.
        """
        require_editor(self.settings)
        code = encoded(request.get("code")).decode()
        usable = self._usable_name(request)
        if request.get("draft") is True:
            return self._write(f"_{usable}", code, request) | {"draft": True}
        report = self._checked(usable, code)
        if not report["ok"]:
            return {"report": report}
        return self._write(usable, code, request) | {"report": report}

    def verifiers_delete(self, request: Mapping[str, Any]) -> Answer:
        """{"deleted": file}, or {"conflict"} as in `verifiers_save`."""
        require_editor(self.settings)
        file = name_of(request, "file", "a file")
        with self.files.lock:
            if file in self.files.names():
                conflict = self.files.conflict(file, {**request, "opened": file})
                if conflict and request.get("replace") is not True:
                    return {"conflict": conflict}
            self.files.delete(file)
        return {"deleted": file}

    def _write(self, file: str, code: str, request: Mapping[str, Any]) -> Answer:
        with self.files.lock:
            conflict = self.files.conflict(file, request)
            if conflict and request.get("replace") is not True:
                return {"conflict": conflict}
            seen = self.files.write(file, code)
            opened = request.get("opened")
            if opened == f"_{file}" and self.files.mark(opened) == request.get("seen"):
                self.files.delete(opened)  # the draft of what is now in use
        return {"saved": file, "seen": seen}

    def _checked(self, file: str, code: str) -> Answer:
        report = run_code(file, code, {"mode": "examples"}, self.settings.rewards_dirs)
        for one in report["verifiers"]:
            if other := self.catalogue.taken_by(one["name"], self.files.folder / file):
                report["problems"].append(f"verifier '{one['name']}' is refused: {other} already has one of that name")
        return report | {"ok": not report["problems"]}

    def _usable_name(self, request: Mapping[str, Any]) -> str:
        """The name without the underscore of a draft."""
        return self.files.target(request.get("file")).lstrip("_")
