"""Decide whether rounding could change a model's outputs. If not, every scan gives the sequential scan's outputs.

Each layer decides this for every input that it reads in a run (`Layer.is_exact`). Its gates must sum integers within
the range that the dtype represents, so that order and batch do not matter, or round too little to change the choice of
a column. Its tables must be maps among finitely many states (`nn.layers.base`), of which a parallel scan forms only
compositions. Then all states, and the inputs of the read-out, are the same in every run; at every such input the
largest logit must stay the largest under rounding (T53 of docs/theory.md).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layers import Layer
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, integers


class RoundingWatch:
    """A monitor of a model's runs: `is_exact` is True while rounding can change no observed state and no output.

    Once `is_exact` is False it stays False, and the model is no longer inspected. Index tables involve no rounding.
    """

    def __init__(self, model: LRNN) -> None:
        self._model = model
        self._limit = integers(FloatFormat.of(model.dtype))
        self._watched: list[nn.Module] = []  # a model without a stream does not round
        if not model.config.reads_letters:
            self._watched = [*model.recurrences, model.readout]
        self.is_exact = not model.config.layer_norm and all(layer.starts_exact() for layer in model.recurrences)

    @contextmanager
    def looking(self) -> Generator[None]:
        """Inspect the inputs of all layers and of the read-out within this context."""
        watched = self._watched if self.is_exact else []
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
                if module is self._model.readout and isinstance(module, Gate):
                    self.is_exact = has_one_largest(module.rounded(RoundedNumbers.exact(u)))
                else:
                    self.is_exact = cast("Layer", module).is_exact(u, self._limit)


def has_one_largest(logits: RoundedNumbers) -> bool:
    """Decide whether every evaluation of logits (…, n), all finite, has the same first largest entry.

    >>> close = torch.tensor([1.0, 1.0 + 2**-20])
    >>> has_one_largest(RoundedNumbers.exact(close)), has_one_largest(RoundedNumbers.exact(close).scaled(1 / 3))
    (True, True)
    >>> has_one_largest(RoundedNumbers.exact(torch.tensor([1.0, 1.0 + 2**-23])).scaled(1 / 3))
    False
    """
    column = RoundedNumbers(logits.mid.unsqueeze(-1), logits.off.unsqueeze(-1), logits.kind)
    is_one = column.largest(torch.ones(column.mid.shape[-2], 1, dtype=torch.bool)).is_exact
    return is_one and bool(column.size.isfinite().all())  # a single logit has no rival but NaN


def may_close(model: LRNN) -> bool:
    """Decide whether `prove_equivalent` may succeed, from the kinds of layers and from the start alone.

    It may if all layers have finitely many states for any weights, or if the model starts as compiled models do, in a
    state from which maps among finitely many states stay finite.

    >>> from fsa2lrnn.nn import BlockLayerConfig, LRNNConfig
    >>> layer = BlockLayerConfig((3,), 4, 4)
    >>> [may_close(LRNN(LRNNConfig("ab", (0, 1), (layer,), normalisation=rule))) for rule in ("onehot", "clip")]
    [True, False]
    """
    is_finite = all(layer.is_finite(model.config.normalisation) for layer in model.recurrences)
    return is_finite or all(layer.starts_exact() for layer in model.recurrences)
