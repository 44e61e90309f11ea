"""The paper's parallel scan (PScan) and its matrix schedule (Fan, Chi & Rudnicky, §3.4 and Appendix A.2).

x_0, v_1, … v_T stand in L = 2^k places, k = ⌈log₂(T+1)⌉. In round r the places are taken in groups of 2^(r+1); the last
state of each left half, carried by the products of transitions in between, is added to every place of its right half.
The products come from `spt`, which turns those of one round into those of the next.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def pscan(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """x_k = A_k x_{k-1} + v_k in ⌈log₂(T+1)⌉ rounds: A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b) -> (B,T,H,b).

    About (T/2)·log₂T·H·b³ multiplications. An infinite product times a zero state is NaN here, where the sequential
    scan stays 0: the order of multiplication differs.
    """
    batch, length = v.shape[:2]
    rounds = length.bit_length()  # ⌈log₂(T+1)⌉
    places = 2**rounds
    x = pad(torch.cat([x0.unsqueeze(1), v], dim=1), (0, 0, 0, 0, 0, places - length - 1))  # (B, L, H, b)
    products = pad(A, (0, 0, 0, 0, 0, 0, 0, places - 1 - length)).unsqueeze(2)  # (B, L-1, 1, H, b, b)
    for r in range(rounds):
        coefficients, products = spt(products)  # (B, groups, 2^r, H, b, b)
        left, right = x.reshape(batch, places >> (r + 1), 2, 2**r, *v.shape[2:]).unbind(2)  # (B, groups, 2^r, H, b)
        carried = coefficients @ left[:, :, -1:].unsqueeze(-1)
        x = torch.cat([left, right + carried.squeeze(-1)], dim=2)
    return x.reshape(batch, places, *v.shape[2:])[:, 1 : length + 1]


def spt(products: Tensor) -> tuple[Tensor, Tensor]:
    """One round of the schedule: (products used in this round, products for the next).

    `products` has shape (B, 2m−1, c, H, b, b): group g holds the c products A_{s+j} ⋯ A_{s+1} of its stretch. Even
    groups are used now, shape (B, m, c, …); each odd group, extended by the next even one, makes a group of 2c.
    """
    used, kept = products[:, ::2], products[:, 1::2]
    return used, torch.cat([kept, used[:, 1:] @ kept[:, :, -1:]], dim=2)


def schedule(length: int) -> list[list[list[str]]]:
    """The products that each round of `pscan` uses, by name: the illustration in the paper's Appendix A.2.1.

    `length` is T = 2^k − 1, the lengths that need no padding; raises `ValueError` for others.

    >>> for used in schedule(7):
    ...     print(used)
    [['A1'], ['A3'], ['A5'], ['A7']]
    [['A2', 'A3A2'], ['A6', 'A7A6']]
    [['A4', 'A5A4', 'A6A5A4', 'A7A6A5A4']]
    """
    if length < 1 or length & (length + 1):
        below = 2 ** max((length + 1).bit_length() - 1, 1) - 1 if length > 0 else 1
        raise ValueError(
            f"length {length} is not 2^k - 1: take {below} or {2 * below + 1}; pscan pads to such a length"
        )
    groups, rounds = [[f"A{k}"] for k in range(1, length + 1)], []
    while groups:
        used, kept = groups[::2], groups[1::2]
        rounds.append(used)
        groups = [now + [name + now[-1] for name in later] for now, later in zip(kept, used[1:], strict=True)]
    return rounds
