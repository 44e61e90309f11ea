"""Mamba-2 (Dao & Gu 2024) and Mamba-3 (SISO): a matrix state that decays by one number per head.

Mamba-2 is S ← S exp(Δ A) + (Δ x) Bᵀ, y = S C. Parameters have the names of Mamba2Simple in state-spaces/mamba, with one
group.

Mamba-3 adds a trapezoidal rule, and a rotation of keys and queries by cumulative angles:
S ← S exp(Δ A) + (1 − λ) Δ exp(Δ A) x⁻ B⁻ᵀ + λ Δ x Bᵀ with the last letter's x⁻ and rotated B⁻, then y = S C: two steps
of the scan per letter. B and C are rotated by the sum of Δ π tanh(angle) so far, the same for all heads before Δ: in
the rotating frame, the transition of the state is a decay times a rotation. Parameters have the names of Mamba3 in
state-spaces/mamba, with one group, without MIMO and without a norm of the output.

With reads="state", a row of the state holds s, a row of S in the rotating frame, and m = x B of the last letter:
s ← exp(Δ A) R(−φ) (s + (1 − λ) Δ m) + λ Δ x B, m ← x B, with the angles φ = Δ π tanh(angle) of the letter alone.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, pad, silu, softplus

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Hint, check_width
from fsa2lrnn.nn.layers.matrix_layer import NORM_EPS, MatrixConfig, MatrixLayer, RankOneSteps, drawn_steps, normed
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers


@dataclass(frozen=True)
class Mamba2Config(MatrixConfig):
    """A configuration with `heads` states of expand_v·block channels (headdim) and `block` numbers each (d_state)."""

    expand_v: float = 2.0


class Mamba2Layer(MatrixLayer):
    """The layer out_proj(norm((S C + D x) ⊙ SiLU(z))); x, B and C are convolved, with a bias, and pass a SiLU."""

    Config = Mamba2Config

    def __init__(self, width_in: int, config: Mamba2Config) -> None:
        H, N, P = config.heads, config.block, config.values
        gated = 0 if config.is_state else 1
        super().__init__(config, {"xBC": H * P + N + gated * N})
        self.in_proj = nn.Linear(width_in, gated * H * P + self.channels + H, bias=False)
        self.dt_bias = nn.Parameter(drawn_steps(H))
        self.A_log = nn.Parameter(torch.empty(H).uniform_(1, 16).log())
        if gated:
            if config.conv:
                self.conv_bias = nn.Parameter(0.1 * torch.randn(self.channels))
            self.D = nn.Parameter(torch.ones(H))
            self.norm = nn.RMSNorm(H * P, eps=1e-5)
            self.out_proj = nn.Linear(H * P, config.width, bias=False)

    @property
    def family(self) -> str | None:
        """The family of diagonal layers with entries in [0, 1], if each entry depends on one letter."""
        return None if self.config.conv else "diagonal[0,1]"

    def parameter_hints(self) -> dict[str, Hint]:
        """Return no weight decay for A_log, dt_bias and D, as in the published code."""
        return {name: Hint(decay=0.0) for name in ("A_log", "dt_bias", "D") if hasattr(self, name)}

    def _conv_bias(self) -> Tensor | None:
        return self.conv_bias

    def projected(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return x, B and C (…, C), and the gate and Δ (…, R)."""
        x = self.in_proj(u)
        first = x.shape[-1] - self.channels - self.config.heads
        return x[..., first : first + self.channels], torch.cat([x[..., :first], x[..., first + self.channels :]], -1)

    def steps(self, x: Tensor, rest: Tensor) -> RankOneSteps:
        """Return the steps: k = Δ B, v = x, q = C, with the same B and C for all heads."""
        config = self.config
        H, N = config.heads, config.block
        dt = softplus(rest[..., -H:] + self.dt_bias)
        x, B, C = x.tensor_split([H * config.values, H * config.values + N], dim=-1)
        k, g = B.unsqueeze(-2) * dt.unsqueeze(-1), (-self.A_log.exp() * dt).unsqueeze(-1)
        q = None if config.is_state else C.unsqueeze(-2).expand(*C.shape[:-1], H, N)
        return RankOneSteps(g.unsqueeze(-3), None, k.unsqueeze(-3), x.unflatten(-1, (H, -1)).unsqueeze(-3), q)

    def _rounded_steps(self, u: RoundedNumbers) -> rounding.RoundedSteps:
        """Return bounds of the step of a letter: u (…, d) -> decay (…, 1, H, 1), k (…, 1, H, N), v (…, 1, H, P)."""
        H, size = self.config.heads, self.config.heads * self.config.values
        z = rounding.projected(u, self.in_proj.weight)
        x, z = rounding.with_silu(z[..., :-H]), z[..., -H:] - RoundedNumbers.exact(-self.dt_bias, u.kind)
        decay = rounding.decays(z, self.A_log.detach().double().exp())
        # softplus is the identity above 20, where the decay differs by less than this number.
        decay = z.of(decay.mid, decay.off + (z.size > 19) * 1e-10)
        dt = rounding.softplus_of(z)
        k, v = x[..., size:][..., None, :] * dt[..., None], x[..., :size].unflatten((H, -1))
        return rounding.RoundedSteps(decay[..., None, :, None], None, k[..., None, :, :], v[..., None, :, :])

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the projection of the gated, then normed outputs."""
        o = (o + self.D[:, None] * steps.v[..., 0, :, :]).flatten(-2)
        return self.out_proj(normed(o * silu(rest[..., : o.shape[-1]]), self.norm.weight))


_SLOWEST = 1e-4  # −A is at least this


@dataclass(frozen=True)
class Mamba3Config(MatrixConfig):
    """A configuration with `heads` states of expand_v·block channels and `block` numbers each; a share `rope` rotates.

    The rotated numbers come in pairs. With reads="state" a row of the state has twice as many numbers as B.
    """

    expand_v: float = 2.0
    conv: int = 0
    rope: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.conv:
            raise UnsupportedFormat(f"conv = {self.conv}: Mamba-3 has no convolution, give 0")
        check_width(self.width)
        if self.rope not in (0.5, 1.0) or not self.angles:
            raise UnsupportedFormat(f"rope = {self.rope}, block = {self.block}: give 0.5 or 1.0, and a pair that turns")

    @property
    def row(self) -> int:
        """The numbers in a row of a state whose output is the state: s and m."""
        return 2 * self.block

    @property
    def width(self) -> int:
        """The number of outputs per step."""
        return self.heads * self.values * self.row if self.is_state else super().width

    @property
    def entries(self) -> int:
        """The largest number of entries per token."""
        return self.width * self.row if self.is_state else super().entries

    @property
    def angles(self) -> int:
        """The number of rotated pairs."""
        return int(self.block * self.rope) // 2


class Mamba3Layer(MatrixLayer):
    """The layer out_proj((S C + D x) ⊙ SiLU(z)): (B, T, d) -> (B, T, width), or with reads="state" its states.

    The state of the published layer is (B, memory + H·P·N): for each head the cumulative angles of the pairs, the
    rotated B (N,) and x (P,) of the last letter; then S. With reads="state" it has rows (s, m), (B, H·P, 2N).
    """

    Config = Mamba3Config

    def __init__(self, width_in: int, config: Mamba3Config) -> None:
        super().__init__(config, {})
        H, N, P = config.heads, config.block, config.values
        gated = 0 if config.is_state else 1
        self.sizes = [gated * H * P, H * P, N, gated * N, H, H, H, config.angles]  # z, x, B, C, Δ, A, λ, angles
        self.in_proj = nn.Linear(width_in, sum(self.sizes), bias=False)
        self.dt_bias = nn.Parameter(drawn_steps(H))
        self.B_bias, self.B_norm = nn.Parameter(torch.ones(H, 1, N)), nn.RMSNorm(N, eps=NORM_EPS)
        if config.is_state:
            self.x0 = nn.Parameter(torch.zeros(H * P, config.row))
            return
        self.C_bias, self.C_norm = nn.Parameter(torch.ones(H, 1, N)), nn.RMSNorm(N, eps=NORM_EPS)
        self.D = nn.Parameter(torch.ones(H))
        self.out_proj = nn.Linear(H * P, config.width, bias=False)

    @property
    def memory(self) -> int:
        """The numbers before S: angles (H, ·), B (H, N) and x (H, P)."""
        config = self.config
        return config.heads * (config.angles + config.block + config.values)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The block sizes if the state is the output: one block for each row of a state."""
        return (self.config.row,) * (self.config.heads * self.config.values) if self.config.is_state else ()

    def parameter_hints(self) -> dict[str, Hint]:
        """Return no weight decay for dt_bias and D, as in the published code."""
        return {name: Hint(decay=0.0) for name in ("dt_bias", "D") if hasattr(self, name)}

    def _letter(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return x (…, H, P), B (…, H, N), Δ, λ and −A (…, H), and the angles φ (…, H, n) of the letter alone."""
        _, x, B, _, dt, A, trap, angles = parts
        dt = softplus(dt + self.dt_bias)
        angles = math.pi * angles.tanh().unsqueeze(-2) * dt.unsqueeze(-1)
        return x.unflatten(-1, (self.config.heads, -1)), self._key(B, "B"), dt, trap.sigmoid(), _rate(A), angles

    def _key(self, x: Tensor, name: str) -> Tensor:
        """Return B or C, normed and biased: (…, N) -> (…, H, N)."""
        weight, bias = self.get_parameter(f"{name}_norm.weight"), self.get_parameter(f"{name}_bias")
        return normed(x, weight).unsqueeze(-2) + bias[:, 0]

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return A(u) and v(u) for rows (s, m), the same A for all rows of a head."""
        if not self.config.is_state:
            return super().tables(u, method)
        x, B, dt, trap, rate, angles = self._letter(self.in_proj(u).split(self.sizes, dim=-1))
        # Rows hold (s, m): s ← turn (s + (1 − λ) Δ m) + λ Δ x B, and m ← x B, the last letter's term for the
        # trapezoidal rule.
        turn = (-rate * dt).exp()[..., None, None] * _turned(angles.cos(), angles.sin(), self.config.block)
        A = torch.cat([turn, ((1 - trap) * dt)[..., None, None] * turn], dim=-1)
        m = x.unsqueeze(-1) * B.unsqueeze(-2)
        v = torch.cat([(trap * dt)[..., None, None] * m, m], dim=-1).flatten(-3, -2)
        # The rows of m are zero: m is written anew by every letter.
        A = pad(A, (0, 0, 0, self.config.block)).unsqueeze(-3)
        return A.expand(*A.shape[:-3], self.config.values, *A.shape[-2:]).flatten(-4, -3), v

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return bounds of A(u) and v(u) for every evaluation of projections, gates and products."""
        if not self.config.is_state:
            return super().rounded_tables(u)
        N, values = self.config.block, self.config.values
        join = partial(torch.cat, dim=-1)
        z = rounding.projected(u, self.in_proj.weight)
        ends = list(itertools.accumulate(self.sizes))
        _, x, B, _, dt, A, trap, angles = (z[..., end - n : end] for n, end in zip(self.sizes, ends, strict=True))
        dt = rounding.softplus_of(dt - RoundedNumbers.exact(-self.dt_bias, u.kind))
        angles = (rounding.tame(torch.tanh, angles).scaled(math.pi))[..., None, :] * dt[..., None]
        B = rounding.with_rms_norm(B, NORM_EPS) * RoundedNumbers.exact(self.B_norm.weight, u.kind)
        B = B[..., None, :] - RoundedNumbers.exact(-self.B_bias[:, 0], u.kind)
        decay = rounding.tame(lambda y: (-y).exp(), _rounded_rate(A) * dt)
        cos, sin = rounding.tame(torch.cos, angles), rounding.tame(torch.sin, angles)
        rotation = RoundedNumbers(_turned(cos.mid, sin.mid, N), _turned(cos.off, sin.off, N, is_bound=True), u.kind)
        turn, trap = decay[..., None, None] * rotation, trap.sigmoid()
        ones = RoundedNumbers.exact(torch.ones_like(trap.mid), u.kind)
        A = rounding.stacked(join, turn, ((ones - trap) * dt)[..., None, None] * turn)
        A = rounding.shaped(lambda y: pad(y, (0, 0, 0, N)).unsqueeze(-3), A)
        m = x.unflatten((self.config.heads, -1))[..., :, None] * B[..., None, :]
        v = rounding.stacked(join, (trap * dt)[..., None, None] * m, m)
        of_rows = rounding.shaped(lambda y: y.expand(*y.shape[:-3], values, *y.shape[-2:]).flatten(-4, -3), A)
        return of_rows, rounding.shaped(lambda y: y.flatten(-3, -2), v)

    def _read(self, u: Tensor, index: Tensor | None, memory: Tensor) -> tuple[RankOneSteps, Tensor, Tensor]:
        """Return the steps (B, T, 2, …), two per letter, the gate z (B, T, H·P) and the new memory (B, …).

        The trapezoidal rule writes the last letter's x⁻ B⁻ᵀ with the weight (1 − λ) Δ exp(Δ A), and this letter's x Bᵀ
        with λ Δ, which the second step adds without decay (g = 0). B and C are rotated by the angles summed so far,
        modulo 2π, so that the state need not rotate; the memory holds the last angle, B and x of each head.
        """
        config, H = self.config, self.config.heads
        parts = self.in_proj(u)
        if index is not None:
            parts = embedding(index, parts)
        parts = parts.split(self.sizes, dim=-1)
        turned, B_before, x_before = memory.view(len(parts[0]), H, -1).split(
            [config.angles, config.block, config.values], -1
        )
        x, B, dt, trap, rate, angles = self._letter(parts)
        angle = (turned.unsqueeze(1) + angles.cumsum(1)).remainder(2 * math.pi)
        cos, sin = angle.cos(), angle.sin()
        B, C = rotated(B, cos, sin), rotated(self._key(parts[3], "C"), cos, sin)
        earlier = [torch.cat([y.unsqueeze(1), now[:, :-1]], 1) for y, now in ((B_before, B), (x_before, x))]
        g = (-rate * dt).unsqueeze(-1)
        weights = ((1 - trap) * dt).unsqueeze(-1) * g.exp(), (trap * dt).unsqueeze(-1)
        # Two steps of rank one per letter: the last letter's term, and this letter's without decay.
        pairs = (g, torch.zeros_like(g)), (earlier[0] * weights[0], B * weights[1]), (earlier[1], x)
        stacked = (torch.stack(pair, 2) for pair in pairs)
        after = torch.cat([angle[:, -1], B[:, -1], x[:, -1]], dim=-1).flatten(1)
        g, k, v = stacked
        return RankOneSteps(g, None, k, v, C), parts[0], after

    def gated(self, o: Tensor, rest: Tensor, steps: RankOneSteps) -> Tensor:
        """Return the projection of the gated outputs."""
        o = o + self.D[:, None] * steps.v[..., 1, :, :]
        return self.out_proj(o.flatten(-2) * silu(rest))


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the first pairs of adjacent entries by the given angles: (…, N), (…, n) -> (…, N)."""
    n = 2 * cos.shape[-1]
    first, second = x[..., 0:n:2], x[..., 1:n:2]
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)
    return torch.cat([turned, x[..., n:]], dim=-1)


