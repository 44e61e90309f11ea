"""The scan of a matrix state with transitions diagonal plus rank one: a sequential reference and a chunked WY form.

    S_j = S_{j−1} diag(exp g_j) + (v_j + S_{j−1} a_j) k_jᵀ,    S is (V, K), for steps j = 1 … T·n, n of them per letter,
    o_t = S_{tn} q_t.

The delta rule with decay exp(g) and rate β has a = −β exp(g) k and v = β times its value. Without a (None) the
transition is diagonal. Products of n factors per letter, as in DeltaProduct, are n steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.linalg import solve_triangular
from torch.nn.functional import embedding, pad

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
        fastest = -float(steps.g.detach().sum(2).min())
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
    before = pad(G[..., :-1, :], (0, 0, 1, 0))
    ends = G[..., n - 1 :: n, :]  # after the steps of each letter
    weights = _pairs(q, k, ends, G, n)  # (…, letters, steps)
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
        solved = solve_triangular(torch.eye(M.shape[-1], dtype=M.dtype, device=M.device) - M, both, upper=False,
                                  unitriangular=True)  # fmt: skip
        U, alpha = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    # The states at the chunks' starts follow one another; all else is done for all chunks at once.
    starts = []
    for i in range(n_chunks):
        starts.append(state)
        written = U[i] if alpha is None else U[i] + alpha[i] @ state.mT
        state = state * last_decay[i] + written.mT @ to_end[i]
    start = torch.stack(starts).mT  # (chunks, B, H, K, V)
    written = U if alpha is None else U + alpha @ start
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
        factor = torch.diag_embed(decay[..., j, :, :].expand_as(steps.k[..., j, :, :]))
        if steps.a is not None:
            factor = factor + steps.k[..., j, :, :, None] * steps.a[..., j, :, None, :]
        A = factor @ A
        written = steps.v[..., j, :, :, None] * steps.k[..., j, :, None, :]
        v = written if v is None else v @ factor.mT + written
    assert v is not None
    return A, v
