"""S5 (Smith et al. 2023) and LRU (Orvieto et al. 2023): one diagonal complex recurrence for all channels, then gates.

Every letter has the same diagonal matrix. Complex numbers are pairs, each real part followed by its imaginary part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import channel_scans
from fsa2lrnn.nn.layers.base import Hint, Layer, LayerConfig, check_one_of, check_positive, check_width
from fsa2lrnn.nn.layers.channel_layer import COMPLEX, MIXINGS, Mixing, basis, check_even, check_size, check_stream
from fsa2lrnn.nn.layers.transitions import DISCRETISATIONS, growth
from fsa2lrnn.nn.scans import METHODS, scan


def scan_diagonal(rates: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """Return all states: rates λ (2P,), v (B, T, 2P), x0 (B, 2P), each as pairs -> x_1 … x_T (B, T, 2P).

    A pair is a real part followed by an imaginary part (`pairs`). The product with a complex number is a block of
    size 2: `method` is one of `scan`, or "letters" for "auto".

    Raises:
        UnsupportedFormat: for an unknown method, or a device or dtype that the method does not support.

    >>> i = torch.tensor([0.0, 1.0])
    >>> scan_diagonal(i, torch.zeros(1, 3, 2), torch.tensor([[1.0, 0.0]]))[0].tolist()
    [[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    real, imaginary = rates[::2], rates[1::2]
    # Multiplication by a + ib as a matrix on (real, imaginary).
    A = torch.stack([torch.stack([real, -imaginary], -1), torch.stack([imaginary, real], -1)], -2)  # (P, 2, 2)
    inputs, start = (x.unflatten(-1, (-1, 2)) for x in (v, x0))  # (B, T, P, 2), (B, P, 2)
    method = "auto" if method == "letters" else method
    return scan(A.expand(*v.shape[:2], -1, -1, -1), inputs, start, method).flatten(-2)


def times(rates: Tensor, x: Tensor) -> Tensor:
    """Return λ ⊙ x for numbers as pairs: (2P,), (…, 2P) -> (…, 2P)."""
    (a, b), (real, imaginary) = (rates[::2], rates[1::2]), (x[..., ::2], x[..., 1::2])
    return torch.stack([a * real - b * imaginary, a * imaginary + b * real], -1).flatten(-2)


def pairs(x: Tensor) -> Tensor:
    """Return complex numbers (…, P) as pairs of real numbers: (…, 2P)."""
    return torch.view_as_real(x.resolve_conj()).flatten(-2)


class SpectralLayer(Layer):
    """The layer x_k = λ ⊙ x_{k−1} + B u_k, y_k = Re C x_k + D ⊙ u_k, then `mixing`. Subclasses define λ, B and C.

    Complex numbers are pairs, each real part followed by its imaginary part, so that all products are real. The state
    is (B, 2P).
    """

    unproved: ClassVar[str | None] = COMPLEX
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)
    takes_index: ClassVar[bool] = True
    D: Tensor

    def __init__(self, width_in: int, config: Any, states: int) -> None:
        super().__init__()
        check_stream(width_in, config.width, type(self).__name__)
        self.config, self.states = config, states
        self.mixing = Mixing(config.width, config.mixing, "tanh")

    @classmethod
    def readout(cls, config: LayerConfig, width: int, hidden: int, n_outputs: int) -> nn.Module:
        """Return a linear map without hidden units, as in the published models."""
        return nn.Linear(width, n_outputs)

    @property
    def family(self) -> str | None:
        """The family of input-independent diagonal layers, "lti-diagonalisable"."""
        return "lti-diagonalisable"

    def discretised(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the rates λ (P,), B (P, H) and C (H, P), complex128."""
        raise NotImplementedError

    def matrices(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the real λ (2P,), B (2P, H) and C (H, 2P) for states as pairs, in the dtype of the layer."""
        rates, B, C = self.discretised()
        # Re(c x) = Re c · Re x − Im c · Im x: the row of C reads pairs with the conjugate's signs.
        parts = pairs(rates), pairs(B.mT).mT, pairs(C.conj())
        rates, B, C = (part.to(self.D.dtype) for part in parts)
        return rates, B, C

    def initial_state(self, batch: int) -> Tensor:
        """Return the state 0: (B, 2P)."""
        return channel_scans.no_state(self.D, batch, 2 * self.states)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state: u (B, T, H), state (B, 2P) -> (B, T, H), (B, 2P).

        With an index (B, T), u (N, H) holds the distinct inputs and index[b, t] the row of the input at position t.
        `method` is one of `scan`, or "letters" for "auto".
        """
        rates, B, C = self.matrices()
        read, direct = linear(u, B), self.D * u
        if index is not None:
            read, direct = embedding(index, read), embedding(index, direct)
        x = scan_diagonal(rates, read, state, method)
        return self.mixing(linear(x, C) + direct), x[:, -1] if x.shape[1] else state

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and the state of one step: (B, H), (B, 2P) -> (B, H), (B, 2P)."""
        rates, B, C = self.matrices()
        state = times(rates, state) + linear(u, B)
        return self.mixing(linear(state, C) + self.D * u), state

    def emit(self, state: Tensor) -> Tensor:
        """Return the outputs of a state without its input, mixing(Re C x): (B, 2P) -> (B, H)."""
        return self.mixing(linear(state, self.matrices()[2]))


C_STARTS = ("trunc_standard_normal", "lecun_normal", "complex_normal")
CLIPPED = -1e-4  # the largest Re Λ with `clip_eigs`
_WITHIN = 0.8796256610342398  # the standard deviation of a standard normal number truncated to ±2


@dataclass(frozen=True)
class S5Config(LayerConfig):
    """The configuration of S5. Raises `UnsupportedFormat` for values out of range.

    Args:
        width: H, the number of channels in the input and in the output.
        ssm_size: the number of states, of which half are stored if `conj_sym`.
        blocks: the number of LegS matrices along the initial diagonal, each of ssm_size/blocks states.
        c_init: the initial distribution of C, by its name in the published code.
        discretisation: "zoh" or "bilinear".
        dt_min, dt_max: the range of the initial Δ of a state, log-uniform.
        clip_eigs: whether Re Λ is clipped to at most −1e-4; the published code does not clip by default.
        conj_sym: whether states come in conjugate pairs.
        mixing: the gates after the recurrence (`Mixing`), with the approximate GELU.
    """

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is
    ssm_size: int = 64
    blocks: int = 1
    c_init: str = "trunc_standard_normal"
    discretisation: str = "zoh"
    dt_min: float = 1e-3
    dt_max: float = 1e-1
    clip_eigs: bool = True
    conj_sym: bool = True
    mixing: str = "half_glu1"

    def __post_init__(self) -> None:
        check_positive(self, "width")
        if self.blocks < 1 or self.ssm_size < 1 or self.ssm_size % self.blocks:
            raise UnsupportedFormat(
                f"blocks = {self.blocks}: {self.ssm_size} states cannot be cut evenly into so many, "
                "give a divisor of ssm_size"
            )
        check_size(self.ssm_size, "ssm_size")
        if self.conj_sym:
            check_even(self.ssm_size // self.blocks, "ssm_size/blocks")
        check_one_of(self, c_init=C_STARTS, discretisation=DISCRETISATIONS)
        if not 0 < self.dt_min <= self.dt_max < math.inf:
            raise UnsupportedFormat(
                f"dt_min = {self.dt_min}, dt_max = {self.dt_max}: give 0 < dt_min ≤ dt_max, both finite"
            )
        check_one_of(self, mixing=MIXINGS)
        check_width(max(self.width, self.ssm_size))

    @property
    def states(self) -> int:
        """The number P of stored complex states."""
        return self.ssm_size // 2 if self.conj_sym else self.ssm_size

    @property
    def entries(self) -> int:
        """The numbers per token in the widest intermediate result: 2H before the gates, or 2P for a complex state."""
        return 2 * max(self.width, self.states)


class S5Layer(SpectralLayer):
    """The layer x_k = Λ̄ ⊙ x_{k−1} + B̄ u_k, y_k = 2 Re C x_k + D ⊙ u_k, then gates; Re C x_k without `conj_sym`.

    The parameters are `Lambda_re`, `Lambda_im`, `log_step` (P,), `B` (P, H, 2), `C` (H, P, 2), `D` (H,) and those of
    `mixing`. The state is (B, 2P): pairs of a real and an imaginary part. Only `clip_eigs` keeps Re Λ below 0.
    """

    Config = S5Config
    has_onnx: ClassVar[bool] = False

    def __init__(self, width_in: int, config: S5Config) -> None:
        super().__init__(width_in, config, config.states)
        H, P, N = config.width, config.states, config.ssm_size
        poles, V = (x[..., : P // config.blocks] for x in basis(N // config.blocks))
        # A block-diagonal basis of eigenvectors, one LegS matrix per block; only half of each block's eigenvectors
        # are kept with `conj_sym`.
        V = torch.from_numpy(np.kron(np.eye(config.blocks), V))  # (N, P)
        poles = torch.from_numpy(np.tile(poles, config.blocks))
        self.Lambda_re, self.Lambda_im = nn.Parameter(poles.real.float()), nn.Parameter(poles.imag.float())
        B = V.mH @ _truncated_normal(N, H).double().to(V.dtype) / math.sqrt(N)
        if config.c_init == "complex_normal":
            C = torch.randn(H, P, dtype=torch.complex64)  # E|C|² = 1, ½ for either part
        else:
            fan_in = N if config.c_init == "trunc_standard_normal" else H * N
            C = torch.view_as_complex(torch.stack([_truncated_normal(H, N) for _ in "ri"], -1) / math.sqrt(fan_in))
            C = C.to(V.dtype) @ V
        self.B, self.C = (nn.Parameter(torch.view_as_real(x.resolve_conj()).float().clone()) for x in (B, C))
        self.D = nn.Parameter(torch.randn(H))
        span = math.log(config.dt_max / config.dt_min)
        self.log_step = nn.Parameter(torch.rand(P) * span + math.log(config.dt_min))

    def parameter_hints(self) -> dict[str, Hint]:
        """Return the learning rate of the run, without weight decay, for Λ, Δ and B."""
        return {name: Hint(decay=0.0) for name in ("Lambda_re", "Lambda_im", "log_step", "B")}

    def discretised(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return Λ̄ (P,), B̄ (P, H) and C (H, P), complex128, with y = Re C x + D ⊙ u: C includes the factor 2."""
        real = self.Lambda_re.double()
        poles = torch.complex(real.clamp(max=CLIPPED) if self.config.clip_eigs else real, self.Lambda_im.double())
        B, C = (torch.view_as_complex(x.double()) for x in (self.B, self.C))
        dt = self.log_step.double().exp()
        z = dt * poles
        if self.config.discretisation == "zoh":
            rates, gain = z.exp(), dt * growth(z)
        else:
            rates, gain = (1 + z / 2) / (1 - z / 2), dt / (1 - z / 2)
        # Only one of each pair of conjugate states is stored: Re counts twice.
        return rates, gain.unsqueeze(-1) * B, 2 * C if self.config.conj_sym else C


def _truncated_normal(*shape: int) -> Tensor:
    """Return normal numbers of this shape, truncated to ±2 standard deviations and scaled to variance 1."""
    return nn.init.trunc_normal_(torch.empty(shape), 0.0, 1.0, -2.0, 2.0) / _WITHIN


@dataclass(frozen=True)
class LRUConfig(LayerConfig):
    """The configuration of an LRU layer. Raises `UnsupportedFormat` for values out of range.

    Args:
        width: H, the number of channels in the input and in the output.
        states: N, the number of complex states; they do not come in conjugate pairs.
        r_min, r_max: the range of the initial |λ|, with |λ|² uniform.
        max_phase: the largest initial phase of λ; phases are uniform in [0, max_phase].
        mixing: the gates after the recurrence (`fsa2lrnn.nn.layers.channel_layer`), with the approximate GELU.
    """

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is
    states: int = 64
    r_min: float = 0.0
    r_max: float = 1.0
    max_phase: float = 6.28
    mixing: str = "glu"

    def __post_init__(self) -> None:
        check_positive(self, "width", "states")
        if not 0 <= self.r_min < self.r_max <= 1:
            raise UnsupportedFormat(f"r_min = {self.r_min}, r_max = {self.r_max}: give 0 ≤ r_min < r_max ≤ 1")
        if not 0 < self.max_phase < math.inf:
            raise UnsupportedFormat(f"max_phase = {self.max_phase}: give a finite angle above 0")
        check_one_of(self, mixing=MIXINGS)
        check_width(max(self.width, 2 * self.states))

    @property
    def entries(self) -> int:
        """The numbers per token in the widest intermediate result: 2H before the gates, or 2N for a complex state."""
        return 2 * max(self.width, self.states)


class LRULayer(SpectralLayer):
    """The layer x_k = λ ⊙ x_{k−1} + e^γ ⊙ B u_k, y_k = Re C x_k + D ⊙ u_k with λ = exp(−e^ν + i e^θ), then gates.

    The parameters are `nu_log` (ν), `theta_log` (θ), `gamma_log` (γ), all (N,), `B` (N, H, 2), `C` (H, N, 2), `D` (H,)
    and those of `mixing`. The initial γ is log √(1 − |λ|²); training changes it independently of λ. The state is
    (B, 2N). The layer follows minimal-LRU of N. Zucchet; models use LayerNorm where that code uses BatchNorm.
    """

    Config = LRUConfig

    def __init__(self, width_in: int, config: LRUConfig) -> None:
        super().__init__(width_in, config, config.states)
        H, N = config.width, config.states
        square = torch.rand(N, dtype=torch.float64) * (config.r_max**2 - config.r_min**2) + config.r_min**2
        # |λ| = exp(−e^ν), so |λ|² uniform gives ν = log(−½ log |λ|²); the bound keeps the logarithm finite.
        nu = torch.log(-0.5 * square.clamp(min=torch.finfo(torch.float32).tiny).log())
        self.nu_log = nn.Parameter(nu.float())
        self.theta_log = nn.Parameter(
            (torch.rand(N) * config.max_phase).clamp(min=torch.finfo(torch.float32).tiny).log()
        )
        self.gamma_log = nn.Parameter((0.5 * torch.log(-torch.expm1(-2 * nu.exp()))).float())  # no digit is lost near 1
        self.B = nn.Parameter(torch.randn(N, H, 2) / math.sqrt(2 * H))
        self.C = nn.Parameter(torch.randn(H, N, 2) / math.sqrt(N))
        self.D = nn.Parameter(torch.randn(H))

    def parameter_hints(self) -> dict[str, Hint]:
        """Return half the learning rate of the run, without weight decay, for ν, θ, γ and B."""
        return {name: Hint(decay=0.0, factor=0.5) for name in ("nu_log", "theta_log", "gamma_log", "B")}

    def discretised(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return λ (N,), e^γ B (N, H) and C (H, N), in double precision."""
        size, phase = (-self.nu_log.double().exp()).exp(), self.theta_log.double().exp()
        rates = torch.complex(size * phase.cos(), size * phase.sin())  # ONNX has no exponential of complex numbers
        B, C = (torch.view_as_complex(x.double()) for x in (self.B, self.C))
        return rates, self.gamma_log.double().exp().unsqueeze(-1) * B, C