def _rate(A: Tensor) -> Tensor:
    """Return −A, which is 1 + A for A ≥ 0, else 1/(1 − A)."""
    return (A.clamp(min=0) + (1 - A.clamp(max=0)).reciprocal()).clamp(min=_SLOWEST)


def _rounded_rate(A: RoundedNumbers) -> RoundedNumbers:
    """Return bounds of −A, whose slope grows with A: it is (1 − A)⁻² for A < 0, then 1."""
    mid = _rate(A.mid)
    # The slope is largest at the upper end of the interval.
    apart = A.off * (1 - (A.mid + A.off).clamp(max=0)) ** -2
    return A.of(mid, apart + rounding.OPERATIONS * A.kind.u * (mid + apart))


def _turned(cos: Tensor, sin: Tensor, size: int, is_bound: bool = False) -> Tensor:
    """Return the matrices that turn pairs back by their angles, or bounds of their entries: (…, n) -> (…, N, N)."""
    n = 2 * cos.shape[-1]
    ends = pad(cos.repeat_interleave(2, -1), (0, size - n), value=0.0 if is_bound else 1.0)
    signs = torch.zeros(size, size, dtype=cos.dtype, device=cos.device)
    # The transpose of `rotated`: (cos, sin; −sin, cos) on each pair. A bound has no signs.
    signs[range(0, n, 2), range(1, n, 2)] = 1
    signs[range(1, n, 2), range(0, n, 2)] = 1 if is_bound else -1
    return torch.diag_embed(ends) + pad(sin.repeat_interleave(2, -1), (0, size - n)).unsqueeze(-1) * signs
