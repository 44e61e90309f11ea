"""Compute the operators in plain torch, in three forms: sequential, chunked (WY/UT transform) and parallel prefix.

The correct results come from the sequential step in float64; the audit proves that every operation of every form is
exact. A step takes `Slices` of one token, in which `x["q"]` has shape (B, H, K), and a state (B, H, K, V), or (B, H, K)
for scans; it returns the next state and the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn.functional import pad

from .audit import ZERO_BELOW

Slices = Mapping[str, Tensor]
Inverse = Callable[[Tensor], Tensor]


def exp(x: Tensor) -> Tensor:
    """Return exp(x), in float64 as in float32: 0 where float32 rounds to it, and infinity where it overflows."""
    return x.masked_fill(x < ZERO_BELOW, -torch.inf).masked_fill(x > 89, torch.inf).exp()


def _read(q: Tensor, S: Tensor) -> Tensor:
    return (q[..., None] * S).sum(-2)


def _write(S: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return S + k[..., None] * v[..., None, :]


def _erase_and_write(S: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    return _write(S, k, beta[..., None] * (v - _read(k, S)))


def delta_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return S ← S + β k (v − kᵀS)ᵀ and the output qᵀS (DeltaNet)."""
    S = _erase_and_write(S, x["k"], x["v"], x["beta"])
    return S, _read(x["q"], S)


def gated_delta_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return the next state and output of the delta rule on exp(g) S, with one gate per head (Gated DeltaNet)."""
    return delta_step(S * exp(x["g"])[..., None, None], x)


def kda_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return the next state and output of the delta rule on diag(exp(g)) S, one gate per key channel (KDA)."""
    return delta_step(S * exp(x["g"])[..., None], x)


def delta_product_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return the next state and output of one gate and n delta steps; `k`, `v`, `beta` have shapes (B, n, H, …)."""
    S = S * exp(x["g"])[..., None, None]
    for i in range(x["k"].shape[1]):
        S = _erase_and_write(S, x["k"][:, i], x["v"][:, i], x["beta"][:, i])
    return S, _read(x["q"], S)


def simple_gla_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return S ← exp(g) S + k vᵀ and qᵀS (simple gated linear attention, Mamba-2's SSD)."""
    S = _write(S * exp(x["g"])[..., None, None], x["k"], x["v"])
    return S, _read(x["q"], S)


def rwkv7_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return S ← diag(exp(w)) S + b aᵀS + k vᵀ and rᵀS (RWKV-7, the DPLR delta rule)."""
    S = _write(S * exp(x["w"])[..., None] + x["b"][..., None] * _read(x["a"], S)[..., None, :], x["k"], x["v"])
    return S, _read(x["r"], S)


def diagonal_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return S ← a ⊙ S + v as the next state and as the output."""
    S = x["a"] * S + x["v"]
    return S, S


def block_diagonal_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return S ← A S + v as the next state and as the output; A has shape (B, H, b, b)."""
    S = (x["A"] * S[..., None, :]).sum(-1) + x["v"]
    return S, S


def pd_ssm_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return S ← P diag(d) S + v as next state and output; column j of P has its single one in row p_j (PD-SSM)."""
    S = torch.zeros_like(S).scatter_add(-1, x["p"].long(), x["d"] * S) + x["v"]
    return S, S


