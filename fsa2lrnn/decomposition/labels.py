"""Components of a congruence in a context, and the labels of their states (docs/theory.md §6).

In the context φ the component of a congruence τ tells apart the blocks of φ ∧ τ inside each block of φ: its state is
the label of a (φ ∧ τ)-block, distinct inside a φ-block. Every letter leads the (φ ∧ τ)-blocks inside one φ-block to
those inside another, a *local map*. Which labels two φ-blocks share is a free choice, a gauge: with good labels many
local maps are the identity, and gates have little to do. Maps from or to a φ-block that is not split ask for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from fsa2lrnn.decomposition import partition_kernels
from fsa2lrnn.decomposition.congruence import canonical, meet


def index(context: np.ndarray, partition: np.ndarray) -> int:
    """The most blocks of context ∧ partition inside one block of the context.

    >>> index(np.array([0, 0, 0, 1]), np.array([0, 1, 1, 2]))
    2
    """
    return int(partition_kernels.meets(context, partition[None])[2][0])


def is_identity_reset(maps: np.ndarray, context: np.ndarray, partition: np.ndarray) -> bool:
    """Whether labels exist under which every local map of the component is constant or the identity.

    If so in some context, then in every finer one: labels that do stay distinct and go on doing so.

    >>> flip_flop = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 2]])
    >>> is_identity_reset(flip_flop, np.zeros(3, int), np.arange(3))
    True
    """
    return bool(partition_kernels.is_identity_reset(maps, context, meet(context, partition)))


def block_size(maps: np.ndarray, context: np.ndarray, partition: np.ndarray) -> int:
    """The size of the LRNN blocks for the component: 1 if signed or diagonal lanes suffice, else its index.

    A component of at most two states is one signed lane x = a x + v, an identity-reset one a lane for each label but
    one. A finer context never raises it.

    >>> turn = np.array([[1, 2, 3, 4, 5, 0]])
    >>> [block_size(turn, np.zeros(6, int), np.arange(6) % m) for m in (2, 3, 6)]
    [1, 3, 6]
    """
    size = index(context, partition)
    return 1 if size <= 2 or is_identity_reset(maps, context, partition) else size


def labels(maps: np.ndarray, context: np.ndarray, partition: np.ndarray, first: Sequence[int] = ()) -> np.ndarray:
    """The component's coordinate of each state, int64 (n,): −1, for free, where the context's block is not split.

    An identity-reset component gets labels under which every local map is constant or the identity, as few as a greedy
    colouring finds. In another, letters are accepted one by one if all their injective local maps can be the identity
    together with those accepted before; what freedom is left is used for single local maps of the others. Labels are
    then below the index.

    Args:
        maps: distinct maps, int64 (k, n).
        context: a congruence of theirs.
        partition: another.
        first: numbers of maps to be tried first, in this order, and where they are refused their local maps one by one;
            then come those with many local maps.

    >>> turn = np.array([[1, 2, 3, 4, 5, 0]])
    >>> labels(turn, np.array([0, 1, 0, 1, 0, 1]), np.arange(6)).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    finer = meet(context, partition)
    component = _Component(*partition_kernels.local_maps(maps, context, finer))
    if partition_kernels.is_identity_reset(maps, context, finer):
        found = _coloured(component, component.identified(np.arange(len(component.block)))[0]).colour
    else:
        found = _gauge(component, first)
    return found[finer]


@dataclass(frozen=True, eq=False)
class _Component:
    """Local maps, as `partition_kernels.local_maps` gives them."""

    block: np.ndarray
    first: np.ndarray
    images: np.ndarray
    kind: np.ndarray

    def inside(self, b: int) -> np.ndarray:
        """The blocks inside block b of the context."""
        return self.block[self.first[b] : self.first[b + 1]]

    @property
    def sizes(self) -> np.ndarray:
        """How many there are inside each block of the context."""
        return np.diff(self.first)

    def identified(self, classes: np.ndarray, a: int | None = None) -> tuple[np.ndarray, bool]:
        """Classes after the injective local maps of a letter, or of all, are made the identity, and if they can be."""
        rows = slice(None) if a is None else slice(a, a + 1)
        return partition_kernels.identified(classes, self.block, self.first, self.images[rows], self.kind[rows])

    def aligned(self, classes: np.ndarray, a: int, b: int) -> tuple[np.ndarray, bool]:
        """Classes after letter a's injective local map from block b of the context is made like those from others, and
        if it can be.

        That is the identity, unless the letter permutes the block of the context that it leads to: then that same
        permutation, on labels.
        """
        here = self.inside(b)
        images, kind = self.images[a].copy(), np.full_like(self.kind[a], partition_kernels.CONSTANT)
        kind[b] = partition_kernels.INJECTIVE
        for target in range(len(self.sizes)):
            there = self.inside(target)
            turned = self.images[a, there]
            if images[here[0]] in there and self.kind[a, target] == partition_kernels.INJECTIVE and turned[0] in there:
                back = dict(zip(turned.tolist(), there.tolist(), strict=True))
                images[here] = [back[x] for x in images[here].tolist()]
        return partition_kernels.identified(classes, self.block, self.first, images[None], kind[None])


