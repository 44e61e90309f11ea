"""Convert the weights of published code to those of this package's layers: one function per published module.

Each function returns the parameters of a layer by name, in the form that `load_state_dict` takes, computed by
differentiable torch operations. Complex numbers are pairs (…, 2).

- `s4_block`: S4Block of state-spaces/s4, which is S4 or S4D.
- `liquid_block`: the S4 module of raminmh/liquid-s4, a fork of it, which is Liquid-S4.
- `s5_layer`, `lru_layer`: SequenceLayer of lindermanlab/S5 and of NicolasZucchet/minimal-LRU.
- `rwkv4_block`: Block of RWKV-v4 in BlinkDL/RWKV-LM.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import softplus

from fsa2lrnn.nn.layers.channel_layer import complex_of
from fsa2lrnn.nn.layers.transitions import Transition, from_planes, low_rank, planes

Weights = Mapping[str, Tensor]


def s4_block(weights: Weights, kernel_length: int | None = None, dt_transform: str = "softplus") -> dict[str, Tensor]:
    """Convert the weights of an `S4Block` to those of `S4Layer`, or of `S4DLayer` if it has no P. `kernel_length` is
    the value of its buffer l_kernel; None for S4D, and for an S4Block that has not read a word yet."""
    kernel = part(weights, "layer.kernel.")
    own = {
        "inv_dt": kernel["inv_dt"].squeeze(-1), "A_real": kernel["A_real"], "A_imag": kernel["A_imag"],
        "B": kernel["B"].squeeze(0), "C": kernel["C"].squeeze(0), "D": weights["layer.D"].squeeze(0),
        **_linear(weights, "output_linear.0.", "mixing.linear."),
    }  # fmt: skip
    if "P" in kernel:
        own["P"] = kernel["P"].squeeze(0)
    if kernel_length is not None:
        own["C"] = _untruncated(own, kernel_length, dt_transform)
    return own


def liquid_block(weights: Weights, kernel_length: int | None = None) -> dict[str, Tensor]:
    """Convert the weights of the S4 module of raminmh/liquid-s4 to those of `LiquidS4Layer`. Constants of the published
    correction are converted if `weights` has them under "frozen.kernel.". `kernel_length` has the same meaning as in
    `s4_block`."""
    kernel = part(weights, "kernel.kernel.")
    own = {
        "inv_dt": kernel["log_dt"], "A_real": kernel["inv_w_real"], "A_imag": -kernel["w_imag"],
        "B": kernel["B"].squeeze(0), "P": kernel["P"].squeeze(0), "C": kernel["C"].squeeze(0),
        "D": weights["D"].squeeze(0), **_linear(weights, "output_linear.0.", "mixing.linear."),
    }  # fmt: skip
    if kernel_length is not None:
        own["C"] = _untruncated(own, kernel_length, "exp")
    if "frozen.kernel.B" in weights:
        for theirs, ours in (("B", "inputs"), ("w", "poles"), ("C", "outputs")):
            x = weights[f"frozen.kernel.{theirs}"]
            own[f"frozen_{ours}"] = torch.view_as_real(x.squeeze(0) if theirs == "C" else x)
        own["frozen_dt"] = weights["frozen.kernel.log_dt"].exp()
    return own


def _untruncated(own: Weights, length: int, dt_transform: str) -> Tensor:
    """Return C as pairs (H, n, 2) from the parameter C̃ that the published S4 code stores (`untruncated`)."""
    copies = len(own["C"]) // len(own["A_real"])
    poles = torch.complex(-own["A_real"].double().exp(), -own["A_imag"].double()).repeat(copies, 1)
    P, B = (complex_of(own[name]).repeat(copies, 1) for name in "PB")
    raw = own["inv_dt"].double().unsqueeze(-1)
    transition, _ = low_rank(poles, P, B, raw.exp() if dt_transform == "exp" else softplus(raw))
    return torch.view_as_real(untruncated(transition, complex_of(own["C"]), length))


def untruncated(transition: Transition, C: Tensor, length: int) -> Tensor:
    """Return C from the C̃ that the published S4 code stores, the inverse of `truncated`: complex (H, n) -> (H, n)."""
    M = torch.linalg.matrix_power(transition.transposed.matrix(), length)
    eye = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    return from_planes(torch.linalg.solve(eye - M, planes(C).unsqueeze(-2), left=False).squeeze(-2))


def s5_layer(weights: Weights) -> dict[str, Tensor]:
    """Convert S5's SequenceLayer, without its norm, to `S5Layer`; the two linear maps of "full_glu" become one."""
    own = {name: weights[f"seq.{name}"] for name in ("Lambda_re", "Lambda_im", "B", "C", "D")}
    return {**own, "log_step": weights["seq.log_step"].squeeze(-1), **_dense(weights)}


def lru_layer(weights: Weights) -> dict[str, Tensor]:
    """Convert the weights of minimal-LRU's SequenceLayer, without its norm, to those of `LRULayer`."""
    own = {name: weights[f"seq.{name}"] for name in ("nu_log", "theta_log", "gamma_log", "D")}
    for name in "BC":
        own[name] = torch.stack([weights[f"seq.{name}_re"], weights[f"seq.{name}_im"]], -1)
    return {**own, **_dense(weights)}


def rwkv4_block(weights: Weights) -> dict[str, Tensor]:
    """Convert the weights of RWKV-4's Block to those of `RWKV4Layer`: (1, 1, C) becomes (C,) for `time_mix_*`."""
    return {name: x.flatten() if ".time_mix_" in name else x for name, x in weights.items()}


def part(weights: Weights, prefix: str) -> dict[str, Tensor]:
    """Return the weights whose names begin with `prefix`, with the prefix removed from the names.

    >>> list(part({"layers.0.D": torch.ones(1), "norm.weight": torch.ones(1)}, "layers.0."))
    ['D']
    """
    return {name.removeprefix(prefix): x for name, x in weights.items() if name.startswith(prefix)}


def _linear(weights: Weights, theirs: str, ours: str) -> dict[str, Tensor]:
    return {ours + name: x for name, x in part(weights, theirs).items()}


def _dense(weights: Weights) -> dict[str, Tensor]:
    """Return the Flax layers "out1" and "out2", kernels (in, out), as one torch linear map, weight (out, in)."""
    names = [name for name in ("out1", "out2") if f"{name}.kernel" in weights]
    if not names:
        return {}
    return {
        "mixing.linear.weight": torch.cat([weights[f"{name}.kernel"].T for name in names]),
        "mixing.linear.bias": torch.cat([weights[f"{name}.bias"] for name in names]),
    }
