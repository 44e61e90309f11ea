"""One layer over letters as its tables, x_k = A[a_k] x_{k-1} + v[a_k], and the read-out of states, in numpy."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .errors import UnsupportedInput
from .intervals import LONGEST_SUM
from .rounding import LARGEST, FloatFormat


@dataclass(frozen=True, eq=False)
class Tables:
    """Logits of a state x are W2 relu(W1 y + b1) + b2, where y is x or LayerNorm(x), with ε = 10⁻⁵.

    Args:
        numbers: A (|Σ|, H, b, b), v (|Σ|, H, b), x0 (H, b), W1 (m, H·b), b1 (m,), W2 (|Γ|, m), b2 (|Γ|,), and
            norm_weight and norm_bias (H·b,) where there is a LayerNorm.
        dtype: "float32" or "float64", in which the model computes; of other types nothing is known here.
        alphabet, outputs: Σ and Γ.
    """

    numbers: Mapping[str, np.ndarray]
    dtype: str
    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """All numbers in float64, which holds them exactly."""
        return {name: np.asarray(x, np.float64) for name, x in self.numbers.items()}

    @property
    def sha256(self) -> str:
        """A digest of all numbers, their shapes and their dtype: equal for equal tables and read-outs only."""
        digest = hashlib.sha256()
        for name, x in sorted(self.numbers.items()):
            digest.update(f"{name} torch.{self.dtype} {x.shape}".encode())
            digest.update(np.ascontiguousarray(x + np.zeros((), x.dtype)).tobytes())  # −0 and 0 are one number
        return digest.hexdigest()

    def format(self) -> FloatFormat:
        """The format that the model computes in.

        Raises:
            UnsupportedInput: for other types than float32 and float64, for models that are wider than 1,024 or have no
                width at all, and for numbers that may overflow or are none.
        """
        if self.dtype not in ("float32", "float64"):
            raise UnsupportedInput(
                f"the model computes in {self.dtype}: the bounds on its rounding are for float32 and float64, convert "
                "it"
            )
        if max(*self.weights["W1"].shape, len(self.alphabet)) > LONGEST_SUM:
            raise UnsupportedInput(f"the bounds on rounding are for models of a width up to {LONGEST_SUM:,}")
        if empty := [name for name, x in self.weights.items() if not x.size]:
            raise UnsupportedInput(
                f"{', '.join(empty)}: no entries: a model has heads, blocks, hidden units and outputs"
            )
        sums = {name: float(np.abs(x).sum(-1).max()) for name, x in self.weights.items()}
        if bad := [name for name, size in sums.items() if not size <= LARGEST]:
            raise UnsupportedInput(f"{', '.join(bad)}: sums of over 2^40, or no numbers, may overflow: rescale it")
        return FloatFormat.of(self.dtype)
