"""The model card of an export: facts of the run in, Markdown out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from grpo_studio.evaluation_stats import Estimate
from grpo_studio.exporting.card_evaluation import Evaluated
from grpo_studio.exporting.card_facts import CardFacts
from grpo_studio.exporting.curve import milestones
from grpo_studio.exporting.markdown import block, code, escaped, front_matter, table

PICTURE = "reward.svg"
SETTINGS_FILE = "run.yaml"
LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]{1,60}")
KINDS = {
    "adapter": "the adapter alone, to be put on its base model",
    "merged": "the whole model, with the adapter merged into it",
    "whole": "the whole model",
}


def model_card(facts: CardFacts) -> str:
    """The card, its YAML head first; it shows the picture `PICTURE` when there is a curve."""
    parts = [
        front_matter(_head(facts)),
        f"# {escaped(facts.run)}",
        "\n".join(_introduction(facts)),
        "## Use\n\n" + _use(facts),
        "## What it was trained on\n\n" + "\n".join(_training(facts)),
        *_reward(facts),
        *_evaluation(facts.evaluated),
        "## Settings\n\n" + _settings(facts),
        "## Versions\n\n" + _versions(facts),
    ]
    return "\n\n".join(parts) + "\n"


def _head(facts: CardFacts) -> dict[str, Any]:
    head: dict[str, Any] = {}
    origin = facts.origin
    if origin.hub_id is not None and origin.public:
        head["base_model"] = origin.hub_id
        head["base_model_relation"] = "adapter" if facts.kind == "adapter" else "finetune"
    licence = (origin.licence or "").strip().lower()
    if LICENCE.fullmatch(licence):
        head["license"] = licence
    head["library_name"] = "peft" if facts.kind == "adapter" else "transformers"
    head["pipeline_tag"] = "text-generation"
    head["tags"] = ["grpo", "trl", "reinforcement-learning", "grpo-studio", *(["lora"] if facts.adapter else [])]
    if facts.dataset_id is not None:
        head["datasets"] = [facts.dataset_id]
    return head


def _introduction(facts: CardFacts) -> Iterator[str]:
    origin = facts.origin
    yield (
        f"{escaped(origin.name)} trained by GRPO on verifiable rewards with GRPO Studio {escaped(facts.program)}. "
        f"This is {KINDS[facts.kind]}, after {facts.step:,} of {facts.steps:,} steps (`{facts.checkpoint}`), in "
        f"{escaped(facts.saved_dtype)}."
    )
    if origin.hub_id is not None and not origin.exact:
        yield (
            f"\nThe run began from a copy of {escaped(origin.hub_id)} whose weights had been rounded to 4 bits, so "
            + (
                "on the original it acts a little differently."
                if facts.kind == "adapter"
                else "these are not a step from the original itself."
            )
        )
    if facts.kind == "merged" and facts.adapter.startswith("QLoRA"):
        yield "\nThe adapter was merged into the base model's 4-bit weights as they are when dequantized."


def _use(facts: CardFacts) -> str:
    if facts.kind != "adapter":
        lines = [
            "from transformers import AutoModelForCausalLM, AutoTokenizer",
            "",
            'tokenizer = AutoTokenizer.from_pretrained("THIS")',
            'model = AutoModelForCausalLM.from_pretrained("THIS", dtype="auto")',
        ]
    else:
        origin = facts.origin
        base = origin.hub_id or origin.name
        revision = "" if origin.revision is None else f", revision={origin.revision!r}"
        lines = [
            "from peft import PeftModel",
            "from transformers import AutoModelForCausalLM, AutoTokenizer",
            "",
            'tokenizer = AutoTokenizer.from_pretrained("THIS")',
            f'base = AutoModelForCausalLM.from_pretrained({base!r}{revision}, dtype="auto")',
            'model = PeftModel.from_pretrained(base, "THIS")',
        ]
    said = "`THIS` is this folder, or the id of this repository."
    if facts.kind == "adapter" and facts.origin.hub_id is None:
        said += f" The base model {code(facts.origin.name)} is needed too: it is not public, so give its folder."
    return f"{block(chr(10).join(lines), 'python')}\n\n{said}"


def _training(facts: CardFacts) -> Iterator[str]:
    yield f"- data set: {code(facts.dataset)}"
    yield f"- base model: {code(facts.origin.hub_id or facts.origin.name)}"
    for label, verifier, weight in facts.rewards:
        named = "" if label == verifier else f" as {code(label)}"
        yield f"- reward: {code(verifier)}{named}, weight {weight:g}"
    yield f"- loss: {code(facts.loss)}" + (f"; {escaped(facts.adapter)}" if facts.adapter else "; all weights trained")
    sizes = [_number(facts.setup.get(name)) for name in ("parameters", "trainable_parameters", "train_rows")]
    words = ("parameters", "of them trained", "rows to train on")
    told = [f"{size} {word}" for size, word in zip(sizes, words, strict=True) if size]
    if told:
        yield f"- {', '.join(told)}"


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else ""


def _reward(facts: CardFacts) -> Iterator[str]:
    if not facts.curve:
        return
    points = milestones(facts.curve)
    rows = [[f"{step:,}", f"{value:.4g}"] for step, value in points]
    yield f"## Reward\n\n![Mean reward by step]({PICTURE})\n\n{table(['step', 'mean reward'], rows)}"


def _evaluation(found: Evaluated | None) -> Iterator[str]:
    if found is None:
        return
    rows = [[escaped(one.name), _figure(one.before), _figure(one.after)] for one in found.measures]
    before = "before training" if found.began_at == 0 else f"where it began, step {found.began_at:,}"
    said = ["## Held-out rows", table(["", before, "these weights"], rows)]
    if all(one.after is None for one in found.measures):
        said.append("These very weights were not scored on the held-out rows.")
    if found.change is not None and found.change.value is not None:
        said.append(f"Change of the mean reward on the same rows: {_figure(found.change, sign=True)}.")
    if found.flipped is not None:
        flipped, p = found.flipped, found.flipped.p
        odds = "" if p is None else f" (McNemar's exact test: p = {p:.2g})"
        said.append(f"{flipped.gained} rows came to be solved, {flipped.lost} are solved no more{odds}.")
    said.append(f"In brackets: 95 % intervals over rows. Solved: {escaped(found.passed_by)}.")
    yield "\n\n".join(said)


def _figure(estimate: Estimate | None, sign: bool = False) -> str:
    if estimate is None or estimate.value is None:
        return "not scored"
    form = "+.3g" if sign else ".3g"
    text = f"{estimate.value:{form}}"
    if estimate.low is not None and estimate.high is not None:
        text += f" [{estimate.low:{form}}, {estimate.high:{form}}]"
    return f"{text}, {estimate.rows:,} rows"


def _settings(facts: CardFacts) -> str:
    command = f"python -m grpo_studio train --config {SETTINGS_FILE}"
    return (
        f"Those that differ from the defaults of GRPO Studio {escaped(facts.program)}; also in `{SETTINGS_FILE}`. "
        f"To train again:\n\n{block(command, 'sh')}\n\n{block(facts.settings, 'yaml')}"
    )


def _versions(facts: CardFacts) -> str:
    rows = [["GRPO Studio", escaped(facts.program)]]
    rows += [[escaped(name), escaped(str(version))] for name, version in sorted(facts.versions.items())]
    return table(["", "version"], rows)
