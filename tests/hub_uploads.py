"""The part of the stand-in for the Hub that is written to: repositories made and deleted, files committed.

All files go the plain way, within the commit itself. Owners other than alice refuse.
"""

from __future__ import annotations

import base64
import json
from typing import Any

OWNER = "alice"
STEPS = ("validate-yaml", "preupload", "commit")


def asks_for_one(steps: list[str]) -> bool:
    """Whether a request is about writing: its path in steps."""
    return (
        steps[:2] == ["api", "repos"] or any(step in STEPS for step in steps) or steps[-2:] == ["auth-check", "write"]
    )


def answer(hub: Any, method: str, steps: list[str], body: bytes, may: bool) -> tuple[int, Any]:
    """Status and JSON of the answer; `may` says whether the token is right."""
    what = next((step for step in (*STEPS, "create", "delete", "auth-check") if step in steps), "delete")
    if what in hub.broken:
        return hub.broken[what], {"error": "a fault of one kind of request"}
    if what == "validate-yaml":
        return 200, {"errors": [], "warnings": []}
    if not may:
        return 401, {"error": "no token"}
    if steps[:2] == ["api", "repos"]:
        asked = json.loads(body)
        repo_id = f"{asked.get('organization') or OWNER}/{asked['name']}"
        if not repo_id.startswith(f"{OWNER}/"):
            return 403, {"error": "You don't have the rights to create a model under this namespace"}
        return _create(hub, repo_id, asked) if what == "create" and method == "POST" else _delete(hub, repo_id)
    repo_id = "/".join(steps[2:4])
    if not repo_id.startswith(f"{OWNER}/"):
        return 403, {"error": "no rights"}
    if ("model", repo_id) not in hub.repos:
        return 404, {"error": "no such repository"}
    if what == "auth-check":
        return 200, {}
    if what == "preupload":
        files = json.loads(body)["files"]
        return 200, {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]}
    return _commit(hub, repo_id, body)


def _create(hub: Any, repo_id: str, asked: dict[str, Any]) -> tuple[int, Any]:
    if ("model", repo_id) in hub.repos:
        return 409, {"error": "You already created this model repo"}
    hub.add("model", repo_id, {}, private=asked.get("visibility") == "private" or bool(asked.get("private")))
    return 200, {"url": f"{hub.url}/{repo_id}"}


def _delete(hub: Any, repo_id: str) -> tuple[int, Any]:
    return (200, {}) if hub.repos.pop(("model", repo_id), None) else (404, {"error": "no such repository"})


def _commit(hub: Any, repo_id: str, body: bytes) -> tuple[int, Any]:
    """All files of the lines that the client sends, in place of those of their names."""
    lines = [json.loads(line) for line in body.splitlines() if line]
    for line in lines:
        if line["key"] == "file":
            value = line["value"]
            hub.repos["model", repo_id].files[value["path"]] = base64.b64decode(value["content"])
    return 200, {"commitUrl": f"{hub.url}/{repo_id}/commit/{'b' * 40}", "commitOid": "b" * 40}
