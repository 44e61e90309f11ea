"""The liquid recurrence of every channel: x_k = (Ā + diag(B̄ u_k)) x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k.

The transition depends on the input, so an impulse response does not exist. `sequential` is the reference; `fused` runs
the compiled loops of `recurrence` on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.compiled import DTYPES
from fsa2lrnn.nn.layers.kernels.channels import System, by_steps
from fsa2lrnn.nn.layers.kernels.recurrence import WORTH_COMPILING, recur
from fsa2lrnn.nn.layers.kernels.transition import from_planes, planes, twice_real
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
