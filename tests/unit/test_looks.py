"""How closely `check` looks at the data: the page's first rows, a finished scan, everything."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from reward_checks import add_verifier

from grpo_studio import looks, scan_measure
from grpo_studio.config import RunConfig
from grpo_studio.data_scan import judged, scan
from grpo_studio.looks import QuickLook, ScanCache, WholeLook
from grpo_studio.preflight import check
from grpo_studio.scan_measure import Measured
from grpo_studio.settings import Settings

ROWS = 230
"""More than a quick look reads."""
MATH = [{"verifier": "math_numeric"}]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "rows.jsonl", ROWS)


def written(path: Path, count: int, **first: Any) -> Path:
    rows = [{"prompt": f"What is {number} + 1?", "answer": str(number + 1)} for number in range(count)]
    rows[0] |= first
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def draft(model: Path, source: Path, **changed: Any) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "model": {"id": str(model)},
        "dataset": {"source": str(source), "held_out": 10},
        "rewards": MATH,
        "algorithm": {"prompts_per_step": 6, "steps": 20, "max_completion_length": 100},
    }
    for name, value in changed.items():
        section, key = name.split("__")
        raw[section] = {**raw[section], key: value}
    return raw


class Counted:
    """`measure`, with the number of times that it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, *arguments: Any, **named: Any) -> Measured:
        self.times += 1
        return scan_measure.measure(*arguments, **named)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr(looks, "measure", counted)
    return counted


def test_a_whole_look_tells_how_far_it_is_and_what_it_found(tiny_model: Path, source: Path, settings: Settings) -> None:
    told: list[tuple[str, float]] = []
    report = check(draft(tiny_model, source), settings, WholeLook(lambda what, share: told.append((what, share))))
    assert report.ok, report.problems
    assert list(dict.fromkeys(what for what, _ in told)) == ["reading rows", "reading golds", "counting tokens"]
    assert all(0 <= share <= 1 for _, share in told)
    for what in ("reading rows", "counting tokens", "reading golds"):
        shares = [share for name, share in told if name == what]
        assert shares == sorted(shares)
        assert shares[-1] == 1
    assert report.scan is not None
    assert report.scan.as_dict()["derived"].items() <= report.derived.items()
    assert report.derived["steps_per_epoch"] == (ROWS - 10) // 6
    assert report.derived["epochs"] == pytest.approx(20 * 6 / (ROWS - 10), abs=1e-3)


@pytest.mark.parametrize("at", ["reading rows", "counting tokens", "reading golds"])
def test_a_scan_ends_where_its_progress_raises(at: str, tiny_model: Path, source: Path, settings: Settings) -> None:
    class Cancelled(Exception):
        pass

    def progress(what: str, share: float) -> None:
        if what == at:
            raise Cancelled

    with pytest.raises(Cancelled):
        scan(RunConfig.model_validate(draft(tiny_model, source)), settings, progress)


def test_a_quick_look_reads_no_further_than_it_needs(tiny_model: Path, source: Path, settings: Settings) -> None:
    with source.open("a") as file:
        file.write("{broken\n")
    quick = check(draft(tiny_model, source), settings, QuickLook(ScanCache()))
    assert quick.ok, quick.problems
    assert quick.scan is None
    assert "train_rows" not in quick.derived
    [problem] = check(draft(tiny_model, source), settings).problems
    assert f"line {ROWS + 1} is not JSON" in problem.message


def test_a_quick_look_judges_mapping_and_golds_by_the_first_rows(
    tiny_model: Path, tmp_path: Path, settings: Settings
) -> None:
    path = written(tmp_path / "rows.jsonl", ROWS, answer="about a dozen")
    look = QuickLook(ScanCache())
    report = check(draft(tiny_model, path), settings, look)
    assert report.ok
    assert any("cannot read the gold of 1 of the 200 rows looked at (row 1)" in note for note in report.notes)
    [problem] = check(draft(tiny_model, path, dataset__columns={"prompt": "nix"}), settings, look).problems
    assert problem.field == "dataset.columns.prompt"
    [problem] = check({**draft(tiny_model, path), "rewards": [{"verifier": "nix"}]}, settings, look).problems
    assert problem.field == "rewards.0.verifier"


