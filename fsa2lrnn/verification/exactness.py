"""Could rounding change what a model puts out? Where it could not, every scan gives what the sequential one gives.

Each layer is asked about every input that it is seen to get (`Layer.is_exact`). What a layer answers for is this: its
gates add up integers, whose sizes together stay within those that the dtype holds, so that no order of summation and no
shape of a batch makes a difference, or no more than leaves each choice of a column as it is; and its tables are maps
among finitely many states (`lrnn.closed`), of which a parallel scan forms nothing but compositions. So all states are
the same in every run, and with them what the read-out reads; of what it is seen to read the largest logit has to stay
the largest (T53 of docs/theory.md).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.lrnn.gate import Gate
from fsa2lrnn.lrnn.layers import Layer
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.rounding import RoundedNumbers, integers


class RoundingWatch:
    """Looks on while a model runs; `is_exact` says that rounding can change no state and no output that was seen.

    A model of which that was once not so stays under that verdict and is looked at no more. Index tables never round.
    """

    def __init__(self, model: LRNN) -> None:
        self._model = model
        self._limit = integers(FloatFormat.of(model.dtype))
        self._watched: list[nn.Module] = []  # a model without a stream has nothing that could round
        if not model.config.reads_letters:
            self._watched = [*model.recurrences, model.readout]
        self.is_exact = not model.config.layer_norm and all(layer.starts_exact() for layer in model.recurrences)

    @contextmanager
    def looking(self) -> Generator[None]:
        """While this context lasts, the inputs of all layers and of the read-out are inspected."""
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
    """Whether every evaluation has its largest entry in the same place, the first of equals: (…, n), all finite.

    >>> close = torch.tensor([1.0, 1.0 + 2**-20])
    >>> has_one_largest(RoundedNumbers.exact(close)), has_one_largest(RoundedNumbers.exact(close).scaled(1 / 3))
    (True, True)
    >>> has_one_largest(RoundedNumbers.exact(torch.tensor([1.0, 1.0 + 2**-23])).scaled(1 / 3))
    False
    """
    column = RoundedNumbers(logits.mid.unsqueeze(-1), logits.off.unsqueeze(-1), logits.kind)
    is_one = column.largest(torch.ones(column.mid.shape[-2], 1, dtype=torch.bool)).is_exact
    return is_one and bool(column.mid.isfinite().all())


def may_close(model: LRNN) -> bool:
    """Whether a proof for all lengths is worth asking for: the states of all layers are finitely many whatever the
    weights, or the model starts as compiled ones do, in a state that maps among finitely many keep to.

    >>> from fsa2lrnn.lrnn import BlockLayerConfig, LRNNConfig
    >>> layer = BlockLayerConfig((3,), 4, 4)
    >>> [may_close(LRNN(LRNNConfig("ab", (0, 1), (layer,), normalisation=rule))) for rule in ("onehot", "clip")]
    [True, False]
    """
    is_finite = all(layer.is_finite(model.config.normalisation) for layer in model.recurrences)
    return is_finite or all(layer.starts_exact() for layer in model.recurrences)
