"""Scans with one diagonal matrix for all letters: x_k = λ ⊙ x_{k−1} + v_k, complex numbers as planes.

`sequential` is the reference; `pscan` is plain torch in ⌈log₂T⌉ rounds; `fused` is compiled for the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled import refuse, takes
from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count
from fsa2lrnn.lrnn.compiled.vectors import Rows, instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width
from fsa2lrnn.lrnn.scans import check_method

WORTH_COMPILING = 1 << 13  # numbers; below, no number of calls makes up for seconds of compilation
_SHARES = 4  # of the batch, whose gradients of λ are added up independently of the number of threads


def scan_diagonal(rates: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """All states: rates λ (2P,), v (B, T, 2P), x0 (B, 2P), each as planes -> x_1 … x_T (B, T, 2P).

    `method` is one of `METHODS`, "auto" or "letters" for the fastest there is.

    Raises:
        UnsupportedFormat: for an unknown method, or a device or dtype that the compiled one doesn't know.

    >>> i = torch.tensor([0.0, 1.0])
    >>> scan_diagonal(i, torch.zeros(1, 3, 2), torch.tensor([[1.0, 0.0]]))[0].tolist()
    [[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    check_method(method, {**METHODS, "letters": None})
    if method in ("auto", "letters"):
        is_worth_it = v.numel() >= WORTH_COMPILING and takes(rates, v, x0)
        method = "fused" if is_worth_it else "pscan"
    return METHODS[method](rates, v, x0)


def times(rates: Tensor, x: Tensor) -> Tensor:
    """λ ⊙ x of planes (2P,) and (…, 2P)."""
    (a, b), (real, imaginary) = rates.chunk(2, -1), x.chunk(2, -1)
    return torch.cat([a * real - b * imaginary, a * imaginary + b * real], -1)


def sequential(rates: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """`scan_diagonal` by the loop it says."""
    x, states = x0, []
    for v_k in v.unbind(1):
        x = times(rates, x) + v_k
        states.append(x)
    return torch.stack(states, dim=1) if states else v


def pscan(rates: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """`scan_diagonal` in rounds: after round i each state holds the last 2^i letters."""
    length = v.shape[1]
    if not length:
        return v
    x = torch.cat([(v[:, 0] + times(rates, x0)).unsqueeze(1), v[:, 1:]], dim=1)
    reach = 1
    while reach < length:
        x = torch.cat([x[:, :reach], x[:, reach:] + times(rates, x[:, :-reach])], dim=1)
        rates, reach = times(rates, rates), 2 * reach
    return x


def fused(rates: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """`scan_diagonal` in compiled loops on the CPU; differentiable once."""
    if not takes(rates, v, x0):
        refuse("diagonal scan", "pscan", rates=rates, v=v, x0=x0)
    return _Scan.apply(rates, v, x0)  # type: ignore[no-any-return]


METHODS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "sequential": sequential,
    "pscan": pscan,
    "fused": fused,
}


class _Scan(Function):
    @staticmethod
    def forward(ctx: Any, rates: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        rates, v, x0 = rates.contiguous(), v.contiguous(), x0.contiguous()
        x = empty(v.shape, v.dtype)
        batch, length, width = v.shape
        parts = cuts(batch, thread_count(2 * v.numel()))
        share(kernels(width // 2).forward, (rates, v, x0, x, (length, width // 2)), parts)
        ctx.save_for_backward(rates, x0, x)
        return x

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor | None, ...]:
        rates, x0, x = ctx.saved_tensors
        batch, length, width = x.shape
        parts = cuts(batch, _SHARES)
        dv, dx0 = empty(x.shape, x.dtype), torch.empty_like(x0)
        shares = torch.zeros(len(parts), width, dtype=x.dtype)
        numbered = [(*part, i) for i, part in enumerate(parts)]
        arguments = (rates, x0, x, dx.contiguous(), dv, dx0, shares, (length, width // 2))
        share(kernels(width // 2).backward, arguments, numbered)
        return shares.sum(0), dv, dx0


class Planes(Rows):
    """Instructions on planes of complex numbers, which offsets of real and imaginary parts in pairs lead to."""

    def step(
        self, a: Any, a0: Any, a1: Any, x: Any, x0: Any, x1: Any, v: Any, v0: Any, v1: Any, out: Any, o0: Any, o1: Any
    ) -> None:
        """out = a x + v."""
        real, imaginary, x_real, x_imaginary = self.load(a, a0), self.load(a, a1), self.load(x, x0), self.load(x, x1)
        of_real = self.minus(self.plus(self.load(v, v0), self.times(real, x_real)), self.times(imaginary, x_imaginary))
        of_imaginary = self.plus(
            self.plus(self.load(v, v1), self.times(real, x_imaginary)), self.times(imaginary, x_real)
        )
        self.store(of_real, out, o0)
        self.store(of_imaginary, out, o1)

    def back(
        self, a: Any, a0: Any, a1: Any, g: Any, g0: Any, g1: Any, v: Any, v0: Any, v1: Any, out: Any, o0: Any,
        o1: Any, x: Any, x0: Any, x1: Any, da: Any, d0: Any, d1: Any,
    ) -> None:  # fmt: skip
        """out = conj(a) g + v, and da += g conj(x)."""
        real, imaginary, of_real, of_imaginary = self.load(a, a0), self.load(a, a1), self.load(g, g0), self.load(g, g1)
        x_real, x_imaginary = self.load(x, x0), self.load(x, x1)
        da_real = self.plus(
            self.plus(self.load(da, d0), self.times(of_real, x_real)), self.times(of_imaginary, x_imaginary)
        )
        da_imaginary = self.minus(
            self.plus(self.load(da, d1), self.times(of_imaginary, x_real)), self.times(of_real, x_imaginary)
        )
        back_real = self.plus(
            self.plus(self.load(v, v0), self.times(real, of_real)), self.times(imaginary, of_imaginary)
        )
        back_imaginary = self.minus(
            self.plus(self.load(v, v1), self.times(real, of_imaginary)), self.times(imaginary, of_real)
        )
        self.store(da_real, da, d0)
        self.store(da_imaginary, da, d1)
        self.store(back_real, out, o0)
        self.store(back_imaginary, out, o1)


_step, _back = instruction(Planes.step, Planes), instruction(Planes.back, Planes)


class Kernels(NamedTuple):
    """Kernels on flat arrays, `sizes` = (T, P), `part` the words (n0, n1) to do, backward also the number of the share.

    - forward(a, v, x0, x, sizes, part): writes x (B, T, 2P).
    - backward(a, x0, x, dx, dv, dx0, da, sizes, part): writes dv and dx0, adds to da (shares, 2P).
    """

    forward: Callable[..., None]
    backward: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel(Planes)
    def forward(a, v, x0, x, sizes, part):  # type: ignore[no-untyped-def]
        T, P = sizes
        for n in range(part[0], part[1]):
            for t in range(T):
                now = (n * T + t) * 2 * P
                before, i = (x, now - 2 * P) if t else (x0, n * 2 * P)
                for p in range(0, P, width):
                    q = P + p
                    _step(width, (a, p, q, before, i + p, i + q, v, now + p, now + q, x, now + p, now + q))

    @kernel(Planes)
    def backward(a, x0, x, dx, dv, dx0, da, sizes, part):  # type: ignore[no-untyped-def]
        T, P = sizes
        zero = np.zeros(2 * P, a.dtype)
        d = part[2] * 2 * P
        for n in range(part[0], part[1]):
            start = n * 2 * P
            if not T:
                dx0[start : start + 2 * P] = 0
                continue
            last = (n * T + T - 1) * 2 * P
            dv[last : last + 2 * P] = dx[last : last + 2 * P]
            for t in range(T - 1, -1, -1):
                now = (n * T + t) * 2 * P
                before, i = (x, now - 2 * P) if t else (x0, start)
                above, j = (dx, now - 2 * P) if t else (zero, 0)
                below, k = (dv, now - 2 * P) if t else (dx0, start)
                for p in range(0, P, width):
                    q = P + p
                    _back(
                        width,
                        (
                            a, p, q, dv, now + p, now + q, above, j + p, j + q, below, k + p, k + q,
                            before, i + p, i + q, da, d + p, d + q,
                        ),
                    )  # fmt: skip

    return Kernels(forward, backward)
