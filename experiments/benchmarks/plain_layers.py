"""Baselines: the other layers in plain torch, with the parameters of ours.

S4 and S4D are computed by long convolutions in single precision, the rest by loops over letters, like the public code
of each layer without a kernel of its own. They serve only as references for measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, softplus

from fsa2lrnn.nn.layers.rwkv import reference

Forward = Callable[[Any, Tensor], Tensor]


def s4(layer: Any, u: Tensor) -> Tensor:
    """Compute S4 by Cauchy kernels and FFTs.

    The parameter C is used as the value that the published code stores for words of this length
    (`s4.truncated`): the function differs, its cost is the same.
    """
    length = u.shape[1]
    dt, poles, B = _continuous(layer)
    P, C = layer.of_channels(torch.view_as_complex(layer.P)), torch.view_as_complex(layer.C)
    omega = torch.exp(-2j * torch.pi * torch.arange(length // 2 + 1) / length)
    omega[-1] += 1e-5  # at −1 the fractions have a pole
    z = 2 * (1 - omega) / (1 + omega)
    pairs = torch.stack([C * B, C * P, P.conj() * B, P.conj() * P])  # (4, H, n)
    scaled = (dt * poles).unsqueeze(-1)
    sums = (pairs.unsqueeze(-1) / (z - scaled) + pairs.conj().unsqueeze(-1) / (z - scaled.conj())).sum(-2) * dt
    K = 2 / (1 + omega) * (sums[0] - sums[1] * sums[2] / (1 + sums[3]))
    return layer.mixing(_convolve(layer, u, torch.fft.irfft(K, n=length)))


def s4d(layer: Any, u: Tensor) -> Tensor:
    """Compute S4D by a Vandermonde matrix of exponentials, and FFTs."""
    dt, poles, B = _continuous(layer)
    step = dt * poles
    weights = torch.view_as_complex(layer.C) * B * (torch.exp(step) - 1) / poles
    powers = torch.exp(step.unsqueeze(-1) * torch.arange(u.shape[1]))  # (H, n, T)
    return layer.mixing(_convolve(layer, u, 2 * torch.einsum("hn,hnt->ht", weights, powers).real))


def _continuous(layer: Any) -> tuple[Tensor, Tensor, Tensor]:
    dt = softplus(layer.inv_dt) if layer.config.dt_transform == "softplus" else layer.inv_dt.exp()
    poles = layer.of_channels(torch.complex(-layer.A_real.exp(), -layer.A_imag))
    return dt.unsqueeze(-1), poles, layer.of_channels(torch.view_as_complex(layer.B))


def _convolve(layer: Any, u: Tensor, K: Tensor) -> Tensor:
    columns, length = u.transpose(1, 2), u.shape[1]
    spectrum = torch.fft.rfft(columns, n=2 * length) * torch.fft.rfft(K, n=2 * length)
    y = torch.fft.irfft(spectrum, n=2 * length)[..., :length] + layer.D.unsqueeze(-1) * columns
    return y.transpose(1, 2)


def liquid_s4(layer: Any, u: Tensor) -> Tensor:
    """Compute the exact recurrence of Liquid-S4, letter by letter."""
    (a, q, r), B, C, D = layer.system()
    a, q, r, B, C = (x.to(torch.complex64) for x in (a, q, r, B, C))
    x, outputs = torch.zeros(len(u), *a.shape, dtype=torch.complex64), []
    for u_k in u.unbind(1):
        arriving = B * u_k.unsqueeze(-1)
        x = a * x - q * (2 * (r * x).sum(-1, keepdim=True).real) + arriving * x + arriving
        outputs.append(2 * (C * x).sum(-1).real)
    return layer.mixing(torch.stack(outputs, 1) + D.float() * u)


def spectral(layer: Any, u: Tensor) -> Tensor:
    """Compute S5 or LRU in complex numbers, letter by letter, including the matrices."""
    rates, B, C = (x.to(torch.complex64) for x in layer.discretised())
    x, outputs = torch.zeros(len(u), len(rates), dtype=torch.complex64), []
    for u_k in u.unbind(1):
        x = rates * x + u_k.to(torch.complex64) @ B.T
        outputs.append((x @ C.T).real + layer.D * u_k)
    return layer.mixing(torch.stack(outputs, 1))


def rwkv4(layer: Any, u: Tensor) -> Tensor:
    """Compute RWKV-4 with its average letter by letter."""
    return layer(u, layer.initial_state(len(u)), "sequential")[0]


def vanilla(layer: Any, u: Tensor) -> Tensor:
    """Compute the vanilla recurrence letter by letter."""
    x, states = layer.x0, []
    for v_k in linear(u, layer.B).unbind(1):
        x = linear(x, layer.A) + v_k
        states.append(x)
    return torch.stack(states, 1)


def wkv(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> Tensor:
    """Compute only RWKV-4's average."""
    return reference(w, u, k, v, state)[0]


def diagonal(rates: Tensor, v: Tensor) -> Tensor:
    """Compute only the recurrence of S5 and LRU: pairs (2P,) and (B, T, 2P)."""
    complex_rates, complex_v = (torch.view_as_complex(x.unflatten(-1, (-1, 2))) for x in (rates, v))
    x, states = torch.zeros_like(complex_v[:, 0]), []
    for v_k in complex_v.unbind(1):
        x = complex_rates * x + v_k
        states.append(x)
    return torch.view_as_real(torch.stack(states, 1)).flatten(-2)


FORWARDS: dict[str, Forward] = {
    "s4": s4,
    "s4d": s4d,
    "liquid_s4": liquid_s4,
    "s5": spectral,
    "lru": spectral,
    "rwkv4": rwkv4,
    "vanilla": vanilla,
}
