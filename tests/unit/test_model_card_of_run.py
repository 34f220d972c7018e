"""The model card of an export: made of the run's record, and never more than that; texts stay texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from sample_run import SampleRun

from grpo_studio.checkpoints import Checkpoint, Manifest
from grpo_studio.config import BUILTIN_MODEL, RunConfig
from grpo_studio.config_files import parse_config
from grpo_studio.evaluation_stats import Estimate, Flips
from grpo_studio.exporting.card_evaluation import Evaluated, Measure
from grpo_studio.exporting.card_facts import CardFacts, card_facts
from grpo_studio.exporting.curve import milestones, smoothed, svg
from grpo_studio.exporting.markdown import block, code, escaped, front_matter
from grpo_studio.exporting.model_card import model_card
from grpo_studio.exporting.origin import Origin, dataset_of, origin_of, settings_that_differ
from grpo_studio.exporting.redaction import Redaction
from grpo_studio.settings import Settings
from grpo_studio.store.records import CompletionRecord, GroupRecord, ScoreRecord

HUB = Origin("alice/base", "alice/base", "v1", True, "apache-2.0")
LOCAL = Origin("my-model", None, None, False, None)
FACTS = CardFacts(
    run="20260101-000000-sums-abcd", kind="whole", origin=HUB, dataset="alice/sums", dataset_id="alice/sums",
    rewards=[("math_numeric", "math_numeric", 1.0), ("bare", "regex_match", 0.5)], checkpoint="final", step=20,
    steps=20, settings="model:\n  id: alice/base\n", loss="dapo", adapter="", saved_dtype="bfloat16",
    setup={"parameters": 1000, "trainable_parameters": 1000, "train_rows": 90},
    curve=[(step, step / 20) for step in range(1, 21)], versions={"trl": "1.16.0"}, program="9.9.9",
)  # fmt: skip
HOSTILE = (
    '<img src=x onerror="x()"> [a](javascript:x) ![b](http://c/d.png) `code` **bold** | $x$ --- # head\n---\nnew: 1'
)


def head(card: str) -> dict[str, Any]:
    assert card.startswith("---\n")
    return yaml.safe_load(card[4:].split("\n---\n")[0])


class TestTheHead:
    def test_it_names_base_model_data_set_library_and_licence(self) -> None:
        assert head(model_card(FACTS)) == {
            "base_model": "alice/base",
            "base_model_relation": "finetune",
            "license": "apache-2.0",
            "library_name": "transformers",
            "pipeline_tag": "text-generation",
            "tags": ["grpo", "trl", "reinforcement-learning", "grpo-studio"],
            "datasets": ["alice/sums"],
        }

    def test_what_is_not_public_or_not_known_is_left_out(self) -> None:
        found = head(model_card(replace(FACTS, origin=LOCAL, dataset="rows.csv", dataset_id=None)))
        assert not {"base_model", "base_model_relation", "license", "datasets"} & set(found)

    @pytest.mark.parametrize("licence", ["", "see the file\nother: x", "MIT, GPL", "a" * 100, None])
    def test_a_licence_that_is_no_identifier_is_left_out(self, licence: str | None) -> None:
        assert "license" not in head(model_card(replace(FACTS, origin=replace(HUB, licence=licence))))

    def test_an_adapter_is_for_peft(self) -> None:
        found = head(model_card(replace(FACTS, kind="adapter", adapter="LoRA, rank 4, alpha 8, on all-linear")))
        assert (found["library_name"], found["base_model_relation"]) == ("peft", "adapter")
        assert "lora" in found["tags"]

    @pytest.mark.parametrize("text", [HOSTILE, "a: b", "- x", "'\"", "!!python/object:os.system", "\x00\u2028", "null"])
    def test_no_text_breaks_out_of_it(self, text: str) -> None:
        card = front_matter({"datasets": [text], "after": 1})
        assert head(card + "\n") == {"datasets": [text], "after": 1}


class TestTheText:
    def test_it_tells_the_run_its_rewards_settings_versions_and_command(self) -> None:
        card = model_card(FACTS)
        for told in (
            "# 20260101-000000-sums-abcd", "GRPO Studio 9.9.9", "after 20 of 20 steps", "`regex_match` as `bare`, weight 0.5",
            "1,000 parameters, 1,000 of them trained, 90 rows to train on", "python -m grpo_studio train --config run.yaml",
            "model:\n  id: alice/base", "| trl | 1.16.0 |", "![Mean reward by step](reward.svg)", "all weights trained",
        ):  # fmt: skip
            assert told in card

    def test_the_curve_is_told_at_its_start_quarter_half_and_end(self) -> None:
        assert "| 1 | 0.05 |\n| 5 | 0.25 |\n| 10 | 0.5 |\n| 20 | 1 |" in model_card(FACTS)

    def test_without_a_curve_there_is_no_picture(self) -> None:
        assert "reward.svg" not in model_card(replace(FACTS, curve=()))

    def test_held_out_rows_stand_with_their_intervals(self) -> None:
        measures = [Measure("mean reward", Estimate(0.25, 0.1, 0.4, 32), Estimate(0.75, None, None, 32))]
        evaluated = Evaluated(measures, Estimate(0.5, 0.3, 0.7, 32), Flips(16, 2, 8, 6), "bare of at least 1")
        card = model_card(replace(FACTS, evaluated=evaluated))
        assert "| mean reward | 0.25 [0.1, 0.4], 32 rows | 0.75, 32 rows |" in card
        assert "+0.5 [+0.3, +0.7], 32 rows" in card
        assert "16 rows came to be solved, 2 are solved no more (McNemar's exact test: p = 0.0013)." in card

    def test_weights_that_were_not_scored_are_not_said_to_be_better(self) -> None:
        evaluated = Evaluated([Measure("mean reward", Estimate(0.25, 0.1, 0.4, 32), None)], passed_by="x")
        card = model_card(replace(FACTS, evaluated=evaluated))
        assert "| not scored |" in card
        assert "These very weights were not scored" in card
        assert "Change of" not in card

    def test_an_adapter_says_what_it_takes_to_load_it(self) -> None:
        public = model_card(replace(FACTS, kind="adapter", adapter="LoRA"))
        assert "AutoModelForCausalLM.from_pretrained('alice/base', revision='v1'" in public
        local = model_card(replace(FACTS, kind="adapter", adapter="LoRA", origin=LOCAL))
        assert "The base model `my-model` is needed too: it is not public" in local

    def test_a_model_that_began_from_rounded_weights_says_so(self) -> None:
        card = model_card(replace(FACTS, origin=replace(HUB, exact=False)))
        assert "rounded to 4 bits" in card

    def test_texts_from_outside_are_no_markup(self) -> None:
        facts = replace(
            FACTS, run=HOSTILE, dataset=HOSTILE, dataset_id=None, origin=replace(LOCAL, name=HOSTILE),
            rewards=[(HOSTILE, HOSTILE, 1.0)], versions={HOSTILE: HOSTILE}, adapter=HOSTILE, loss=HOSTILE,
            evaluated=Evaluated([Measure(HOSTILE, None, Estimate(1.0, None, None, 1))], passed_by=HOSTILE),
            settings=f"model:\n  id: |\n    ```\n    {HOSTILE}\n",
        )  # fmt: skip
        card = model_card(facts)
        outside, fenced = [], False
        for line in card.split("\n---\n", 1)[1].splitlines():
            if line.startswith("```"):
                fenced = not fenced
            elif not fenced:
                outside.append(line)
        assert not fenced
        text = "\n".join(outside)
        bare = _without_code(text)
        assert re.findall(r"<|(?<!\\)(?:\]\(|\*\*|\$|!\[)", bare) == ["![", "]("], (
            "no markup but the card's own picture"
        )
        assert not any(line.startswith("new: 1") for line in outside)


def _without_code(text: str) -> str:
    """The text without what stands between equal runs of backticks."""
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


@pytest.mark.parametrize("text", ["`", "``", "a`b``c", "a ``` b", "|", " x "])
def test_code_is_closed_by_nothing_within_it(text: str) -> None:
    assert _without_code(f"x{code(text)}y") in ("xy", "x")


@pytest.mark.parametrize("text", ["```", "a\n````\nb", "~~~\n```x"])
def test_a_block_is_closed_by_nothing_within_it(text: str) -> None:
    lines = block(text, "yaml").split("\n")
    fence = lines[0].removesuffix("yaml")
    assert lines[-1] == fence
    assert all(not line.startswith(fence) for line in lines[1:-1])


@pytest.mark.parametrize("text", ["# head", "- item", "1. one", "12) two", "+ plus", "=== x"])
def test_a_line_begins_no_heading_and_no_list(text: str) -> None:
    assert "\\" in escaped(text).split(" ")[0]


class TestThePicture:
    @pytest.mark.parametrize(
        "points", [[(1, 0.0)], [(1, 0.5), (2, 0.5)], [(3, -1e9), (90, 1e9)], [(n, n % 7) for n in range(1, 500)]]
    )
    def test_it_is_svg_whose_line_lies_within_it(self, points: list[tuple[int, float]]) -> None:
        root = xml.fromstring(svg(points, '<Reward> & "more"'))
        assert root.tag.endswith("svg")
        assert root[0].text == '<Reward> & "more"'
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        drawn = [one.get("points", "") for one in root.iter() if one.tag.endswith("polyline")]
        places = [tuple(map(float, place.split(","))) for line in drawn for place in line.split()]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in places)
        assert len(places) >= len(points) or len(points) == 1

    def test_a_long_curve_gets_a_smoothed_line_beside_the_data(self) -> None:
        points = [(step, float(step % 2)) for step in range(100)]
        mean = smoothed(points)
        assert [step for step, _ in mean] == [step for step, _ in points]
        assert all(0.3 < value < 0.7 for _, value in mean)
        assert smoothed(points[:20]) == []

    def test_milestones_of_few_points_are_those_points(self) -> None:
        assert milestones([]) == []
        assert milestones([(4, 1.0)]) == [(4, 1.0)]
        assert milestones([(1, 1.0), (2, 2.0)]) == [(1, 1.0), (2, 2.0)]


class TestWhereItComesFrom:
    def config(self, **model: Any) -> RunConfig:
        return RunConfig.model_validate({"model": model})

    def test_a_built_in_model_has_its_origin_and_licence(self, settings: Settings) -> None:
        origin = origin_of(self.config(id=BUILTIN_MODEL), settings)
        assert (origin.name, origin.exact, origin.licence) == ("SmolLM2-135M-Instruct", False, "Apache-2.0")
        assert origin.hub_id == "HuggingFaceTB/SmolLM2-135M-Instruct"

    def test_a_local_model_is_its_folder_s_name(self, settings: Settings, tiny_model: Path) -> None:
        origin = origin_of(self.config(id=str(tiny_model)), settings)
        assert (origin.name, origin.hub_id, origin.licence) == ("tiny", None, None)

    def test_the_licence_of_a_local_model_is_what_its_card_says(self, settings: Settings, tmp_path: Path) -> None:
        for name, text in (("config.json", "{}"), ("model.safetensors", ""), ("README.md", "---\nlicense: mit\n---\n")):
            (tmp_path / name).write_text(text)
        assert origin_of(self.config(id=str(tmp_path)), settings).licence == "mit"

    def test_a_model_that_is_gone_is_told_by_its_name(self, settings: Settings) -> None:
        assert origin_of(self.config(id="/gone/to/my-model"), settings).name == "my-model"

    def test_a_hub_model_is_its_id_and_nothing_is_asked(self, settings: Settings) -> None:
        origin = origin_of(self.config(id="alice/base", revision="v2"), settings)
        assert (origin.hub_id, origin.revision, origin.exact, origin.licence) == ("alice/base", "v2", True, None)

    @pytest.mark.parametrize(
        ("source", "told"),
        [
            ("builtin:arithmetic", ("builtin:arithmetic", None)),
            ("reasoning_gym:chain_sum", ("reasoning_gym:chain_sum", None)),
            ("alice/sums", ("alice/sums", "alice/sums")),
            ("/home/alice/private/rows.csv", ("rows.csv", None)),
        ],
    )
    def test_a_data_set_is_public_or_a_name(self, source: str, told: tuple[str, str | None]) -> None:
        assert dataset_of(RunConfig.model_validate({"dataset": {"source": source}})) == told


class TestTheSettings:
    def told(self, **sections: Any) -> dict[str, Any]:
        return settings_that_differ(RunConfig.model_validate(sections), Redaction(("open-sesame",)))

    def test_defaults_are_left_out_but_for_what_a_run_is(self) -> None:
        assert set(self.told()) == {"model", "dataset", "rewards"}

    def test_they_are_settings_of_a_run_again(self) -> None:
        sections = {
            "algorithm": {"steps": 7, "beta": 0.1, "extra": {"entropy_coef": 0.1}},
            "memory": {"adapter": "lora"},
        }
        told = yaml.safe_dump(self.told(**sections))
        assert RunConfig.model_validate(parse_config(told, "card")) == RunConfig.model_validate(sections)

    def test_paths_are_names_and_secrets_are_none(self, tmp_path: Path) -> None:
        (tmp_path / "judge").mkdir()
        params = {"model": str(tmp_path / "judge"), "prompt": "open-sesame", "pattern": "/x/"}
        told = self.told(
            model={"id": str(tmp_path / "judge")},
            dataset={"source": f"{tmp_path}/rows.jsonl"},
            rewards=[{"verifier": "reward_model", "params": params}],
        )
        assert str(tmp_path) not in str(told)
        assert told["rewards"][0]["params"] == {"model": "judge", "prompt": "***", "pattern": "/x/"}
        assert told["dataset"]["source"] == "rows.jsonl"

    def test_where_a_run_ran_is_not_told(self) -> None:
        told = self.told(
            report={"hub_repo": "alice/x"}, rollout={"server_url": "http://10.0.0.1:8000"},
            scale={"main_process_ip": "10.0.0.2", "main_process_port": 1234},
        )  # fmt: skip
        assert set(told) == {"model", "dataset", "rewards"}


class TestFromARecord:
    def checkpoint(self, tmp_path: Path, step: int, name: str = "") -> Checkpoint:
        name = name or f"checkpoint-{step}"
        return Checkpoint(tmp_path / name, Manifest(step, 1, True, "hash", {}, versions={"torch": "2.0"}))

    def facts(self, run: SampleRun, settings: Settings, checkpoint: Checkpoint) -> CardFacts:
        return card_facts(run.folder, settings, checkpoint, "whole", "float32")

    def test_the_curve_ends_where_the_checkpoint_was_saved(self, settings: Settings, tmp_path: Path) -> None:
        run = SampleRun(settings.home)
        run.begin()
        run.advance(6)
        facts = self.facts(run, settings, self.checkpoint(tmp_path, 4))
        assert [step for step, _ in facts.curve] == [1, 2, 3, 4]
        assert facts.versions == {"torch": "2.0"}
        assert facts.steps == 60

    def test_rows_scored_before_and_after_are_compared(self, settings: Settings, tmp_path: Path) -> None:
        run = SampleRun(settings.home)
        for step, solved in ((0, 1), (4, 3)):
            groups = [_row(f"question {place}", float(place < solved)) for place in range(4)]
            with run.writer.transaction():
                run.writer.groups(step, groups)
                run.writer.metrics(step, {"eval/reward": solved / 4})
        evaluated = self.facts(run, settings, self.checkpoint(tmp_path, 4)).evaluated
        assert evaluated is not None
        mean = evaluated.measures[0]
        assert mean.before is not None
        assert mean.after is not None
        assert (mean.before.value, mean.after.value) == (0.25, 0.75)
        assert evaluated.flipped is not None
        assert (evaluated.flipped.gained, evaluated.flipped.lost) == (2, 0)
        other = self.facts(run, settings, self.checkpoint(tmp_path, 3)).evaluated
        assert other is not None
        assert other.measures[0].after is None
        assert other.change is None

    def test_a_record_that_cannot_be_read_costs_its_part_alone(self, settings: Settings, tmp_path: Path) -> None:
        run = SampleRun(settings.home)
        run.writer.close()
        run.folder.database.write_bytes(b"no database" * 100)
        facts = self.facts(run, settings, self.checkpoint(tmp_path, 4))
        assert (facts.curve, facts.evaluated, facts.setup) == ([], None, {})
        assert "# " in model_card(facts)


def _row(prompt: str, reward: float) -> GroupRecord:
    score = ScoreRecord("math_numeric", reward, 1.0)
    return GroupRecord(prompt, "1", (CompletionRecord("x", 1, False, reward, None, (score,)),), reward, None, "eval")
