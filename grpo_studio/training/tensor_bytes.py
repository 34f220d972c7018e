"""Bytes of all live tensors, by the storages that hold them: the same count on fake and on real tensors.

What a kernel takes and gives back within itself is not a tensor and is not seen, as in torch's own MemTracker.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

ALLOCATION = 512
"""CUDA's allocator hands out multiples of this (`kMinBlockSize` of torch's CUDACachingAllocator)."""
UNTOLD = "other"


class TensorBytes(TorchDispatchMode):
    """Counts the tensors that come to be within it, and those it is told of (`track`), until they are gone.

    Args:
        as_cuda: round each storage as CUDA's allocator would, whatever the device.

    Attributes:
        current, peak: bytes now, and the most since the last `reset_peak`.
        by_phase: the most of each phase that was named with `phase`.
        category: what new storages are counted as; `by_category` sums them.
    """

    def __init__(self, as_cuda: bool = False) -> None:
        super().__init__()
        self._as_cuda = as_cuda
        self._known: dict[int, tuple[int, str, Any]] = {}
        self._phase: str | None = None
        self.category = UNTOLD
        self.by_category: dict[str, int] = {}
        self.by_phase: dict[str, int] = {}
        self.current = 0
        self.peak = 0

    def track(self, *things: Any, category: str | None = None) -> None:
        """Count what was there before: tensors, modules (parameters, gradients, buffers), optimizers, collections."""
        for tensor in _tensors(things):
            self._add(tensor, self.category if category is None else category)

    def recategorize(self, tensor: torch.Tensor, category: str) -> None:
        """Count the storage of a tensor as something else from now on."""
        for part in _parts(tensor):
            key = part.untyped_storage()._cdata
            known = self._known.get(key)
            if known is None:
                self._add(part, category)
                continue
            size, before, reference = known
            self._known[key] = (size, category, reference)
            self.by_category[before] -= size
            self.by_category[category] = self.by_category.get(category, 0) + size

    def reset_peak(self) -> None:
        self.peak = self.current

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Attribute what lives meanwhile to a phase; a phase within a phase takes its own share."""
        outer, self._phase = self._phase, name
        self.by_phase[name] = max(self.by_phase.get(name, 0), self.current)
        try:
            yield
        finally:
            self._phase = outer

    def grew(self) -> None:
        """Called whenever there is more than before."""
        self.peak = max(self.peak, self.current)
        if self._phase is not None:
            self.by_phase[self._phase] = max(self.by_phase[self._phase], self.current)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # its wrapper costs more than the count

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Do an operation; for those who want to answer some themselves."""
        return func(*args, **kwargs)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = self.run(func, args, kwargs or {})
        if isinstance(result, torch.Tensor):
            self._add(result, self.category)
        elif isinstance(result, tuple | list):
            for part in result:
                if isinstance(part, torch.Tensor):
                    self._add(part, self.category)
        return result

    def _add(self, tensor: torch.Tensor, category: str) -> None:
        for part in _parts(tensor):
            storage = part.untyped_storage()
            key = storage._cdata
            size = storage.nbytes()
            if self._as_cuda or part.device.type == "cuda":
                size = -(-size // ALLOCATION) * ALLOCATION
            known = self._known.get(key)
            if known is None:
                reference = weakref.ref(storage, partial(self._drop, key))
            elif known[0] == size:
                continue
            else:  # it was resized
                category, reference = known[1:]
                self.current -= known[0]
                self.by_category[category] -= known[0]
            self._known[key] = (size, category, reference)
            self.current += size
            self.by_category[category] = self.by_category.get(category, 0) + size
            self.grew()

    def _drop(self, key: int, _: Any) -> None:
        size, category, _ = self._known.pop(key)
        self.current -= size
        self.by_category[category] -= size


def _parts(tensor: torch.Tensor) -> Iterable[torch.Tensor]:
    """The plain tensors that a tensor is made of."""
    if type(tensor) in (torch.Tensor, torch.nn.Parameter) or not is_traceable_wrapper_subclass(tensor):
        return (tensor,)
    names, _ = tensor.__tensor_flatten__()
    return [part for name in names for part in _parts(getattr(tensor, name))]


def _tensors(things: Any) -> Iterator[torch.Tensor]:
    if isinstance(things, torch.Tensor):
        yield things
        if things.is_leaf and things.grad is not None:
            yield things.grad
    elif isinstance(things, torch.nn.Module):
        for tensor in (*things.parameters(), *things.buffers()):
            yield from _tensors(tensor)
    elif isinstance(things, torch.optim.Optimizer):
        yield from _tensors(list(things.state.values()))
    elif isinstance(things, dict):
        yield from _tensors(list(things.values()))
    elif isinstance(things, tuple | list | set):
        for thing in things:
            yield from _tensors(thing)
