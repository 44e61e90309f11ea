"""Liquid-S4 (Hasani et al. 2022): S4 with an input-dependent transition, and the computation of its published code.

The two differ. `kernel` selects one:

- "exact": the recurrence x_k = (Ā + diag(B̄ u_k)) x_{k−1} + B̄ u_k of the paper, in the diagonal basis of S4.
- "polyb", "kb": S4 plus the correction exactly as in the published code. The correction multiplies pairs (or p letters)
  among the last few of the whole word, adds the products to the word in reverse order, and weights them with constants
  that are fixed at the start. This is not a recurrence: an output depends on later letters, and no step exists.

The transition of the recurrence depends on the input, so an impulse response does not exist: `sequential` is its
reference, and `fused` runs the compiled loops of `transitions.recur` on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from itertools import combinations, islice
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.nn.compiled import DTYPES
from fsa2lrnn.nn.layers import channel_scans
from fsa2lrnn.nn.layers.base import check_one_of
from fsa2lrnn.nn.layers.channel_layer import (
    ChannelConfig,
    Start,
    check_channels_method,
    complex_of,
    normal_plus_low_rank,
)
from fsa2lrnn.nn.layers.channel_scans import System, by_steps
from fsa2lrnn.nn.layers.s4 import S4Layer
from fsa2lrnn.nn.layers.transitions import WORTH_COMPILING, from_planes, planes, recur, twice_real
from fsa2lrnn.nn.scans import check_method


def liquid(system: System, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """Return all outputs and the last state: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    `method` is one of `METHODS`, or "auto" or "letters" for the fastest one.

    Raises:
        UnsupportedFormat: for an unknown method, or a device or dtype that "fused" does not support.
    """
    check_method(method, {**METHODS, "letters": None})
    if method in ("auto", "letters"):
        is_worth_it = u.shape[1] * state.numel() >= WORTH_COMPILING and _takes(u, state)
        method = "fused" if is_worth_it else "sequential"
    return METHODS[method](system, u, state)


def sequential(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the recurrence of `liquid` letter by letter, with autograd and a state in double precision."""
    return by_steps(partial(step, system), u, state)


