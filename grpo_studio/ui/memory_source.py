"""What the Memory page looks at: a preset or a run, with a few settings changed, all of it named in the page's address.

Requests come from anybody: names are looked up, changes are judged by `rules` as everywhere. No gradio here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpo_studio import config_files, rules
from grpo_studio.config import RunConfig
from grpo_studio.config_files import with_overrides
from grpo_studio.declaration import fields_of
from grpo_studio.errors import ConfigError, StudioError, UsageError
from grpo_studio.preset_about import read_about
from grpo_studio.settings import Settings
from grpo_studio.shown import shown
from grpo_studio.store.folder import RunFolder, run_folders
from grpo_studio.ui import frame
from grpo_studio.ui.chosen import chosen_run
from grpo_studio.ui.form import describe_field
from grpo_studio.ui.launch_command import as_yaml
from grpo_studio.ui.live_run import config_of, run_name
from grpo_studio.ui.readable import path_problems
from grpo_studio.ui.run_settings import overrides_of

FIELDS = (
    "memory.loss_backend", "memory.micro_batch", "algorithm.max_completion_length", "algorithm.group_size",
    "algorithm.prompts_per_step", "model.dtype", "memory.adapter", "memory.lora_rank", "memory.gradient_checkpointing",
)  # fmt: skip
"""The settings that can be changed on the page; others come with its address, from the Launch page."""
FIRST_PRESET = "quickstart"
MOST_PROMPT_TOKENS = 1_000_000
RUNS_LISTED = 40
LONGEST_TEXT = 200

Answer = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """What is looked at.

    Args:
        config: None when the changed settings cannot work; `problems` then says why.
        raw: the settings with the changes in, not yet judged; `base` those without.
        arguments: what names it to the command line: --preset or --config, and --set.
        folder: the run, unless it is a preset.
        prompt_tokens: how long prompts are, where the page says so.
    """

    kind: str
    name: str
    base: Mapping[str, Any]
    raw: Mapping[str, Any]
    config: RunConfig | None
    problems: tuple[Mapping[str, str], ...]
    arguments: tuple[str, ...]
    overrides: tuple[str, ...]
    folder: RunFolder | None = None
    prompt_tokens: int | None = None

    @property
    def key(self) -> str:
        """Names it, so that a zoom of its charts outlives an update."""
        return " ".join([self.kind, self.name, *self.overrides, str(self.prompt_tokens or "")])

    def valid_config(self) -> RunConfig:
        """The settings. Raises ConfigError with all that is wrong."""
        if self.config is None:
            told = (f"{one['field']}: {one['message']}; {one['fix']}" for one in self.problems)
            raise ConfigError(" · ".join(told))
        return self.config


def source_of(request: Mapping[str, Any], settings: Settings) -> Source:
    """The run under `run`, else the preset under `preset`, with the changes under `set`.

    Raises:
        StudioError: there is no such run or preset, or a change is none.
    """
    overrides, folder = overrides_of(request), None
    if request.get("run") is not None:
        folder = chosen_run(settings, request)
        base: Mapping[str, Any] = config_of(folder.path).model_dump(mode="json")
        kind, name = "run", folder.run_id
        arguments = [f"--config={folder.newest_config_path()}"]
    else:
        name = _preset_of(request)
        base, kind = config_files.read_preset(name, settings.presets_dirs), "preset"
        arguments = [f"--preset={name}"]
    raw = with_overrides(dict(base), overrides)
    wrong = path_problems(raw, settings)
    inspected = rules.inspect(raw)
    problems = [*wrong, *inspected.problems]
    told = tuple({"field": one.field, "message": one.message, "fix": one.fix} for one in problems)
    return Source(
        kind, name, base, raw, None if problems else inspected.config, told,
        (*arguments, *(f"--set={one}" for one in overrides)), tuple(overrides), folder, _prompt_tokens(request),
    )  # fmt: skip


def _preset_of(request: Mapping[str, Any]) -> str:
    name = request.get("preset")
    if name is None:
        return FIRST_PRESET
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_TEXT:
        raise UsageError(f"{shown(name)} is no preset; choose one from the list")
    return name


def _prompt_tokens(request: Mapping[str, Any]) -> int | None:
    if request.get("prompt_tokens") in (None, ""):
        return None
    found = frame.number_of(request, "prompt_tokens", least=1, most=MOST_PROMPT_TOKENS)
    if found is None:
        given = shown(request.get("prompt_tokens"))
        raise UsageError(f"prompt tokens is {given}; give a whole number from 1 to {MOST_PROMPT_TOKENS:,}, or nothing")
    return found


def about_source(source: Source) -> Answer:
    """Plain values for the page: names, the values of its fields as they are typed, and what is wrong."""
    config = source.config
    told: Answer = {
        "kind": source.kind,
        "name": run_name(source.name) if source.kind == "run" else source.name,
        "values": {field: _typed(source.raw, field) for field in FIELDS},
        "base": {field: _typed(source.base, field) for field in FIELDS},
        "problems": [{key: shown(text, 400) for key, text in one.items()} for one in source.problems[:20]],
        "changed": [one.partition("=")[0] for one in source.overrides],
    }
    if config is None:
        return told | {"model": shown(str(_raw_at(source.raw, "model.id") or ""), LONGEST_TEXT), "derived": None}
    derived = {"micro_batch": config.effective_micro_batch(), "completions": config.completions_per_step}
    return told | {
        "model": shown(config.model.id, LONGEST_TEXT),
        "dtype": config.model.dtype,
        "adapter": config.memory.adapter,
        "backend": config.memory.loss_backend,
        "completion_tokens": config.algorithm.max_completion_length,
        "derived": derived,
        "processes": config.scale.processes * config.scale.machines,
    }


def _typed(raw: Mapping[str, Any], field: str) -> str:
    value = _raw_at(raw, field)
    return shown(value, LONGEST_TEXT) if isinstance(value, str) else as_yaml(value)[:LONGEST_TEXT]


def _raw_at(raw: Mapping[str, Any], field: str) -> Any:
    section, _, key = field.partition(".")
    part = raw.get(section)
    if isinstance(part, Mapping) and key in part:
        return part[key]
    return fields_of(RunConfig)[field].get_default(call_default_factory=True)


def described_fields() -> list[Answer]:
    """The page's fields as the Launch form has them."""
    known = fields_of(RunConfig)
    return [describe_field(name, known[name]) for name in FIELDS]


def listed_presets(settings: Settings) -> list[Answer]:
    """Names and titles of all presets."""
    rows = []
    for name in config_files.preset_names(settings.presets_dirs):
        try:
            about = read_about(name, settings.presets_dirs)
        except StudioError:  # the Launch page tells of it
            about = None
        title = getattr(about, "title", None)
        rows.append({"name": name, "title": shown(str(title), 80) if title else name})
    return rows


def listed_runs(settings: Settings) -> list[Answer]:
    """The newest runs."""
    found = []
    for folder in run_folders(settings.runs_dir):
        found.append({"id": folder.run_id, "name": run_name(folder.run_id)})
        if len(found) == RUNS_LISTED:
            break
    return found
