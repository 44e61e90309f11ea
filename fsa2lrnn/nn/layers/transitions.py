"""Discretised state-space systems x ↦ Ā x + B̄ u, one with one input per channel, and their impulse responses.

H channels have n stored complex states each (`channel_layer`). Ā is diagonal, or diagonal minus a matrix of rank one
that mixes the stored half with its conjugates: Ā x = a ⊙ x − q · 2 Re Σ r ⊙ x. A step takes O(n) time per channel.

`recur` is the recurrence of every channel, compiled for the CPU: x_k = (Ā + diag(B̄ u_k)) x_{k−1} + B̄ u_k. From the
state B̄ and inputs 0 it computes an impulse response (`compiled`), but not its states. `doubled` takes ⌈log₂ length⌉
rounds and serves all other cases: states, GPUs, where each operation costs a launch, and small inputs.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.nn.compiled import Context, at_once, cuts, thread_count, typed_once_differentiable

DISCRETISATIONS = ("zoh", "bilinear")


class Transition(NamedTuple):
    """The matrices Ā of H channels: complex a, q, r (H, n) with q and r None if Ā is diagonal."""

    a: Tensor
    q: Tensor | None = None
    r: Tensor | None = None

    def times(self, x: Tensor) -> Tensor:
        """Return the product Ā x: complex (…, H, n) -> (…, H, n)."""
        # The stored half of the states stands for both halves: the sum over all of them is 2 Re of the sum over the
        # half.
        moved = self.a * x
        if self.q is None or self.r is None:
            return moved
        return moved - self.q * twice_real(self.r * x).unsqueeze(-1)

    @property
    def transposed(self) -> Transition:
        """The transposed matrices Āᵀ, not conjugated."""
        return Transition(self.a, self.r, self.q)

    def matrix(self) -> Tensor:
        """Return the real matrices M (H, 2n, 2n) with planes(Ā x) = planes(x) M."""
        # A complex product acts on (real, imaginary) as a row vector times ((Re a, Im a), (−Im a, Re a)); `tiled`
        # puts each entry in its place on the diagonals of the four n × n blocks.
        rotation = torch.stack([torch.cat([self.a.real, self.a.imag], -1), torch.cat([-self.a.imag, self.a.real], -1)])
        n = self.a.shape[-1]
        tiled = torch.eye(n, dtype=rotation.dtype, device=rotation.device).repeat(1, 2)  # (n, 2n)
        M = (rotation[:, :, None] * tiled).permute(1, 0, 2, 3).flatten(1, 2)  # (H, 2n, 2n)
        if self.q is None or self.r is None:
            return M
        # The rank-one part: weights that read 2 Re Σ r x from the planes, times the planes of q.
        return M - reading(self.r).unsqueeze(-1) * planes(self.q).unsqueeze(-2)


def diagonal(poles: Tensor, B: Tensor, dt: Tensor, rule: str) -> tuple[Transition, Tensor]:
    """Return Ā and B̄ (H, n) of x' = Λ x + B u, discretised with the step Δ: poles and B (H, n), dt (H, 1).

    "zoh" holds the input: Ā = e^{ΔΛ}, B̄ = Δ (e^{ΔΛ} − 1)/(ΔΛ) B, finite at Λ = 0. "bilinear" is the trapezium rule.

    >>> a, B = diagonal(torch.zeros(1, 1) + 0j, torch.ones(1, 1) + 0j, torch.full((1, 1), 0.5), "zoh")
    >>> a.a.item(), B.item()
    ((1+0j), (0.5+0j))
    """
    step = dt * poles
    if rule == "zoh":
        return Transition(step.exp()), dt * growth(step) * B
    return Transition((1 + step / 2) / (1 - step / 2)), dt * B / (1 - step / 2)


def growth(z: Tensor) -> Tensor:
    """Return (e^z − 1)/z, and 1 at z = 0, without cancellation near 0: complex (…) -> (…)."""
    # At 0 the quotient is replaced before it is formed, so that neither it nor its gradient is 0/0.
    none = z == 0
    safe = torch.where(none, 1, z)
    return torch.where(none, 1 + z / 2, torch.expm1(safe) / safe)


def low_rank(poles: Tensor, P: Tensor, B: Tensor, dt: Tensor) -> tuple[Transition, Tensor]:
    """Return Ā and B̄ (H, n) of x' = (diag(Λ) − P P*) x + B u by the trapezium rule: poles, P and B (H, n), dt (H, 1).

    Ā = (I − Δ/2 A)⁻¹ (I + Δ/2 A) = 2R − I with R = (I − Δ/2 A)⁻¹, which is a diagonal matrix minus one of rank one by
    Woodbury's identity; B̄ = Δ R B.
    """
    half = dt / 2
    # Woodbury: (I − Δ/2 Λ + Δ/2 P P*)⁻¹ = D − D P (2/Δ + P* D P)⁻¹ P* D, where P* D P over all states is twice the
    # real part over the stored half.
    D = 1 / (1 - half * poles)
    gain = half / (1 + half * twice_real(P.conj() * D * P).unsqueeze(-1))  # (H, 1), real
    q, r = gain * D * P, D * P.conj()
    solved = D * B - q * twice_real(r * B).unsqueeze(-1)
    return Transition(2 * D - 1, 2 * q, r), dt * solved


def twice_real(x: Tensor) -> Tensor:
    """Return 2 Re Σ x, the sum over all states from the stored half of them: complex (…, n) -> real (…)."""
    return 2 * x.real.sum(-1)


def planes(x: Tensor) -> Tensor:
    """Return the real parts, followed by the imaginary parts: complex (…, n) -> (…, 2n).

    >>> planes(torch.tensor([1 + 2j, 3 + 4j])).tolist()
    [1.0, 3.0, 2.0, 4.0]
    """
    return torch.cat([x.real, x.imag], -1)


def from_planes(x: Tensor) -> Tensor:
    """Return the complex numbers with these real and imaginary parts, the inverse of `planes`: (…, 2n) -> (…, n)."""
    real, imaginary = x.chunk(2, -1)
    return torch.complex(real, imaginary)


def reading(c: Tensor) -> Tensor:
    """Return the real weights r with r · planes(x) = 2 Re Σ c ⊙ x: complex (…, n) -> (…, 2n)."""
    return 2 * torch.cat([c.real, -c.imag], -1)


WORTH_COMPILING = 1 << 13  # numbers; for fewer, no number of calls makes up for the seconds of compilation
_COST = 1 << 9  # multiplications per entry of the outputs or states, roughly
_SHARES = 4  # groups of words; the order in which their gradients are added does not depend on the number of threads


def recur(transition: Transition, B: Tensor, C: Tensor, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return all outputs without D u, and the last state: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    The result is differentiable once; u and the state are both float32 or both float64, on the CPU.
    """
    (a, q, r), none = transition, torch.zeros_like(B)
    # The rows of k in the kernels: a, q, r, B and C, zeros for a diagonal matrix.
    coefficients = torch.stack([a, none if q is None else q, none if r is None else r, B, C], 1)  # (H, 5, n)
    start = from_planes(state)
    y, last = _Recur.apply(coefficients.to(start.dtype), u, start)  # type: ignore[misc]
    return y, planes(last)


