"""State-space systems, one per channel, by three methods: x_k = Ā x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k.

`sequential` computes one step after the other and is the reference. `chunked` is faster: within a piece of a word it
multiplies the inputs with Toeplitz matrices of the impulse response, and passes only states from piece to piece. `fft`
computes one long convolution.

States are real and stored as `planes`: (B, H, 2n). Impulse responses are computed from powers of Ā in double precision
and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from fsa2lrnn.nn.layers.transitions import Response, Transition, from_planes, planes, reading, respond, twice_real

WHOLE, PIECE = 512, 128  # in letters: the longest word computed as one piece, and the longest piece of longer words


class System(NamedTuple):
    """The discretised systems of H channels with n stored states each: B, C complex128 (H, n), D float64 (H,)."""

    transition: Transition
    B: Tensor
    C: Tensor
    D: Tensor

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs and the state after one letter: u (B, H), state (B, H, 2n) -> (B, H), (B, H, 2n)."""
        x = self.transition.times(from_planes(state)) + self.B * u.unsqueeze(-1)
        y = twice_real(self.C * x) + self.D * u
        return y.to(u.dtype), planes(x).to(state.dtype)

    def read(self, state: Tensor) -> Tensor:
        """Return 2 Re Σ C x, the outputs of a state without the skip connection: (B, H, 2n) -> (B, H)."""
        return (reading(self.C) * state).sum(-1).to(state.dtype)

    def respond(self, length: int, dtype: torch.dtype, with_states: bool = False) -> Response:
        """Return K_l = 2 Re Σ C Ā^l B̄, with D added to K_0, for l < length, and if requested the states Ā^l B̄."""
        K, states = respond(self.transition, self.B, self.C, length, least(dtype), with_states)
        return Response(self.with_skip(K).to(dtype), states.to(dtype))

    def with_skip(self, K: Tensor) -> Tensor:
        """Return an impulse response with D added to its first entry: (L, H) -> (L, H)."""
        return K + pad(self.D.unsqueeze(0), (0, 0, 0, len(K) - 1))

    def fading(self, length: int, dtype: torch.dtype) -> Tensor:
        """Return matrices that map a state x to the later outputs 2 Re Σ C Ā^l x, 1 ≤ l ≤ length: (H, length, 2n)."""
        # C Ā^l = (Āᵀ)^l C: the impulse response of the transposed system, started in C, has the rows that read a
        # state later.
        _, powers = respond(self.transition.transposed, self.C, self.C, length + 1, least(dtype), with_states=True)
        real, imaginary = powers[:, 1:].chunk(2, -1)
        return 2 * torch.cat([real, -imaginary], -1).to(dtype)


