"""What the launch page may ask of the server: plain data in, plain data out, no gradio.

What comes from a browser is hostile: it is capped in size, judged by `rules` and `preflight` alone, and no path is
made from it but the slug of a preset's name below the home folder. Trouble comes back as {"error": one line} (`guard`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from grpo_studio import config_files, preflight, preview, rules
from grpo_studio.catalog import BUILTIN_MODELS, BuiltinModel
from grpo_studio.config import RunConfig
from grpo_studio.data.made.arithmetic import LEVELS
from grpo_studio.errors import ConfigError, StudioError, UsageError
from grpo_studio.extra_fields import extra_problems
from grpo_studio.settings import BUNDLED_PRESETS, Settings
from grpo_studio.store.folder import run_folders, slug, write_whole
from grpo_studio.ui import strings
from grpo_studio.ui.checks import Checks, DataCache
from grpo_studio.ui.form import describe_form, describe_verifier
from grpo_studio.ui.guard import answer_of
from grpo_studio.ui.launch_command import command_for, complete
from grpo_studio.ui.launch_starts import Starts
from grpo_studio.ui.model_facts import model_facts
from grpo_studio.verifiers.discovery import discover

LARGEST_REQUEST_BYTES = 200_000
FIRST_PRESET = "quickstart"
RECENT_RUNS = 8
Action = Callable[["LaunchActions", Any], dict[str, Any]]


def answered(action: Action) -> Action:
    """The action behind the one boundary for requests; their size and form are checked first."""

    @functools.wraps(action)
    def wrapper(self: LaunchActions, request: Any = None) -> dict[str, Any]:
        return answer_of(action.__name__, lambda: action(self, _checked_request(request)))

    return wrapper


def _checked_request(request: Any) -> Mapping[str, Any]:
    if request is None:
        return {}
    if not isinstance(request, Mapping):
        raise UsageError(f"the request holds {type(request).__name__}, not an object")
    try:
        size = len(json.dumps(request, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"the request is not plain JSON: {error}") from error
    if size > LARGEST_REQUEST_BYTES:
        raise UsageError(f"the settings have {size:,} bytes; at most {LARGEST_REQUEST_BYTES:,} are accepted")
    return request


class LaunchActions:
    """The server functions of the launch page. One object serves all browsers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._starts = Starts(settings)
        self._data = DataCache()
        self._checks = Checks()

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
        }

    def _presets(self) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        found, failures = [], []
        for name in config_files.preset_names(self.settings.presets_dirs):
            try:
                raw = config_files.read_preset(name, self.settings.presets_dirs)
            except StudioError as error:
                failures.append({"file": f"{name}.yaml", "message": str(error)})
                continue
            own = not (BUNDLED_PRESETS / f"{name}.yaml").is_file()
            found.append({"name": name, "own": own, "settings": complete(raw)})
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
                    rows.append({"value": value, "note": words["builtin"] if value.startswith("builtin:") else origin})
        return suggested

    @answered
    def check_draft(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"ok", "problems", "notes", "derived", "model"} of a draft, or {"superseded": True}.

        `page` and `ticket` name the page that asks and count its questions: one is answered at a time, the newest.
        """
        draft = _draft(request)
        page, ticket = str(request.get("page") or "")[:64], request.get("ticket")
        return self._checks.newest(page, ticket, lambda: self._check(draft)) or {"superseded": True}

    def _check(self, draft: Mapping[str, Any]) -> dict[str, Any]:
        model = draft.get("model")
        model_id = model.get("id") if isinstance(model, Mapping) else None
        facts = model_facts(model_id, self.settings.cache) if isinstance(model_id, str) else {}
        return {**preflight.check(draft, self.settings, self._data.load).as_dict(), "model": facts}

    @answered
    def preview_prompts(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"prompts": [{"text", "tokens", "answer"}]}: the first prompts as the model will see them."""
        draft = _draft(request)
        # What else is wrong with the draft does not matter to its prompts.
        config = _valid_config({key: draft[key] for key in ("model", "dataset") if key in draft})
        shown = preview.preview(config, self.settings, load=self._data.load)
        return {"prompts": [{"text": item.text, "tokens": item.tokens, "answer": item.answer} for item in shown]}

    @answered
    def command_line(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"command"}: the command line that starts the same run."""
        preset = str(request.get("preset") or "")
        raw = config_files.read_preset(preset, self.settings.presets_dirs)
        return {"command": command_for(preset, raw, _draft(request), _name(request))}

    @answered
    def save_preset(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """{"saved": name}, or {"exists": name} when a preset of a person's own would be replaced unasked."""
        name = _name(request)
        if name is None:
            raise UsageError("the preset has no name; give it one")
        config, stem = _valid_config(_draft(request)), slug(name)
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
        return self._starts.begin(_key(request), _draft(request), _name(request))

    @answered
    def start_progress(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """How far a start has come, in the form of `start_run`'s answer."""
        return self._starts.progress(_key(request))


def _model_facts(model: BuiltinModel) -> dict[str, Any]:
    return {
        "title": model.title,
        "parameters": model.parameters,
        "licence": model.licence,
        "bytes": model.wheel_bytes,
    }


def _draft(request: Mapping[str, Any]) -> Mapping[str, Any]:
    draft = request.get("data")
    if not isinstance(draft, Mapping):
        raise UsageError("the request has no settings under 'data'")
    return draft


def _name(request: Mapping[str, Any]) -> str | None:
    name = request.get("name")
    return name.strip()[:100] or None if isinstance(name, str) else None


def _key(request: Mapping[str, Any]) -> str:
    key = request.get("key")
    if not isinstance(key, str) or not 8 <= len(key) <= 64:
        raise UsageError("the request has no key of 8 to 64 characters; reload the page")
    return key


def _valid_config(draft: Mapping[str, Any]) -> RunConfig:
    inspected = rules.inspect(draft)
    if inspected.config is None:
        raise ConfigError("; ".join(str(problem) for problem in inspected.problems))
    return inspected.config
