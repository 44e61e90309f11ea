"""The base class of layers with a matrix state: S_t = S_{t−1} (diagonal + rank one) + v kᵀ per head, read by queries.

Each layer either computes what its published code does ("gated": convolution, queries, norm, gate and projection), or
only its recurrence ("state"): the output is then the matrix state, flattened, so that one layer over letters has
tables, one block for each row of S.

The scan of the state has transitions diagonal plus rank one, a sequential reference and a chunked WY form:

    S_j = S_{j−1} diag(exp g_j) + (v_j + S_{j−1} a_j) k_jᵀ,    S is (V, K), for steps j = 1 … T·n, n of them per letter,
    o_t = S_{tn} q_t.

The delta rule with decay exp(g) and rate β has a = −β exp(g) k and v = β times its value. Without a (None) the
transition is diagonal. Products of n factors per letter, as in DeltaProduct, are n steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.linalg import solve_triangular
from torch.nn.functional import conv1d, embedding, pad, silu

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_one_of, check_positive, check_width
from fsa2lrnn.nn.layers.block import scan_states
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.scans import METHODS as STATE_METHODS
from fsa2lrnn.nn.scans import check_method

CHUNK = 16
"""RankOneSteps that the chunked scan solves together: more are fewer iterations, but larger triangular systems."""
_CHUNK_OF_DIAGONALS = 32  # where nothing has to be solved
_SHORT = 8  # letters up to which the loop over steps is faster
_LARGEST_EXPONENT = 60.0  # e⁶⁰ times what states hold stays within float32


class RankOneSteps(NamedTuple):
    """The steps of a word, or of N letters with a single leading axis N.

    Attributes:
        g: the logarithms of the decays, (B, T, n, H, K) or, one for all columns, (B, T, n, H, 1).
        a: (B, T, n, H, K), or None for diagonal transitions.
        k: (B, T, n, H, K).
        v: (B, T, n, H, V).
        q: (B, T, H, K), or None if the state is the output.
    """

    g: Tensor
    a: Tensor | None
    k: Tensor
    v: Tensor
    q: Tensor | None

    def at(self, index: Tensor) -> RankOneSteps:
        """Return the steps of words (B, T) of letters, from those of N letters."""

        def gathered(x: Tensor) -> Tensor:
            return embedding(index, x.flatten(1)).unflatten(-1, x.shape[1:])

        return RankOneSteps(*(x if x is None else gathered(x) for x in self))  # pyright: ignore[reportArgumentType]


def matrix_scan(steps: RankOneSteps, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """Return the outputs o_1 … o_T (B, T, H, V) and the last state (B, H, V, K).

    Args:
        steps: the steps of the words.
        state: the first state, (B, H, V, K).
        method: "sequential", "chunked" or "auto", which takes the loop for short words.

    Raises `UnsupportedFormat` for another method.

    >>> one, log_half = torch.ones(1, 3, 1, 1, 1), -0.6931471805599453
    >>> steps = RankOneSteps(log_half * one, None, one, one, one[:, :, 0])  # S_j = S_{j−1} / 2 + 1
    >>> outputs, _ = matrix_scan(steps, torch.zeros(1, 1, 1, 1))
    >>> [round(o, 4) for o in outputs.flatten().tolist()]
    [1.0, 1.5, 1.75]
    """
    check_method(method, METHODS)
    length = steps.k.shape[1]
    if not length:
        return steps.v.new_zeros(len(state), 0, *steps.v.shape[3:]), state
    return METHODS[("sequential" if length <= _SHORT else "chunked") if method == "auto" else method](steps, state)


def sequential(steps: RankOneSteps, state: Tensor) -> tuple[Tensor, Tensor]:
    """Run the definition, one step at a time."""
    assert steps.q is not None
    n, outputs = steps.k.shape[2], list[Tensor]()
    decay, a, k, v = (
        None if x is None else x.flatten(1, 2).unbind(1) for x in (steps.g.exp(), steps.a, steps.k, steps.v)
    )
    assert decay is not None
    assert k is not None
    assert v is not None
    for t, q_t in enumerate(steps.q.unbind(1)):
        for j in range(n * t, n * t + n):
            # S a is taken from the state before the decay: where a layer decays first, its a has the factor exp(g).
            written = v[j] if a is None else v[j] + (state @ a[j].unsqueeze(-1)).squeeze(-1)
            state = state * decay[j].unsqueeze(-2) + written.unsqueeze(-1) * k[j].unsqueeze(-2)
        outputs.append((state @ q_t.unsqueeze(-1)).squeeze(-1))
    return torch.stack(outputs, 1), state


def chunked(steps: RankOneSteps, state: Tensor) -> tuple[Tensor, Tensor]:
    """Solve chunks of steps together, in the WY form: the updates of a chunk are U with (I − M) U = V + α S₀ᵀ.

    In a chunk with cumulative logarithms G_i = g_1 + … + g_i, M_ij = Σ a_i exp(G_{i−1} − G_j) k_j for j < i and α_i =
    exp(G_{i−1}) a_i. With one decay per head the exponents are formed as differences, which are never positive. With a
    decay per column exp(G_i) and exp(−G_j) are multiplied separately; chunks are so short that neither overflows, and
    decays too fast for chunks of two letters are computed by the loop.
    """
    assert steps.q is not None
    batch, length, n, heads, _ = steps.k.shape
    size = CHUNK if steps.a is not None else _CHUNK_OF_DIAGONALS
    per_chunk = min(max(1, size // n), length)  # letters
    if steps.g.shape[-1] > 1 and batch:
        # Both exp(G) and exp(−G) of a whole chunk have to stay within float32.
        fastest = -float(steps.g.detach().sum(2).min())
        if not fastest < math.inf:  # NaN too
            return sequential(steps, state)
        per_chunk = min(per_chunk, int(_LARGEST_EXPONENT / max(fastest, 1e-30)))
        if per_chunk < 2:
            return sequential(steps, state)
    n_chunks = -(-length // per_chunk)
    per_chunk = -(-length // n_chunks)  # chunks of equal lengths need the least padding
    missing = n_chunks * per_chunk - length

    def cut(x: Tensor) -> Tensor:
        # (B, T, n, H, d) -> (chunks, B, H, letters·n, d); steps of the padding change nothing
        x = pad(x, (0, 0) * (x.ndim - 2) + (0, missing)) if missing else x
        x = x.unflatten(1, (n_chunks, per_chunk))
        return (x if x.ndim == 5 else x.flatten(2, 3)).permute(1, 0, 3, 2, 4)

    k, v, q, G = cut(steps.k), cut(steps.v), cut(steps.q), cut(steps.g).cumsum(-2)
    # G_{i−1}, the decays of the chunk's steps before step i.
    before = pad(G[..., :-1, :], (0, 0, 1, 0))
    ends = G[..., n - 1 :: n, :]  # after the steps of each letter
    weights = _pairs(q, k, ends, G, n)  # (…, letters, steps)
    # What step i writes decays until the end of the chunk.
    to_end = k * (G[..., -1:, :] - G).exp()
    from_start = q * ends.exp()
    last_decay = G[..., -1:, :].exp()
    if steps.a is None:
        U, alpha = v, None
    else:
        a = cut(steps.a)
        M = _pairs(a, k, before, G, 0)
        alpha = a * before.exp()
        both = torch.cat([v, alpha], dim=-1)
        # M is strictly lower triangular, so I − M has a unit diagonal and the system is solved forwards. One solution
        # serves U and the part that depends on the chunk's first state.
        solved = solve_triangular(torch.eye(M.shape[-1], dtype=M.dtype, device=M.device) - M, both, upper=False,
                                  unitriangular=True)  # fmt: skip
        U, alpha = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    # The states at the chunks' starts follow one another; all else is done for all chunks at once.
    starts = []
    for i in range(n_chunks):
        starts.append(state)
        # The updates of the chunk, now that its first state is known.
        written = U[i] if alpha is None else U[i] + alpha[i] @ state.mT
        state = state * last_decay[i] + written.mT @ to_end[i]
    start = torch.stack(starts).mT  # (chunks, B, H, K, V)
    written = U if alpha is None else U + alpha @ start
    # A query reads the decayed first state of its chunk and the updates of all steps up to its letter.
    outputs = from_start @ start + weights @ written  # (chunks, B, H, letters, V)
    outputs = outputs.permute(1, 0, 3, 2, 4).reshape(batch, n_chunks * per_chunk, heads, v.shape[-1])
    return outputs[:, :length], state


def _pairs(left: Tensor, k: Tensor, ends: Tensor, G: Tensor, n: int) -> Tensor:
    """Return Σ left_i exp(E_i − G_j) k_j for steps j before i, zero for others: (…, I, K), (…, J, K) -> (…, I, J).

    With n > 0, row i stands after the first (i + 1)·n steps, otherwise after the first i.
    """
    rows, columns = torch.arange(left.shape[-2], device=k.device), torch.arange(k.shape[-2], device=k.device)
    reach = (rows + 1) * n if n else rows
    is_before = columns < reach[:, None]
    if G.shape[-1] == 1:
        # Exponents of later steps would be positive; they become −∞ before exp can overflow.
        return left @ k.mT * (ends - G.mT).masked_fill(~is_before, -torch.inf).exp()
    return ((left * ends.exp()) @ (k * (-G).exp()).mT).masked_fill(~is_before, 0)


METHODS: dict[str, Callable[[RankOneSteps, Tensor], tuple[Tensor, Tensor]]] = {
    "sequential": sequential,
    "chunked": chunked,
}
"""The scans by name."""


def transition(steps: RankOneSteps) -> tuple[Tensor, Tensor]:
    """Return A and v of x_t = A x_{t−1} + v for the rows of S as columns x: (…, n, H, ·) -> (…, H, K, K), (…, H, V, K).

    A is (diag(exp g_n) + k_n a_nᵀ) ⋯ (diag(exp g_1) + k_1 a_1ᵀ).
    """
    decay, width = steps.g.exp(), steps.k.shape[-1]
    A = torch.eye(width, dtype=decay.dtype, device=decay.device)
    v: Tensor | None = None
    for j in range(steps.k.shape[-3]):
        # The row s of S, as a column, moves by diag(exp g) + k aᵀ, the transpose of what acts on S from the right.
        factor = torch.diag_embed(decay[..., j, :, :].expand_as(steps.k[..., j, :, :]))
        if steps.a is not None:
            factor = factor + steps.k[..., j, :, :, None] * steps.a[..., j, :, None, :]
        A = factor @ A
        written = steps.v[..., j, :, :, None] * steps.k[..., j, :, None, :]
        v = written if v is None else v @ factor.mT + written
    assert v is not None
    return A, v


READS = ("gated", "state")
NORM_EPS = 1e-5


@dataclass(frozen=True)
class MatrixConfig(LayerConfig):
    """A configuration with `heads` matrix states of `block` columns (keys) and expand_v·block rows (values).

    Args:
        conv: the number of letters that the short convolution of queries, keys and values reads, 0 for none.
        reads: "gated" for the published layer, "state" for only its recurrence, without convolution, whose output is
            the state.
        outputs: the width of the published layer, 0 for heads·block.
    """

    heads: int
    block: int
    expand_v: float = 1.0
    conv: int = 4
    reads: str = "gated"
    outputs: int = 0

    def __post_init__(self) -> None:
        check_positive(self, "heads", "block")
        if self.expand_v <= 0 or self.expand_v * self.block != self.values:
            raise UnsupportedFormat(f"expand_v = {self.expand_v}: {self.block} keys take a whole number of values")
        check_one_of(self, reads=READS)
        if type(self.conv) is not int or self.conv < 0 or (self.conv and self.reads == "state"):
            raise UnsupportedFormat(f'conv = {self.conv!r}: a number of letters, 0 with reads="state": set conv=0')
        if type(self.outputs) is not int or self.outputs < 0 or (self.outputs and self.is_state):
            raise UnsupportedFormat(f'outputs = {self.outputs!r}: a width, or 0, as with reads="state"')
        check_width(max(self.outputs, self.heads * self.values * self.block))

    @property
    def values(self) -> int:
        """V, the number of rows of a state."""
        return int(self.block * self.expand_v)

    @property
    def is_state(self) -> bool:
        """Whether the output is the state."""
        return self.reads == "state"

    @property
    def width(self) -> int:
        """The number of outputs per step."""
        return self.heads * self.block * self.values if self.is_state else self.outputs or self.heads * self.block

    @property
    def entries(self) -> int:
        """The largest number of entries per token: those of H·V blocks A(u), or of a state."""
        return self.heads * self.values * self.block * (self.block if self.is_state else 1)


class MatrixLayer(Layer):
    """The base class of layers whose state is a matrix S per head.

    Subclasses set the sizes, `projected`, `steps`, and `gated`, the end of the published layer.

    The state is (B, memory + H·V·K): the memory of the convolution, then S. With reads="state" it is (B, H·V, K), and
    the first one is the parameter `x0`, zero in a new layer.
    """

    takes_index: ClassVar[bool] = True
    config: Any

    def __init__(self, config: MatrixConfig, convolved: dict[str, int]) -> None:
        super().__init__()
        self.config = config
        self.convolved = convolved
        self.channels = sum(convolved.values())
        if config.is_state:
            self.x0 = nn.Parameter(torch.zeros(config.heads * config.values, config.block))
        elif config.conv:
            for name, size in convolved.items():
                self.add_module(f"{name}_conv1d", ShortConvolution(size, config.conv))

    @property
    def methods(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] - depends on the mode
        """The scans that `forward` takes: those of `nn.scans` with reads="state", else those of `matrix_scan`."""
        return tuple(STATE_METHODS) if self.config.is_state else tuple(METHODS)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The block sizes if the state is the output: one block for each row of a state."""
        return (self.config.block,) * (self.config.heads * self.config.values) if self.config.is_state else ()

    @property
    def has_tables(self) -> bool:
        """Whether the output is the state."""
        return self.config.is_state

    @property
    def memory(self) -> int:
        """The numbers that the state holds before S."""
        return (self.config.conv - 1) * self.channels if self.config.conv else 0

    def projected(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return the input of the convolution, (…, d) -> (…, C), and everything else, (…, R)."""
        raise NotImplementedError

    def steps(self, x: Tensor, rest: Tensor) -> RankOneSteps:
        """Return the steps from the output of convolution and SiLU (…, C) and the rest (…, R)."""
        raise NotImplementedError

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the layer's output from o (B, T, H, V) -> (B, T, width)."""
        raise NotImplementedError

    def initial_state(self, batch: int) -> Tensor:
        """Return zeros, or x₀ (B, H·V, K)."""
        if self.config.is_state:
            return self.x0.expand(batch, -1, -1)
        config = self.config
        weight = next(self.parameters())
        return weight.new_zeros(batch, self.memory + config.heads * config.values * config.block)

    def emit(self, state: Tensor) -> Tensor:
        """Return the state, or zeros if the output of the published layer depends on an input."""
        return state.flatten(1) if self.config.is_state else state.new_zeros(len(state), self.config.width)

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return A(u) and v(u), the same A for all rows of a head: (…, d) -> (…, H·V, K, K), (…, H·V, K)."""
        if not self.config.is_state:
            return super().tables(u, method)
        A, v = transition(self._letter_steps(u))
        return A.unsqueeze(-3).expand(*v.shape, v.shape[-1]).flatten(-4, -3), v.flatten(-3, -2)

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps | None:
        """Return bounds of the steps of letters, or None where none are declared."""
        return None

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return bounds of A(u) and v(u) for every evaluation of projections, gates and products."""
        steps = self._rounded_steps(u) if self.config.is_state else None
        return super().rounded_tables(u) if steps is None else rounding.transition(steps)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return outputs and the last state: u (B, T, d), or rows (N, d) with index (B, T) -> (B, T, width), state."""
        if self.config.is_state:
            return scan_states(self, u, state, method, index)
        config = self.config
        if not (u if index is None else index).shape[1]:
            return u.new_zeros(len(state), 0, config.width), state
        memory, S = state.split([self.memory, state.shape[1] - self.memory], dim=1)
        steps, rest, memory = self._read(u, index, memory)
        o, S = matrix_scan(steps, S.view(-1, config.heads, config.values, config.block), method)
        return self.gated(o, rest, steps), torch.cat([memory, S.flatten(1)], dim=1)

    def _read(self, u: Tensor, index: Tensor | None, memory: Tensor) -> tuple[RankOneSteps, Tensor, Tensor]:
        """Return the steps (B, T, …), the rest (B, T, R) and the new memory."""
        x, rest = self.projected(u)
        if not self.config.conv:
            # All depends on the letter alone, and is computed for each row once.
            steps = self.steps(silu(x), rest)
            return (steps, rest, memory) if index is None else (steps.at(index), embedding(index, rest), memory)
        if index is not None:
            x, rest = embedding(index, x), embedding(index, rest)
        x = torch.cat([memory.view(len(x), -1, self.channels), x], dim=1)
        kernels = [self.get_submodule(f"{name}_conv1d") for name in self.convolved]
        weight = torch.cat([kernel.get_parameter("weight") for kernel in kernels])
        after = x[:, x.shape[1] - self.config.conv + 1 :].flatten(1)
        return self.steps(silu(convolve(x, weight, self._conv_bias())), rest), rest, after

    def _conv_bias(self) -> Tensor | None:
        return None

    def _letter_steps(self, u: Tensor) -> RankOneSteps:
        x, rest = self.projected(u)
        return self.steps(silu(x), rest)


class ShortConvolution(nn.Module):
    """The weights (C, 1, W) of a depthwise causal convolution."""

    def __init__(self, channels: int, length: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(channels, 1, length) * (2 / math.sqrt(length)) - 1 / math.sqrt(length))


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return Σ_i w_i x_{t+i} for each channel: x (B, T + W − 1, C), w (C, 1, W) -> (B, T, C)."""
    return conv1d(x.mT, weight, bias, groups=len(weight)).mT


def unit(x: Tensor) -> Tensor:
    """Return x / √(Σ x² + 10⁻⁶) along the last axis."""
    return x * (x.square().sum(-1, keepdim=True) + rounding.UNIT_EPS).rsqrt()


def normed(x: Tensor, weight: Tensor) -> Tensor:
    """Return x / √(mean(x²) + NORM_EPS) · weight along the last axis (RMSNorm): x (…, d), weight (d,) -> (…, d)."""
    return x * (x.square().mean(-1, keepdim=True) + NORM_EPS).rsqrt() * weight


def drawn_steps(n: int) -> Tensor:
    """Return biases whose softplus is log-uniform between the step sizes 0.001 and 0.1: (n,)."""
    dt = torch.exp(torch.rand(n) * (math.log(0.1) - math.log(0.001)) + math.log(0.001)).clamp(min=1e-4)
    return dt + torch.log(-torch.expm1(-dt))
