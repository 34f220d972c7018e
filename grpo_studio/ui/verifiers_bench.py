"""The bench on the Verifiers page: gold check, real samples and exploit probes, as jobs in the background.

No gradio here. A job is named by a key of the browser's, so that a page that was loaded again finds what it began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from grpo_studio import config_files
from grpo_studio.algorithm_settings import AlgorithmSettings
from grpo_studio.config import DatasetSettings, ModelSettings, RewardSettings, RunConfig
from grpo_studio.data import Sample
from grpo_studio.declaration import fields_of
from grpo_studio.errors import DataError, StudioError, UsageError
from grpo_studio.plots.figure import tidy
from grpo_studio.settings import Settings
from grpo_studio.ui.form import describe_field
from grpo_studio.ui.jobs import Answer, Job, Jobs
from grpo_studio.ui.launch_command import complete
from grpo_studio.ui.readable import require_inside
from grpo_studio.ui.verifiers_requests import draft_of, key_of, number_of
from grpo_studio.ui.verifiers_trust import require_sandbox
from grpo_studio.verifiers.bench import (
    ProbeResult,
    RewardSpread,
    SampledGroup,
    SampleReport,
    exploit_probes,
    gold_check,
    probe_row,
    read_bench_rows,
    sample_report,
)
from grpo_studio.verifiers.bench.request import SamplingRequest
from grpo_studio.verifiers.bench.sampling_turns import SamplingTurns

FIRST_PRESET = "quickstart"
MOST_PROMPTS, MOST_PER_PROMPT = 256, 64
LONGEST_SHOWN = 2_000
SHOWN_GROUPS = 4
_MODEL, _ALGORITHM = ("id",), ("max_completion_length", "temperature")
_DATASET = (
    "source", "config", "split", "columns.prompt", "columns.answer", "limit", "prompt_template", "system_prompt",
)  # fmt: skip


class BenchActions:
    """The server functions of the bench. One object serves all browsers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._jobs = Jobs()
        self._sampling = SamplingTurns(settings)

    def verifiers_bench_form(self, request: Mapping[str, Any]) -> Answer:
        """The fields of the bench, and the settings to begin with: those of the presets."""
        model, algorithm = fields_of(ModelSettings, "model."), fields_of(AlgorithmSettings, "algorithm.")
        dataset = fields_of(DatasetSettings, "dataset.")
        wanted = [f"dataset.{name}" for name in _DATASET]
        wanted_of_model = [*(f"model.{name}" for name in _MODEL), *(f"algorithm.{name}" for name in _ALGORITHM)]
        fields = {**model, **algorithm, **dataset}
        return {
            "data_fields": [describe_field(name, fields[name]) for name in wanted],
            "model_fields": [describe_field(name, fields[name]) for name in wanted_of_model],
            "reward_fields": [describe_field(key, info) for key, info in RewardSettings.model_fields.items()],
            "presets": self._presets(),
            "most": {"prompts": MOST_PROMPTS, "per_prompt": MOST_PER_PROMPT},
        }

    def _presets(self) -> list[Answer]:
        found = []
        names = config_files.preset_names(self.settings.presets_dirs)
        for name in sorted(names, key=lambda name: (name != FIRST_PRESET, name)):
            try:
                settings = complete(config_files.read_preset(name, self.settings.presets_dirs))
            except StudioError:
                continue  # the Launch page says what is wrong with it
            kept = {section: settings.get(section) for section in ("model", "dataset", "rewards", "algorithm")}
            found.append({"name": name, "settings": kept})
        return found

    def verifiers_bench_begin(self, request: Mapping[str, Any]) -> Answer:
        """Begin a job of `kind` gold, samples or probes: the answer says how far it is (see `Job.answer`)."""
        kind, config = request.get("kind"), draft_of(request)
        require_sandbox(self.settings, config.rewards)
        require_inside(config, self.settings)
        if kind == "gold":
            return self._jobs.begin(key_of(request), kind, lambda job: self._gold(job, config))
        if kind == "probes":
            return self._jobs.begin(key_of(request), kind, lambda job: self._probes(job, config))
        if kind == "samples":
            prompts = number_of(request, "prompts", MOST_PROMPTS)
            wanted = SamplingRequest.of(config, prompts, number_of(request, "per_prompt", MOST_PER_PROMPT))
            return self._jobs.begin(key_of(request), kind, lambda job: self._samples(job, wanted))
        raise UsageError("the kind is none of gold, samples and probes")

    def verifiers_bench_progress(self, request: Mapping[str, Any]) -> Answer:
        """How far a job is, in the form of `verifiers_bench_begin`'s answer."""
        return self._jobs.progress(key_of(request))

    def verifiers_bench_cancel(self, request: Mapping[str, Any]) -> Answer:
        """Ask a job to end."""
        return self._jobs.cancel(key_of(request))

    def _gold(self, job: Job, config: RunConfig) -> Answer:
        with self._jobs.turn(job):
            job.report("reading")
            rows = read_bench_rows(config.dataset)
            reports = gold_check(
                config.rewards,
                rows.samples,
                self.settings.rewards_dirs,
                numbers=rows.numbers,
                progress=job.judging,
            )
        return {"reports": [asdict(report) for report in reports], "rows": len(rows.samples)}

    def _probes(self, job: Job, config: RunConfig) -> Answer:
        with self._jobs.turn(job):
            job.report("reading")
            samples = read_bench_rows(config.dataset).samples
            if not samples:
                raise DataError(f"{config.dataset.source} has no row with a prompt; map the column that holds it")
            sample = samples[probe_row(samples)]
            results = exploit_probes(config.rewards, sample, self.settings.rewards_dirs, progress=job.judging)
        return {"results": [_told_probe(result) for result in results], "row": _told_row(sample)}

    def _samples(self, job: Job, request: SamplingRequest) -> Answer:
        job.report("starting", 0, request.wanted)
        groups = self._sampling.sample(request, job.report)
        with self._jobs.turn(job):
            report = sample_report(request.config.rewards, groups, self.settings.rewards_dirs, progress=job.judging)
        return {"report": _told_report(report), "groups": [_told_group(group) for group in groups[:SHOWN_GROUPS]]}


def _told_probe(result: ProbeResult) -> Answer:
    return asdict(result) | {"text": result.text[:LONGEST_SHOWN], "length": len(result.text)}


def _told_row(sample: Sample) -> Answer:
    return {"question": sample.question[:LONGEST_SHOWN], "gold": str(sample.answer)[:LONGEST_SHOWN]}


def _told_group(group: SampledGroup) -> Answer:
    return _told_row(group.sample) | {"completions": [text[:LONGEST_SHOWN] for text in group.completions]}


def _told_report(report: SampleReport) -> Answer:
    spreads: Sequence[RewardSpread] = (*report.rewards, report.total)
    told = [asdict(spread) | {"mean": tidy(spread.mean), "std": tidy(spread.std)} for spread in spreads]
    return asdict(report) | {"rewards": told[:-1], "total": told[-1]}
