"""`python -m grpo_studio bench`: gold check, exploit probes and a model's own samples, before a run."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from grpo_studio.bench_text import lines_of
from grpo_studio.config import RunConfig
from grpo_studio.config_files import parse_config
from grpo_studio.errors import ConfigError, ModelError, UsageError, VerifierError
from grpo_studio.naming import nearest_names
from grpo_studio.progress import Progress
from grpo_studio.rules import inspect
from grpo_studio.settings import Settings
from grpo_studio.verifiers import parts
from grpo_studio.verifiers.bench import (
    BenchRows,
    GoldReport,
    SampledGroup,
    SampleReport,
    exploit_probes,
    gold_check,
    probe_row,
    read_bench_rows,
    sample_report,
)
from grpo_studio.verifiers.bench.request import SamplingRequest
from grpo_studio.verifiers.bench.sampling import start_sampling
from grpo_studio.verifiers.contract import VerifierSpec
from grpo_studio.verifiers.discovery import discover, problems_of

PROMPTS = 16
# A comma ends a verifier only outside of brackets and where a name follows, a colon a value only where a param follows:
# a pattern or a list may hold both.
_NEXT_VERIFIER = re.compile(r",(?=\s*[A-Za-z_]\w*\s*(?:[,:]|$))|[\[\]{}]")
_NEXT_PARAM = re.compile(r":(?=[A-Za-z_]\w*=)")


def add_bench_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `bench` besides those of all commands."""
    source = command.add_mutually_exclusive_group()
    source.add_argument("--preset", help="start from a preset, such as quickstart")
    source.add_argument("--config", help="start from a YAML file of settings")
    command.add_argument(
        "--verifiers",
        action="append",
        metavar="a,b:param=value",
        help="verifiers and their params, instead of the preset's",
    )
    command.add_argument("--dataset", help="the data set: the same as --set dataset.source=...")
    command.add_argument("--model", help="sample from this model: the same as --set model.id=...")
    command.add_argument("--prompts", type=int, help=f"how many prompts to sample (default: {PROMPTS})")
    command.add_argument("--group-size", type=int, help="completions a prompt (default: algorithm.group_size)")
    command.add_argument("--strict", action="store_true", help="exit 1 for any unreadable gold or paying probe, too")
    command.add_argument(
        "--set", action="append", default=[], metavar="a.b=value", help="change one setting; may be repeated"
    )


def bench(
    options: argparse.Namespace, raw: Mapping[str, Any], settings: Settings, show: Progress
) -> tuple[dict[str, Any], list[str], int]:
    """The JSON document, the lines for people, and the exit code: 1 when a verifier can read no gold at all.

    Raises:
        StudioError: the settings, the data, the verifiers or the model cannot be used.
    """
    config = _config(raw)
    rows = read_bench_rows(config.dataset)
    _require_usable(config, rows, settings)
    directories = settings.rewards_dirs

    def progress(done: int, total: int) -> None:
        show("reading the golds", done / max(1, total))

    golds = gold_check(config.rewards, rows.samples, directories, numbers=rows.numbers, progress=progress)
    place = probe_row(rows.samples)
    probes = exploit_probes(config.rewards, rows.samples[place], directories)
    samples: SampleReport | None = None
    if options.model is not None or options.prompts is not None or options.group_size is not None:
        request = SamplingRequest.of(
            config,
            PROMPTS if options.prompts is None else options.prompts,
            options.group_size or config.algorithm.group_size,
        )
        groups = _sampled(request, settings, show)

        def judging(done: int, total: int) -> None:
            show("judging", done / max(1, total))

        samples = sample_report(config.rewards, groups, directories, progress=judging)
    unread = _reads_nothing(config, golds)
    findings = any(g.unreadable_count or g.ideal_right < g.ideal_checked for g in golds) or any(p.pays for p in probes)
    document = {
        "ok": not unread,
        "gold": [asdict(report) for report in golds],
        "probe_row": rows.numbers[place],
        "probes": [asdict(probe) for probe in probes],
        "samples": None if samples is None else asdict(samples),
    }
    lines = lines_of(golds, rows, place, probes, samples)
    return document, lines, 1 if unread or (options.strict and findings) else 0


