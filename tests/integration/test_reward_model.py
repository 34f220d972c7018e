"""The verifier that is a model: its scores are those of the model itself, and runs train on them."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_reward_model import make_tiny_reward_model
from trained_here import Train, trainer_of

from grpo_studio.data import Sample
from grpo_studio.errors import VerifierError
from grpo_studio.settings import Settings

# transformers, trl and torch warn about their own deprecations and about training on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [
    "12",
    "",
    "The answer is 12, I am sure of it.",
    "no <|im_end|>",
    "ä 漢字 \U0001f600",
    "x" * 90,
]
SAMPLES = [
    Sample(({"role": "user", "content": question},), question, "12", {})
    for question in ("What is 5 + 7?", "5+7", "Now: what is 3 times 4?", "Say 12", "12?", "How many are a dozen?")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_reward_model(tmp_path_factory.mktemp("reward") / "model")


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Any]:
    """Load a reward model with the verifier's defaults and these params."""
    from grpo_studio.settings import BUNDLED_REWARDS
    from grpo_studio.training.reward_model import RewardModel
    from grpo_studio.verifiers.discovery import load_file

    [spec] = load_file(BUNDLED_REWARDS / "reward_model.py")
    return lambda **params: RewardModel(spec.with_defaults(params), torch.device("cpu"), tmp_path)


def values(scores: Any) -> list[float]:
    assert [score.outcome for score in scores] == ["ok"] * len(scores)
    return [score.value for score in scores]


