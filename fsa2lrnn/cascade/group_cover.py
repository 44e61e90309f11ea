"""Cover a permutation-reset machine by its group: the product g of the permutations read so far, and a point x.

If every letter permutes the states or leads all to one, the machine is in the state g·x. A permutation h changes g to
h·g and keeps x; a letter that leads all states to y keeps g and sets x to g⁻¹·y. So x changes by resets only, and g has
the coordinates of the group's regular representation, where every subgroup is a congruence: three point stabilisers of
S₅ and A₅ give coordinates of sizes 5, 5, 5 and 2 in one level.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fsa2lrnn.automata.language import enumerate_states
from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.cascade.coordinates import FREE, Cover
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

MAX_ORDER = 200


def regular(maps: np.ndarray, limit: int = MAX_ORDER) -> tuple[np.ndarray, np.ndarray]:
    """Return the group that the permutations among the maps generate, and the action of the maps on it from the left.

    Args:
        maps: permutations and constants of 0 … n−1, int (k, n).
        limit: the largest order of the group.

    Returns:
        The elements as permutations, int (N, n), the identity first; and the next element for each map and element g,
        int (k, N): the number of h·g for a permutation h (g is applied first), of g for a constant.

    Raises:
        InvalidMachine: if a map is neither a permutation nor a constant.
        BudgetExceeded: if the group has more than `limit` elements.

    >>> elements, table = regular(np.array([[1, 2, 0], [0, 0, 0]]))
    >>> elements.tolist(), table.tolist()
    ([[0, 1, 2], [1, 2, 0], [2, 0, 1]], [[1, 2, 0], [0, 1, 2]])
    """
    identity = np.arange(maps.shape[1], dtype=np.uint32)
    acting = maps.astype(np.uint32)
    # A constant leaves g unchanged, so it acts on the group as the identity.
    acting[~_permutes(maps)] = identity
    elements, _, _, right, whole = map_kernels.generate(acting, identity, False, limit)
    if not whole:
        raise BudgetExceeded(
            f"the letters' permutations of {maps.shape[1]} states generate a group of more than {limit:,} elements: "
            "allow more, or keep one block"
        )
    return elements.astype(np.int64), right.T.copy()


def group_cover(
    maps: np.ndarray, start: int, elements: np.ndarray, coordinates: np.ndarray, levels: tuple[int, ...]
) -> Cover:
    """Return the cover of a permutation-reset machine by pairs (g, x), which represent the state g·x.

    Args:
        maps: permutations and constants of 0 … n−1, int (k, n).
        start: the start state, the first x.
        elements: the group, as `regular` returns it.
        coordinates: coordinates that separate its elements, int (N, C), −1 where free, as in a `Cover` of the group's
            machine.
        levels: the levels of the coordinates, C of them.

    The last coordinate of the result is x, unless x is always `start`.

    Raises `InvalidMachine` if a map is neither a permutation nor a constant, or elements may have equal coordinates.

    >>> elements, _ = regular(np.array([[1, 2, 0], [0, 0, 0]]))
    >>> cover = group_cover(np.array([[1, 2, 0], [0, 0, 0]]), 0, elements, np.array([[0], [1], [2]]), (0,))
    >>> cover.values[:4].tolist(), cover.image[:4].tolist()
    ([[0, 0], [1, 0], [2, 0], [1, 2]], [0, 1, 2, 0])
    """
    _check_distinct(coordinates)
    maps, permutes = maps.astype(np.int64), _permutes(maps)
    number = {element.tobytes(): i for i, element in enumerate(elements)}
    # The argsort of a permutation is its inverse: `back[g, y]` is g⁻¹·y.
    back = np.argsort(elements, axis=1)

    def step(state: tuple[int, int]) -> Iterator[tuple[int, int]]:
        g, x = state
        for a, row in enumerate(maps):
            yield (number[row[elements[g]].tobytes()], x) if permutes[a] else (g, int(back[g, row[0]]))

    states, delta = enumerate_states((0, start), step, len(elements) * maps.shape[1])
    g, x = np.array(states).T
    cover = Cover(
        delta,
        elements[g, x],
        np.column_stack([coordinates[g], np.unique(x, return_inverse=True)[1].reshape(-1)]),
        (*levels, max(levels, default=-1) + 1),
    )
    # Without constants x never moves, and its coordinate is superfluous.
    if (x != start).any():
        return cover
    return Cover(delta, cover.image, cover.values[:, :-1], cover.levels[:-1])


def _permutes(maps: np.ndarray) -> np.ndarray:
    """Return whether each map is a permutation, bool (k,); raise `InvalidMachine` unless the others are constants."""
    n_targets = np.array([len(set(row)) for row in maps.tolist()])
    permutes = n_targets == maps.shape[1]
    neither = ~permutes & (n_targets > 1)
    if neither.any():
        a = int(neither.argmax())
        raise InvalidMachine(
            f"map {a}, {maps[a].tolist()}, is neither a permutation nor a constant: take the holonomy decomposition"
        )
    return permutes


def _check_distinct(coordinates: np.ndarray) -> None:
    for i, row in enumerate(coordinates):
        agree = ((coordinates == row) | (coordinates == FREE) | (row == FREE)).all(axis=1)
        agree[i] = False
        if agree.any():
            raise InvalidMachine(
                f"the coordinates {row.tolist()} and {coordinates[agree.argmax()].tolist()} of elements {i} and "
                f"{int(agree.argmax())} may be equal: give coordinates that tell all elements apart"
            )
