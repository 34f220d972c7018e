"""The bench: what rewards will do, seen before a run. Gold check, trying one text, real samples, exploit probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grpo_studio.config import RewardSettings
from grpo_studio.verifiers.bench.given import specs_of
from grpo_studio.verifiers.bench.gold import GoldReport, GoldRow, gold_check
from grpo_studio.verifiers.bench.judging import BenchJudge
from grpo_studio.verifiers.bench.probes import ProbeResult, exploit_probes, probe_row
from grpo_studio.verifiers.bench.rows import BenchRows, read_bench_rows
from grpo_studio.verifiers.bench.samples import RewardSpread, SampledGroup, SampleReport, sample_report
from grpo_studio.verifiers.judge import Score

__all__ = [
    "BenchRows",
    "GoldReport",
    "GoldRow",
    "ProbeResult",
    "RewardSpread",
    "SampleReport",
    "SampledGroup",
    "exploit_probes",
    "gold_check",
    "probe_row",
    "read_bench_rows",
    "sample_report",
    "try_it",
]


def try_it(
    reward: RewardSettings,
    directories: Sequence[Path],
    completion: str,
    columns: Mapping[str, Any],
    time_limit: float = 5.0,
) -> Score:
    """One verifier's word on one text. `columns` are passed as they stand, the given ones included.

    Raises:
        VerifierError: the verifier is not there or its params are no plain data.
    """
    with BenchJudge([reward], specs_of([reward], directories), directories, time_limit) as judge:
        return judge.score([completion], {name: [value] for name, value in columns.items()})[0][0]
