"""Writes the folder of a script: aside, and renamed when it is whole."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grpo_studio.config import RunConfig
from grpo_studio.config_files import read_config_file
from grpo_studio.disk import sized
from grpo_studio.errors import ConfigError, VerifierError
from grpo_studio.exporting.aside import folder_aside, require_free
from grpo_studio.libraries import load_libraries
from grpo_studio.script_export.data_file import data_lines
from grpo_studio.script_export.facts import Recorded, ScriptFacts, recorded
from grpo_studio.script_export.model_copy import model_files, place_model, room_for, size_of
from grpo_studio.script_export.rendering import script
from grpo_studio.script_export.requirements import requirements
from grpo_studio.script_export.support_code import SUPPORT, Support, renamed, support_of
from grpo_studio.script_export.told import command_of, differences, readme
from grpo_studio.settings import PACKAGE_DIR, Settings
from grpo_studio.store.folder import RunFolder
from grpo_studio.verifiers import VerifierSpec, discover
from grpo_studio.verifiers_used import runs_code

ROOM = 32 * 1024**2
"""Bytes that must be free for the code and the data, besides the model."""
BYTES_A_CHARACTER = 3
"""What a character of a prompt takes in data.jsonl at most, escapes and names apart: it stands there twice."""


def write(folder: RunFolder, settings: Settings, target: Path, tell: Callable[[str], None]) -> list[str]:
    """Write the run as a TRL script into the folder `target`; returns lines for people.

    Raises:
        StudioError: the run cannot be a script, its model or data are gone, or the folder cannot be written.
    """
    target = target.expanduser().absolute()
    config, told = folder.config(), recorded(folder)
    _require_beginning(folder, told)
    require_free(target)
    kept = _kept_verifiers(folder, told)
    registry = discover([kept])
    specs = [registry.get(reward.verifier) for reward in config.rewards]
    _require_judges(specs)
    files = sorted(kept.glob("*.py"))
    support = support_of(files)
    sandboxed = bool(runs_code(list(registry.specs), registry))
    needed, unknown = requirements(config, support.packages, sandboxed, told.versions)
    load_libraries()
    from grpo_studio.training.script_facts import script_facts

    facts = script_facts(config, settings, told, tell)
    found = differences(config, _first_settings(folder, config), told, facts, unknown)
    texts = {
        "train.py": script(config, facts, run_name(folder.run_id), command_of(config)),
        "README.md": readme(run_name(folder.run_id), config, facts, told, found),
        "requirements.txt": "".join(f"{line}\n" for line in needed),
    }
    made = _Made(facts, specs, files, support, texts)
    return [*_written(made, target, tell), *found]


class _Made:
    """All that goes into the folder."""

    def __init__(
        self,
        facts: ScriptFacts,
        specs: Sequence[VerifierSpec],
        verifier_files: Sequence[Path],
        support: Support,
        texts: Mapping[str, str],
    ) -> None:
        self._rows, self._specs, self._files, self._support = facts.rows, specs, verifier_files, support
        self._texts = texts
        self._template = facts.template if not facts.plain else None
        self.model = facts.model if isinstance(facts.model, Path) else None
        self.model_files = model_files(self.model) if self.model is not None else []

    def size(self, target: Path) -> int:
        """Bytes that it takes at most."""
        text = sum(len(row.question) + len(str(row.columns)) for row in self._rows)
        return ROOM + room_for(self.model_files, target) + 2 * BYTES_A_CHARACTER * text

    def fill(self, folder: Path) -> bool:
        """Write all of it; whether the model's files are links."""
        for name, text in self._texts.items():
            (folder / name).write_text(text, "utf-8", newline="\n")
        if self._template is not None:
            (folder / "chat_template.jinja").write_bytes(self._template.encode("utf-8", "surrogatepass"))
        with (folder / "data.jsonl").open("wb") as data:
            data.writelines(data_lines(self._rows, self._specs))
        (folder / "rewards").mkdir()
        for path in self._files:
            (folder / "rewards" / path.name).write_bytes(renamed(path))
        for place, text in self._support.files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text, "utf-8", newline="\n")
        licence = PACKAGE_DIR.parent / "LICENSE"
        if licence.is_file():
            shutil.copyfile(licence, folder / SUPPORT / "LICENSE")
        return self.model is None or place_model(self.model, self.model_files, folder / "model")


def _written(made: _Made, target: Path, tell: Callable[[str], None]) -> list[str]:
    tell("writing the script")
    with folder_aside(target, made.size(target), f"the script's folder {target.name}") as aside:
        linked = made.fill(aside)
    lines = [f"the script is in {target}: start it there as README.md says"]
    if made.model is not None:
        size = sized(size_of(made.model_files))
        lines.append(f"model/ holds the model ({size}, " + ("linked: it takes no room)" if linked else "copied)"))
    return lines


def run_name(run_id: str) -> str:
    """A run's id as it may stand in a comment and in Markdown, whatever its folder is called."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", run_id)[:100]


def _require_beginning(folder: RunFolder, told: Recorded) -> None:
    first = told.attempts[0]
    if first.checkpoint is not None:
        raise ConfigError(
            f"{folder.run_id} is a branch that goes on after step {first.from_step} of another run, and a script "
            "begins at step 0; export the script of the run that it branched off, or this one's weights"
        )


def _kept_verifiers(folder: RunFolder, told: Recorded) -> Path:
    """Where the files lie that the newest attempt judged with, or the one before it that has any."""
    for attempt in range(told.newest.attempt, 0, -1):
        if any((kept := folder.verifiers(attempt)).glob("*.py")):
            return kept
    raise VerifierError(
        f"{folder.run_id} has kept no verifier files, since it never began to train; export its script once it has"
    )


def _require_judges(specs: Sequence[VerifierSpec]) -> None:
    for spec in specs:
        if spec.place != "judge":
            raise VerifierError(
                f"{spec.name} is a model that the trainer loads, and a script has verifiers that are functions alone; "
                "export this run's weights, or its folder as an archive"
            )


def _first_settings(folder: RunFolder, newest: RunConfig) -> RunConfig:
    """Those of the first attempt; the newest ones where another version wrote them in another form."""
    try:
        return RunConfig.model_validate(read_config_file(folder.config_path))
    except ValueError:
        return newest
