"""What the launch page may ask of the server: plain data in, plain data out, no gradio.

What comes from a browser is hostile: it is capped in size, judged by `rules` and `preflight` alone, and no path is
made from it but the slug of a preset's name below the home folder. Trouble comes back as {"error": one line} (`guard`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from grpo_studio import config_files, pair_check
from grpo_studio.catalog import BUILTIN_MODELS, BuiltinModel
from grpo_studio.config import BUILTIN_PREFIX, RunConfig
from grpo_studio.data.made import made_sources
from grpo_studio.data.made.arithmetic import LEVELS
from grpo_studio.data.prompt_templates import PROMPT_TEMPLATES
from grpo_studio.errors import ConfigError, StudioError, UsageError
from grpo_studio.extra_fields import extra_problems
from grpo_studio.looks import QuickLook, ScanCache
from grpo_studio.preset_about import read_about
from grpo_studio.settings import BUNDLED_PRESETS, Settings
from grpo_studio.store.folder import run_folders, slug, write_whole
from grpo_studio.ui import strings
from grpo_studio.ui.checks import Checks
from grpo_studio.ui.form import describe_form, describe_verifier
from grpo_studio.ui.launch_command import command_for, complete
from grpo_studio.ui.launch_requests import (
    answered,
    capped,
    differing,
    draft_of,
    key_of,
    name_of,
    page_of,
    valid_config,
)
from grpo_studio.ui.launch_starts import Starts
from grpo_studio.ui.readable import check_inside
from grpo_studio.ui.uploads import upload_terms, uploaded
from grpo_studio.verifiers.discovery import discover

FIRST_PRESET = "quickstart"
RECENT_RUNS = 8


class LaunchActions:
    """The server functions of the launch page. One object serves all browsers."""

    def __init__(self, settings: Settings, scans: ScanCache) -> None:
        self.settings = settings
        self._scans = scans
        self._starts = Starts(settings, scans)
        self._checks = Checks()
        self._pair_checks = Checks()

    @answered
    def describe_launch(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Everything the form is built from: fields, presets, verifiers, suggestions."""
        presets, failures = self._presets()
        registry = discover(self.settings.rewards_dirs)
        failures += [{"file": item.path.name, "message": item.message} for item in registry.failures]
        names = [preset["name"] for preset in presets]
        return {
            "form": describe_form(),
            "models": {model.id: _model_facts(model) for model in BUILTIN_MODELS.values()},
            "levels": {str(number): level.title for number, level in LEVELS.items()},
            "presets": presets,
            "first_preset": FIRST_PRESET if FIRST_PRESET in names else next(iter(names), None),
            "verifiers": [describe_verifier(spec) for spec in registry.specs.values()],
            "failures": failures,
            "suggestions": self._suggestions(presets),
            "templates": [{"name": name, **asdict(ready)} for name, ready in PROMPT_TEMPLATES.items()],
            "upload": upload_terms(self.settings),
        }

    def _presets(self) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        found, failures = [], []
        for name in config_files.preset_names(self.settings.presets_dirs):
            try:
                raw = config_files.read_preset(name, self.settings.presets_dirs)
                about = read_about(name, self.settings.presets_dirs)
            except StudioError as error:
                failures.append({"file": f"{name}.yaml", "message": str(error)})
                continue
            own = not (BUNDLED_PRESETS / f"{name}.yaml").is_file()
            told = about.model_dump(mode="json") if about else None
            found.append({"name": name, "own": own, "about": told, "settings": complete(raw)})
        return found, failures

    def _suggestions(self, presets: list[dict[str, Any]]) -> dict[str, list[dict[str, str]]]:
        """Values for the free-text pickers: what is built in, what the presets use, what was used of late."""
        words = strings.load()["launch"]["origins"]
        configs = [(RunConfig().model_dump(mode="json"), words["builtin"])]
        configs += [(preset["settings"], words["preset"].format(name=preset["name"])) for preset in presets]
        for folder in list(run_folders(self.settings.runs_dir))[:RECENT_RUNS]:
            try:
                configs.append((folder.config().model_dump(mode="json"), words["recent"]))
            except StudioError:
                continue  # a damaged run is told of on the Runs page; here it only suggests nothing
        suggested: dict[str, list[dict[str, str]]] = {"model.id": [], "dataset.source": []}
        for settings, origin in configs:
            for name, rows in suggested.items():
                section, key = name.split(".")
                value = str(settings[section][key])
                if value not in [row["value"] for row in rows]:
                    rows.append(
                        {"value": value, "note": words["builtin"] if value.startswith(BUILTIN_PREFIX) else origin}
                    )
        sources = suggested["dataset.source"]
        known = {row["value"] for row in sources}
        sources += [{"value": path, "note": words["uploaded"]} for path in uploaded(self.settings) if path not in known]
        sources += [row for row in made_sources() if row["value"] not in known]
        return suggested

    @answered
    def check_draft(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"ok", "problems", "notes", "derived", "scan"} of a draft, or {"superseded": True}.

        `page` and `ticket` name the page that asks and count its questions: one is answered at a time, the newest.
        """
        draft = draft_of(request)
        check = partial(self._check, draft)
        return self._checks.newest(page_of(request), request.get("ticket"), check) or {"superseded": True}

    def _check(self, draft: Mapping[str, Any]) -> dict[str, Any]:
        report = check_inside(draft, self.settings, QuickLook(self._scans))
        told = report.as_dict()
        return {**told, "scan": capped(told["scan"], longest=400, most=200)}

    @answered
    def command_line(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"command"}: the command line that starts the same run."""
        preset = str(request.get("preset") or "")
        raw = config_files.read_preset(preset, self.settings.presets_dirs)
        return {"command": command_for(preset, raw, draft_of(request), name_of(request))}

    @answered
    def save_preset(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"saved": name}, or {"exists": name} when a preset of a person's own would be replaced unasked."""
        name = name_of(request)
        if name is None:
            raise UsageError("the preset has no name; give it one")
        config, stem = valid_config(draft_of(request)), slug(name)
        if wrong := list(extra_problems(config)):  # a token among them is not to lie in a file
            raise ConfigError("; ".join(map(str, wrong)))
        if (BUNDLED_PRESETS / f"{stem}.yaml").exists():
            raise ConfigError(f"{stem!r} is a built-in preset; give yours another name")
        path = self.settings.presets_dirs[0] / f"{stem}.yaml"
        if path.exists() and request.get("replace") is not True:
            return {"exists": stem}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, config_files.dump_config(config))
        except OSError as error:
            raise ConfigError(f"cannot write the preset {path}: {error.strerror or error}") from error
        return {"saved": stem, "settings": config.model_dump(mode="json")}

    @answered
    def start_run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin a run: {"run": id}, or {"message", "fraction"} while its model is fetched (then ask `start_progress`).

        `key` names this press of the button: however often it comes, one run is started.
        """
        return self._starts.begin(key_of(request), draft_of(request), name_of(request))

    @answered
    def check_pair(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"ok", "problems", "notes", ...} of a draft with either of the `values` of `field`, or {"superseded": True}.

        A problem says whose it is: `side` is A, B or both.
        """
        draft, (field, values) = draft_of(request), differing(request)

        def check() -> dict[str, Any]:
            look = QuickLook(self._scans)
            found = pair_check.check_pair(draft, field, values, lambda data: check_inside(data, self.settings, look))
            told: dict[str, Any] = capped(found.as_dict(), longest=400, most=60)
            return told

        return self._pair_checks.newest(page_of(request), request.get("ticket"), check) or {"superseded": True}

    @answered
    def start_pair(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """As `start_run`, for two runs that differ in one setting; it ends as {"pair": id}."""
        field, values = differing(request)
        return self._starts.begin_pair(key_of(request), draft_of(request), field, values, name_of(request))

    @answered
    def start_progress(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """How far a start has come, in the form of `start_run`'s answer."""
        return self._starts.progress(key_of(request))


def _model_facts(model: BuiltinModel) -> dict[str, Any]:
    return {
        "title": model.title,
        "parameters": model.parameters,
        "licence": model.licence,
        "bytes": model.wheel_bytes,
    }
