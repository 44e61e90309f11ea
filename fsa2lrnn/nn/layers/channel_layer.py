"""The base class of S4, S4D and Liquid-S4: each channel runs its own state-space system, then gates mix the channels.

The three layers differ only in the system. Channel h uses copy h mod n_ssm of A and B, and its own Δ, C and D.

Initial systems are HiPPO-LegS (Gu et al. 2020) and its diagonal approximations (S4D). A system of N real states is
diagonalised: its poles come in conjugate pairs, of which only the N/2 with non-positive imaginary parts are stored. A
sum over all N states is twice the real part of the sum over the stored half.

The gates (`Mixing`), here and in S5 and LRU, are a GELU, and linear maps that mix the channels:

- "none": the outputs of the recurrence, unchanged.
- "gelu": g = GELU(y).
- "glu": (W₁g + b₁) ⊙ σ(W₂g + b₂); the output of S4, and the "full GLU" of S5 and LRU.
- "half_glu1": g ⊙ σ(Wg + b), "half_glu2": y ⊙ σ(Wg + b); both from S5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import gelu, glu, softplus

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import channel_scans
from fsa2lrnn.nn.layers.base import Hint, Layer, LayerConfig, check_one_of, check_positive, check_width
from fsa2lrnn.nn.layers.channel_scans import System
from fsa2lrnn.nn.scans import check_method

Real, Complex = NDArray[np.floating[Any]], NDArray[np.complexfloating[Any, Any]]

MOST_STATES = 1024  # a limit, because a small file can request any number of states
LARGEST_INPUT = 2.0  # the bound to which the published S4 code clips |Im B| of LegS


class Start(NamedTuple):
    """The stored half of a system A = diag(poles) − P P*, B: complex (N/2,) each; P is None if A is diagonal."""

    poles: Complex
    B: Complex
    P: Complex | None = None


def legs(N: int) -> tuple[Real, Real, Real]:
    """Return A (N, N), B (N,) and P (N,) of LegS: A + P Pᵀ is −½ I plus a skew-symmetric matrix.

    >>> A, B, P = legs(2)
    >>> (A + np.outer(P, P)).round(3).tolist()
    [[-0.5, 0.866], [-0.866, -0.5]]
    """
    B = np.sqrt(2 * np.arange(N) + 1.0)
    A = -np.tril(np.outer(B, B), -1) - np.diag(np.arange(N) + 1.0)
    return A, B, B / np.sqrt(2)


def basis(N: int) -> tuple[Complex, Complex]:
    """Return the poles (N,) and orthonormal eigenvectors (N, N) of the normal part A + P Pᵀ of LegS.

    The most negative frequency comes first. The phases of the eigenvectors depend on the linear algebra library.
    """
    A, _, P = legs(N)
    normal = A + np.outer(P, P)
    # The skew-symmetric part times −i is Hermitian: its real eigenvalues are the frequencies, and eigenvectors are
    # orthonormal.
    frequencies, vectors = np.linalg.eigh(-1j * (normal - normal.T) / 2)  # ascending
    return np.mean(np.diag(normal)) + 1j * frequencies, vectors


def normal_plus_low_rank(N: int, clipped: bool = True) -> Start:
    """Return HiPPO-LegS as a diagonal matrix minus P P*, for N states.

    With `clipped`, Im B is clipped to ±2, as in the published S4 code; then A and B together differ from LegS.
    """
    n = N // 2
    # Eigenvalues come in conjugate pairs in ascending order of frequency, so the first half represents all.
    poles, V = (x[..., :n] for x in basis(N))
    _, B, P = legs(N)
    inputs = V.conj().T @ B
    if clipped:
        inputs = inputs.real + 1j * inputs.imag.clip(-LARGEST_INPUT, LARGEST_INPUT)
    return Start(poles, inputs, V.conj().T @ P)


def diagonal_lin(N: int) -> Start:
    """Return the initial system S4D-Lin: poles −½ − iπk for k < N/2, and B = 1."""
    n = N // 2
    return Start(-0.5 - 1j * np.pi * np.arange(n), np.ones(n, np.complex128))


def diagonal_inv(N: int) -> Start:
    """Return the initial system S4D-Inv: poles −½ − i(N/π)(N/(2k + 1) − 1) for k < N/2, and B = 1."""
    n = N // 2
    return Start(-0.5 - 1j * N / np.pi * (N / (2 * np.arange(n) + 1) - 1), np.ones(n, np.complex128))


def diagonal_legs(N: int) -> Start:
    """Return the initial system S4D-LegS: LegS without its rank-one part, with Im B clipped to ±2."""
    return normal_plus_low_rank(N)._replace(P=None)


def check_even(N: int, name: str) -> None:
    """Raise `UnsupportedFormat` unless N is even, positive and at most `MOST_STATES`."""
    if N < 2 or N % 2:
        raise UnsupportedFormat(f"{name} = {N}: states come in conjugate pairs, give an even number of at least 2")
    check_size(N, name)


def check_size(N: int, name: str) -> None:
    """Raise `UnsupportedFormat` for more than `MOST_STATES` states, because matrices of N² entries are built."""
    if N > MOST_STATES:
        raise UnsupportedFormat(f"{name} = {N:,}: at most {MOST_STATES:,} states make a system")


MIXINGS = ("none", "gelu", "glu", "half_glu1", "half_glu2")


class Mixing(nn.Module):
    """The gates named `kind`, applied at each position, with their linear maps: (…, H) -> (…, H).

    `approximate` is the option of GELU: "none" for the error function, "tanh" for the approximation that JAX uses.
    The gates have no dropout, so that a verifier examines the model that runs.
    """

    def __init__(self, width: int, kind: str, approximate: str = "none") -> None:
        super().__init__()
        self.kind, self.approximate = kind, approximate
        if "glu" in kind:
            self.linear = nn.Linear(width, 2 * width if kind == "glu" else width)

    def forward(self, y: Tensor) -> Tensor:
        """Return the mixed channels: (…, H) -> (…, H)."""
        if self.kind == "none":
            return y
        g = gelu(y, approximate=self.approximate)
        if self.kind == "gelu":
            return g
        z = self.linear(g)
        if self.kind == "glu":
            return glu(z, -1)
        return (g if self.kind == "half_glu1" else y) * torch.sigmoid(z)


DT_TRANSFORMS = ("softplus", "exp")
BEYOND = ("refuse", "cut")
LEAST_FREQUENCY = 1e-4  # the initial |Im Λ| of poles that are real in the initial system
COMPLEX = "whose arithmetic of complex numbers no verifier models"
_RATE = 1e-3  # the learning rate of Δ, A, B and P in the published configurations


@dataclass(frozen=True)
class ChannelConfig(LayerConfig):
    """The configuration shared by S4, S4D and Liquid-S4. Raises `UnsupportedFormat` for values out of range.

    Args:
        width: H, the number of channels in the input and in the output.
        d_state: N, the real states per channel; even.
        n_ssm: the copies of A and B, a divisor of H; None for one per channel.
        dt_min, dt_max: the range of the initial Δ, log-uniform.
        dt_transform: the map from the parameter to Δ, "softplus" or "exp".
        mixing: the gates after the systems (`fsa2lrnn.nn.layers.channel_layer`).
        l_max: the longest word, None for no limit.
        beyond: the treatment of longer words: "refuse" raises an error; "cut" ends the impulse response after l_max
            letters, so that older letters have no effect, as in the published code.
    """

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is
    d_state: int = 64
    n_ssm: int | None = 1
    dt_min: float = 1e-3
    dt_max: float = 1e-1
    dt_transform: str = "softplus"
    mixing: str = "glu"
    l_max: int | None = None
    beyond: str = "refuse"

    def __post_init__(self) -> None:
        check_positive(self, "width")
        check_even(self.d_state, "d_state")
        check_width(self.width * self.d_state)
        if self.copies < 1 or self.width % self.copies:
            raise UnsupportedFormat(
                f"n_ssm = {self.n_ssm}: {self.width} channels cannot share so many copies of A and B evenly, "
                "give a divisor of the width"
            )
        if not 0 < self.dt_min <= self.dt_max < math.inf:
            raise UnsupportedFormat(
                f"dt_min = {self.dt_min}, dt_max = {self.dt_max}: give 0 < dt_min ≤ dt_max, both finite"
            )
        check_one_of(self, dt_transform=DT_TRANSFORMS)
        check_one_of(self, mixing=MIXINGS)
        if self.l_max is not None and self.l_max < 1:
            raise UnsupportedFormat(f"l_max = {self.l_max}: give at least 1, or None for words of any length")
        check_one_of(self, beyond=BEYOND)

    @property
    def copies(self) -> int:
        """The number of copies of A and B."""
        return self.width if self.n_ssm is None else self.n_ssm

    @property
    def entries(self) -> int:
        """The numbers per token in the widest intermediate result: 2H, the input of the gated linear unit.

        States do not count, because "chunked" computes them only at the ends of pieces.
        """
        return 2 * self.width


class ChannelLayer(Layer):
    """The layer y = mixing(system(u)) with the parameters of the published S4 code, in float32.

    The parameters are `inv_dt` (H,), `A_real` and `A_imag` (S, n) with Λ = −exp(A_real) − i·A_imag, `B` (S, n, 2), `C`
    (H, n, 2), `D` (H,) and those of `mixing`; S copies, n = N/2, complex numbers as pairs (…, 2). The state (B, H, N)
    has the real parts of the n stored complex states of each channel, then their imaginary parts.
    """

    has_onnx: ClassVar[bool] = False
    unproved: ClassVar[str | None] = COMPLEX
    methods: ClassVar[tuple[str, ...]] = tuple(channel_scans.METHODS)

    def __init__(self, width_in: int, config: Any) -> None:
        super().__init__()
        check_stream(width_in, config.width, type(self).__name__)
        self.config = config
        H, n = config.width, config.d_state // 2
        dt = torch.exp(torch.rand(H) * math.log(config.dt_max / config.dt_min) + math.log(config.dt_min))
        # The inverse of the map from the parameter to Δ: log, or log(e^Δ − 1) written without cancellation.
        self.inv_dt = nn.Parameter(dt.log() if config.dt_transform == "exp" else dt + torch.log(-torch.expm1(-dt)))
        start = self.start(config)
        poles = torch.from_numpy(start.poles)
        parts = torch.log(-poles.real), (-poles.imag).clamp(min=LEAST_FREQUENCY)
        self.A_real, self.A_imag = (nn.Parameter(x.float().repeat(config.copies, 1)) for x in parts)
        self.B = nn.Parameter(pairs(start.B, config.copies))
        self.C = nn.Parameter(torch.randn(H, n, 2) * math.sqrt(0.5))
        self.D = nn.Parameter(torch.randn(H))
        self.mixing = Mixing(H, config.mixing)

    @classmethod
    def readout(cls, config: LayerConfig, width: int, hidden: int, n_outputs: int) -> nn.Module:
        """Return a linear map without hidden units, as in the published models."""
        return nn.Linear(width, n_outputs)

    @staticmethod
    def start(config: object) -> Start:
        """Return the initial poles, B and P of a new layer: complex (n,) each."""
        raise NotImplementedError

    def system(self) -> System:
        """Return the discretised system Ā, B̄, C, D of all channels, in double precision."""
        raise NotImplementedError

    def dt(self) -> Tensor:
        """Return the step Δ of each channel: float64 (H, 1)."""
        raw = self.inv_dt.double().unsqueeze(-1)
        return raw.exp() if self.config.dt_transform == "exp" else softplus(raw)

    def poles(self) -> Tensor:
        """Return the poles Λ of each channel: complex128 (H, n)."""
        return self.of_channels(torch.complex(-self.A_real.double().exp(), -self.A_imag.double()))

    def of_channels(self, x: Tensor) -> Tensor:
        """Repeat the S copies of a parameter so that row h belongs to channel h: (S, n) -> (H, n)."""
        return x.repeat(self.config.width // len(x), 1)

    def parameter_hints(self) -> dict[str, Hint]:
        """Return the published learning rate 1e-3, without weight decay, for Δ, A, B and, where it exists, P."""
        return {name: Hint(_RATE, 0.0) for name in ("inv_dt", "A_real", "A_imag", "B", "P") if hasattr(self, name)}

    def initial_state(self, batch: int) -> Tensor:
        """Return the state 0: (B, H, N)."""
        return channel_scans.no_state(self.D, batch, self.config.width, self.config.d_state)

    def forward(self, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state: u (B, T, H), state (B, H, N) -> (B, T, H), (B, H, N).

        `method` is in `channel_scans.METHODS`; "auto" and "letters" mean "chunked". Raises `UnsupportedFormat` for
        another method, and for words longer than `l_max` unless `beyond` is "cut" and the state is 0.
        """
        method = check_channels_method(method)
        if self.is_too_long(u.shape[1]):
            # The state is not zero, which marks one that cannot be continued.
            return self.mixing(self._cut(u, state)), torch.ones_like(state)
        y, state = self.run(u, state, method)
        return self.mixing(y), state

    def outputs(self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None) -> Tensor:
        """Return only the outputs of `forward`."""
        if check_channels_method(method) != "chunked" or self.is_too_long(u.shape[1]):
            return super().outputs(u, state, method)
        return self.mixing(channel_scans.outputs_alone(self.system(), u, state))

    def _cut(self, u: Tensor, state: Tensor) -> Tensor:
        """Return the convolution with the truncated impulse response. Raises `UnsupportedFormat` for a state not 0."""
        if channel_scans.may_move(state):
            raise UnsupportedFormat(
                f"a word in pieces, longer than l_max = {self.config.l_max}: an impulse response that is cut off there "
                "has no state to be carried on; give the whole word, or set l_max = None"
            )
        return channel_scans.long_convolution(u, self.system().respond(self.config.l_max, u.dtype).K)

    def run(self, u: Tensor, state: Tensor, method: str) -> tuple[Tensor, Tensor]:
        """Return the outputs before the gates and the last state: (B, T, H), (B, H, N) -> (B, T, H), (B, H, N)."""
        return channel_scans.METHODS[method](self.system(), u, state)

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and the state of one step: (B, H), (B, H, N) -> (B, H), (B, H, N)."""
        y, state = self.system().step(u, state)
        return self.mixing(y), state

    def emit(self, state: Tensor) -> Tensor:
        """Return the outputs of a state without its input, mixing(2 Re Σ C x): (B, H, N) -> (B, H)."""
        return self.mixing(self.system().read(state))

    def is_too_long(self, length: int) -> bool:
        """Return whether a length exceeds `l_max`. Raises `UnsupportedFormat` if it does and `beyond` is "refuse"."""
        l_max = self.config.l_max
        if l_max is None or length <= l_max:
            return False
        if self.config.beyond == "refuse":
            raise UnsupportedFormat(
                f"a word of {length} letters and l_max = {l_max}: the impulse response would be cut off there, so that "
                'nothing older could matter; set l_max = None, or beyond = "cut" if that is meant'
            )
        return True


def check_channels_method(method: str) -> str:
    """Return a name in `channel_scans.METHODS`, "chunked" for "auto" and "letters". Raises `UnsupportedFormat`."""
    check_method(method, {**channel_scans.METHODS, "letters": None})
    return "chunked" if method in ("auto", "letters") else method


def check_stream(width_in: int, width: int, name: str) -> None:
    """Raise `UnsupportedFormat` unless the input has as many channels as the layer `name`."""
    if width_in != width:
        raise UnsupportedFormat(
            f"{name} of width {width} reads {width_in} numbers: its channels go in and out one by one, so make the "
            "stream as wide as the layer, without token shift"
        )


def pairs(x: object, copies: int) -> Tensor:
    """Return `copies` copies of a complex array (n,), as pairs of a real and an imaginary part: (copies, n, 2)."""
    return torch.view_as_real(torch.from_numpy(x)).float().repeat(copies, 1, 1)


def complex_of(x: Tensor) -> Tensor:
    """Convert pairs of a real and an imaginary part to complex numbers: (…, 2) -> complex128 (…)."""
    return torch.view_as_complex(x.double().contiguous())
