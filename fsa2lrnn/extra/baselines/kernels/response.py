"""Impulse responses: the states Ā^l B̄ of every channel, and K_l = 2 Re Σ C ⊙ Ā^l B̄.

Without states, they are computed on the CPU by the compiled recurrence without inputs, from the state B̄. `doubled`, in
⌈log₂ length⌉ rounds, is for states, for GPUs, where each operation is a launch, and for small inputs. All compute in
double precision, whatever the dtype of the layer: the inputs are small, and powers accumulate errors.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fsa2lrnn.extra.baselines.kernels.recurrence import WORTH_COMPILING, recur
from fsa2lrnn.extra.baselines.kernels.transition import Transition, from_planes, planes, reading, twice_real


class Response(NamedTuple):
    """An impulse response K (length, H) and its states as planes (H, length, 2n), or (H, 0, 2n) if not requested."""

    K: Tensor
    states: Tensor


def respond(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Return the response for l < length: complex128 B, C (H, n) -> float64 results, differentiable in all inputs.

    Entries smaller than `least` become 0: where a layer computes in single precision, products with them
    would be denormal, which is slow.

    >>> half = Transition(torch.full((1, 1), 0.5 + 0j))
    >>> respond(half, torch.ones(1, 1) + 0j, torch.ones(1, 1) + 0j, 4).K.flatten().tolist()
    [2.0, 1.0, 0.5, 0.25]
    """
    if with_states or B.device.type != "cpu" or length * B.numel() < WORTH_COMPILING:
        return doubled(transition, B, C, length, least, with_states)
    return Response(compiled(transition, B, C, length, least), planes(B).unsqueeze(1)[:, :0])


def compiled(transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0) -> Tensor:
    """Return K of `respond` for length > 0, by the recurrence without inputs; differentiable once."""
    first = twice_real(C * B).unsqueeze(0)
    later, _ = recur(transition, B, C, first.new_zeros(1, length - 1, len(B)), planes(B).unsqueeze(0))
    K = torch.cat([first, later[0]])
    return torch.where(K.abs() < least, 0, K)


def doubled(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Compute `respond` in rounds: each multiplies all known states by a power of Ā and so doubles their number."""
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
