"""What a trace does in the place of a device: answers for values that fake tensors do not have, kernels that it skips.

Fake tensors have shapes and no values. Where the modules or the loss read a value that decides on shapes, it is
answered as for a batch whose completions all have their full length; whatever else reads a value ends in an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from grpo_studio.memory.traced import LOSS_PARTS
from grpo_studio.training.tensor_bytes import TensorBytes

aten = torch.ops.aten
GRADIENTS = LOSS_PARTS[0]
_DEVICE = torch.ops.prim.device.default


class FakeBytes(TensorBytes):
    """Tensor bytes of fake tensors, with answers for what depends on a mask's values.

    Args:
        as_cuda: round as CUDA's allocator does.
        count: tokens that a mask of completions holds in each of its rows.
    """

    def __init__(self, as_cuda: bool, count: int) -> None:
        super().__init__(as_cuda)
        self._count = count
        self._truths: Any = WeakIdKeyDictionary()

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is _DEVICE:
            fake = getattr(args[0], "fake_device", None)
            return func(*args) if fake is None else fake
        if func is aten.index.Tensor and _is_mask(args[1]):
            return self._masked(args[0], args[1][0])
        if func is aten.masked_select.default:
            return self._masked(args[0], args[1])
        if func in (aten.index_put_.default, aten._index_put_impl_.default) and _is_mask(args[1]):
            return args[0]
        if func is aten._local_scalar_dense.default and args[0] in self._truths:
            return self._truths[args[0]]
        result = func(*args, **kwargs)
        if func is aten.any.default:
            self._truths[result] = True
        return result

    def _masked(self, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """As many rows as a mask keeps: the last `count` of each of its own."""
        kept = mask.numel() // mask.shape[-1] * min(self._count, mask.shape[-1])
        return values.new_empty((kept, *values.shape[mask.dim() :]))


class Timekeeper(FakeBytes):
    """Writes down what lives at every instant at which something comes to be, stretch by stretch, by `LOSS_PARTS`."""

    def __init__(self, as_cuda: bool, count: int) -> None:
        super().__init__(as_cuda, count)
        self.series: dict[str, list[tuple[int, ...]]] = {}
        self._open: list[list[tuple[int, ...]]] = []

    def enter(self, names: Sequence[str]) -> None:
        """A stretch begins, under all of these names."""
        self._open = [self.series.setdefault(name, []) for name in names]
        self.grew()

    def now(self) -> tuple[int, ...]:
        return tuple(self.by_category.get(part, 0) for part in LOSS_PARTS)

    def accumulated(self, parameter: torch.Tensor) -> None:
        """A hook of a parameter whose gradient has come to be."""
        if parameter.grad is not None:
            self.recategorize(parameter.grad, GRADIENTS)

    def grew(self) -> None:
        if self._open:
            now = self.now()
            for series in self._open:
                series.append(now)


def _is_mask(indices: Any) -> bool:
    return len(indices) == 1 and indices[0] is not None and indices[0].dtype is torch.bool


@contextmanager
def heads_as_on(device: str, scaled: bool) -> Iterator[None]:
    """TRL's and Liger's heads as they would run on a device, without reading values.

    Args:
        device: on "cuda" TRL's head keeps to one tile, in which its Triton kernels work in place.
        scaled: whether the loss is scaled once more after Liger's head: its backward then multiplies its gradients.
    """
    with ExitStack() as stack:
        stack.enter_context(_meta_as_cpu())
        stack.enter_context(_short_loops())
        stack.enter_context(_liger_backward(0.5 if scaled else 1.0))
        if device == "cuda":
            stack.enter_context(_kernels_in_place())
        yield


@contextmanager
def _short_loops() -> Iterator[None]:
    """The heads go over tokens and vocabulary in tiles of one size that leave nothing behind: a few stand for all.

    The first, a second (beside which the first one's last values still live) and the last, which may be smaller.
    """
    from liger_kernel.chunked_loss import fused_linear_ppo
    from trl.kernels import chunked_logprob

    from grpo_studio.training import policy_head

    def few(*bounds: int) -> list[int]:
        steps = range(*bounds)
        return list(steps) if len(steps) <= 3 or len(bounds) < 3 else [*steps[:2], steps[-1]]

    with (
        _shadowed(fused_linear_ppo, range=few),
        _shadowed(chunked_logprob, range=few),
        _shadowed(policy_head, range=few),
    ):
        yield


@contextmanager
def _meta_as_cpu() -> Iterator[None]:
    """torch knows no autocast of the meta device: who asks there is told of the CPU's."""
    enabled, dtype, context = torch.is_autocast_enabled, torch.get_autocast_dtype, torch.autocast

    def known(device: str) -> str:
        return "cpu" if device == "meta" else device

    with _replaced(
        torch,
        is_autocast_enabled=lambda device="cpu": enabled(known(device)),
        get_autocast_dtype=lambda device: dtype(known(device)),
        autocast=lambda device, *arguments, **options: context(known(device), *arguments, **options),
    ):
        yield


@contextmanager
def _liger_backward(scale: float) -> Iterator[None]:
    """Liger compares the incoming gradient, a tensor, with 1 to save a multiplication: a number compares as well."""
    from liger_kernel.chunked_loss.fused_linear_ppo import LigerFusedLinearPPOBase

    original = LigerFusedLinearPPOBase.backward

    def backward(ctx: Any, gradient: Any, *metrics: Any) -> Any:
        return original(ctx, scale, *metrics)

    with _replaced(LigerFusedLinearPPOBase, backward=staticmethod(backward)):
        yield


@contextmanager
def _kernels_in_place() -> Iterator[None]:
    """TRL's head on a GPU: a kernel folds each tile where it lies, and products are summed in float32 unrounded."""
    from trl.kernels import chunked_logprob
    from trl.trainer import utils

    def yes(device: torch.device) -> bool:
        return True

    def sum_up(total: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
        """`torch.addmm(..., out_dtype=torch.float32)` makes no copy; torch has it for CUDA alone."""

    with (
        _replaced(
            chunked_logprob,
            _use_triton=yes,
            _forward_kernel=_InPlace(),
            _backward_kernel=_InPlace(),
            _addmm_fp32=sum_up,
        ),
        _replaced(utils, _use_triton=yes),
    ):
        yield


class _InPlace:
    """Stands for a kernel that is given its grid, then its arguments, and allocates nothing."""

    def __getitem__(self, grid: Any) -> Any:
        return lambda *arguments, **options: None


@contextmanager
def _replaced(owner: Any, **values: Any) -> Iterator[None]:
    before = {name: vars(owner)[name] for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextmanager
def _shadowed(module: Any, **values: Any) -> Iterator[None]:
    """Builtins of those names as one module sees them."""
    vars(module).update(values)
    try:
        yield
    finally:
        for name in values:
            del vars(module)[name]
