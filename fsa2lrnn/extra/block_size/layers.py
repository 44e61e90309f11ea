"""Permutation machines in a given number of layers (T38 of docs/theory.md): series of normal subgroups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.permutations import generating_set
from fsa2lrnn.display.brief import Brief
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine
from fsa2lrnn.extra.block_size import minimal_block
from fsa2lrnn.extra.block_size.answer import Field
from fsa2lrnn.extra.block_size.depth import degree
from fsa2lrnn.families.groups import PermutationGroup, composition_factors, group_of

MAX_ORDER = 200
_NONE = 10**9  # no series yet


@dataclass(frozen=True)
class DepthBound(Brief):
    """The least b for which a number of layers of blocks of size at most b runs a permutation machine, or an interval.

    Args:
        layers: how many.
        lower: no blocks smaller than that do.
        upper: blocks of this size do.
        orders: of the factors of a series of normal subgroups with blocks of size `upper`, from below.
    """

    layers: int
    lower: int
    upper: int
    orders: tuple[int, ...]

    @property
    def value(self) -> int | None:
        """The least size b, if the bounds meet."""
        return self.lower if self.lower == self.upper else None


def layered(machine: MooreMachine, layers: int, field: Field = "R") -> DepthBound:
    """Return the least block size for a permutation machine in a number of layers, with finitely many reached vectors.

    Raises:
        InvalidMachine: if a letter does not permute the states of the minimal machine.
        BudgetExceeded: if its group has more than `MAX_ORDER` elements.

    >>> from fsa2lrnn.automata import zoo
    >>> layered(zoo.group("S3"), 2, "C").value, layered(zoo.group("S4"), 2, "R").value
    (1, 2)
    """
    minimal = minimise(machine)
    n = minimal.n_states
    odd = next((a for a, row in enumerate(minimal.delta) if len(np.unique(row)) < n), None)
    if odd is not None:
        raise InvalidMachine(f"letter {minimal.alphabet[odd]!r} does not permute the states: take `any_depth`")
    found = group_of(minimal.delta, MAX_ORDER)
    if found is None:
        raise BudgetExceeded(f"the group of the {n} states has more than {MAX_ORDER} elements")
    group, _ = found
    normal = group.normal_subgroups
    # Least over the series from 1 to each normal subgroup: (lower bound, upper bound, orders of the factors).
    ends = [(1, 1, tuple[int, ...]())] + [(_NONE, _NONE, tuple[int, ...]())] * (len(normal) - 1)
    bounds: dict[tuple[int, int], tuple[int, int]] = {}
    for _ in range(layers):
        longer = list(ends)
        for i, small in enumerate(normal):
            for j, large in enumerate(normal):
                if (small & ~large).any() or i == j:
                    continue
                if (i, j) not in bounds:
                    bounds[i, j] = _bounds(group.restricted(large).quotient(small[large]), field)
                low, high = bounds[i, j]
                low, high = max(ends[i][0], low), max(ends[i][1], high)
                orders = (*ends[i][2], int(large.sum()) // int(small.sum()))
                best = longer[j]
                high, orders = (best[1], best[2]) if best[1] <= high else (high, orders)
                longer[j] = min(best[0], low), high, orders
        ends = longer
    return DepthBound(layers, *ends[-1])


def _bounds(group: PermutationGroup, field: Field) -> tuple[int, int]:
    """Return bounds on b for which a group is a quotient of a subgroup of a product of finite subgroups of GL_b."""
    if group.order == 1:
        return 1, 1
    if group.is_abelian if field == "C" else group.is_elementary_two:
        return 1, 1
    needed = max(degree(name, field)[0] for name in composition_factors(group))
    low = max(needed, 2)  # only the groups above need no more than 1
    if field == "R" and low == 2 and not _is_almost_dihedral(group):
        low = 3
    moves = group.table.T  # by the elements, from the right
    chosen = generating_set(moves.astype(np.uint32), group.order)
    regular = MooreMachine(moves[chosen], range(group.order))
    return low, max(low, minimal_block(regular, field).upper)


def _is_almost_dihedral(group: PermutationGroup) -> bool:
    """Return whether some abelian normal subgroup has an elementary abelian 2-group as quotient (as in O(2))."""
    return any(
        group.restricted(mask).is_abelian and group.quotient(mask).is_elementary_two for mask in group.normal_subgroups
    )