def direct(folder: Path, texts: list[str], special: bool = False) -> torch.Tensor:
    """The model's own logits of each text alone, by transformers and nothing else."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        inputs = [tokenizer(text, return_tensors="pt", add_special_tokens=special) for text in texts]
        return torch.cat([model(**one).logits for one in inputs])


def rendered(folder: Path) -> list[str]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [
        tokenizer.apply_chat_template(
            [*map(dict, sample.messages), {"role": "assistant", "content": text}], tokenize=False
        )
        for sample, text in zip(SAMPLES, TEXTS, strict=True)
    ]


def test_scores_are_those_of_the_model_on_the_chat(load: Callable[..., Any], folder: Path) -> None:
    found = values(load(model=str(folder)).score(SAMPLES, TEXTS))
    assert found == pytest.approx(direct(folder, rendered(folder))[:, 0].tolist(), abs=1e-5)
    assert max(found) - min(found) > 0.01


@pytest.mark.parametrize("size", [1, 2, 4, 16])
def test_the_batch_size_changes_no_score(load: Callable[..., Any], folder: Path, size: int) -> None:
    alone = values(load(model=str(folder), batch_size=1).score(SAMPLES, TEXTS))
    assert values(load(model=str(folder), batch_size=size).score(SAMPLES, TEXTS)) == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("size", [1, 6])
def test_a_model_without_a_pad_token_is_read_at_its_last_token(
    load: Callable[..., Any], tmp_path: Path, size: int
) -> None:
    folder = make_tiny_reward_model(tmp_path / "padless", pad=False)
    found = values(load(model=str(folder), batch_size=size).score(SAMPLES, TEXTS))
    assert found == pytest.approx(direct(folder, rendered(folder))[:, 0].tolist(), abs=1e-5)


def test_a_model_without_a_pad_token_scores_texts_of_all_its_tokens(load: Callable[..., Any], tmp_path: Path) -> None:
    """No token is left to pad with, so such texts are read one by one; so for a pad token that is none of the model."""
    folder = make_tiny_reward_model(tmp_path / "padless", pad=False)
    model = load(model=str(folder), batch_size=16)
    size = model._model.config.vocab_size
    rows = [list(range(size)), [3, 1], list(range(size - 1, -1, -1)), [2]]
    alone = [model._forward([row])[0] for row in rows]
    assert model._forward(rows) == pytest.approx(alone, abs=1e-5)
    model._model.config.pad_token_id = size
    assert model._forward(rows) == pytest.approx(alone, abs=1e-5)


def test_a_verifier_of_ones_own_is_not_scored_by_the_trainer(train: Train, settings: Settings) -> None:
    path = settings.home / "rewards" / "mine.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "from grpo_studio.verifiers import verifier\n\n\n@verifier(examples=[('a', {}, None)], place='trainer')\n"
        "def mine(completion, *, model='x'):\n    return None\n"
    )
    with pytest.raises(VerifierError, match="scores by the shipped reward_model alone"):
        train("rewards=[{verifier: mine}]")


def test_without_a_chat_template_it_reads_prompt_and_completion_on_two_lines(
    load: Callable[..., Any], tmp_path: Path
) -> None:
    folder = make_tiny_reward_model(tmp_path / "plain", template=False)
    texts = [f"{sample.question}\n{text}" for sample, text in zip(SAMPLES, TEXTS, strict=True)]
    expected = direct(folder, texts, special=True)[:, 0].tolist()
    assert values(load(model=str(folder)).score(SAMPLES, TEXTS)) == pytest.approx(expected, abs=1e-5)


def test_scales_and_labels(load: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    logits = direct(folder, rendered(folder))
    squashed = values(load(model=str(folder), scale="sigmoid").score(SAMPLES, TEXTS))
    assert squashed == pytest.approx(torch.sigmoid(logits[:, 0]).tolist(), abs=1e-5)
    three = make_tiny_reward_model(tmp_path / "three", labels=3)
    logits = direct(three, rendered(three))
    assert values(load(model=str(three)).score(SAMPLES, TEXTS)) == pytest.approx(logits[:, 2].tolist(), abs=1e-5)
    likely = torch.softmax(logits, dim=-1)[:, 2].tolist()
    assert values(load(model=str(three), scale="sigmoid").score(SAMPLES, TEXTS)) == pytest.approx(likely, abs=1e-5)


def test_what_is_too_long_loses_its_beginning_and_says_so(load: Callable[..., Any], folder: Path) -> None:
    model = load(model=str(folder), max_length=40)
    long, longer = (Sample(({"role": "user", "content": "word " * count},), "q", None, {}) for count in (40, 80))
    one, other = model.score([long, longer], ["It is 12."] * 2)
    assert one.value == pytest.approx(other.value, abs=1e-5)
    assert "the last 40 of" in one.reason
    assert model.score([SAMPLES[1]], ["1"])[0].reason == ""


def test_a_system_prompt_that_the_template_refuses_is_left_out(load: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_tiny_reward_model(tmp_path / "strict")
    template = folder / "chat_template.jinja"
    refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    template.write_text(refusing + template.read_text())
    plain = SAMPLES[0]
    asked = Sample(({"role": "system", "content": "Be brief."}, *plain.messages), plain.question, None, {})
    model = load(model=str(folder))
    assert values(model.score([asked], ["12"])) == values(model.score([plain], ["12"]))
    odd = Sample(({"role": "system", "content": "a"}, {"role": "system", "content": "b"}), "q", None, {})
    [score] = model.score([odd], ["12"])
    assert (score.value, score.outcome) == (None, "abstained")
    assert "no system role" in score.reason


def test_a_score_that_is_not_finite_is_none(load: Callable[..., Any], folder: Path) -> None:
    model = load(model=str(folder))
    with torch.no_grad():
        model._model.score.weight.fill_(math.inf)
    assert {(score.value, score.outcome) for score in model.score(SAMPLES, TEXTS)} == {(None, "non_finite")}


def test_no_rows_give_no_scores(load: Callable[..., Any], folder: Path) -> None:
    assert load(model=str(folder)).score([], []) == []


@pytest.mark.parametrize(
    ("files", "content", "message"),
    [
        ("model.safetensors", None, "holds no weights"),
        ("model.safetensors", "damaged", "cannot load the reward model"),
        ("*token*", None, "cannot load the reward model"),
        ("config.json", "{", "its config.json is damaged"),
        ("config.json", "[]", "its config.json holds list"),
        ("config.json", None, "has no config.json"),
    ],
)
def test_a_damaged_model_is_told_in_one_line(
    load: Callable[..., Any], tmp_path: Path, files: str, content: str | None, message: str
) -> None:
    folder = make_tiny_reward_model(tmp_path / "damaged")
    for file in folder.glob(files):
        file.unlink() if content is None else file.write_text(content)
    with pytest.raises(VerifierError, match=message) as caught:
        load(model=str(folder))
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_model_that_writes_is_refused_before_its_weights_are_read(load: Callable[..., Any], tiny_model: Path) -> None:
    with pytest.raises(VerifierError, match=r"no sequence-classification model \(its config says LlamaForCausalLM\)"):
        load(model=str(tiny_model))
    with pytest.raises(VerifierError, match="there is no folder or file /nowhere"):
        load(model="/nowhere/at/all")


def test_weights_without_a_trained_head_are_refused(load: Callable[..., Any], tmp_path: Path, tiny_model: Path) -> None:
    folder = tmp_path / "headless"
    shutil.copytree(tiny_model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["LlamaForSequenceClassification"]}))
    with pytest.raises(VerifierError, match=r"lacks trained weights for score.weight"):
        load(model=str(folder))


def test_more_tokens_than_the_model_takes_are_refused(load: Callable[..., Any], folder: Path) -> None:
    with pytest.raises(VerifierError, match=r"max_length is 4096, and .* takes 512 tokens"):
        load(model=str(folder), max_length=4096)


@pytest.fixture
def train(tiny_model: Path, settings: Settings) -> Train:
    return trainer_of(tiny_model, settings)


def test_a_run_trains_on_it_beside_a_judged_verifier(train: Train, folder: Path) -> None:
    trained = train(
        f"rewards=[{{verifier: regex_match, params: {{pattern: '[a-m]', match: search}}}}, "
        f"{{verifier: reward_model, name: taste, weight: 0.5, params: {{model: '{folder}', batch_size: 3}}}}]",
        "dataset.held_out=4",
    )
    assert (trained.outcome.step, trained.outcome.paused) == (2, None)
    assert all(value is not None for value in trained.metrics["reward/taste/mean"].values())
    assert trained.metrics["verifier/taste/abstained"] == {1: 0.0, 2: 0.0}
    assert trained.metrics["eval/taste/mean"][0] is not None
    assert trained.metrics["time/score"][1] is not None
    assert (trained.folder.path / "verifiers" / "reward_model.py").is_file()


def test_scoring_draws_no_random_number(train: Train, folder: Path) -> None:
    judged = "{verifier: regex_match, params: {pattern: '[a-m]', match: search}}"
    with_it = train(f"rewards=[{judged}, {{verifier: reward_model, weight: 0, params: {{model: '{folder}'}}}}]")
    without = train(f"rewards=[{judged}]")
    for name in ("optim/loss", "optim/grad_norm", "reward/mean", "policy/entropy"):
        assert with_it.metrics[name] == without.metrics[name]
