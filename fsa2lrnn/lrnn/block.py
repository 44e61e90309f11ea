"""The trainable layer: block-diagonal, input-dependent transitions (the paper's Eqs. 5 and 6)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fsa2lrnn.lrnn.config import BlockLayerConfig, HouseholderLayerConfig
from fsa2lrnn.lrnn.normalise import normalise
from fsa2lrnn.lrnn.scans import (
    GPU_METHODS,
    GPU_TOKEN_METHODS,
    METHODS,
    TOKEN_METHODS,
    check_method,
    scan,
    scan_tokens,
)


class BlockLayer(nn.Module):
    """x_k = A(u_k) x_{k-1} + v(u_k), with A(u) of H blocks of size b from a gate Linear–ReLU–Linear, and v(u) likewise.

    Parameters: `transition.{0,2}` make A, `value.{0,2}` make v, `x0` (H, b) is the initial state. Blocks smaller than
    the largest are padded; their padding is masked to zero, so it neither computes nor learns.
    """

    mask: Tensor

    def __init__(self, width_in: int, config: BlockLayerConfig | HouseholderLayerConfig, rule: str, p: float) -> None:
        super().__init__()
        self.block_sizes = config.block_sizes
        n_heads, b = len(config.block_sizes), max(config.block_sizes)
        self.rule, self.p = rule, p
        self.transition = self.gate(width_in, config.transition_hidden, self._transition_width())
        self.value = self.gate(width_in, config.value_hidden, n_heads * b)
        self.x0 = nn.Parameter(torch.randn(n_heads, b))
        sizes = torch.tensor(config.block_sizes)
        self.register_buffer("mask", torch.arange(b) < sizes[:, None], persistent=False)  # (H, b)

    @property
    def n_heads(self) -> int:
        """H, the number of blocks."""
        return len(self.block_sizes)

    def _transition_width(self) -> int:
        return self.n_heads * max(self.block_sizes) ** 2

    @staticmethod
    def gate(width_in: int, hidden: int, width_out: int) -> nn.Sequential:
        """Linear–ReLU–Linear."""
        return nn.Sequential(nn.Linear(width_in, hidden), nn.ReLU(), nn.Linear(hidden, width_out))

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """A(u) and v(u): (…, d) -> (…, H, b, b) and (…, H, b). `method` is that of the column rule (`normalise`)."""
        A, v = self._written(u)
        return normalise(A, self.rule, self.p, method), v

    def _written(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """What the gates give out, before the column rule."""
        n_heads, b = self.mask.shape
        A = self.transition(u).unflatten(-1, (n_heads, b, b))
        v = self.value(u).unflatten(-1, (n_heads, b))
        if min(self.block_sizes) < b:
            A, v = A.where(self.mask[:, :, None] & self.mask[:, None, :], 0), v.where(self.mask, 0)
        return A, v

    def initial_state(self, batch: int) -> Tensor:
        """x₀ for each word of a batch: (B, H, b)."""
        return (self.x0 * self.mask).expand(batch, *self.x0.shape)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs x_1 … x_T, flattened, and the last state: u (B,T,d), state (B,H,b) -> (B,T,H·b), (B,H,b).

        With `index`, int64 (B,T), the rows of u (N,d) are the different inputs, and index[i, k] is the one at step k of
        word i: A and v are then made N times, not B·T times. Without, "letters" stands for "sequential".
        """
        check_method(method, METHODS | GPU_METHODS | TOKEN_METHODS)
        # The scans that can be differentiated twice, and need no compiler, get A and v that can and don't either.
        A, v = self.tables(u, "auto" if method in ("auto", "fused", "triton") else "reference")
        if index is None:
            x = scan(A, v, state, "sequential" if method == "letters" else method)
        elif method == "auto" or method in TOKEN_METHODS | GPU_TOKEN_METHODS:
            x = scan_tokens(index, A, v, state, method)
        else:
            x = scan(A[index], v[index], state, method)
        return x.flatten(-2), x[:, -1] if x.shape[1] else state

    def emit(self, state: Tensor) -> Tensor:
        """What the layer gives out in a state: (B, H, b) -> (B, H·b)."""
        return state.flatten(-2)
