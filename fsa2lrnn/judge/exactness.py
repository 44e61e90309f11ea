"""Does a model ever round? Where it does not, every scan computes the numbers that the sequential one computes.

Two things are asked of every input that a layer is seen to get. Its gates add up integers, whose sizes together stay
within those that the dtype holds, so that no order of summation and no shape of a batch makes a difference. And the
tables that come out are, in each block, a one-hot map (v = 0) or a reset (A = 0, v one-hot), in each lane (a block of
size 1) one of the maps x, 1 − x, 0 and 1, which are all affine maps that keep {0, 1}. Each of the two kinds is closed
under composition, and a parallel scan forms nothing but compositions of consecutive maps of the same block: all that it
multiplies and adds is −1, 0 or 1.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from fsa2lrnn.lrnn.block import BlockLayer
from fsa2lrnn.lrnn.householder import HouseholderLayer
from fsa2lrnn.lrnn.model import LRNN

_COUNTED = 2.0**52  # the sizes are added up in float64


class RoundingWatch:
    """Looks on while a model runs; `is_exact` says whether all that was seen is free of rounding.

    A model that once rounded stays under that verdict and is looked at no more. Index tables never round.
    """

    def __init__(self, model: LRNN) -> None:
        self._model = model
        self._limit = min(2 / torch.finfo(model.dtype).eps, _COUNTED)
        self._layers = [layer for layer in model.layers if isinstance(layer, BlockLayer)]
        self.is_exact = not model.config.layer_norm and all(map(_starts_one_hot, self._layers))

    @contextmanager
    def looking(self) -> Generator[None]:
        """While this context lasts, the inputs of all layers and of the read-out are inspected."""
        watched: list[nn.Module] = []
        if self._layers and self.is_exact:
            watched = [*self._layers, self._model.readout]
        handles = [module.register_forward_pre_hook(self._inspect) for module in watched]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _inspect(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if self.is_exact and inputs[0].numel():
            rows = inputs[0].detach().flatten(0, -2)
            u = cast("Tensor", rows.unique(dim=0))  # pyright: ignore[reportUnknownMemberType] - (N, d)
            with torch.no_grad():
                self.is_exact = self._gates_are_exact(module, u) and (
                    not isinstance(module, BlockLayer) or _tables_are_closed(module, u)
                )

    def _gates_are_exact(self, module: nn.Module, u: Tensor) -> bool:
        if not isinstance(module, BlockLayer):
            return self._is_exact_gate(module, u)
        gates: list[nn.Module] = [module.transition, module.value]
        if isinstance(module, HouseholderLayer):
            gates.append(module.rate)
        return all(self._is_exact_gate(gate, u) for gate in gates) and (
            not isinstance(module, HouseholderLayer) or self._is_exact_product(module, u)
        )

    def _is_exact_gate(self, gate: nn.Module, u: Tensor) -> bool:
        first, _, second = cast("tuple[nn.Linear, nn.Module, nn.Linear]", tuple(gate.children()))
        W1, b1, W2, b2, u = (t.double() for t in (first.weight, first.bias, second.weight, second.bias, u))
        hidden = (u @ W1.T + b1).relu()
        sizes = u.abs() @ W1.abs().T + b1.abs(), hidden @ W2.abs().T + b2.abs()
        is_integer = all(bool((t == t.round()).all()) for t in (W1, b1, W2, b2, u))
        return is_integer and all(bool((size <= self._limit).all()) for size in sizes)

    def _is_exact_product(self, layer: HouseholderLayer, u: Tensor) -> bool:
        """The sums in A − β k (kᵀ A), factor by factor, over integers, which keys divided by their norms are not."""
        if layer.unit_keys:
            return False
        keys, rates = (part.double().flatten(0, 1) for part in layer.factors(u))  # (N·H, m, n), (N·H, m)
        n = keys.shape[-1]
        product, largest = torch.eye(n, dtype=torch.float64, device=u.device).expand(len(keys), n, n), 0.0
        for key, rate in zip(keys.unbind(1), rates.unbind(1), strict=True):
            scaled = (rate[:, None] * key)[:, :, None]  # (N·H, n, 1)
            sizes = product.abs() + scaled.abs() @ (key.abs()[:, None] @ product.abs())
            largest = max(largest, float(sizes.max()))
            product = product - scaled @ (key[:, None] @ product)
        return largest <= self._limit


def _starts_one_hot(layer: BlockLayer) -> bool:
    """x₀ is one-hot in each block, 0 or 1 in each lane."""
    x0 = layer.initial_state(1)[0]  # (H, b)
    is_zero = (x0 == 0).all(-1)
    return bool((_one_hot(x0) | (is_zero & _is_lane(layer))).all())


def _tables_are_closed(layer: BlockLayer, u: Tensor) -> bool:
    """Each block a map or a reset, each lane x, 1 − x, 0 or 1, and that before the column rule as after it."""
    A, v = layer.tables(u)  # (N, H, b, b), (N, H, b)
    if not isinstance(layer, HouseholderLayer):
        written = layer.transition(u).unflatten(-1, A.shape[1:])
        if not torch.equal(A, written.where(layer.mask[:, :, None] & layer.mask[:, None, :], 0)):
            return False
    is_zero = (A == 0).all(-1).all(-1)
    is_map = (_one_hot(A.mT) | ~layer.mask).all(-1) & (v == 0).all(-1)
    is_reset = is_zero & _one_hot(v)
    a, c = A[..., 0, 0], v[..., 0]
    is_lane_map = _is_lane(layer) & (((a == -1) & (c == 1)) | ((a == 0) & (c == 0)))
    return bool((is_map | is_reset | is_lane_map).all())


def _is_lane(layer: BlockLayer) -> Tensor:
    return layer.mask.sum(-1) == 1  # (H,)


def _one_hot(vectors: Tensor) -> Tensor:
    """Whether each vector along the last axis has a single 1 and zeros."""
    return ((vectors == 1).sum(-1) == 1) & ((vectors != 0).sum(-1) == 1)