def test_a_small_set_is_read_whole_at_once(tiny_model: Path, tmp_path: Path, settings: Settings) -> None:
    path = written(tmp_path / "rows.jsonl", 12)
    report = check(draft(tiny_model, path), settings, QuickLook(ScanCache()))
    assert (report.derived["dataset_rows"], report.derived["train_rows"]) == (12, 2)
    [problem] = report.problems
    assert "12 rows less 10 held out" in problem.message
    assert "train_rows" in check({"model": {"id": str(tiny_model)}}, settings, QuickLook(ScanCache())).derived


def test_a_finished_scan_is_known_to_the_quick_look(tiny_model: Path, source: Path, settings: Settings) -> None:
    cache = ScanCache()
    raw = draft(tiny_model, source)
    report = cache.scan(RunConfig.model_validate(raw), settings)
    quick = check(raw, settings, QuickLook(cache))
    assert quick.scan is not None
    assert quick.scan.as_dict() == report.as_dict()
    assert quick.as_dict() == check(raw, settings).as_dict()


def test_a_quick_look_judges_a_known_scan_by_the_settings_of_now(
    tiny_model: Path, source: Path, settings: Settings, scans: Counted
) -> None:
    cache = ScanCache()
    cache.scan(RunConfig.model_validate(draft(tiny_model, source)), settings)
    for changed, field in (
        ({"algorithm__learning_rate": 1e-6}, None),
        ({"algorithm__steps": 7}, None),
        ({"algorithm__max_completion_length": 500}, "dataset.too_long"),
        ({"algorithm__max_completion_length": 512}, "algorithm.max_completion_length"),
        ({"algorithm__prompts_per_step": 221}, "algorithm.prompts_per_step"),
        ({"dataset__too_long": "leave_out", "algorithm__max_completion_length": 100}, None),
    ):
        report = check(draft(tiny_model, source, **changed), settings, QuickLook(cache))
        assert report.scan is not None
        assert [problem.field for problem in report.problems] == ([field] if field else []), changed
    assert scans.times == 1


def test_a_scan_is_made_anew_for_what_it_depends_on(
    tiny_model: Path, source: Path, settings: Settings, scans: Counted
) -> None:
    cache = ScanCache()

    def known(**changed: Any) -> bool:
        return cache.known(RunConfig.model_validate(draft(tiny_model, source, **changed)), settings) is not None

    cache.scan(RunConfig.model_validate(draft(tiny_model, source)), settings)
    cache.scan(RunConfig.model_validate(draft(tiny_model, source)), settings)
    assert scans.times == 1
    assert known()
    assert not known(dataset__system_prompt="Be brief.")
    assert not known(dataset__held_out=11)
    assert not known(dataset__limit=100)
    assert not known(model__chat_template="plain")
    config = RunConfig.model_validate({**draft(tiny_model, source), "rewards": [{"verifier": "math_boxed"}]})
    assert cache.known(config, settings) is None


def test_a_changed_file_is_scanned_anew(tiny_model: Path, source: Path, settings: Settings) -> None:
    cache, config = ScanCache(), RunConfig.model_validate(draft(tiny_model, source))
    assert cache.scan(config, settings).rows == ROWS
    written(source, ROWS + 1)
    assert cache.known(config, settings) is None
    assert cache.scan(config, settings).rows == ROWS + 1
    status = source.stat()
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert cache.known(config, settings) is None


