"""`python -m grpo_studio.presets_table`: docs/presets.md, from what the presets say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grpo_studio.config import RunConfig
from grpo_studio.config_files import preset_names, read_preset
from grpo_studio.preset_about import read_about
from grpo_studio.settings import BUNDLED_PRESETS, PACKAGE_DIR

TARGET = PACKAGE_DIR.parent / "docs" / "presets.md"
INTRODUCTION = """# Presets

Whole runs to start from: pick one on the Launch page, or `train --preset NAME`, and change what you like by the form
or `--set`. Every number has its source. Your own lie in `presets/` of `GRPO_STUDIO_HOME`, where *Save as preset* puts
them. This page is made from the files in `grpo_studio/presets/` by `python -m grpo_studio.presets_table`.

Only the quickstart was run to its end so far: the others need GPUs. Each passes `check`.
"""


def render(directories: Sequence[Path] = (BUNDLED_PRESETS,)) -> str:
    """The whole page."""
    names = preset_names(directories)
    names.sort(key=lambda name: (name != "quickstart", name))
    return "\n".join([INTRODUCTION, *(_section(name, directories) for name in names)])


def _section(name: str, directories: Sequence[Path]) -> str:
    about = read_about(name, directories)
    config = RunConfig.model_validate(read_preset(name, directories))
    title = about.title if about else name
    lines = [f"## `{name}`", "", f"**{title}.** {about.purpose if about else ''}".rstrip(), ""]
    algorithm = config.algorithm
    rewards = ", ".join(f"`{reward.label}` x {reward.weight:g}" for reward in config.rewards)
    size = f"{algorithm.prompts_per_step} prompts x {algorithm.group_size} completions a step, {algorithm.steps} steps"
    pace = f"learning rate {algorithm.learning_rate:g}, beta {algorithm.beta:g}, adapter {config.memory.adapter}"
    lines += [f"- `{config.model.id}` on `{config.dataset.source}`; rewards {rewards}", f"- {size}, {pace}"]
    if about:
        lines.append(f"- Needs: {about.hardware}")
        lines += [f"- {source.what} ([source]({source.url}))" for source in about.sources]
    return "\n".join([*lines, ""])


def main(target: Path = TARGET) -> None:
    target.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