def with_arguments(raw: Mapping[str, Any], options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """Raw settings with --dataset, --model and --verifiers put in; --set comes after them.

    Raises:
        UsageError: an unknown verifier or param.
    """
    result = dict(raw)
    for section, key, value in (("dataset", "source", options.dataset), ("model", "id", options.model)):
        if value is not None:
            had = result.get(section)
            result[section] = {**(had if isinstance(had, dict) else {}), key: value}
    if options.verifiers:
        specs = discover(settings.rewards_dirs).specs
        result["rewards"] = [reward for text in options.verifiers for reward in parse_verifiers(text, specs)]
    return result


def parse_verifiers(text: str, specs: Mapping[str, VerifierSpec]) -> list[dict[str, Any]]:
    """Raw rewards from `a,b:param=value:other=value`. A param that is text stands as it is; others are YAML.

    Raises:
        UsageError: an unknown verifier or param, or a param without a value.
    """
    rewards = []
    for part in _parts(text):
        name, _, rest = part.strip().partition(":")
        if name not in specs:
            raise UsageError(f"no verifier {name!r}; {nearest_names(name, specs)}")
        params = {}
        for setting in _NEXT_PARAM.split(rest) if rest else []:
            key, equals, value = setting.partition("=")
            if not equals:
                raise UsageError(f"--verifiers {part!r}: {setting!r} has no '='; write it like {name}:param=value")
            if key not in specs[name].params:
                raise UsageError(f"{name} has no param {key!r}; {nearest_names(key, specs[name].params)}")
            params[key] = value if _is_text(specs[name], key) else parse_config(f"value: {value}", key)["value"]
        rewards.append({"verifier": name, "params": params})
    return rewards


def _parts(text: str) -> Iterator[str]:
    depth = start = 0
    for found in _NEXT_VERIFIER.finditer(text):
        if found[0] != ",":
            depth += 1 if found[0] in "[{" else -1
        elif depth == 0:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]


def _is_text(spec: VerifierSpec, name: str) -> bool:
    return spec.annotations.get(name) is str or isinstance(spec.params[name], str)


def _config(raw: Mapping[str, Any]) -> RunConfig:
    """Of the rules between settings only those of the rewards matter here: nothing is trained."""
    inspected = inspect(raw)
    wrong = [p for p in inspected.problems if inspected.config is None or p.field.startswith("rewards")]
    if wrong:
        kind = UsageError if any(problem.unknown_key for problem in wrong) else ConfigError
        raise kind("; ".join(" ".join(str(problem).split()) for problem in wrong))
    assert inspected.config is not None, "a configuration that is none has a problem"
    return inspected.config


def _require_usable(config: RunConfig, rows: BenchRows, settings: Settings) -> None:
    """Raises VerifierError with all that is wrong with the use of the verifiers."""
    parts.configure(settings.rewards_dirs)  # verifiers that call others look there when they are checked
    registry = discover(settings.rewards_dirs)
    columns = {name for sample in rows.samples[:1000] for name in sample.columns}
    problems = [
        message
        for reward in config.rewards
        for message in problems_of(registry.get(reward.verifier), reward.params, columns)
    ]
    if not rows.samples:
        problems.insert(0, f"{config.dataset.source} has no row with a prompt; map the column that holds it")
    if problems:
        raise VerifierError("; ".join(problems))


def _reads_nothing(config: RunConfig, golds: list[GoldReport]) -> bool:
    return any(
        gold.reads_gold and gold.rows and not gold.readable and reward.weight != 0
        for reward, gold in zip(config.rewards, golds, strict=True)
    )


def _sampled(request: SamplingRequest, settings: Settings, show: Progress) -> tuple[SampledGroup, ...]:
    """The groups, sampled now or before; tells how far it is. Raises ModelError with the reason of a failure."""
    job = start_sampling(request, settings)
    told = ""
    try:
        while (state := job.wait(0.5)).state == "running":
            if state.done:
                show("sampling", state.done / max(1, state.wanted))
            elif state.message != told:
                print(told := state.message, file=sys.stderr, flush=True)
    finally:
        job.cancel()
    if state.state != "done":
        raise ModelError(f"no samples from {request.config.model.id}: {state.message}")
    return job.groups()
