"""What the Memory page answers: settings are judged, probes told as measured, hostile text and requests kept out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from sample_run import SampleRun

from grpo_studio.cards_table import CARDS
from grpo_studio.commands import parser
from grpo_studio.config import RunConfig
from grpo_studio.errors import ConfigError, StudioError, UsageError
from grpo_studio.memory.forecast import CardSize
from grpo_studio.memory.probe_document import BackendResult, ProbeDocument, Sweep, SweepLine, SweepPoint
from grpo_studio.memory.probes import keep_probe, probes_dir
from grpo_studio.settings import Settings
from grpo_studio.ui.memory import MemoryActions
from grpo_studio.ui.memory_forecast import at_once, chosen_card, listed_cards
from grpo_studio.ui.memory_more import cards, measured_of
from grpo_studio.ui.memory_probes import command_of, listed_probes, loss_verdict, probe_view
from grpo_studio.ui.memory_source import FIELDS, about_source, described_fields, source_of

HOSTILE = "<script>window.hacked=1</script>"
OUT = "out of memory in loss: 18 GB were asked for; a smaller memory.micro_batch"


def backend(name: str, **more: Any) -> BackendResult:
    told: dict[str, Any] = {
        "backend": name, "loss": 0.25, "grad_norm": 0.5, "grad_relative_difference": 2e-6, "peak_bytes": 6 * 10**9,
        "peak_by_phase": {"loss": 6 * 10**9}, "seconds": 2.0,
    }  # fmt: skip
    return BackendResult(**(told | more))


FULL = backend("full", peak_bytes=30 * 10**9, grad_relative_difference=None, seconds=1.6)


def line(name: str, dtype: str = "float32", ended_by: str = "memory", sizes: tuple[int, ...] = (1, 2)) -> SweepLine:
    points = [SweepPoint(x=size, peak_bytes=size * 10**9, seconds=1.0) for size in sizes]
    largest = sizes[-1] if sizes else None
    return SweepLine(backend=name, dtype=dtype, points=points, ended_by=ended_by, end_x=4, largest=largest)  # type: ignore[arg-type]


def document(probe_id: str = "20261130-120000-tiny-aaaa", **more: Any) -> ProbeDocument:
    told: dict[str, Any] = {
        "id": probe_id, "name": "tiny", "started": 1.8e9, "config": {}, "model": "Qwen/Qwen3-0.6B", "dtype": "bfloat16",
        "adapter": "none", "device": "CPU, 2 cores", "card_bytes": 4 * 10**9, "prompt_tokens": 60,
        "completion_tokens": 512, "completions": 32, "micro_batch": 8, "backends": [FULL, backend("liger")],
        "reference_backend": "full",
    }  # fmt: skip
    return ProbeDocument(**(told | more))


def shown_probe(settings: Settings, **more: Any) -> Mapping[str, Any]:
    keep_probe(settings, document(**more))
    view = probe_view(settings, {})
    assert view is not None
    json.dumps(view, allow_nan=False)
    return view


class TestSource:
    def test_a_preset_with_changes_is_judged_and_told_as_it_is_typed(self, settings: Settings) -> None:
        asked = {"preset": "quickstart", "set": [["memory.micro_batch", "8"], ["memory.adapter", "lora"]]}
        source = source_of(asked, settings)
        told = about_source(source)
        assert source.valid_config().memory.micro_batch == 8
        assert (told["values"]["memory.micro_batch"], told["base"]["memory.micro_batch"]) == ("8", "")
        assert told["changed"] == ["memory.micro_batch", "memory.adapter"]
        assert source.arguments == ("--preset=quickstart", "--set=memory.micro_batch=8", "--set=memory.adapter=lora")

    def test_without_a_name_it_is_the_quickstart(self, settings: Settings) -> None:
        assert source_of({}, settings).name == "quickstart"

    def test_a_run_is_looked_at_with_the_settings_of_its_newest_attempt(self, settings: Settings) -> None:
        run = SampleRun(settings.home)
        run.writer.close()
        source = source_of({"run": run.folder.run_id, "preset": "quickstart"}, settings)
        assert source.config == run.config
        assert source.arguments == (f"--config={run.folder.config_path}",)

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("memory.micro_batch", "0"),
            ("memory.micro_batch", "-4"),
            ("memory.micro_batch", "3"),
            ("memory.micro_batch", "9" * 400),
            ("algorithm.group_size", "1e999"),
            ("algorithm.max_completion_length", "many"),
            ("memory.loss_backend", "magic"),
            ("model.dtype", "[float32]"),
            ("memory.lora_rank", "nan"),
            ("no.such", "1"),
        ],
    )
    def test_a_value_that_cannot_work_is_one_problem_at_its_field_and_no_forecast(
        self, settings: Settings, name: str, text: str
    ) -> None:
        source = source_of({"set": [[name, text]]}, settings)
        told = about_source(source)
        assert told["derived"] is None
        assert any(
            one["field"].startswith(name.partition(".")[0]) or name in one["message"] for one in told["problems"]
        )
        assert len(json.dumps(told)) < 20_000
        with pytest.raises(ConfigError) as error:
            source.valid_config()
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        "request_",
        [
            {"preset": "no-such"},
            {"preset": "../../etc/passwd"},
            {"preset": "x" * 5000},
            {"preset": 7},
            {"preset": ["quickstart"]},
            {"run": "no-such"},
            {"run": {"a": 1}},
            {"set": "memory.micro_batch=1"},
            {"set": [["memory.micro_batch"]]},
            {"set": [["--config", "/etc/passwd"]]},
            {"set": [["memory.micro_batch", "*a"], ["x", "&a 1"]]},
            {"set": [["a", "b"]] * 100},
            {"prompt_tokens": -1},
            {"prompt_tokens": "many"},
            {"prompt_tokens": 10**12},
            {"prompt_tokens": True},
        ],
        ids=lambda one: json.dumps(one)[:40],
    )
    def test_a_request_that_names_nothing_is_one_line(self, settings: Settings, request_: dict[str, Any]) -> None:
        answer = MemoryActions(settings).memory_look(request_)
        assert set(answer) == {"error"}
        assert "\n" not in answer["error"]
        assert len(answer["error"]) < 600

    def test_the_fields_of_the_page_are_those_of_the_form(self) -> None:
        assert tuple(field["name"] for field in described_fields()) == FIELDS

    def test_a_visitor_gets_no_path_of_this_machine(self, settings: Settings, tmp_path: Path) -> None:
        served = replace(settings, host="0.0.0.0")
        told = about_source(source_of({"set": [["model.id", "/etc"]]}, served))
        assert told["problems"][0]["field"] == "model.id"
        assert told["derived"] is None


class TestCard:
    def test_one_of_the_table_by_name_a_size_none_or_the_usual_one(self) -> None:
        assert chosen_card({"card": "L4"}) == CardSize("L4", 24 * 10**9, "table of cards")
        assert chosen_card({"card": "none"}) is None
        size = chosen_card({"card": "80"})
        assert size is not None
        assert size.bytes == 80 * 10**9
        assert chosen_card({}) is not None

    @pytest.mark.parametrize("card", ["RTX 9999", "-3", "0", "nan", HOSTILE])
    def test_a_card_that_is_not_there_is_an_error(self, card: str) -> None:
        with pytest.raises(UsageError):
            chosen_card({"card": card})

    def test_the_list_holds_the_whole_table_and_its_usual_one(self) -> None:
        told = listed_cards()
        assert [one["name"] for one in told["table"]] == [card.name for card in CARDS]
        assert told["usual"] in {card.name for card in CARDS}

    def test_a_point_of_the_lines_changes_the_backend_and_the_pass_alone(self) -> None:
        config = RunConfig()
        changed = at_once(config, "full", 48)
        assert (changed.memory.loss_backend, changed.memory.micro_batch) == ("full", 48)
        assert changed.model_dump(exclude={"memory"}) == config.model_dump(exclude={"memory"})


class TestProbe:
    def test_the_table_tells_peaks_and_times_against_the_reference(self, settings: Settings) -> None:
        full, liger = shown_probe(settings)["rows"]
        assert (full["reference"], full["against"], full["time"]) == (True, None, 1)
        assert liger["against"] == pytest.approx(-0.8)
        assert liger["time"] == pytest.approx(1.25)
        assert liger["gradient"] == 2e-6

    @pytest.mark.parametrize(
        ("loss", "reference", "peak", "same", "saves"),
        [
            (0.25, 0.25, 6, True, True),
            (0.25 + 9e-7, 0.25, 6, True, True),
            (0.25 + 2e-6, 0.25, 6, False, True),
            (0.25, 0.25, 30, True, False),
            (0.25, 0.25, 40, True, False),
            (5000.004, 5000.0, 6, True, True),
            (5000.02, 5000.0, 6, False, True),
            (-0.0, 0.0, 6, True, True),
        ],
    )
    def test_the_same_loss_is_said_only_when_the_numbers_say_it(
        self, loss: float, reference: float, peak: int, same: bool, saves: bool
    ) -> None:
        full = FULL.model_copy(update={"loss": reference})
        told = loss_verdict([full, backend("liger", loss=loss, peak_bytes=peak * 10**9)], full)
        assert told is not None
        assert (told["same"], told["saves"]) == (same, saves)

    def test_nothing_is_said_of_losses_where_there_are_no_two(self) -> None:
        lost = backend("full", loss=None, peak_bytes=None, error=OUT)
        assert loss_verdict([lost, backend("liger")], lost) is None
        assert loss_verdict([FULL, backend("liger", loss=None, error=OUT)], FULL) is None
        assert loss_verdict([backend("liger")], None) is None

    def test_a_backend_without_memory_is_a_row_that_says_so(self, settings: Settings) -> None:
        lost = backend("full", loss=None, peak_bytes=None, seconds=None, grad_relative_difference=None, error=OUT)
        view = shown_probe(settings, backends=[lost, backend("liger")], reference_backend="liger")
        full, liger = view["rows"]
        assert (full["memory"], full["peak"], full["against"]) == (True, None, None)
        assert full["error"].startswith("out of memory in loss")
        assert liger["reference"] is True
        assert view["loss"] is None

    def test_a_sweep_is_a_chart_with_the_end_of_each_line_and_the_biggest_batch(self, settings: Settings) -> None:
        lines = [line("full"), line("full", "bfloat16", "asked"), line("liger", ended_by="limit")]
        sweep = shown_probe(settings, sweep=Sweep(axis="completions", lines=lines))["sweep"]
        go.Figure(sweep["figure"])
        names = [trace["name"] for trace in sweep["figure"]["data"] if trace.get("showlegend", True)]
        assert names == ["full, fp32", "full, bf16", "Liger, fp32"]
        assert sweep["card_shown"] is True
        assert [(one["largest"], one["end"]) for one in sweep["biggest"]] == [(2, "memory"), (2, "asked"), (2, "limit")]

    def test_a_sweep_of_which_nothing_fitted_has_no_biggest_batch(self, settings: Settings) -> None:
        sweep = shown_probe(settings, sweep=Sweep(axis="tokens", lines=[line("full", sizes=())]))["sweep"]
        assert sweep["figure"]["data"] == []
        assert sweep["biggest"][0]["largest"] is None

    def test_the_newest_is_shown_and_an_older_one_by_its_id(self, settings: Settings) -> None:
        keep_probe(settings, document("20261130-110000-old-aaaa", model="old"))
        keep_probe(settings, document("20261130-120000-new-aaaa", model="new"))
        for asked, model in ((None, "new"), ("20261130-110000-old-aaaa", "old"), ("gone", "new"), (["x"], "new")):
            view = probe_view(settings, {"probe": asked})
            assert view is not None
            assert view["model"] == model
        assert [one["id"][:15] for one in listed_probes(settings)] == ["20261130-120000", "20261130-110000"]

    def test_a_damaged_probe_is_listed_with_what_is_wrong_and_the_newest_whole_one_is_shown(
        self, settings: Settings
    ) -> None:
        keep_probe(settings, document())
        broken = probes_dir(settings) / "20261130-130000-broken-aaaa"
        broken.mkdir()
        (broken / "probe.json").write_text('{"id": "x"')
        assert listed_probes(settings)[0]["problem"]
        newest, asked = probe_view(settings, {}), probe_view(settings, {"probe": broken.name})
        assert newest is not None
        assert newest["id"] == document().id
        assert asked == {"id": broken.name, "problem": listed_probes(settings)[0]["problem"]}

    def test_text_of_a_file_is_cut_to_lines(self, settings: Settings) -> None:
        long = "x\n\x1b[31m" * 60
        view = shown_probe(settings, model=long, device=long, dtype=long, notes=[long * 3], backends=[backend(long)])
        texts = [view["model"], view["device"], view["dtype"], *view["notes"], view["rows"][0]["backend"]]
        assert all(text.isprintable() and len(text) <= 300 for text in texts)

    def test_no_probe_is_none(self, settings: Settings) -> None:
        assert probe_view(settings, {}) is None
        assert listed_probes(settings) == []


class TestCommand:
    @pytest.mark.parametrize(("kind", "options"), [("probe", []), ("sweep", ["--sweep=completions"])])
    def test_it_is_the_command_line_with_what_the_page_looks_at(
        self, settings: Settings, kind: str, options: list[str]
    ) -> None:
        source = source_of({"set": [["model.dtype", "float32"]]}, settings)
        for more, anyway in (([], False), (["--anyway"], True), ([], "yes")):
            command = command_of(source, {"kind": kind, "anyway": anyway}, settings)
            assert command == ["probe", "--preset=quickstart", "--set=model.dtype=float32", *options, *more]
            parsed = parser().parse_args(command)
            assert (parsed.preset, parsed.anyway) == ("quickstart", bool(more))

    @pytest.mark.parametrize("to", [0, -1, 1.5, "9", True, 10**9, [1]])
    def test_a_sweep_ends_at_a_whole_number_of_completions(self, settings: Settings, to: Any) -> None:
        source = source_of({}, settings)
        assert command_of(source, {"kind": "sweep", "to": 32}, settings)[-1] == "--to=32"
        with pytest.raises(UsageError):
            command_of(source, {"kind": "sweep", "to": to}, settings)

    def test_where_others_can_reach_the_page_it_is_refused(self, settings: Settings) -> None:
        served = replace(settings, host="0.0.0.0")
        answer = MemoryActions(served).run_command({"key": "a" * 12, "kind": "probe"})
        assert answer["error"].startswith("visitors cannot start a probe")
        assert MemoryActions(served).memory_about({})["refused"] == answer["error"]
        assert MemoryActions(served).run_command_progress({"key": "a" * 12}) == {"unknown": True}

    @pytest.mark.parametrize("kind", [None, "delete", "probe --to=/", 3])
    def test_nothing_else_can_be_started(self, settings: Settings, kind: Any) -> None:
        with pytest.raises(UsageError):
            command_of(source_of({}, settings), {"kind": kind}, settings)

    def test_settings_that_cannot_work_start_nothing(self, settings: Settings) -> None:
        source = source_of({"set": [["memory.micro_batch", "3"]]}, settings)
        with pytest.raises(StudioError):
            command_of(source, {"kind": "probe"}, settings)


class TestBeside:
    def test_what_a_run_measured_is_its_greatest_phase(self, settings: Settings) -> None:
        run = SampleRun(settings.home)
        run.begin()
        assert measured_of(run.folder) is None
        with run.writer.transaction():
            run.writer.metrics(1, {"memory/peak/rollout": 1.2e9, "memory/peak/loss": 1.8e9})
            run.writer.metrics(2, {"memory/peak/rollout": 1.3e9, "memory/peak/loss": 1.7e9})
        told = measured_of(run.folder)
        run.writer.close()
        assert told == {"peak": 1.8e9, "phase": "loss", "resident": True, "ended": False}

    def test_a_tick_tells_what_is_new_once(self, settings: Settings) -> None:
        actions = MemoryActions(settings)
        first = actions.memory_tick({})
        assert first["probes"] == []
        assert actions.memory_tick({"version": first["version"]}) == {"version": first["version"]}
        keep_probe(settings, document())
        assert actions.memory_tick({"version": first["version"]})["probe"]["model"] == "Qwen/Qwen3-0.6B"

    def test_the_cards_hold_the_published_figures_and_three_methods(self) -> None:
        told = cards()
        texts = [one["text"] for one in told["hand"]]
        assert {"16.4 GB", "21.8 M parameters", "147,456 bytes", "295.2 GB"} <= set(texts)
        assert [one["title"] for one in told["methods"]] == ["PPO", "DPO", "GRPO"]
        assert all(len(row["cells"]) == 3 and all(row["cells"]) for row in told["rows"])

    def test_the_page_is_told_what_there_is_to_choose_from(self, settings: Settings) -> None:
        run = SampleRun(settings.home, name=HOSTILE)
        run.writer.close()
        about = MemoryActions(settings).memory_about({})
        assert "quickstart" in [one["name"] for one in about["presets"]]
        assert [one["id"] for one in about["runs"]] == [run.folder.run_id]
        assert about["refused"] is None
        json.dumps(about, allow_nan=False)
