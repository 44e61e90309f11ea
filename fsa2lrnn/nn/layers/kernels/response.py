"""Impulse responses: the states Ā^l B̄ of every channel, and K_l = 2 Re Σ C ⊙ Ā^l B̄.

`compiled` runs the compiled recurrence from the state B̄ with inputs 0, on the CPU, and returns no states. `doubled`
takes ⌈log₂ length⌉ rounds and serves all other cases: states, GPUs, where each operation costs a launch, and small
inputs. Both compute in double precision, because powers accumulate errors.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fsa2lrnn.nn.layers.kernels.recurrence import WORTH_COMPILING, recur
from fsa2lrnn.nn.layers.kernels.transition import Transition, from_planes, planes, reading, twice_real


class Response(NamedTuple):
    """An impulse response K (length, H) and its states as planes (H, length, 2n), or (H, 0, 2n) if not requested."""

    K: Tensor
    states: Tensor


def respond(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Return the impulse response K_l for l < length, by the faster method: B, C complex128 (H, n) -> float64.

    The result is differentiable in all inputs. Entries smaller than `least` become 0 (`channels.least`).

    >>> half = Transition(torch.full((1, 1), 0.5 + 0j))
    >>> respond(half, torch.ones(1, 1) + 0j, torch.ones(1, 1) + 0j, 4).K.flatten().tolist()
    [2.0, 1.0, 0.5, 0.25]
    """
    if with_states or B.device.type != "cpu" or length * B.numel() < WORTH_COMPILING:
        return doubled(transition, B, C, length, least, with_states)
    return Response(compiled(transition, B, C, length, least), planes(B).unsqueeze(1)[:, :0])


def compiled(transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0) -> Tensor:
    """Return the impulse response (length, H), length > 0, by the compiled recurrence; differentiable once."""
    first = twice_real(C * B).unsqueeze(0)
    later, _ = recur(transition, B, C, first.new_zeros(1, length - 1, len(B)), planes(B).unsqueeze(0))
    K = torch.cat([first, later[0]])
    return torch.where(K.abs() < least, 0, K)


def doubled(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """Return the impulse response in rounds, each of which doubles the number of states by a product with Ā^known."""
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
