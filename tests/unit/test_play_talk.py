"""What a chat's request may hold: anything may come, and each refusal is one line."""

from __future__ import annotations

from typing import Any

import pytest

from grpo_studio.config import RunConfig
from grpo_studio.errors import UsageError
from grpo_studio.play.talk import messages_of, sampling_of


@pytest.mark.parametrize("name", ["temperature", "max_tokens", "seed"])
@pytest.mark.parametrize(
    "value", [-1, 10**400, -(10**400), 1e300, float("nan"), float("inf"), True, "1", [1], {"a": 1}], ids=repr
)
def test_a_sampling_that_is_no_number_within_its_bounds_is_refused(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name} is .*; give a number from [01] to ") as refused:
        sampling_of({name: value}, RunConfig())
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    "asked",
    [
        None, "hi", 5, [], {}, [None], ["hi"], [["user", "hi"]], [{"role": "user"}], [{"role": ["user"], "content": "hi"}],
        [{"role": "user", "content": ["hi"]}], [{"role": "system", "content": "hi"}],
        [{"role": "assistant", "content": "hi"}], [{"role": "user", "content": " \n"}],
        [{"role": "user", "content": "x" * 100_001}], [{"role": "user", "content": "hi"}] * 201,
    ],
)  # fmt: skip
def test_what_is_no_chat_is_refused(asked: Any) -> None:
    with pytest.raises(UsageError):
        messages_of(asked)