class _Recur(Function):
    @staticmethod
    def forward(ctx: Context, k: Tensor, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        k, u, state = (x.contiguous() for x in (k, u, state))
        y, last = torch.empty_like(u), torch.empty_like(state)
        n_threads = thread_count(_COST * max(y.numel(), last.numel()))
        run = partial(_forward, *(x.detach().resolve_conj().numpy() for x in (k, u, state, y, last)))
        at_once([partial(run, *words) for words in cuts(len(u), n_threads)], n_threads)
        ctx.save_for_backward(k, u, state)
        return y, last

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Context, dy: Tensor, dlast: Tensor) -> tuple[Tensor, ...]:
        k, u, state = ctx.saved_tensors
        # The groups of words depend on the shapes alone, so that the sums do not depend on the number of threads.
        shares = cuts(len(u), _SHARES)
        dk, du, dstate = k.new_zeros(len(shares), *k.shape), torch.empty_like(u), torch.empty_like(state)
        arrays = [x.contiguous().resolve_conj().numpy() for x in (k, u, state, dy, dlast)]
        jobs = [
            partial(_backward, *arrays, of_share.numpy(), du.numpy(), dstate.numpy(), *words)
            for of_share, words in zip(dk, shares, strict=True)
        ]
        at_once(jobs, min(len(jobs), torch.get_num_threads()))
        return dk.sum(0), du, dstate


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _forward(k, u, state, y, last, first_word, last_word):  # type: ignore[no-untyped-def]
    """Write y (B, T, H) and the last state (B, H, n) from k (H, 5, n), which holds a, q, r, B and C."""
    zero, two = u.dtype.type(0), u.dtype.type(2)  # all numbers have the inputs' precision
    for h in range(len(k)):
        a, q, r, B, C = k[h].copy()  # the compiler knows that the copy overlaps no other array
        for w in range(first_word, last_word):
            x = state[w, h].copy()
            # The number 2 Re Σ r x of the present state, which multiplies q in the next step.
            mixed = two * (r * x).sum().real
            for t in range(u.shape[1]):
                inflow, later, read = u[w, t, h], zero, zero
                for i in range(len(x)):
                    x[i] = (a[i] + inflow * B[i]) * x[i] - mixed * q[i] + inflow * B[i]
                    later += (r[i] * x[i]).real
                    read += (C[i] * x[i]).real
                y[w, t, h], mixed = two * read, two * later
            last[w, h] = x


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _backward(k, u, state, dy, dlast, dk, du, dstate, first_word, last_word):  # type: ignore[no-untyped-def]
    """Compute the states of each word again, then write du and dstate and add to dk in a backward pass.

    The gradient g of a state is that of its real part plus i times that of its imaginary part; with z = x y the
    gradient of x is conj(y) times that of z.
    """
    length, zero, two = u.shape[1], u.dtype.type(0), u.dtype.type(2)
    for h in range(len(k)):
        a, q, r, B, C = k[h].copy()
        n = len(a)
        d, x, mixed = np.zeros((5, n), k.dtype), np.empty((length + 1, n), k.dtype), np.empty(length + 1, u.dtype)
        for w in range(first_word, last_word):
            x[0] = state[w, h]
            mixed[0] = two * (r * x[0]).sum().real
            for t in range(length):
                inflow, now, later = u[w, t, h], mixed[t], zero
                for i in range(n):
                    x[t + 1, i] = (a[i] + inflow * B[i]) * x[t, i] - now * q[i] + inflow * B[i]
                    later += (r[i] * x[t + 1, i]).real
                mixed[t + 1] = two * later
            # Backward in time: g is the gradient of x[t + 1], of_mixed that of the rank-one product 2 Re Σ r x[t].
            g = dlast[w, h].copy()
            for t in range(length - 1, -1, -1):
                inflow, now, of_read = u[w, t, h], mixed[t], two * dy[w, t, h]
                of_mixed = of_inflow = zero
                for i in range(n):
                    g[i] += of_read * np.conj(C[i])
                    d[4, i] += of_read * np.conj(x[t + 1, i])
                    of_mixed -= two * (g[i] * np.conj(q[i])).real
                for i in range(n):
                    # The gradients of the factor a + u B and of the sum with u B, which enters the state alone and in
                    # the product.
                    of_factor = g[i] * np.conj(x[t, i])
                    of_arriving = of_factor + g[i]
                    d[0, i] += of_factor
                    d[1, i] -= now * g[i]
                    d[2, i] += of_mixed * np.conj(x[t, i])
                    d[3, i] += inflow * of_arriving
                    of_inflow += (of_arriving * np.conj(B[i])).real
                    g[i] = np.conj(a[i] + inflow * B[i]) * g[i] + of_mixed * np.conj(r[i])
                du[w, t, h] = of_inflow
            dstate[w, h] = g
        dk[h] += d