@dataclass(frozen=True, eq=False)
class _Colouring:
    """Colours of blocks (m,) and the islands that share no class (m,); −1 for a block alone in one of the context."""

    colour: np.ndarray
    island: np.ndarray


def _coloured(component: _Component, classes: np.ndarray) -> _Colouring:
    """Blocks of one class have one colour, blocks inside one block of the context distinct ones."""
    clashes: nx.Graph[int] = nx.Graph()
    for b in np.flatnonzero(component.sizes > 1).tolist():
        inside = classes[component.inside(b)].tolist()
        clashes.add_edges_from((c, d) for i, c in enumerate(inside) for d in inside[:i])
    colours = np.full(classes.max() + 1, -1)
    greedy: Any = nx.greedy_color  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    found: dict[int, int] = greedy(clashes, "saturation_largest_first")
    colours[list(found)] = list(found.values())
    islands = np.full(classes.max() + 1, -1)
    for i, members in enumerate(nx.connected_components(clashes)):
        islands[list(members)] = i
    alone = np.zeros(len(classes), bool)
    alone[component.block[np.repeat(component.sizes, component.sizes) == 1]] = True
    colour, island = np.where(alone, -1, colours[classes]), np.where(alone, -1, islands[classes])
    for i in range(islands.max() + 1):
        colour[island == i] = canonical(colour[island == i])
    return _Colouring(colour, island)


def _gauge(component: _Component, first: Sequence[int]) -> np.ndarray:
    """Labels of blocks (m,), below the index, under which as many letters as possible act as the identity."""
    width = int(component.sizes.max())
    uneven = len(set(component.sizes[component.sizes > 1].tolist())) > 1  # only then may colours not suffice
    by_count = np.argsort(-(component.kind == partition_kernels.INJECTIVE).sum(axis=1), kind="stable").tolist()
    classes = np.arange(len(component.block))
    refused: list[int] = []
    # Local maps one by one follow a letter of `first` that is refused as a whole.
    attempts: list[tuple[int, int | None]] = []
    for a in dict.fromkeys([*first, *by_count]):
        injective = np.flatnonzero(component.kind[a] == partition_kernels.INJECTIVE).tolist() if a in first else []
        attempts += [(a, None), *((a, b) for b in injective)]
    for a, b in attempts:
        if b is not None and a not in refused:
            continue
        merged, apart = component.identified(classes, a) if b is None else component.aligned(classes, a, b)
        if apart and not (uneven and _coloured(component, merged).colour.max() >= width):
            classes = merged
        elif b is None:
            refused.append(a)
    colouring = _coloured(component, classes)
    return _aligned(component, colouring, list(_edges(component, refused)), width)


def _edges(component: _Component, letters: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Injective local maps: blocks and their images."""
    for a in letters:
        for b in np.flatnonzero(component.kind[a] == partition_kernels.INJECTIVE).tolist():
            inside = component.inside(b)
            yield inside, component.images[a, inside]


def _aligned(
    component: _Component, colouring: _Colouring, edges: list[tuple[np.ndarray, np.ndarray]], width: int
) -> np.ndarray:
    """Colours permuted on each island so that local maps from island to island, a spanning forest, are the identity."""
    colour, island = colouring.colour, colouring.island
    turn: dict[int, np.ndarray] = {}
    for b in np.argsort(-component.sizes, kind="stable"):
        root = int(island[component.inside(b)[0]])
        if root < 0 or root in turn:
            continue
        turn[root] = np.arange(width)
        while True:
            edges = [(x, y) for x, y in edges if int(island[x[0]]) not in turn or int(island[y[0]]) not in turn]
            here = ((x, y) if int(island[x[0]]) in turn else (y, x) for x, y in edges)
            known, new = next(((x, y) for x, y in here if int(island[x[0]]) in turn), (None, None))
            if known is None or new is None:
                break
            wanted = turn[int(island[known[0]])][colour[known]]
            turn[int(island[new[0]])] = _permutation(colour[new], wanted, width)
    result = colour.copy()
    for c in np.flatnonzero(island >= 0):
        result[c] = turn[int(island[c])][colour[c]]
    return result


def _permutation(points: np.ndarray, images: np.ndarray, width: int) -> np.ndarray:
    """A permutation of 0 … width−1 that leads points to images, the others in order."""
    permutation = np.empty(width, np.int64)
    permutation[np.setdiff1d(np.arange(width), points)] = np.setdiff1d(np.arange(width), images)
    permutation[points] = images
    return permutation
