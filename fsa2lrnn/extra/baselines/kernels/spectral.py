"""A diagonal complex recurrence between two matrices: x_k = λ ⊙ x_{k−1} + B u_k, y_k = Re C x_k + D ⊙ u_k, as planes.

`reference` is made of products over whole batches and a scan by any method. `fused` is compiled for the CPU
(`spectral_kernels`): a stretch of a word goes all the way, so that nothing but inputs, states and outputs goes through
memory, each once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import linear, pad

from fsa2lrnn.extra.baselines.kernels.diagonal import WORTH_COMPILING, scan_diagonal
from fsa2lrnn.extra.baselines.kernels.spectral_kernels import kernels, scratch
from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled import refuse, takes
from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count

_SHARES = 4  # of the batch, whose gradients of λ, B, C and D are added up independently of the number of threads


class Spectrum(NamedTuple):
    """λ (2P,), B (2P, H), C (H, 2P), D (H,), complex numbers as planes."""

    rates: Tensor
    B: Tensor
    C: Tensor
    D: Tensor


def is_whole(method: str, numbers: int, D: Tensor, u: Tensor, x0: Tensor) -> bool:
    """Whether `fused` is meant: by "fused", or by "auto" or "letters" where it is the fast way, with so many `numbers`
    in the states of a word.

    Raises:
        UnsupportedFormat: for "fused" on a device or of a dtype that it doesn't know.
    """
    if method == "fused" and not takes(D, u, x0):
        refuse("spectral layer", "pscan", D=D, u=u, x0=x0)
    return method == "fused" or (
        method in ("auto", "letters") and len(u) * numbers >= WORTH_COMPILING and takes(D, u, x0)
    )


def reference(spectrum: Spectrum, u: Tensor, x0: Tensor, length: int, method: str = "auto") -> tuple[Tensor, Tensor]:
    """Outputs and the last state, u (B, U, H) being the inputs of the first U of `length` letters, x0 (B, 2P) ->
    (B, T, H), (B, 2P). `method` is one of `diagonal.METHODS`.

    >>> half = Spectrum(torch.tensor([0.5, 0.0]), *(torch.tensor(x) for x in ([[1.0], [0.0]], [[1.0, 0.0]], [10.0])))
    >>> reference(half, torch.ones(1, 1, 1), torch.zeros(1, 2), 3)[0].flatten().tolist()
    [11.0, 0.5, 0.25]
    """
    rates, B, C, D = spectrum
    beyond = (0, 0, 0, length - u.shape[1])
    x = scan_diagonal(rates, pad(linear(u, B), beyond), x0, method)
    return linear(x, C) + pad(D * u, beyond), x[:, -1] if length else x0


def fused(spectrum: Spectrum, u: Tensor, x0: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """`reference` in compiled loops on the CPU; differentiable once."""
    return _Spectral.apply(*spectrum, u, x0, length)  # type: ignore[no-any-return]


class _Spectral(Function):
    @staticmethod
    def forward(
        ctx: Any, rates: Tensor, B: Tensor, C: Tensor, D: Tensor, u: Tensor, x0: Tensor, length: int
    ) -> tuple[Tensor, Tensor]:
        rates, D, u, x0 = (each.contiguous() for each in (rates, D, u, x0))
        (batch, given, H), W = u.shape, len(rates)
        x, y, last = empty((batch, length, W), u.dtype), empty((batch, length, H), u.dtype), torch.empty_like(x0)
        sizes = length, given, H, W // 2
        parts = cuts(batch, thread_count(2 * batch * length * H * W))
        share(_kernels(H, W).forward, (rates, B.T.contiguous(), C.T.contiguous(), D, u, x0, x, y, last, sizes), parts)
        ctx.save_for_backward(rates, B, C, D, u, x0, x)
        ctx.sizes = sizes
        return y, last

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dy: Tensor, dlast: Tensor) -> tuple[Tensor | None, ...]:
        rates, B, C, D, u, x0, x = ctx.saved_tensors
        H, W = len(D), len(rates)
        parts = [(*part, i) for i, part in enumerate(cuts(len(u), _SHARES))]
        du, dx0 = empty(u.shape, u.dtype), torch.empty_like(x0)
        sizes = [W, H, H * W, H * W]
        found, room = u.new_zeros(len(parts), sum(sizes)), u.new_empty(len(parts), scratch(W // 2))
        given = (rates, B.contiguous(), C.contiguous(), D, u, x0, x, dy.contiguous(), dlast.contiguous())
        share(_kernels(H, W).backward, (*given, du, dx0, found, room, ctx.sizes), parts)
        drates, dD, dC, dB = found.sum(0).split(sizes)
        return drates, dB.view(H, W).T, dC.view(H, W), dD, du, dx0, None


def _kernels(H: int, W: int) -> Any:
    return kernels(math.gcd(H, W // 2))
