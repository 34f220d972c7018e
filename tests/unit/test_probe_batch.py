"""The frozen batch and its larger copies, and how far one gradient is from another in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grpo_studio.errors import DiskFullError
from grpo_studio.training import probe_gradient
from grpo_studio.training.probe_batch import (
    Batch,
    freeze,
    lengthened,
    repeated,
    thaw,
    unmasked,
    widths,
    with_advantages,
)
from grpo_studio.training.probe_gradient import difference, norm, write_gradient

PROMPT, LENGTHS = 3, (4, 2, 3, 1)


def batch() -> Batch:
    """Four completions of 4, 2, 3 and 1 tokens, numbered by row and place."""
    count, width = len(LENGTHS), max(LENGTHS)
    mask = (torch.arange(width)[None, :] < torch.tensor(LENGTHS)[:, None]).long()
    ids = (10 * torch.arange(1, count + 1)[:, None] + torch.arange(width)) * mask
    return {
        "prompt_ids": torch.ones(count, PROMPT, dtype=torch.long),
        "prompt_mask": torch.ones(count, PROMPT, dtype=torch.long),
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": torch.tensor([1.0, -1.0, 0.0, 0.0]),
        "ref_per_token_logps": -ids.float(),
        "num_items_in_batch": mask.sum(),
    }


def test_a_batch_is_thawed_as_it_was_frozen(tmp_path: Path) -> None:
    before = batch()
    freeze(before | {"num_images": None, "text": ["no tensor"]}, tmp_path / "b")
    after = thaw(tmp_path / "b", torch.device("cpu"))
    assert set(after) == set(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert widths(after) == (3, 4)


@pytest.mark.parametrize("rows", [1, 4, 6, 9])
def test_rows_are_repeated_in_turn(rows: int) -> None:
    grown = repeated(batch(), rows)
    assert grown["completion_ids"][:, 0].tolist() == [10 * (1 + row % 4) for row in range(rows)]
    assert grown["prompt_ids"].shape == (rows, PROMPT)
    assert grown["num_items_in_batch"] == sum(LENGTHS[row % 4] for row in range(rows))


def test_the_first_row_has_padding_where_any_has() -> None:
    padded = batch()
    padded["prompt_mask"][2, 0] = 0
    assert repeated(padded, 3)["completion_ids"][:, 0].tolist() == [30, 40, 10]
    assert repeated(padded, 1)["prompt_mask"].tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("tokens", [1, 3, 4, 7])
def test_completions_are_lengthened_by_their_own_tokens(tokens: int) -> None:
    grown = lengthened(batch(), tokens)
    for row, length in enumerate(LENGTHS):
        expected = [10 * (row + 1) + place % length for place in range(tokens)]
        assert grown["completion_ids"][row].tolist() == expected
        assert grown["ref_per_token_logps"][row].tolist() == [-one for one in expected]
    assert grown["completion_mask"].tolist() == [[1] * tokens] * 4
    assert grown["prompt_ids"].shape == (4, PROMPT)
    assert grown["num_items_in_batch"] == 4 * tokens


def test_a_batch_as_wide_as_its_prompts_keeps_them() -> None:
    square = {name: value[:, :PROMPT] if value.dim() == 2 else value for name, value in batch().items()}
    assert torch.equal(lengthened(square, 5)["prompt_ids"], square["prompt_ids"])


def test_completions_of_one_token_become_longer_too() -> None:
    narrow = {
        name: value[:, :1] if name.startswith("completion") or name.startswith("ref") else value
        for name, value in batch().items()
    }
    grown = lengthened(narrow, 3)
    assert grown["completion_ids"].tolist() == [[10 * row] * 3 for row in (1, 2, 3, 4)]
    assert grown["ref_per_token_logps"].shape == (4, 3)


@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_a_pattern_of_advantages_has_mean_0_and_deviation_1_in_each_group(shape: tuple[int, ...]) -> None:
    given = with_advantages(batch() | {"advantages": torch.zeros(shape)}, 2)["advantages"]
    assert given.shape == shape
    groups = given.reshape(2, 2, -1)
    assert groups.mean(1).abs().max() < 1e-6
    assert torch.allclose(groups.std(1), torch.ones_like(groups.std(1)))


def test_only_completions_that_were_masked_whole_are_unmasked() -> None:
    masked = batch()
    masked["completion_mask"][0] = 0
    assert unmasked(masked)["completion_mask"].sum(1).tolist() == [4, 2, 3, 1]
    assert unmasked(masked)["num_items_in_batch"] == 10


def model(dtype: torch.dtype = torch.float32) -> torch.nn.Sequential:
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3), torch.nn.Linear(3, 2)).to(dtype)
    for parameter in made.parameters():
        parameter.grad = torch.randn_like(parameter)
    return made


def flat(of: torch.nn.Module) -> torch.Tensor:
    return torch.cat([one.grad.double().flatten() for one in of.parameters() if one.grad is not None])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("at_once", [1 << 22, 4])
def test_the_difference_is_that_of_all_tensors_in_one(
    tmp_path: Path, dtype: torch.dtype, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_gradient, "AT_ONCE", at_once)
    one = model(dtype)
    write_gradient(one, tmp_path / "g")
    before = flat(one)
    assert norm(one) == pytest.approx(before.norm().item(), rel=1e-12)
    assert difference(one, tmp_path / "g") == 0
    for parameter in one.parameters():
        parameter.grad += 0.125 * torch.randn_like(parameter)
    expected = ((flat(one) - before).norm() / before.norm()).item()
    assert difference(one, tmp_path / "g") == pytest.approx(expected, rel=1e-12)


def test_a_missing_gradient_counts_as_zeros_on_either_side(tmp_path: Path) -> None:
    one = model()
    last = one[2].weight
    last.grad, kept = None, last.grad
    write_gradient(one, tmp_path / "g")
    reference = flat(one).norm()
    last.grad = kept
    assert kept is not None
    assert difference(one, tmp_path / "g") == pytest.approx((kept.double().norm() / reference).item())
    write_gradient(one, tmp_path / "g")
    last.grad = None
    assert difference(one, tmp_path / "g") == pytest.approx(
        (kept.double().norm() / (reference**2 + kept.double().norm() ** 2) ** 0.5).item()
    )


def test_against_no_gradient_nothing_can_be_said(tmp_path: Path) -> None:
    one = model()
    for parameter in one.parameters():
        parameter.grad = torch.zeros_like(parameter)
    write_gradient(one, tmp_path / "g")
    assert difference(model(), tmp_path / "g") is None


def test_a_gradient_that_finds_no_room_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo_studio.disk.free_bytes", lambda path: 100)
    with pytest.raises(DiskFullError, match="the gradient that the other backends are compared with needs 296 bytes"):
        write_gradient(model(), tmp_path / "g")
    assert list(tmp_path.iterdir()) == []
