from __future__ import annotations

import json
from datetime import date

import numpy as np
import pytest

from grpo_studio.verifiers.plain_data import plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(4), "4"),
        (np.float32(0.5), "0.5"),
        (np.array([[1, 2]]), "[[1, 2]]"),
        ({"b", "a"}, '["a", "b"]'),
        (frozenset({2}), "[2]"),
        (date(2024, 5, 1), '"2024-05-01"'),
        ({"in": [np.bool_(True)]}, '{"in": [true]}'),
    ],
)
def test_cells_of_data_sets_become_plain_data(value: object, text: str) -> None:
    assert json.dumps(value, default=plain) == text
