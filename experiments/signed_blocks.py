"""The least block size with columns of 1-norm at most 1, the paper's stable rule, for permutation machines (T39)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import fmpz  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families.permutation_groups import group_of, subgroups

MAX_ORDER = 200
MAX_SUBGROUPS = 3_000


@dataclass(frozen=True)
class SignedBlocks:
    """Bounds on the least size of blocks whose columns have 1-norm at most 1; `note` says why they do not meet."""

    lower: int
    upper: int
    note: str


def signed_blocks(machine: MooreMachine) -> SignedBlocks | None:
    """Return bounds on the least block size with columns of 1-norm at most 1, or None if a letter is not a permutation.

    By T39, blocks of size b suffice if and only if functions f that some subgroup H of index at most b changes in sign
    only, f∘h = χ(h) f, separate all states. All subgroups are enumerated if the group is small enough.

    >>> from fsa2lrnn.automata import zoo
    >>> [signed_blocks(zoo.sum_mod(n)).upper for n in (2, 3, 4, 5, 6, 8, 10)]
    [1, 3, 2, 5, 3, 4, 5]
    """
    minimal = minimise(machine)
    n = minimal.n_states
    if any(len(np.unique(row)) < n for row in minimal.delta):
        return None
    if n == 1:
        return SignedBlocks(0, 0, "")
    listed = group_of(minimal.delta, MAX_ORDER)
    if listed is None:
        return SignedBlocks(1, n, f"the group has more than {MAX_ORDER} elements")
    group, permutations = listed
    found = subgroups(group, MAX_SUBGROUPS)
    if found is None:
        return SignedBlocks(_largest_odd_prime(group.order), n, f"the group has more than {MAX_SUBGROUPS:,} subgroups")
    codes: list[tuple[object, ...]] = [()] * n
    for index, mask in sorted(((group.order // int(mask.sum()), mask) for mask in found), key=lambda pair: pair[0]):
        for kernel in _kernels(mask, found):
            codes = [(*code, value) for code, value in zip(codes, _values(permutations, mask, kernel), strict=True)]
            number = {code: i for i, code in enumerate(dict.fromkeys(codes))}
            codes = [(number[code],) for code in codes]
            if len(number) == n:
                return SignedBlocks(index, index, "")
    raise AssertionError("the trivial subgroup tells all states apart")


def _kernels(mask: np.ndarray, masks: list[np.ndarray]) -> list[np.ndarray]:
    """Return the kernels of the homomorphisms of a subgroup to {1, −1}: itself, and its subgroups of index 2."""
    return [mask, *(other for other in masks if 2 * other.sum() == mask.sum() and not (other & ~mask).any())]


def _values(permutations: np.ndarray, mask: np.ndarray, kernel: np.ndarray) -> list[tuple[int, int]]:
    n = permutations.shape[1]
    values = [(-1, 0)] * n
    members = [(int(h), 1 if kernel[h] else -1) for h in np.flatnonzero(mask)]
    for q in range(n):
        if values[q] != (-1, 0):
            continue
        orbit: dict[int, set[int]] = {}
        for h, sign in members:
            orbit.setdefault(int(permutations[h, q]), set()).add(sign)
        is_zero = any(len(signs) > 1 for signs in orbit.values())
        for p, signs in orbit.items():
            values[p] = (0, 0) if is_zero else (q + 1, next(iter(signs)))
    return values


def _largest_odd_prime(order: int) -> int:
    return max((int(p) for p, _ in fmpz(order).factor() if p > 2), default=1)