def step(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs and the state after one letter: u (B, H), state (B, H, 2n) -> (B, H), (B, H, 2n)."""
    x, arriving = from_planes(state), system.B * u.unsqueeze(-1)
    x = system.transition.times(x) + arriving * x + arriving
    return (twice_real(system.C * x) + system.D * u).to(u.dtype), planes(x).to(state.dtype)


def fused(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the recurrence of `liquid` in compiled loops on the CPU, differentiable once.

    Raises `UnsupportedFormat` unless u and the state are both float32 or both float64, on the CPU.
    """
    if not _takes(u, state):
        kinds = (f"{name} {str(x.dtype)[6:]} on {x.device}" for name, x in (("u", u), ("state", state)))
        raise UnsupportedFormat(
            f"{', '.join(kinds)}: the compiled liquid recurrence takes float32 or float64 on the CPU, the same for "
            'all; convert them, or choose the scan "sequential"'
        )
    y, last = recur(system.transition, system.B, system.C, u, state)
    return y + system.D.to(u.dtype) * u, last


def _takes(u: Tensor, state: Tensor) -> bool:
    return u.device.type == state.device.type == "cpu" and u.dtype == state.dtype and u.dtype in DTYPES


METHODS: dict[str, Callable[[System, Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "sequential": sequential,
    "fused": fused,
}


KERNELS = ("exact", "polyb", "kb")


@dataclass(frozen=True)
class LiquidS4Config(ChannelConfig):
    """The configuration of Liquid-S4, with the published defaults. Raises `UnsupportedFormat` for values out of range.

    Args:
        kernel: "exact" for the recurrence; "polyb" or "kb" for the published computation.
        degree: the largest number of factors of the products of letters, for "polyb" and "kb".
        allcombs: whether the factors are any letters, or only neighbours.
    """

    n_ssm: int | None = None
    dt_transform: str = "exp"
    kernel: str = "exact"
    degree: int = 2
    allcombs: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(self, kernel=KERNELS)
        if self.l_max is not None:
            raise UnsupportedFormat(f"l_max = {self.l_max}: Liquid-S4 has no limit to words; leave it None")
        if self.degree < 2:
            raise UnsupportedFormat(f"degree = {self.degree}: products have at least two factors")


class LiquidS4Layer(S4Layer):
    """A Liquid-S4 layer: the recurrence, or the computation of the published code, as `config.kernel` selects.

    The parameters are those of `S4Layer`. For "polyb" and "kb" the published correction reads the buffers
    `frozen_inputs`, `frozen_outputs`, `frozen_poles` and `frozen_dt` instead; they are saved with the model.
    """

    Config = LiquidS4Config
    methods: ClassVar[tuple[str, ...]] = ("sequential",)
    frozen_inputs: Tensor
    frozen_outputs: Tensor
    frozen_poles: Tensor
    frozen_dt: Tensor

    def __init__(self, width_in: int, config: LiquidS4Config) -> None:
        super().__init__(width_in, config)  # pyright: ignore[reportArgumentType]
        if not self.is_causal:
            poles = torch.complex(-self.A_real.exp(), -self.A_imag)
            frozen = {
                "inputs": self.B,
                "outputs": complex_pairs(complex_of(self.C).conj()),
                "poles": complex_pairs(poles),
            }
            for name, value in frozen.items():
                self.register_buffer(f"frozen_{name}", value.detach().float().clone())
            self.register_buffer("frozen_dt", self.dt().detach().float().squeeze(-1))

    @property
    def is_causal(self) -> bool:
        """Whether the layer computes the recurrence, so that no output depends on later letters."""
        return self.config.kernel == "exact"

    @property
    def family(self) -> str | None:
        """The family "liquid-s4" for the recurrence; None for the published computation."""
        return "liquid-s4" if self.is_causal else None

    @staticmethod
    def start(config: Any) -> Start:
        """Return the initial system, HiPPO-LegS with Im B not clipped."""
        return normal_plus_low_rank(config.d_state, clipped=False)

    def initial_state(self, batch: int) -> Tensor:
        """Return the state 0: (B, H, N), or (B, 1) if not causal; that state only becomes 1 after a word."""
        return super().initial_state(batch) if self.is_causal else channel_scans.no_state(self.D, batch, 1)

    def forward(self, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state: u (B, T, H), state (B, H, N) or (B, 1) -> (B, T, H) and a state.

        `method` is one of `METHODS` for the kernel "exact", otherwise one of `channel_scans.METHODS`.

        Raises:
            UnsupportedFormat: for an unknown method, or for a word in pieces if the kernel is not causal.
            InvalidWord: for a word with fewer products than letters, if the kernel is not causal.
        """
        if not self.is_causal:
            return self._published(u, state, check_channels_method(method))
        y, state = liquid(self.system(), u, state, method)
        return self.mixing(y), state

    def outputs(self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None) -> Tensor:
        """Return only the outputs of `forward`."""
        return self(u, state, method)[0]

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and the state of one step: u (B, H), state (B, H, N) -> (B, H), (B, H, N).

        Raises `UnsupportedFormat` if the kernel is not causal.
        """
        if not self.is_causal:
            raise self._has_no_state("cannot be run step by step")
        y, state = step(self.system(), u, state)
        return self.mixing(y), state

    def emit(self, state: Tensor) -> Tensor:
        """Return mixing(2 Re Σ C x): (B, H, N) -> (B, H); with x = 0 if not causal, because x does not exist then."""
        return super().emit(state if self.is_causal else super().initial_state(len(state)))

    def _has_no_state(self, what: str) -> UnsupportedFormat:
        return UnsupportedFormat(
            f"Liquid-S4 with kernel {self.config.kernel!r} is not causal: its outputs depend on later letters, so it "
            f'{what}; give whole words, or take the kernel "exact"'
        )

    def _published(self, u: Tensor, state: Tensor, method: str) -> tuple[Tensor, Tensor]:
        """Return the published code's outputs and a state of ones: u (B, T, H) -> (B, T, H), (B, 1).

        To S4's convolution "polyb" adds, for p = 2 … degree, weight · of_products^(2^(p−1) − 1) times the products of p
        letters.
        """
        if channel_scans.may_move(state):
            raise self._has_no_state("cannot read a word in pieces")
        if not u.shape[1]:
            return u, state
        start = super().initial_state(len(u))
        if self.config.kernel == "polyb":
            whole = method == "chunked"
            y = channel_scans.outputs_alone(self.system(), u, start) if whole else self.run(u, start, method)[0]
            of_products, weight = self._frozen()
            for p in range(2, self.config.degree + 1):
                correction = weight * of_products ** (2 ** (p - 1) - 1) * self._products(u, p)
                y = y + correction.float().to(y.dtype)
        else:
            y = self._kb(u)
        return self.mixing(y), torch.ones_like(state)

    def _kb(self, u: Tensor) -> Tensor:
        """Return the output for "kb", which multiplies spectra of two different lengths as the published code does."""
        length, system = u.shape[1], self.system()
        K = system._replace(D=torch.zeros_like(system.D)).respond(length, u.dtype).K  # (T, H), without D
        spectrum = torch.fft.rfft(K, 2 * length, 0) * torch.fft.rfft(u, 2 * length, 1)
        of_products = self._frozen()[0]
        for p in range(2, self.config.degree + 1):
            stretched = torch.fft.fft(K * of_products ** (p - 1), length + 1, 0)
            spectrum = spectrum + stretched * torch.fft.rfft(self._products(u, p), 2 * length, 1)
        return torch.fft.irfft(spectrum, 2 * length, 1)[:, :length] + self.D * u

    def _frozen(self) -> tuple[Tensor, Tensor]:
        """Return 2 Re Σ q and 2 Re Σ C q with q = Δ B/(1 − Δ Λ/2), from the fixed constants: (H,) each."""
        B, C, poles = (complex_of(x) for x in (self.frozen_inputs, self.frozen_outputs, self.frozen_poles))
        dt = self.frozen_dt.double().unsqueeze(-1)
        q = dt * B / (1 - dt / 2 * poles)
        return twice_real(q).to(self.D.dtype), twice_real(C * q).to(self.D.dtype)

    def _products(self, u: Tensor, p: int) -> Tensor:
        """Return the products of p letters in reverse order: (B, T, H) -> (B, T, H)."""
        if self.config.allcombs:
            factors = [u.index_select(1, places) for places in _subsets(u.shape[1], p, u.device).unbind(1)]
            return reduce(torch.mul, factors)
        product = u
        for _ in range(p - 1):
            product = product * pad(product, (0, 0, 1, 0))[:, :-1]
        return product.flip(1)


@lru_cache
def _subsets(length: int, p: int, device: torch.device) -> Tensor:
    """Return the positions of the factors of `length` products: (length, p).

    The window is the smallest set of last positions that has at least `length` p-subsets; the result has the last
    `length` of these in reverse lexicographical order. Raises `InvalidWord` if no window has so many.
    """
    window = next((m for m in range(2, length) if math.comb(m, p) >= length), None)
    if window is None:
        raise InvalidWord(
            f"a word of {length} letters: Liquid-S4's released code needs as many products of {p} letters as there are "
            "letters, among all but the first; give a longer word"
        )
    subsets = combinations(range(length - window, length), p)
    last = torch.tensor(list(islice(subsets, math.comb(window, p) - length, None)))
    return last.flip(0).to(device)


def complex_pairs(x: Tensor) -> Tensor:
    """Convert complex numbers to pairs of a real and an imaginary part: complex (…) -> (…, 2)."""
    return torch.view_as_real(x.resolve_conj())