def conv_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return the last W inputs (B, D, W) and the convolution at this token (B, D)."""
    S = torch.cat([S[..., 1:], x["x"][..., None]], -1)
    return S, (S * x["weight"]).sum(-1) + x["bias"]


def state_passing_step(S: Tensor, x: Slices) -> tuple[Tensor, Tensor]:
    """Return h ← exp(g) h + s and, as the output, the state *before* it, from which a chunk of Mamba-2 starts."""
    return S * exp(x["g"])[..., None] + x["states"], S


# The chunked forms. Row i of the inverse of I + A is built from the rows above it.


def invert_by_rows(A: Tensor) -> Tensor:
    """Return (I + A)⁻¹ for strictly lower triangular A (…, C, C), by forward substitution."""
    eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape)
    rows = [eye[..., :1, :]]
    for i in range(1, A.shape[-1]):
        above = torch.cat(rows, -2)
        # Row i of (I + A) X = I: X_i = e_i − Σ_{j<i} A_ij X_j.
        rows.append(eye[..., i : i + 1, :] - A[..., i : i + 1, :i] @ above)
    return torch.cat(rows, -2)


def invert_by_blocks(A: Tensor) -> Tensor:
    """Return (I + A)⁻¹ for strictly lower triangular A (…, C, C), from the inverses of its two diagonal blocks."""
    C = A.shape[-1]
    if C <= 16:
        return invert_by_rows(A)
    h = C // 2
    first, second = invert_by_blocks(A[..., :h, :h]), invert_by_blocks(A[..., h:, h:])
    # The inverse of (P, 0; R, Q) is (P⁻¹, 0; −Q⁻¹ R P⁻¹, Q⁻¹).
    corner = -(second @ (A[..., h:, :h] @ first))
    return torch.cat([pad(first, (0, C - h)), torch.cat([corner, second], -1)], -2)


def _blocks(t: Tensor, chunk: int) -> Tensor:
    """Split a tensor (B, T, H, ·) into N chunks of C tokens, padded with zeros at the end: (B, H, N, C, ·)."""
    t = pad(t, (0, 0, 0, 0, 0, -t.shape[1] % chunk))
    return t.reshape(t.shape[0], -1, chunk, *t.shape[2:]).movedim(3, 1)


def _decays(late: Tensor, early: Tensor, diagonal: int) -> Tensor:
    """Return exp(late_i − early_j) where j ≤ i + diagonal and 0 elsewhere, shape (..., C, C, K)."""
    C = late.shape[-2]
    lower = torch.ones(C, C, dtype=torch.bool).tril(diagonal)[..., None].to(late.device)
    # Differences above the diagonal are positive and may overflow, so they are replaced before the exponential.
    difference = (late[..., :, None, :] - early[..., None, :, :]).masked_fill(~lower, 0)
    return exp(difference).masked_fill(~lower, 0)


def _pairs(x: Tensor, D: Tensor, y: Tensor) -> Tensor:
    """Return Σ_k x_ik D_ijk y_jk, shape (..., C, C)."""
    return (x[..., :, None, :] * D * y[..., None, :, :]).sum(-1)


def _outputs(chunks: list[Tensor], T: int) -> Tensor:
    """Join the outputs of chunks, (B, H, C, V) each, and drop the padding: (B, T, H, V)."""
    return torch.cat(chunks, 2)[:, :, :T].transpose(1, 2)


def chunked_delta(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, S: Tensor, chunk: int, invert: Inverse
) -> tuple[Tensor, Tensor]:
    """Return outputs and final state of the gated delta rule by the WY representation with the UT transform.

    `g` has shape (B, T, H, K) or (B, T, H, 1). The inverse T of I + tril(β K D Kᵀ, −1) gives u = T β v and w = T β k.
    """
    T = q.shape[1]
    q, k, v, b, g = (_blocks(t, chunk) for t in (q, k, v, beta[..., None], g))
    G = g.cumsum(-2)
    A = b * _pairs(k, _decays(G, G, -1), k)
    inverse = invert(A)
    # The update of token i is row i of u − w S, with S the state before the chunk.
    u, w = inverse @ (b * v), inverse @ (b * k * exp(G))
    scores, into, out_of = _pairs(q, _decays(G, G, 0), k), exp(G), exp(G[..., -1:, :] - G)
    outputs = list[Tensor]()
    for n in range(q.shape[2]):
        new = u[:, :, n] - w[:, :, n] @ S
        outputs.append((q[:, :, n] * into[:, :, n]) @ S + scores[:, :, n] @ new)
        S = S * into[:, :, n, -1, :, None] + (k[:, :, n] * out_of[:, :, n]).mT @ new
    return _outputs(outputs, T), S


def chunked_dplr(
    q: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, S: Tensor, chunk: int, invert: Inverse
) -> tuple[Tensor, Tensor]:
    """Return outputs and final state of S ← diag(exp(w)) S + b aᵀS + k vᵀ in chunks; `w` is (B, T, H, K) or (…, 1)."""
    T = q.shape[1]
    q, w, k, v, a, b = (_blocks(t, chunk) for t in (q, w, k, v, a, b))
    G = w.cumsum(-2)
    # The decay up to and without the token itself: a reads the state before it.
    before = G - w
    earlier, upto = _decays(before, G, -1), _decays(G, G, 0)
    inverse = invert(-_pairs(a, earlier, b))
    u, erase = inverse @ (_pairs(a, earlier, k) @ v), inverse @ (a * exp(before))
    of_k, of_b = _pairs(q, upto, k), _pairs(q, upto, b)
    into, out_of = exp(G), exp(G[..., -1:, :] - G)
    outputs = list[Tensor]()
    for n in range(q.shape[2]):
        new = u[:, :, n] + erase[:, :, n] @ S
        outputs.append((q[:, :, n] * into[:, :, n]) @ S + of_k[:, :, n] @ v[:, :, n] + of_b[:, :, n] @ new)
        S = S * into[:, :, n, -1, :, None] + (k[:, :, n] * out_of[:, :, n]).mT @ v[:, :, n]
        S = S + (b[:, :, n] * out_of[:, :, n]).mT @ new
    return _outputs(outputs, T), S


def prefix(A: Tensor, v: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """Return all states (B, T, H, n) of x ← A x + v and the last one, by parallel prefix products of A and v."""
    A, z, span = A, v[..., None], 1
    while span < A.shape[1]:
        # Hillis and Steele: place t composes its last `span` letters with the `span` letters before them.
        later, shifted = A[:, span:], slice(None, -span)
        z = torch.cat([z[:, :span], later @ z[:, shifted] + z[:, span:]], 1)
        A = torch.cat([A[:, :span], later @ A[:, shifted]], 1)
        span *= 2
    states = (A @ S[:, None, ..., None] + z)[..., 0]
    return states, states[:, -1]