def sequential(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return all outputs and the last state, letter by letter: u (B, T, H), state (B, H, 2n) -> the same shapes."""
    return by_steps(system.step, u, state)


def by_steps(
    step: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], u: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Apply a step to all letters in turn, with the state in double precision: u (B, T, H) -> outputs, last state."""
    outputs, x = [], state.double()
    for u_k in u.unbind(1):
        y, x = step(u_k, x)
        outputs.append(y)
    return torch.stack(outputs, dim=1) if outputs else u, x.to(state.dtype)


def chunked(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return all outputs and the last state, piece by piece: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    The pieces have equal length; the first is padded with zeros at its start.
    """
    length = u.shape[1]
    if not length:
        return u, state
    y, arriving, size = _pieces(system, u)
    lead, M = length % size or size, power(system.transition, size).to(u.dtype)  # lead: letters of the first piece
    first = M if lead == size else power(system.transition, lead).to(u.dtype)
    # From piece to piece: (H, B, 2n).
    moves, states = matters(state), [state.transpose(0, 1)]
    for k, arrived in enumerate(arriving.unbind(2)):
        # A start state of 0 is not multiplied; from the second piece on states matter.
        moved = torch.bmm(states[-1], M if k else first) if moves else 0
        states.append(moved + arrived)
        moves = True
    if matters(state) or len(states) > 2:
        before = torch.stack(states[:-1], 2)  # (H, B, N, 2n)
        late = (before.flatten(1, 2) @ system.fading(size, u.dtype).mT).view(*before.shape[:3], size)
        # The first piece has only `lead` letters, which stand at its end.
        begun = pad(late[:, :, :1, :lead], (size - lead, 0))
        y = y + torch.cat([begun, late[:, :, 1:]], 2)
    return _word(y, length), states[-1].transpose(0, 1)


def outputs_alone(system: System, u: Tensor, state: Tensor) -> Tensor:
    """Return the outputs of `chunked` without the last state: u (B, T, H), state (B, H, 2n) -> (B, T, H).

    A word of a single piece with the state 0 is computed without its last state, which would cost as much as the
    outputs.
    """
    length = u.shape[1]
    if not 0 < length <= WHOLE or matters(state):
        return chunked(system, u, state)[0]
    return convolve(_columns(u), system.respond(length, u.dtype).K.T).permute(1, 2, 0)


def _pieces(system: System, u: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return the outputs (H, B, N, size) and last state (H, B, N, 2n) of each piece from the state 0, and `size`."""
    batch, length, width = u.shape
    size = length if length <= WHOLE else -(-length // -(-length // PIECE))
    n_pieces = -(-length // size)
    K, reach = system.respond(size, u.dtype, with_states=True)
    pieces = _columns(pad(u, (0, 0, n_pieces * size - length, 0))).view(width, batch * n_pieces, size)
    # The last state is Σ Ā^(size−1−j) B̄ u_j: the states of the impulse response in reverse order of the letters.
    found = convolve(pieces, K.T), pieces @ reach.flip(1)
    y, arriving = (x.view(width, batch, n_pieces, x.shape[2]) for x in found)
    return y, arriving, size


def _columns(u: Tensor) -> Tensor:
    return u.permute(2, 0, 1).contiguous()  # (H, B, T)


def _word(pieces: Tensor, length: int) -> Tensor:
    """Return pieces as words, without the padding: (H, B, N, size) -> (B, T, H)."""
    whole = pieces.flatten(2)
    return whole[..., whole.shape[2] - length :].permute(1, 2, 0)


def convolve(u: Tensor, K: Tensor) -> Tensor:
    """Return y_t = Σ_{l ≤ t} K_l u_{t−l} for rows of letters: u (H, N, T), K (H, T) -> (H, N, T).

    >>> convolve(torch.tensor([[[1.0, 0.0, 1.0]]]), torch.tensor([[1.0, 2.0, 3.0]])).flatten().tolist()
    [1.0, 2.0, 4.0]
    """
    length = K.shape[1]
    if length <= PIECE:
        return u @ matrices(K)
    # A transform of twice the length leaves room for the linear convolution, so that nothing wraps around.
    spectrum = torch.fft.rfft(u, n=2 * length) * torch.fft.rfft(K, n=2 * length).unsqueeze(1)
    return torch.fft.irfft(spectrum, n=2 * length)[..., :length]


def matrices(K: Tensor) -> Tensor:
    """Return Toeplitz matrices with K_{t−j} in row j and column t ≥ j, and 0 elsewhere: (H, T) -> (H, T, T).

    >>> matrices(torch.tensor([[1.0, 2.0, 3.0]]))[0].tolist()
    [[1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]
    """
    channels, length = K.shape
    rows = pad(K, (0, length)).unsqueeze(1).expand(-1, length, -1)  # (H, T, 2T)
    # Read in rows of 2T − 1 instead of 2T numbers, each row is shifted right by one against the row above.
    return rows.reshape(channels, -1)[:, : length * (2 * length - 1)].view(channels, length, max(2 * length - 1, 0))[
        ..., :length
    ]


def fft(system: System, u: Tensor, state: Tensor, K: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return all outputs and the last state by one convolution: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    `K` (T, H) replaces the impulse response of the system.
    """
    length = u.shape[1]
    if not length:
        return u, state
    own, reach = system.respond(length, u.dtype, with_states=True)
    y = long_convolution(u, own if K is None else system.with_skip(K).to(u.dtype))
    y = y + torch.einsum("htj,bhj->bth", system.fading(length, u.dtype), state)
    moved = torch.einsum("bhi,hij->bhj", state, power(system.transition, length).to(u.dtype))
    return y, (_columns(u) @ reach.flip(1)).transpose(0, 1) + moved


METHODS: dict[str, Callable[[System, Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "sequential": sequential,
    "chunked": chunked,
    "fft": fft,
}


def long_convolution(u: Tensor, K: Tensor) -> Tensor:
    """Return y_t = Σ_l K_l u_{t−l}, computed by FFT: u (B, T, H), K (L, H) -> (B, T, H)."""
    length, size = u.shape[1], u.shape[1] + len(K)
    if not u.numel():
        return u  # the library of transforms refuses empty ones
    spectrum = torch.fft.rfft(u, n=size, dim=1) * torch.fft.rfft(K, n=size, dim=0)
    return torch.fft.irfft(spectrum, n=size, dim=1)[:, :length]


def least(dtype: torch.dtype) -> float:
    """Return the size below which entries of powers are set to 0, about 5e-31 for float32.

    Products of smaller numbers with inputs would often be denormal, which is slow.
    """
    return torch.finfo(dtype).tiny ** 0.8


def no_state(like: Tensor, *shape: int) -> Tensor:
    """Return a state of zeros that `matters` recognises: one number of the dtype of `like`, expanded to `shape`."""
    zero = like.new_zeros(()) if like.device.type == "cpu" else _zero(like.device, like.dtype)
    return zero.expand(shape)


@lru_cache
def _zero(device: torch.device, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(False):
        return torch.zeros((), device=device, dtype=dtype)


def matters(state: Tensor) -> bool:
    """Return whether a state (B, …) may differ from 0: False only if it is empty or an expanded 0, as of `no_state`.

    On a GPU the 0 is recognised by its address, because reading its value would synchronise the device.
    """
    # Only a tensor expanded from one number has all strides 0; others are not examined, and count as states that
    # matter.
    if state.requires_grad or any(state.stride()):
        return True
    if state.device.type != "cpu":
        return state.data_ptr() != _zero(state.device, state.dtype).data_ptr()
    return state.numel() > 0 and state.as_strided((), ()).item() != 0


def may_move(state: Tensor) -> bool:
    """Return whether any entry of a state is not 0."""
    return matters(state) and bool(state.any())


def power(transition: Transition, exponent: int) -> Tensor:
    """Return the matrices of Ā^exponent, in the convention of `Transition.matrix`: (H, 2n, 2n)."""
    if transition.q is None:
        return Transition(transition.a**exponent).matrix()
    return torch.linalg.matrix_power(transition.matrix(), exponent)
