"""Channels that each run their own state-space system: x_k = Ā x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k.

`sequential` is the definition, step by step. `chunked` is the fast one: within a piece of a word, what its letters do
to its outputs is a convolution with the impulse response, short enough that no FFT is as fast as writing it out; what
they do to the state at its end, and that before it to the outputs, are matrix products. `fft` is one long convolution.

States are real, as `planes`: (B, H, 2n). Impulse responses are made from powers of Ā in double precision, and rounded
once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad

from fsa2lrnn.extra.baselines.kernels.response import Response, respond
from fsa2lrnn.extra.baselines.kernels.toeplitz import convolve
from fsa2lrnn.extra.baselines.kernels.transition import Transition, from_planes, planes, reading, twice_real
from fsa2lrnn.lrnn.autograd import typed_once_differentiable

WHOLE, PIECE = 512, 128  # letters of the longest word that is one piece, and of the pieces of longer words, at most


class System(NamedTuple):
    """The discretised system of H channels with n stored states, in double precision: B, C (H, n) complex, D (H)."""

    transition: Transition
    B: Tensor
    C: Tensor
    D: Tensor

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One letter: u (B, H), state (B, H, 2n) -> y (B, H) and the next state."""
        x = self.transition.times(from_planes(state)) + self.B * u.unsqueeze(-1)
        y = twice_real(self.C * x) + self.D * u
        return y.to(u.dtype), planes(x).to(state.dtype)

    def read(self, state: Tensor) -> Tensor:
        """What a state alone gives out: (B, H, 2n) -> (B, H)."""
        return (reading(self.C) * state).sum(-1).to(state.dtype)

    def respond(self, length: int, dtype: torch.dtype, with_states: bool = False) -> Response:
        """K_l = 2 Re Σ C Ā^l B̄ with D added to its start, for use in a layer of type `dtype`, and the states Ā^l B̄."""
        K, states = respond(self.transition, self.B, self.C, length, least(dtype), with_states)
        return Response(self.with_skip(K).to(dtype), states)

    def with_skip(self, K: Tensor) -> Tensor:
        """An impulse response (L, H) with D added to its start."""
        return K + pad(self.D.unsqueeze(0), (0, 0, 0, len(K) - 1))

    def fading(self, length: int, dtype: torch.dtype) -> Tensor:
        """What a state does to the outputs that follow, 2 Re Σ C Ā^l x for 1 ≤ l ≤ length: (H, length, 2n)."""
        _, powers = respond(self.transition.transposed, self.C, self.C, length + 1, least(dtype), with_states=True)
        real, imaginary = cast("Tensor", powers)[:, 1:].chunk(2, -1)
        return 2 * torch.cat([real, -imaginary], -1).to(dtype)


