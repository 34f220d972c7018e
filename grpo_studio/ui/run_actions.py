"""What a person does with a run in the browser: resume, branch, cancel, move, delete at once; the rest as commands.

Shared by the Live and the Runs page. Requests come from anybody: runs are looked up, settings checked by the program's
own rules, and nothing that was typed becomes an option of a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from grpo_studio import lifecycle
from grpo_studio.errors import StoreError, UsageError
from grpo_studio.job_queue import JobQueue
from grpo_studio.run_state import RunState
from grpo_studio.settings import Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.ui import frame
from grpo_studio.ui.chosen import chosen_run, exact_run
from grpo_studio.ui.command_jobs import command_jobs_of
from grpo_studio.ui.guard import told
from grpo_studio.ui.live_run import run_name
from grpo_studio.ui.readable import require_inside
from grpo_studio.ui.run_commands import arguments_for
from grpo_studio.ui.run_menu import Answer, actions_of, change_row, checkpoint_rows
from grpo_studio.ui.run_settings import branch_fields, changed_config, overrides_of
from grpo_studio.ui.run_states import UNREADABLE, state_of
from grpo_studio.ui.verifiers_requests import key_of

MOST_PLACES = 10_000


class RunActions:
    """The server functions; each takes one JSON object and returns one."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._commands = command_jobs_of(settings)

    def functions(self) -> list[frame.ServerFunction]:
        """All of them, for `frame.add_view`."""
        return [
            self.run_menu, self.run_resume, self.run_branch_form, self.run_branch_changes, self.run_branch,
            self.run_cancel, self.run_move, self.run_delete, self.run_command, self.run_command_progress,
            self.run_command_cancel,
        ]  # fmt: skip

    def run_menu(self, request: Mapping[str, Any]) -> Answer:
        """What can be done with a run, its checkpoints, and its size; also for one that cannot be read."""
        folder = chosen_run(self.settings, request)
        about = {"run": folder.run_id, "name": run_name(folder.run_id), "size": folder.size_on_disk()}
        try:
            state = state_of(folder)
            actions, rows = actions_of(folder, state, self._waits(folder, state)), checkpoint_rows(folder)
        except Exception as error:
            problem = told(f"the run {folder.run_id}", error)
            delete = {"delete": {"allowed": True, "why": ""}}
            return about | {"state": UNREADABLE, "reason": problem, "actions": delete, "checkpoints": []}
        return about | {"state": state.state, "reason": state.reason, "actions": actions, "checkpoints": rows}

    def run_resume(self, request: Mapping[str, Any]) -> Answer:
        """Queue the run's next attempt; `set` holds limits that are raised, name to text."""
        folder = exact_run(self.settings, request)
        lifecycle.resume(folder, self.settings, overrides_of(request))
        return {"run": folder.run_id}

    def run_branch_form(self, request: Mapping[str, Any]) -> Answer:
        """The checkpoints that a branch can begin at, and the settings that it may change with their values."""
        folder = exact_run(self.settings, request)
        rows = [row for row in checkpoint_rows(folder) if row["resumable"]]
        if not rows:
            raise StoreError(f"{folder.run_id} has no checkpoint that training can go on from")
        name = run_name(folder.run_id)
        return {"run": folder.run_id, "name": name, "checkpoints": rows, "fields": branch_fields(folder.config())}

    def run_branch_changes(self, request: Mapping[str, Any]) -> Answer:
        """What a branch would change: {"changes"}; raises what would refuse it."""
        folder, asked = exact_run(self.settings, request), self._checkpoint(request)
        overrides = overrides_of(request)
        require_inside(changed_config(folder.config(), overrides), self.settings)
        checkpoint, changes = lifecycle.branch_changes(folder, asked, overrides)
        return {"changes": [change_row(asdict(one)) for one in changes], "step": checkpoint.step}

    def run_branch(self, request: Mapping[str, Any]) -> Answer:
        """Begin a new run from a checkpoint; its id."""
        folder, asked = exact_run(self.settings, request), self._checkpoint(request)
        overrides = overrides_of(request)
        require_inside(changed_config(folder.config(), overrides), self.settings)
        branch = lifecycle.branch(folder, asked, overrides, self.settings, frame.text_of(request, "name", 60))
        return {"run": branch.run_id}

    def run_cancel(self, request: Mapping[str, Any]) -> Answer:
        """Take a run out of the queue."""
        lifecycle.cancel(exact_run(self.settings, request), self.settings)
        return {"ok": True}

    def run_move(self, request: Mapping[str, Any]) -> Answer:
        """Put a waiting run at another place of the queue, 1 for the next one."""
        place = frame.number_of(request, "place", least=1, most=MOST_PLACES)
        if place is None:
            raise UsageError("the request names no place in the queue; give a whole number from 1 under 'place'")
        lifecycle.move(exact_run(self.settings, request), self.settings, place)
        return {"ok": True}

    def run_delete(self, request: Mapping[str, Any]) -> Answer:
        """Delete a run with all that it recorded and saved."""
        folder = exact_run(self.settings, request)
        if request.get("sure") != folder.run_id:
            raise UsageError("deleting needs the run's whole id under 'sure'")
        lifecycle.delete(folder, self.settings)
        return {"ok": True}

    def run_command(self, request: Mapping[str, Any]) -> Answer:
        """Begin a command that takes long: `kind` export, evaluate, push or import, with what each of them needs."""
        return self._commands.begin(key_of(request), arguments_for(request, self.settings))

    def run_command_progress(self, request: Mapping[str, Any]) -> Answer:
        """How far it is."""
        return self._commands.progress(key_of(request))

    def run_command_cancel(self, request: Mapping[str, Any]) -> Answer:
        """End it."""
        return self._commands.cancel(key_of(request))

    def _waits(self, folder: RunFolder, state: RunState) -> bool:
        return state.state == "queued" and JobQueue(self.settings.queue_path).has(folder.path)

    def _checkpoint(self, request: Mapping[str, Any]) -> str:
        asked = frame.text_of(request, "checkpoint", 40)
        if asked is None:
            raise UsageError("choose a checkpoint")
        return asked
