"""What the Live page shows of verifiers in trouble."""

from __future__ import annotations

from sample_run import SampleRun

from grpo_studio.settings import Settings
from grpo_studio.ui import strings
from grpo_studio.ui.live import LiveActions
from grpo_studio.ui.live_charts import TROUBLES


def test_each_kind_of_trouble_is_counted_over_the_whole_run(settings: Settings) -> None:
    run = SampleRun(settings.home)
    run.begin()
    run.advance(3)
    for step, wrong in ((2, 3.0), (3, 1.0)):
        counts = {"wrong_type": wrong, "non_finite": 0.0, "timeout": 1.0, "error": 0.0}
        run.writer.metrics(step, {f"verifier/math_numeric/{kind}": count for kind, count in counts.items()})
    rows = {row["name"]: row for row in LiveActions(settings).live_tick({})["charts"]["facts"]["verifiers"]}
    assert rows["math_numeric"]["troubles"] == {"timeout": 2, "wrong_type": 4}
    assert rows["bare_number"]["troubles"] == {}


def test_every_kind_has_its_words() -> None:
    assert set(strings.load()["live"]["troubles"]) == set(TROUBLES)


def test_a_paused_run_shows_its_reason(settings: Settings) -> None:
    run = SampleRun(settings.home)
    run.begin()
    run.advance(3)
    run.writer.event("run_paused", "after step 3: the grader is away", level="error")
    strip = LiveActions(settings).live_tick({})["strip"]
    assert "after step 3: the grader is away" in strip["reason"]
