"""Modules without numbers: their shapes and settings, at no cost of memory or random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.nn import init
from torch.overrides import TorchFunctionMode

_OF_TENSORS = ("normal_", "uniform_", "random_", "exponential_")
_OF_MODULES = ("normal_", "uniform_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_")
_FILLING = frozenset([getattr(torch.Tensor, name) for name in _OF_TENSORS] + [getattr(init, n) for n in _OF_MODULES])
_DRAWING = frozenset((torch.randn, torch.rand))
_COMPARING = frozenset((torch.Tensor.__lt__, torch.Tensor.lt, torch.lt))


class _ShapeOnlyMode(TorchFunctionMode):
    """Answers with empty tensors where the meta device would import torch's compiler to say what their shape is.

    It has these operations from torch's definitions in Python alone, and the import takes longer than all else that
    loading a model does. Whatever is not here is left to it.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func in _FILLING:
            return args[0] if args else given["tensor"]
        if func in _DRAWING:
            return torch.empty(*args, **{name: value for name, value in given.items() if name != "generator"})
        if func is torch.arange and not given and all(isinstance(end, int) for end in args):
            return torch.empty(len(range(*args)), dtype=torch.int64)
        if func in _COMPARING and not given:
            return torch.empty(np.broadcast_shapes(*(np.shape(side) for side in args)), dtype=torch.bool)
        return func(*args, **given)


@contextmanager
def on_meta_device() -> Iterator[None]:
    """What is made meanwhile lies on the meta device.

    >>> with on_meta_device():
    ...     layer = torch.nn.Linear(1 << 20, 1 << 20)
    >>> layer.weight.device.type, tuple(layer.weight.shape)
    ('meta', (1048576, 1048576))
    """
    with torch.device("meta"), _ShapeOnlyMode():
        yield