def sequential(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """All outputs and the last state by the loop it says: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    The state is kept in double precision on the way.
    """
    outputs, x = [], state.double()
    for u_k in u.unbind(1):
        y, x = system.step(u_k, x)
        outputs.append(y)
    return torch.stack(outputs, dim=1) if outputs else u, x.to(state.dtype)


def chunked(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The same, piece by piece."""
    length = u.shape[1]
    if not length:
        return u, state
    size = length if length <= WHOLE else -(-length // -(-length // PIECE))
    K, reach = system.respond(size, u.dtype, with_states=True)
    moves, outputs, fading, M = matters(state), [], None, None
    for piece in u.split(size, 1):
        t = piece.shape[1]
        y, arriving = convolve(piece, K[:t]), arrive(piece, cast("Tensor", reach)[:, :t])
        if moves:
            if fading is None:
                fading = system.fading(size, u.dtype)
            if M is None or t < size:
                M = power(system.transition, t).to(u.dtype)
            columns = state.transpose(0, 1)  # (H, B, 2n)
            y = y + torch.bmm(fading[:, :t], columns.mT).permute(2, 1, 0)
            arriving = arriving + torch.bmm(columns, M).transpose(0, 1)
        state, moves = arriving, True
        outputs.append(y)
    return torch.cat(outputs, 1) if len(outputs) > 1 else outputs[0], state


def outputs_alone(system: System, u: Tensor, state: Tensor) -> Tensor:
    """The outputs of `chunked`; of a word that is one piece, without the state after it, which costs as much."""
    length = u.shape[1]
    if not 0 < length <= WHOLE or matters(state):
        return chunked(system, u, state)[0]
    return convolve(u, system.respond(length, u.dtype).K)


def fft(system: System, u: Tensor, state: Tensor, K: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The same by one convolution over the whole word, with the impulse response `K` (T, H) where it is given."""
    length = u.shape[1]
    if not length:
        return u, state
    own, reach = system.respond(length, u.dtype, with_states=True)
    y = long_convolution(u, own if K is None else system.with_skip(K).to(u.dtype))
    y = y + torch.einsum("htj,bhj->bth", system.fading(length, u.dtype), state)
    moved = torch.einsum("bhi,hij->bhj", state, power(system.transition, length).to(u.dtype))
    return y, arrive(u, cast("Tensor", reach)) + moved


METHODS: dict[str, Callable[[System, Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "sequential": sequential,
    "chunked": chunked,
    "fft": fft,
}


def long_convolution(u: Tensor, K: Tensor) -> Tensor:
    """y_t = Σ_l K_l u_{t−l} by FFT: u (B, T, H), K (L, H) -> (B, T, H)."""
    length, size = u.shape[1], u.shape[1] + len(K)
    if not u.numel():
        return u  # the library of transforms refuses empty ones
    spectrum = torch.fft.rfft(u, n=size, dim=1) * torch.fft.rfft(K, n=size, dim=0)
    return torch.fft.irfft(spectrum, n=size, dim=1)[:, :length]


def arrive(u: Tensor, reach: Tensor) -> Tensor:
    """The state Σ_k Ā^{T−k} B̄ u_k that a word leaves behind: u (B, T, H), reach (H, T, 2n) -> (B, H, 2n)."""
    return _Arrive.apply(u, reach)  # type: ignore[no-any-return]


class _Arrive(Function):
    """Made of two matrix products with no trace of how their factors came about: most states that training leaves
    behind are used no further.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, reach: Tensor) -> Tensor:
        ctx.save_for_backward(u, reach)
        return (_columns(u) @ _backwards(reach, u.dtype)).transpose(0, 1)

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dstate: Tensor) -> tuple[Tensor | None, ...]:
        (u, reach), of_state = ctx.saved_tensors, dstate.transpose(0, 1)
        du = (of_state @ _backwards(reach, u.dtype).mT).permute(1, 2, 0)
        return du, (_columns(u).mT @ of_state).flip(1).to(reach.dtype)


def _columns(u: Tensor) -> Tensor:
    return u.permute(2, 0, 1).contiguous()  # (H, B, T)


def _backwards(reach: Tensor, dtype: torch.dtype) -> Tensor:
    return reach.to(dtype).flip(1)


def least(dtype: torch.dtype) -> float:
    """The size below which numbers count as 0 in powers: 1e-30 in single precision, so that no product is denormal."""
    return torch.finfo(dtype).tiny ** 0.8


def no_state(like: Tensor, *shape: int) -> Tensor:
    """A state that is known to be 0 (`matters`): one number of the type of `like`, expanded."""
    zero = like.new_zeros(()) if like.device.type == "cpu" else _zero(like.device, like.dtype)
    return zero.expand(shape)


@lru_cache
def _zero(device: torch.device, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(False):
        return torch.zeros((), device=device, dtype=dtype)


def matters(state: Tensor) -> bool:
    """Whether a state (B, …) is not known to be 0: known it is of a single number, expanded, as `no_state` makes it.

    On a GPU that number is known by where it lies: looking at it would make all wait.
    """
    if state.requires_grad or any(state.stride()):
        return True
    if state.device.type != "cpu":
        return state.data_ptr() != _zero(state.device, state.dtype).data_ptr()
    return state.numel() > 0 and state.as_strided((), ()).item() != 0


def may_move(state: Tensor) -> bool:
    """Whether any number of a state is not 0."""
    return matters(state) and bool(state.any())


def power(transition: Transition, exponent: int) -> Tensor:
    """The matrices of Ā^exponent, as `Transition.matrix` gives them: (H, 2n, 2n)."""
    if transition.q is None:
        return Transition(transition.a**exponent).matrix()
    return torch.linalg.matrix_power(transition.matrix(), exponent)
