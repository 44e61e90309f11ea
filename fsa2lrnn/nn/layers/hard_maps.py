"""PD-SSM, DeltaProduct and SLiCE with transitions from a finite set, trained straight through and then proved.

The forward pass uses the values of the largest logits, the backward pass those of a softmax or of Sinkhorn's iteration
(`HardLayer`, docs/theory.md T51). All numbers are −1, 0 and 1, each sum has at most one nonzero term, and no scan
rounds.

- `hard_pd_ssm`: rows of P one-hot, D of −1 and 1, no additive term.
- `hard_deltaproduct`: exchanges of coordinates, then each coordinate is unchanged or replaced by −1, 0 or 1. A
  permutation with c cycles is n − c factors I − 2 k kᵀ with k = (e_i − e_j)/√2, and a write is a factor with k = e_i.
- `hard_slice`: the blocks I + A are permutations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fsa2lrnn.nn.layers.base import is_signed
from fsa2lrnn.nn.layers.hard import HardConfig, HardLayer, SizedHardConfig
from fsa2lrnn.nn.normalise import one_hot_rows, straight_through
from fsa2lrnn.nn.rounding import RoundedNumbers

_SINKHORN = 8  # iterations of the gradient's doubly stochastic matrix
_WRITES = (-1, 0, 1)
_KEEPS = 2.0  # added to the first logits of keeping a number
_FIRST = 4.0  # added to the first logits of a permutation


class _HardMatrixConfig(SizedHardConfig):
    @property
    def logits(self) -> int:
        """The number of logits: one for each entry of a block."""
        return self.size**2


@dataclass(frozen=True)
class HardPDSSMConfig(_HardMatrixConfig):
    """A configuration with `heads` blocks of `size` states; with `signs`, D has entries −1 and 1, otherwise D = I."""

    signs: bool = False

    @property
    def logits(self) -> int:
        """The number of logits: one for each entry of P, and two for each of D."""
        return self.size**2 + 2 * self.size * self.signs


@dataclass(frozen=True)
class HardDeltaProductConfig(_HardMatrixConfig):
    """A configuration with `heads` blocks of `size` numbers; with `writes` each coordinate may be overwritten."""

    writes: bool = True

    @property
    def logits(self) -> int:
        """The number of logits: one for each entry of a permutation, and four for the value of each coordinate."""
        return self.size**2 + (len(_WRITES) + 1) * self.size * self.writes


@dataclass(frozen=True)
class HardSliceConfig(_HardMatrixConfig):
    """A configuration with `heads` blocks of `size` numbers."""


class _HardMatrixLayer(HardLayer):
    def initial_state(self, batch: int) -> Tensor:
        """Return the one-hot x₀ for each word of a batch: (B, H, n)."""
        return one_hot_rows(self.x0, self.temperature).expand(batch, *self.x0.shape)

    def is_exact(self, u: Tensor, limit: float) -> bool:
        """Return whether rounding changes no choice, and each row of each product copies one number or none."""
        A, v = self.rounded_tables(RoundedNumbers.exact(u))
        is_copy = ((A.mid != 0).sum(-1) <= 1).all() and is_signed(A.mid) and is_signed(v.mid)
        is_write = not ((A.mid != 0).any(-1) & (v.mid != 0)).any()
        return A.is_exact and v.is_exact and bool(is_copy) and is_write


class HardPDSSMLayer(_HardMatrixLayer):
    """The layer x_k = D P x_{k−1}: row i of P copies the coordinate of its largest logit, D sets the sign."""

    Config = HardPDSSMConfig

    def __init__(self, width_in: int, config: HardPDSSMConfig) -> None:
        self._signs = config.signs
        super().__init__(width_in, config)
        n = config.size  # a new layer permutes, as random maps forget most of what was read
        with torch.no_grad():
            P = _first_logits(self, config)[:, : n * n].unflatten(1, (n, n))
            P.scatter_add_(2, torch.rand_like(P[:, :, 0]).argsort(1).unsqueeze(2), torch.full_like(P[:, :, :1], _FIRST))

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of P (…, H, n, n), and of D (…, H, n, 2)."""
        n = self.mask.shape[1]
        P = logits[..., : n * n].unflatten(-1, (n, n))
        return (P, logits[..., n * n :].unflatten(-1, (n, 2))) if self._signs else (P,)

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return D P and zero: (…, H, n² + 2n) -> (…, H, n, n), (…, H, n)."""
        P, *signs = (one_hot_rows(part, self.temperature) for part in self.options(logits))
        A = P * (signs[0] @ P.new_tensor([1, -1])).unsqueeze(-1) if signs else P
        return A, A.new_zeros(A.shape[:-1])


class _PermutingLayer(_HardMatrixLayer):
    def __init__(self, width_in: int, config: _HardMatrixConfig) -> None:
        self._has_writes = config.logits > config.size**2
        super().__init__(width_in, config)

    def options(self, logits: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of the value of each coordinate (…, H, n, 4), if there are any."""
        n = self.mask.shape[1]
        return (logits[..., n * n :].unflatten(-1, (n, -1)),) if self._has_writes else ()

    def chosen(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the exchanges and the writes: (…, H, n² + 4n) -> (…, H, n, n), (…, H, n)."""
        n = self.mask.shape[1]
        P = permutation(logits[..., : n * n].unflatten(-1, (n, n)), self.temperature)
        if not self._has_writes:
            return P, P.new_zeros(P.shape[:-1])
        becomes = one_hot_rows(self.options(logits)[0], self.temperature)
        return P * becomes[..., :1], becomes[..., 1:] @ P.new_tensor(_WRITES)

    def _is_open(self, logits: RoundedNumbers) -> Tensor:
        n = self.mask.shape[1]
        # The rule compares any two entries of the permutation.
        return ~logits[..., : n * n].is_ordered() | super()._is_open(logits)


class HardDeltaProductLayer(_PermutingLayer):
    """The layer x_k = A x_{k−1} + v with a permutation A, whose rows are zero where v writes; x₀ is one-hot."""

    Config = HardDeltaProductConfig

    def __init__(self, width_in: int, config: HardDeltaProductConfig) -> None:
        super().__init__(width_in, config)
        if config.writes:  # a new layer keeps most numbers, as random writes forget all that was read before
            with torch.no_grad():
                _first_logits(self, config)[:, config.size**2 :: len(_WRITES) + 1] += _KEEPS

    @property
    def family(self) -> str | None:
        """The family of Householder products."""
        return "householder"


class HardSliceLayer(_PermutingLayer):
    """The layer x_k = P x_{k−1} with a permutation P in each block; x₀ is one-hot."""

    Config = HardSliceConfig

    @property
    def family(self) -> str | None:
        """The family of blocks of this size."""
        return f"block({self.mask.shape[1]})"


def _first_logits(layer: HardLayer, config: HardConfig) -> Tensor:
    """Return the parameters that set the logits of each letter, or of all: a view, (H, logits, letters or 1)."""
    weights = layer.transition.weights
    numbers = weights.W2 if config.gate == "table" else weights.b2.unsqueeze(-1)
    return numbers.unflatten(0, (config.heads, -1))


def permutation(logits: Tensor, temperature: float) -> Tensor:
    """Return the permutation chosen greedily by largest entries, each row and column once: (…, n, n).

    The gradient is that of Sinkhorn's iteration on exp(logits / temperature), a nearly doubly stochastic matrix.

    >>> permutation(torch.tensor([[3.0, 2.0], [4.0, 1.0]]), 1.0).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    n = logits.shape[-1]
    left, chosen = logits.detach().nan_to_num(), torch.zeros_like(logits, requires_grad=False)
    for _ in range(n):
        largest = left.flatten(-2).argmax(-1, keepdim=True)
        hot = torch.zeros_like(left.flatten(-2)).scatter_(-1, largest, 1).view_as(left)
        chosen = chosen + hot
        left = left.masked_fill((hot.sum(-1, keepdim=True) + hot.sum(-2, keepdim=True)) > 0, -torch.inf)
    if not logits.requires_grad:
        return chosen
    soft = logits / temperature
    for _ in range(_SINKHORN):
        soft = soft - soft.logsumexp(-1, keepdim=True)
        soft = soft - soft.logsumexp(-2, keepdim=True)
    return straight_through(chosen, soft.exp())
