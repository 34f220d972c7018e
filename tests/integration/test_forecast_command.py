"""`forecast` as a person runs it: traced once without network or weights, then answered from the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grpo_studio.commands import run

QLORA = ["forecast", "--preset", "gsm8k-qwen3-8b-qlora", "--card", "80"]
Ran = tuple[int, str, str]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home and a cache of its own, and a Hub that nobody answers for."""
    folder = tmp_path_factory.mktemp("forecast")
    return {
        "GRPO_STUDIO_HOME": str(folder / "home"),
        "GRPO_STUDIO_CACHE": str(folder / "cache"),
        "HF_HOME": str(folder / "hub"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HUB_OFFLINE": "1",
    }


@pytest.fixture
def said(
    places: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Runs a command in this process; its exit code, stdout and stderr."""
    for name, value in places.items():
        monkeypatch.setenv(name, value)

    def ask(*arguments: str) -> Ran:
        code = run(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ask


@pytest.fixture(scope="module")
def first(places: dict[str, str]) -> dict[str, Any]:
    """The cold answer for the 8B preset, in a process of its own that tells whether it loaded torch."""
    code = (
        "import sys; from grpo_studio.commands import run; "
        f"code = run({[*QLORA, '--json']!r}); "
        "print('torch' in sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | places, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stderr.splitlines()[-1] == "False"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_qlora_of_8b_has_parts_that_sum_to_the_greatest_phase(first: dict[str, Any], places: dict[str, str]) -> None:
    assert first["method"] == "traced"
    assert first["total_bytes"] == max(first["by_phase"].values()) == sum(first["parts"].values())
    for phase, parts in first["parts_by_phase"].items():
        assert sum(parts.values()) == first["by_phase"][phase]
    assert 6.0e9 < first["parts"]["weights"] < 6.4e9
    assert 11e9 < first["total_bytes"] < 14e9
    assert first["fits"] is True
    assert set(first["largest_micro_batch"]) == {"full", "trl", "liger"}
    assert first["largest_micro_batch"]["liger"] >= 3 * first["largest_micro_batch"]["full"]
    hub = Path(places["HF_HOME"])
    assert not hub.exists() or not [path for path in hub.rglob("*") if path.is_file()]


def test_the_second_answer_is_the_same_and_traces_nothing(
    first: dict[str, Any], said: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    code, out, _ = said(*QLORA, "--json")
    again = json.loads(out)
    assert code == 0
    assert again["seconds"] == 0.0
    assert again | {"seconds": 0} == first | {"seconds": 0}


def test_lines_for_people(first: dict[str, Any], said: Callable[..., Ran]) -> None:
    code, out, _ = said(*QLORA)
    assert code == 0
    assert out.startswith("Qwen/Qwen3-8B: ")
    assert "fits" in out.splitlines()[0]
    assert {line.split()[0] for line in out.splitlines() if line.startswith("  ")} == {"rollout", "loss", "optimizer"}
    assert "biggest micro-batch that fits: full" in out
    assert "note: " in out


def test_a_card_that_is_too_small_names_what_would_fit_first(first: dict[str, Any], said: Callable[..., Ran]) -> None:
    code, out, _ = said(*QLORA[:-1], "10", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["fits"] is False
    assert found["changes"]
    assert found["changes"][0]["total_bytes"] < found["total_bytes"]
    assert any("to fit: --set " in line for line in said(*QLORA[:-1], "10")[1].splitlines())


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--preset", "nothing"], 2, "no preset"),
        (["--preset", "quickstart", "--card", "H1000"], 2, "no card is called"),
        (["--preset", "quickstart", "--card", "0"], 2, "holds nothing"),
        (["--preset", "quickstart", "--prompt-tokens", "0"], 1, "--prompt-tokens is 0"),
        (["--preset", "quickstart", "--prompt-tokens", "-5"], 1, "--prompt-tokens is -5"),
        (["--preset", "quickstart", "--prompt-tokens", "99999999999"], 1, "--prompt-tokens is"),
        (["--preset", "quickstart", "--prompt-tokens", "many"], 2, "invalid int value"),
        (["--preset", "quickstart", "--set", "memory.micro_batch=0"], 1, "memory.micro_batch"),
        (["--preset", "quickstart", "--set", "algorithm.max_completion_length=-1"], 1, "max_completion_length"),
        (["--preset", "quickstart", "--set", "memory.micro_bach=1"], 2, "unknown setting"),
        (["--preset", "quickstart", "--set", "memory.micro_batch=5"], 1, "memory.micro_batch"),
        (["--preset", "quickstart", "--set", "model.id=/nowhere"], 1, "no folder or file"),
        ([], 2, "give --preset"),
        (["--set", "memory.micro_batch=1", "--hand"], 2, "give --preset"),
    ],
)
def test_bad_input_is_one_line_that_says_what_would_work(
    said: Callable[..., Ran], arguments: list[str], code: int, told: str
) -> None:
    found, out, err = said("forecast", *arguments)
    assert found == code
    assert told in err
    assert out == ""
    assert "Traceback" not in err


def test_wrong_settings_as_json(said: Callable[..., Ran]) -> None:
    code, out, _ = said("forecast", "--preset", "quickstart", "--set", "memory.micro_batch=0", "--json")
    assert code == 1
    assert [problem["field"] for problem in json.loads(out)["problems"]] == ["memory.micro_batch"]


def test_the_hand_sum_needs_no_settings(said: Callable[..., Ran]) -> None:
    code, out, _ = said("forecast", "--hand")
    assert code == 0
    assert "147,456 bytes" in out
    figures = json.loads(said("forecast", "--hand", "--json")[1])["hand"]["figures"]
    assert {figure["name"]: figure["exact"] for figure in figures}["kv_per_token"] == 147_456


def test_prompts_of_data_on_this_disk_are_looked_at(
    said: Callable[..., Ran], tmp_path: Path, first: dict[str, Any]
) -> None:
    from grpo_studio.config import RunConfig
    from grpo_studio.memory.prompt_guess import guess_prompt_tokens

    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"question": "x" * 300, "answer": "1"}) + "\n" + '{"question": "y", "answer": "2"}\n')
    guess = guess_prompt_tokens(RunConfig.model_validate({"dataset": {"source": str(rows)}}))
    assert guess is not None
    assert guess.tokens == 300 // 3 + 32
    assert guess_prompt_tokens(RunConfig.model_validate({"dataset": {"source": "openai/gsm8k"}})) is None
    rows.write_text("not json\n")
    assert guess_prompt_tokens(RunConfig.model_validate({"dataset": {"source": str(rows)}})) is None