class Response(NamedTuple):
    """An impulse response K (length, H) and its states as planes (H, length, 2n), or (H, 0, 2n) if not requested."""

    K: Tensor
    states: Tensor


def respond(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Return the impulse response K_l for l < length, by the faster method: B, C complex128 (H, n) -> float64.

    The result is differentiable in all inputs. Entries smaller than `least` become 0 (`channels.least`).

    >>> half = Transition(torch.full((1, 1), 0.5 + 0j))
    >>> respond(half, torch.ones(1, 1) + 0j, torch.ones(1, 1) + 0j, 4).K.flatten().tolist()
    [2.0, 1.0, 0.5, 0.25]
    """
    if with_states or B.device.type != "cpu" or length * B.numel() < WORTH_COMPILING:
        return doubled(transition, B, C, length, least, with_states)
    return Response(compiled(transition, B, C, length, least), planes(B).unsqueeze(1)[:, :0])


def compiled(transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0) -> Tensor:
    """Return the impulse response (length, H), length > 0, by the compiled recurrence; differentiable once."""
    first = twice_real(C * B).unsqueeze(0)
    later, _ = recur(transition, B, C, first.new_zeros(1, length - 1, len(B)), planes(B).unsqueeze(0))
    K = torch.cat([first, later[0]])
    return torch.where(K.abs() < least, 0, K)


def doubled(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Return the impulse response in rounds, each of which doubles the number of states by a product with Ā^known."""
    # The impulse response's states are B̄, Ā B̄, Ā² B̄, …; the known ones, multiplied by Ā^known, give as many more.
    x, (a, q, _) = planes(B).unsqueeze(1), transition  # (H, known, 2n)
    M = None if q is None else transition.matrix()
    while x.shape[1] < length:
        more = x[:, : length - x.shape[1]]
        if M is None:
            x, a = torch.cat([x, planes(a.unsqueeze(1) * from_planes(more))], 1), a * a
        else:
            x, M = torch.cat([x, more @ M], 1), M @ M
    states = x[:, :length]
    states = torch.where(states.abs() < least, 0, states)
    return Response((states @ reading(C).unsqueeze(-1)).squeeze(-1).T, states if with_states else states[:, :0])