def test_a_changed_verifier_is_asked_anew(tiny_model: Path, source: Path, settings: Settings) -> None:
    text = (
        "from grpo_studio.verifiers import verifier\n\n\n"
        "@verifier(examples=[('a', {'answer': '1'}, 1.0)])\n"
        "def mine(completion, answer):\n    return SCORE\n"
    )
    add_verifier(settings, "mine", text.replace("SCORE", "1.0"))
    config = RunConfig.model_validate({**draft(tiny_model, source), "rewards": [{"verifier": "mine"}]})
    cache = ScanCache()
    assert cache.scan(config, settings).golds.reports[0].readable == ROWS
    add_verifier(settings, "mine", text.replace("SCORE", "None if answer == '5' else 1.0"))
    assert cache.known(config, settings) is None
    assert cache.scan(config, settings).golds.reports[0].readable == ROWS - 1


def test_what_cannot_be_read_is_a_problem_of_the_scan_and_kept(
    tiny_model: Path, tmp_path: Path, settings: Settings, scans: Counted
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "q", "answer": "1"}\n' * 300 + "{broken\n")
    cache, config = ScanCache(), RunConfig.model_validate(draft(tiny_model, path))
    report = cache.scan(config, settings)
    assert [problem.field for problem in report.problems] == ["dataset.source"]
    assert "line 301" in report.problems[0].message
    assert not check(draft(tiny_model, path), settings, QuickLook(cache)).ok
    assert scans.times == 1


def test_a_model_without_a_tokenizer_is_found_by_the_scan(source: Path, tmp_path: Path, settings: Settings) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}')
    (folder / "model.safetensors").touch()
    report = check(draft(folder, source), settings)
    assert [problem.field for problem in report.problems] == ["model.id"]
    assert report.scan is not None
    assert report.scan.lengths is None
    assert report.derived["train_rows"] == ROWS - 10


def test_tokens_are_counted_before_a_start_only_when_a_prompt_may_be_too_long(
    tiny_model: Path, source: Path, settings: Settings
) -> None:
    def lengths(**changed: Any) -> bool:
        report = check(draft(tiny_model, source, **changed), settings, WholeLook(count_all=False))
        assert report.scan is not None
        assert report.derived["context_length"] == 512
        return report.scan.lengths is not None

    # The tiny model's template writes about a hundred characters of its own, and there is one message.
    assert not lengths(algorithm__max_completion_length=200)
    assert lengths(algorithm__max_completion_length=400)
    assert not lengths(algorithm__max_completion_length=400, model__chat_template="plain")
    raw = draft(tiny_model, source, algorithm__max_completion_length=500)
    [problem] = check(raw, settings, WholeLook(count_all=False)).problems
    assert problem == check(raw, settings).problems[0]


def test_a_start_takes_the_scan_that_was_made_for_it(
    tiny_model: Path, source: Path, settings: Settings, scans: Counted
) -> None:
    cache, raw = ScanCache(), draft(tiny_model, source)
    cache.scan(RunConfig.model_validate(raw), settings)
    assert check(raw, settings, WholeLook(scans=cache)).ok
    assert scans.times == 1
    written(source, 15)
    [problem] = check(raw, settings, WholeLook(scans=cache)).problems
    assert scans.times == 2
    assert "15 rows less 10 held out" in problem.message


def test_vllm_with_a_shorter_context_leaves_less_room(tiny_model: Path, source: Path, settings: Settings) -> None:
    raw = draft(tiny_model, source)
    measured = scan_measure.measure(RunConfig.model_validate(raw), settings)
    raw["rollout"] = {"engine": "vllm_colocate", "max_model_length": 110}
    report = judged(RunConfig.model_validate(raw), measured)
    assert report.lengths is not None
    assert (report.lengths.context, report.lengths.room) == (110, 10)
    assert "rollout.max_model_length=" in report.problems[0].fix
    raw["rollout"] = {"engine": "transformers", "max_model_length": 110}
    assert judged(RunConfig.model_validate(raw), measured).derived["context_length"] == 512
