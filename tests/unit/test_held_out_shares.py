"""Held-out rows dealt out to several processes come back whole, once and in order."""

from __future__ import annotations

import pytest

from grpo_studio.training.evaluation import in_order, shares


@pytest.mark.parametrize("rows", [1, 4, 5, 7, 8])
@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_what_is_dealt_out_comes_back_in_order(rows: int, processes: int) -> None:
    dealt = shares(list(range(rows)), processes)
    assert len({len(share) for share in dealt}) == 1  # all have as much to do: nobody waits
    gathered = [row for share in dealt for row in share]
    assert in_order(gathered, processes)[:rows] == list(range(rows))
