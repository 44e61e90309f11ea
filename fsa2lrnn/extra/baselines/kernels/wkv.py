"""RWKV-4's weighted average: y_t = (Σ_{i<t} e^{(t−1−i)w + k_i} v_i + e^{u + k_t} v_t) / (the same with v = 1).

Numerator and denominator are states of a diagonal linear recurrence with the input-independent rates e^w. They are kept
as p e^o and q e^o, o being the largest exponent so far, so that no exponential overflows (`reference`). `fused` is
compiled for the CPU; its gradient runs backwards, its adjoint states with an exponent of their own. `weighted` writes
all weights of a piece of a word out, as attention does: on a GPU, where each operation is a launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad

from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled import refuse, takes
from fsa2lrnn.lrnn.compiled.exponentials import Exponentials
from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count
from fsa2lrnn.lrnn.compiled.vectors import instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width
from fsa2lrnn.lrnn.scans import check_method

NOTHING = -1e38  # the exponent of a sum of no terms; −∞ would make ∞ − ∞
_WORTH_COMPILING = 1 << 11  # numbers; below, no number of calls makes up for seconds of compilation
_PIECE = 64  # letters whose weights are written out at once
_SHARES = 4  # of the batch, whose gradients of w and u are added up independently of the number of threads
_COST = 100  # multiplications that the work on a number is worth, about


def wkv(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """The averages and the last state: w < 0 and u (C,), k and v (B, T, C), state (B, 3, C) -> (B, T, C), (B, 3, C).

    A state is p, q and o; that of no letters is 0, 0 and `NOTHING`. `method` is one of `METHODS`, "auto" or "letters"
    for the fastest there is.

    Raises:
        UnsupportedFormat: for an unknown method.

    >>> k, v, one = torch.zeros(1, 3, 1), torch.tensor([1.0, 3.0, 5.0]).view(1, 3, 1), torch.zeros(1)
    >>> wkv(one, one, k, v, torch.tensor([0, 0, NOTHING]).view(1, 3, 1))[0].flatten().tolist()
    [1.0, 2.0, 3.0]
    """
    check_method(method, {**METHODS, "letters": None})
    if method in ("auto", "letters"):
        is_worth_it = k.numel() >= _WORTH_COMPILING and takes(w, u, k, v, state)
        method = "fused" if is_worth_it else "sequential" if k.device.type == "cpu" else "weighted"
    return METHODS[method](w, u, k, v, state)


def reference(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """`wkv`, a letter at a time."""
    averages = []
    for k_t, v_t in zip(k.unbind(1), v.unbind(1), strict=True):
        y, state = step(w, u, k_t, v_t, state)
        averages.append(y)
    return torch.stack(averages, dim=1) if averages else v, state


def step(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """One letter: k and v (B, C), state (B, 3, C) -> (B, C), (B, 3, C)."""
    p, q, o = state.unbind(1)
    n = torch.maximum(o, u + k)
    before, now = (o - n).exp(), (u + k - n).exp()
    y = (before * p + now * v) / (before * q + now)
    n = torch.maximum(o + w, k)
    before, now = (o + w - n).exp(), (k - n).exp()
    return y, torch.stack([before * p + now * v, before * q + now, n], dim=1)


def fused(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """`wkv` in compiled loops on the CPU; differentiable once.

    Gradients that come by the last state are those of a function of p e^o and q e^o, as all that follows is.
    """
    if not takes(w, u, k, v, state):
        refuse("average", "sequential", w=w, u=u, k=k, v=v, state=state)
    return _Wkv.apply(w, u, k, v, state)  # type: ignore[no-any-return]


def weighted(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """`wkv` as softmax-weighted sums, piece by piece: what a state holds counts as one letter more."""
    averages = []
    for keys, values in zip(k.split(_PIECE, 1), v.split(_PIECE, 1), strict=True):
        y, state = _weighted(w, u, keys, values, state)
        averages.append(y)
    return torch.cat(averages, dim=1) if averages else v, state


def _weighted(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    p, q, o = state.unsqueeze(1).unbind(2)  # (B, 1, C)
    length, t = k.shape[1], torch.arange(k.shape[1], device=k.device)
    late = (t[:, None] - 1 - t).unsqueeze(-1)  # letters between the later and the earlier one
    is_later = pad(late < -1, (0, 0, 1, 0))  # (T, 1 + T, 1), what a state holds being before all
    whole = torch.where(q == 0, 1, q)  # of no letters; o is then `NOTHING`
    before = (o + whole.log() + t.unsqueeze(-1) * w).unsqueeze(2)  # (B, T, 1, C)
    weights = torch.cat([before, k.unsqueeze(1) + torch.where(late < 0, u, late * w)], dim=2)
    weights = weights.masked_fill(is_later, -torch.inf).softmax(2)
    y = (weights * torch.cat([p / whole, v], dim=1).unsqueeze(1)).masked_fill(is_later, 0).sum(2)
    exponents = torch.cat([o + length * w, k + (length - 1 - t).unsqueeze(-1) * w], dim=1)
    n = exponents.amax(1)
    shares = (exponents - n.unsqueeze(1)).exp()
    p, q = ((shares * torch.cat([first, rest], dim=1)).sum(1) for first, rest in ((p, v), (q, torch.ones_like(v))))
    return y, torch.stack([p, q, n], dim=1)


METHODS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "sequential": reference,
    "fused": fused,
    "weighted": weighted,
}


class _Wkv(Function):
    @staticmethod
    def forward(ctx: Any, w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        w, u, k, v = (x.contiguous() for x in (w, u, k, v))
        batch, length, width = k.shape
        y, states = empty(k.shape, k.dtype), empty((batch, length + 1, 3, width), k.dtype)
        states[:, 0] = state
        share(
            kernels(width).forward,
            (w, u, k, v, y, states, (length, width)),
            cuts(batch, thread_count(_COST * k.numel())),
        )
        ctx.save_for_backward(w, u, k, v, y, states)
        ctx.set_materialize_grads(False)
        return y, states[:, -1].clone()

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dy: Tensor | None, dstate: Tensor | None) -> tuple[Tensor | None, ...]:
        w, u, k, v, y, states = ctx.saved_tensors
        batch, length, width = k.shape
        dy = torch.zeros_like(y) if dy is None else dy.contiguous()
        adjoint = torch.zeros(batch, 3, width, dtype=k.dtype)  # of numerator and denominator, times e^{−exponent}
        adjoint[:, 2] = NOTHING
        if dstate is not None:
            adjoint[:, :2], adjoint[:, 2] = dstate[:, :2], -states[:, -1, 2]
        parts = cuts(batch, _SHARES)
        shares = torch.zeros(len(parts), 2, width, dtype=k.dtype)
        dk, dv = empty(k.shape, k.dtype), empty(v.shape, v.dtype)
        numbered = [(*part, i) for i, part in enumerate(parts)]
        share(kernels(width).backward, (w, u, k, v, y, states, dy, adjoint, dk, dv, shares, (length, width)), numbered)
        dw, du = shares.sum(0)
        if ctx.needs_input_grad[4]:
            scaled = adjoint[:, :2] * (adjoint[:, 2:] + states[:, 0, 2:]).exp()
            dstate = torch.cat([scaled, (scaled * states[:, 0, :2]).sum(1, keepdim=True)], 1)
        return dw, du, dk, dv, dstate if ctx.needs_input_grad[4] else None


def _write_step(
    rows: Exponentials, k: Any, i: Any, v: Any, w: Any, c: Any, u: Any, s: Any, p: Any, q: Any, o: Any, y: Any, C3: Any
) -> None:
    build = rows._builder
    key, value, top = rows.load(k, i), rows.load(v, i), rows.load(s, o)
    numerator, denominator = rows.load(s, p), rows.load(s, q)
    _, before, now = rows.shares(top, rows.plus(rows.load(u, c), key))
    above = rows.plus(rows.times(before, numerator), rows.times(now, value))
    rows.store(rows.over(above, rows.plus(rows.times(before, denominator), now)), y, i)
    most, before, now = rows.shares(rows.plus(top, rows.load(w, c)), key)
    rows.store(rows.plus(rows.times(before, numerator), rows.times(now, value)), s, build.add(p, C3))
    rows.store(rows.plus(rows.times(before, denominator), now), s, build.add(q, C3))
    rows.store(most, s, build.add(o, C3))


def _write_back(
    rows: Exponentials, k: Any, i: Any, v: Any, w: Any, c: Any, u: Any, s: Any, p: Any, q: Any, o: Any, y: Any, dy: Any,
    g: Any, gp: Any, gq: Any, go: Any, dk: Any, dv: Any, shares: Any, dw: Any, du: Any,
) -> None:  # fmt: skip
    key, value, average, of_y = (rows.load(x, i) for x in (k, v, y, dy))
    rate, top = rows.load(w, c), rows.load(s, o)
    numerator, denominator = rows.load(s, p), rows.load(s, q)
    G, F, e = rows.load(g, gp), rows.load(g, gq), rows.load(g, go)
    n, before, now = rows.shares(top, rows.plus(rows.load(u, c), key))
    per = rows.over(of_y, rows.plus(rows.times(before, denominator), now))
    weight = rows.times(now, per)  # of this letter in its own average
    of_now = rows.times(weight, rows.minus(value, average))
    later = rows.exp(rows.plus(key, e))  # of this letter in all later ones
    rows.store(rows.plus(weight, rows.times(later, G)), dv, i)
    rows.store(rows.plus(of_now, rows.times(later, rows.plus(rows.times(G, value), F))), dk, i)
    rows.store(rows.plus(rows.load(shares, du), of_now), shares, du)
    faded = rows.plus(e, rate)
    kept = rows.exp(rows.plus(faded, top))
    of_rate = rows.times(kept, rows.plus(rows.times(G, numerator), rows.times(F, denominator)))
    rows.store(rows.plus(rows.load(shares, dw), of_rate), shares, dw)
    most, old, new = rows.shares(faded, rows.minus(rows.constant(0.0), n))
    rows.store(rows.plus(rows.times(old, G), rows.times(new, per)), g, gp)
    rows.store(rows.minus(rows.times(old, F), rows.times(rows.times(new, per), average)), g, gq)
    rows.store(most, g, go)


_step = instruction(_write_step, Exponentials)
_back = instruction(_write_back, Exponentials)


class Kernels(NamedTuple):
    """Kernels on flat arrays, `sizes` = (T, C), `part` the words (n0, n1) to do, backward also the number of the share.

    - forward(w, u, k, v, y, states, sizes, part): writes y (B, T, C) and states (B, T + 1, 3, C) but the first.
    - backward(w, u, k, v, y, states, dy, g, dk, dv, shares, sizes, part): writes dk and dv, adds to `shares`
      (shares, 2, C) of w and u, and turns the adjoint state g (B, 3, C) after the last letter into that before all.
    """

    forward: Callable[..., None]
    backward: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel(Exponentials)
    def forward(w, u, k, v, y, states, sizes, part):  # type: ignore[no-untyped-def]
        T, C = sizes
        for n in range(part[0], part[1]):
            for t in range(T):
                i, s = (n * T + t) * C, (n * (T + 1) + t) * 3 * C
                for c in range(0, C, width):
                    p = s + c
                    _step(width, (k, i + c, v, w, c, u, states, p, p + C, p + 2 * C, y, 3 * C))

    @kernel(Exponentials)
    def backward(w, u, k, v, y, states, dy, g, dk, dv, shares, sizes, part):  # type: ignore[no-untyped-def]
        T, C = sizes
        dw = part[2] * 2 * C
        for n in range(part[0], part[1]):
            for t in range(T - 1, -1, -1):
                i, s = (n * T + t) * C, (n * (T + 1) + t) * 3 * C
                for c in range(0, C, width):
                    p, a = s + c, n * 3 * C + c
                    _back(
                        width,
                        (
                            k, i + c, v, w, c, u, states, p, p + C, p + 2 * C, y, dy,
                            g, a, a + C, a + 2 * C, dk, dv, shares, dw + c, dw + C + c,
                        ),
                    )  # fmt: skip

    return Kernels(forward, backward)
