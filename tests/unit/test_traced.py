"""What a trace tells, as plain values: JSON both ways, straight lines between batches, the greatest of several moments."""

from __future__ import annotations

import json

import numpy as np
import pytest

from grpo_studio.memory.traced import ModelBytes, Traced, TracedBatch, TraceRequest, on_line
from grpo_studio.training.trace_lines import at_depth, lines, upper, values_at

MODEL = ModelBytes(
    parameters=100, trainable=100, adapter_parameters=0, weights=400, quantizable=60, largest_linear=20, layer=30,
    embeddings=40, buffers=8, layers=2, trainable_bytes=400, largest_trainable=160,
)  # fmt: skip


def parts(gradients: int = 0, activations: int = 0, logits: int = 0, other: int = 0) -> dict[str, int]:
    return {"gradients": gradients, "activations": activations, "logits_and_loss": logits, "other": other}


def batch(rows: int) -> TracedBatch:
    """Two moments: one grows with the batch, one does not; with all gradients there it takes 400 more."""
    grows, stays = parts(activations=10 * rows), parts(gradients=50, logits=25)
    return TracedBatch(
        rows, {"up": grows, "down": stays}, {"up": grows | {"gradients": 400}, "down": stays | {"gradients": 400}}
    )


TRACED = Traced(
    MODEL,
    {"trl": (batch(1), batch(2), batch(8))},
    {"trl": (TracedBatch(1, {"up": parts(activations=3)}), TracedBatch(2, {"up": parts(activations=5)}))},
    {"liger": "it cannot"},
    ("a note",),
    1.5,
)


def test_a_trace_survives_json() -> None:
    assert Traced.from_dict(json.loads(json.dumps(TRACED.as_dict()))) == TRACED


def test_a_request_survives_json() -> None:
    request = TraceRequest({"model_type": "llama", "layers": [1, 2]}, 16, 32, adapter="lora", chunk_size=4, old=True)
    assert TraceRequest.from_dict(json.loads(json.dumps(request.as_dict()))) == request


def test_what_a_later_version_wrote_besides_is_left_out() -> None:
    written = TRACED.as_dict()
    written["newer"] = 1
    written["model"]["newer"] = 2
    written["loss"]["trl"][0]["newer"] = 3
    assert Traced.from_dict(json.loads(json.dumps(written))) == TRACED


@pytest.mark.parametrize("values", [{}, {"config": {}}, {"config": {}, "prompt_tokens": 1}])
def test_a_request_without_its_sizes_is_refused(values: dict[str, object]) -> None:
    with pytest.raises((TypeError, KeyError)):
        TraceRequest.from_dict(values)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (1, parts(gradients=50, logits=25)),  # the moment that stays is the greater one
        (7, parts(gradients=50, logits=25)),
        (8, parts(activations=80)),
        (16, parts(activations=160)),  # past the last batch the line goes on
        (5, parts(gradients=50, logits=25)),
    ],
)
def test_the_greatest_moment_of_a_first_micro_batch(rows: int, expected: dict[str, int]) -> None:
    assert TRACED.loss_parts("trl", rows, accumulates=False) == expected


def test_with_accumulation_all_gradients_are_there() -> None:
    assert TRACED.loss_parts("trl", 16) == parts(gradients=400, activations=160)
    assert TRACED.loss_parts("trl", 1) == parts(gradients=400, logits=25)


def test_a_pass_without_gradient_has_lines_of_its_own() -> None:
    assert TRACED.forward_parts("trl", 4) == parts(activations=9)


def test_a_backend_that_was_not_traced_is_no_key() -> None:
    with pytest.raises(KeyError):
        TRACED.loss_parts("liger", 1)


def test_one_batch_stands_for_all() -> None:
    one = Traced(MODEL, {"full": (batch(1),)}, {})
    assert one.loss_parts("full", 9, accumulates=False) == parts(gradients=50, logits=25)


def test_a_line_never_goes_below_nothing() -> None:
    assert on_line((1, {"a": 10}), (2, {"a": 4, "b": 2}), 4) == {"a": 0, "b": 6}


# --- lines through timelines: (instants, parts) ---


def test_the_peak_of_lines_is_the_greatest_line_at_each_batch() -> None:
    first = {"up": np.array([[100.0, 0.0], [10.0, 5.0], [90.0, 0.0]])}
    second = {"up": np.array([[101.0, 0.0], [20.0, 6.0], [90.0, 0.0]])}
    found = lines((2, 3), first, second)
    kept = upper(found)
    assert len(kept) == 2, "the third instant is never the greatest"
    for rows in (1, 2, 5, 9, 10, 11, 100):
        assert values_at(kept, rows).sum(1).max() == pytest.approx(values_at(found, rows).sum(1).max())


def test_the_envelope_is_that_of_all_lines() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        found = random.integers(0, 6, (30, 2, 2)) * np.array([1e9, 1e7])[None, :, None]
        kept = upper(found)
        for rows in (1, 2, 3, 17, 100, 10_000):
            assert values_at(kept, rows).sum(1).max() == values_at(found, rows).sum(1).max()


def test_instants_that_do_not_match_count_by_their_greatest() -> None:
    found = lines((2, 4), {"up": np.array([[1.0], [6.0]])}, {"up": np.array([[2.0], [3.0], [10.0]])})
    assert values_at(found, 6).tolist() == [[14.0]]


def test_a_layer_more_adds_what_the_layer_before_added() -> None:
    low, high = {"up": np.array([[10.0, 1.0]])}, {"up": np.array([[14.0, 1.0]])}
    assert at_depth((2, 3), 10, low, high)["up"].tolist() == [[42.0, 1.0]]
    assert at_depth((2, 2), 2, low, low) is low
