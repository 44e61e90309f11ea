"""Choose congruences by layer, so that few layers of small components implement a machine, and label their states.

The first layer has a context φ of one block. A layer takes congruences whose components are small; their meet with φ is
the context of the next layer, and the last context is the identity (Hartmanis & Stearns 1966). A finer context never
increases the block size of a component, so taking all small components in every layer gives the fewest layers
(docs/theory.md §6), and so does any subset with the same meet.

In the context φ, the component of a congruence τ separates the blocks of φ ∧ τ inside each block of φ: its state is the
label of a (φ ∧ τ)-block, distinct inside a φ-block. Every letter maps the (φ ∧ τ)-blocks inside one φ-block to those
inside another, by a *local map*. The labels in different φ-blocks are a free choice, a *gauge*: with good labels many
local maps are the identity, and gates are small. Maps from or to a φ-block that is not split have no constraints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import networkx as nx
import numpy as np

from fsa2lrnn.cascade import partition_kernels
from fsa2lrnn.cascade.congruence import Lattice, block_sizes, canonical, meet
from fsa2lrnn.errors import NotExpressible


def index(context: np.ndarray, partition: np.ndarray) -> int:
    """Return the largest number of blocks of the meet of two partitions inside one block of the context, int64 (n,).

    >>> index(np.array([0, 0, 0, 1]), np.array([0, 1, 1, 2]))
    2
    """
    return int(partition_kernels.meets(context, partition[None])[2][0])


def is_identity_reset(maps: np.ndarray, context: np.ndarray, partition: np.ndarray) -> bool:
    """Return whether labels exist under which every local map of the component is constant or the identity.

    If they exist in some context, the same labels satisfy this in every finer one. Arguments are those of `labels`.

    >>> flip_flop = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 2]])
    >>> is_identity_reset(flip_flop, np.zeros(3, int), np.arange(3))
    True
    """
    return bool(partition_kernels.is_identity_reset(maps, context, meet(context, partition)))


def block_size(maps: np.ndarray, context: np.ndarray, partition: np.ndarray) -> int:
    """Return the size of the LRNN blocks of a component: 1 if signed diagonal entries suffice, else its index.

    A component of at most two states needs one signed entry x = a x + v; an identity-reset one, an entry per label
    except one. A finer context never increases the size. Arguments are those of `labels`.

    >>> turn = np.array([[1, 2, 3, 4, 5, 0]])
    >>> [block_size(turn, np.zeros(6, int), np.arange(6) % m) for m in (2, 3, 6)]
    [1, 3, 6]
    """
    size = index(context, partition)
    return 1 if size <= 2 or is_identity_reset(maps, context, partition) else size


def labels(maps: np.ndarray, context: np.ndarray, partition: np.ndarray, first: Sequence[int] = ()) -> np.ndarray:
    """Return the label of each state in a component, int64 (n,): −1 (free) where the context's block is not split.

    An identity-reset component gets labels under which every local map is constant or the identity, as few as a greedy
    colouring needs. For other components, a letter is accepted if all its injective local maps can be the identity
    together with those of the letters accepted before. The choice that remains makes single local maps of other letters
    the identity. These labels are below the index.

    Args:
        maps: distinct maps, int64 (k, n).
        context: a congruence of these maps, int64 (n,).
        partition: another congruence, int64 (n,).
        first: numbers of maps to try first, in this order; of a rejected one the local maps are tried one by one. The
            other maps follow, those with the most injective local maps first.

    >>> turn = np.array([[1, 2, 3, 4, 5, 0]])
    >>> labels(turn, np.array([0, 1, 0, 1, 0, 1]), np.arange(6)).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    finer = meet(context, partition)
    component = _Component(*partition_kernels.local_maps(maps, context, finer))
    if partition_kernels.is_identity_reset(maps, context, finer):
        colours = _coloured(component, component.identified(np.arange(len(component.block)))[0]).colour
    else:
        colours = _gauge(component, first)
    return colours[finer]


@dataclass(frozen=True, eq=False)
class _Component:
    block: np.ndarray
    first: np.ndarray
    images: np.ndarray
    kind: np.ndarray

    def inside(self, b: int) -> np.ndarray:
        return self.block[self.first[b] : self.first[b + 1]]

    @property
    def sizes(self) -> np.ndarray:
        """The number of blocks inside each block of the context."""
        return np.diff(self.first)

    def identified(self, classes: np.ndarray, a: int | None = None) -> tuple[np.ndarray, bool]:
        """Return the classes that make the injective local maps of letter a (or all) identities, and if that works."""
        rows = slice(None) if a is None else slice(a, a + 1)
        return partition_kernels.identified(classes, self.block, self.first, self.images[rows], self.kind[rows])

    def aligned(self, classes: np.ndarray, a: int, b: int) -> tuple[np.ndarray, bool]:
        """Return the classes that align letter a's local map from block b with others, and whether that works.

        The local map, an injective one, becomes the identity on labels. If the letter permutes the blocks inside its
        target, it becomes that permutation instead.
        """
        here = self.inside(b)
        images, kind = self.images[a].copy(), np.full_like(self.kind[a], partition_kernels.CONSTANT)
        kind[b] = partition_kernels.INJECTIVE
        for target in range(len(self.sizes)):
            other = self.inside(target)
            turned = self.images[a, other]
            if images[here[0]] in other and self.kind[a, target] == partition_kernels.INJECTIVE and turned[0] in other:
                # The letter maps the blocks inside the target onto blocks of the same target, a permutation, which is
                # undone first.
                back = dict(zip(turned.tolist(), other.tolist(), strict=True))
                images[here] = [back[x] for x in images[here].tolist()]
        return partition_kernels.identified(classes, self.block, self.first, images[None], kind[None])


@dataclass(frozen=True, eq=False)
class _Colouring:
    """The colour and the island of each of m blocks, int (m,); −1 for a block alone in one block of the context.

    Blocks of different islands share no class.
    """

    colour: np.ndarray
    island: np.ndarray


def _coloured(component: _Component, classes: np.ndarray) -> _Colouring:
    """Return a colouring of the classes of blocks in which classes inside one block of the context differ.

    The colouring is greedy (DSATUR). Connected components of the graph of clashes are the islands: colours of different
    islands can be permuted independently, which `_aligned` uses.
    """
    # Vertices are classes of blocks; two classes that occur in one block of the context need different labels.
    clashes: nx.Graph[int] = nx.Graph()
    for b in np.flatnonzero(component.sizes > 1).tolist():
        inside = classes[component.inside(b)].tolist()
        clashes.add_edges_from((c, d) for i, c in enumerate(inside) for d in inside[:i])
    colours = np.full(classes.max() + 1, -1)
    greedy: Any = nx.greedy_color  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    coloured: dict[int, int] = greedy(clashes, "saturation_largest_first")
    colours[list(coloured)] = list(coloured.values())
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
    """Return labels of blocks (m,), below the index, under which many letters act as the identity."""
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
        # A letter is accepted if its identities merge no two blocks inside one context block and `width` labels still
        # suffice.
        if apart and not (uneven and _coloured(component, merged).colour.max() >= width):
            classes = merged
        elif b is None:
            refused.append(a)
    colouring = _coloured(component, classes)
    return _aligned(component, colouring, list(_edges(component, refused)), width)


def _edges(component: _Component, letters: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for a in letters:
        for b in np.flatnonzero(component.kind[a] == partition_kernels.INJECTIVE).tolist():
            inside = component.inside(b)
            yield inside, component.images[a, inside]


def _aligned(
    component: _Component, colouring: _Colouring, edges: list[tuple[np.ndarray, np.ndarray]], width: int
) -> np.ndarray:
    """Return colours (m,) permuted island by island so that moves between islands become identities where possible.

    `edges` are pairs of block arrays, which a letter maps onto each other. From the largest block on, a spanning tree
    of islands is followed: one permutation per island is free, so the edges of the tree are satisfied, others may not
    be.
    """
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
            # An edge with exactly one island placed determines the permutation of the other one.
            placed, new = next(((x, y) for x, y in here if int(island[x[0]]) in turn), (None, None))
            if placed is None or new is None:
                break
            targets = turn[int(island[placed[0]])][colour[placed]]
            turn[int(island[new[0]])] = _permutation(colour[new], targets, width)
    result = colour.copy()
    for c in np.flatnonzero(island >= 0):
        result[c] = turn[int(island[c])][colour[c]]
    return result


def _permutation(points: np.ndarray, images: np.ndarray, width: int) -> np.ndarray:
    """Return the permutation of 0 … width−1 that maps `points` to `images`, and the other points in order."""
    permutation = np.empty(width, np.int64)
    permutation[np.setdiff1d(np.arange(width), points)] = np.setdiff1d(np.arange(width), images)
    permutation[points] = images
    return permutation


Layers = list[list[np.ndarray]]


@dataclass(frozen=True, eq=False)
class _Choice:
    congruence: np.ndarray
    finer: np.ndarray
    index: int
    size: int

    @property
    def price(self) -> int:
        """The sum of the cubes of the block sizes; diagonal entries count one per state but the first."""
        return self.size**3 if self.size > 1 else self.index - 1


def layering(maps: np.ndarray, lattice: Lattice, largest: int, first: Sequence[int] = ()) -> Layers:
    """Return congruences by layer whose components, in the context of earlier layers, have blocks <= `largest`.

    If the lattice has no such congruence, the layer is the congruence of smallest index, whose component is too large;
    the caller splits it by other methods. With a complete lattice, the number of layers is minimal if no component is
    too large and `first` is empty. Ties are broken by the order of the lattice, which depends on the numbering of
    states only between partitions of the same block sizes.

    Args:
        maps: distinct maps, int64 (k, n).
        lattice: congruences of these maps.
        largest: the largest LRNN block allowed, at least 1.
        first: smaller bounds for the first layers; one that no congruence satisfies is ignored.

    Raises `NotExpressible` if `largest` is below 1.

    >>> from fsa2lrnn.cascade.congruence import lattice
    >>> turn = np.array([[*range(1, 60), 0]])
    >>> [[int(p.max()) + 1 for p in layer] for layer in layering(turn, lattice(turn), largest=5)]
    [[5, 4, 3]]
    """
    if largest < 1:
        raise NotExpressible(f"blocks of at most {largest} states hold nothing: give largest=1 or more")
    context, layers = np.zeros(maps.shape[1], np.int64), Layers()
    while context.max() + 1 < len(context):
        choices = _choices(maps, context, lattice)
        bound = first[len(layers)] if len(layers) < len(first) else largest
        # T13: all congruences of small size may enter the layer together, and a subset with the same meet is as good.
        small = [choice for choice in choices if choice.size <= bound]
        small = small or [choice for choice in choices if choice.size <= largest]
        taken = _few(context, small) if small else [min(choices, key=lambda choice: choice.index)]
        layers.append([choice.congruence for choice in taken])
        context = _meet(context, taken)
    return layers


def thin(maps: np.ndarray, lattice: Lattice, layers: Layers, largest: int) -> Layers:
    """Return equally many layers with, usually, far fewer components than the result of `layering`.

    A layer of `layering` may separate more states than the next layers need. Here each layer takes the components with
    the greatest gain until the remaining layers suffice. The choice is greedy, so compare the costs of both results.
    Layers with a component that is too large are returned unchanged.

    >>> from fsa2lrnn.automata import zoo
    >>> from fsa2lrnn.cascade.congruence import lattice
    >>> maps = zoo.shift_register(4).delta
    >>> congruences = lattice(maps)
    >>> layers = layering(maps, congruences, largest=1)
    >>> [len(layer) for layer in layers], [len(layer) for layer in thin(maps, congruences, layers, largest=1)]
    ([1, 2, 2, 1], [1, 1, 1, 1])
    """
    context, result = np.zeros(maps.shape[1], np.int64), Layers()
    for left in reversed(range(len(layers))):
        small = [choice for choice in _choices(maps, context, lattice) if choice.size <= largest]
        if not small:
            return layers
        greedy = _covering(context, _meet(context, small), small)
        # A finer context never needs more layers (T12), so that bisection finds the shortest prefix that suffices.
        low, high = 1, len(greedy)
        while low < high:
            middle = (low + high) // 2
            if _finishes(maps, _meet(context, greedy[:middle]), lattice, largest, left):
                high = middle
            else:
                low = middle + 1
        taken = _few(context, small if high == len(greedy) else greedy[:high])
        result.append([choice.congruence for choice in taken])
        context = _meet(context, taken)
    return result


def _finishes(maps: np.ndarray, context: np.ndarray, lattice: Lattice, largest: int, n_layers: int) -> bool:
    for _ in range(n_layers):
        context = _meet(context, [choice for choice in _choices(maps, context, lattice) if choice.size <= largest])
    return bool(context.max() + 1 == len(context))


def _choices(maps: np.ndarray, context: np.ndarray, lattice: Lattice) -> list[_Choice]:
    """Return the congruences that split the context, one for each common refinement, with index and block size.

    The size is 1 if a diagonal component suffices: at most two blocks inside a block, or identities and resets alone.
    """
    finer, blocks, indices = partition_kernels.meets(context, lattice.partitions)
    seen: dict[bytes, int] = {}
    # Only congruences that refine the context gain something, and those with the same refinement are interchangeable.
    for i in np.flatnonzero(blocks > context.max() + 1).tolist():
        seen.setdefault(finer[i].tobytes(), i)
    choices: list[_Choice] = []
    for i in seen.values():
        index = int(indices[i])
        size = 1 if index <= 2 or partition_kernels.is_identity_reset(maps, context, finer[i]) else index
        choices.append(_Choice(lattice.partitions[i], finer[i], index, size))
    return choices


def _few(context: np.ndarray, choices: list[_Choice]) -> list[_Choice]:
    subsets = [_by_gain(context, choices), _by_price(context, choices)]
    return min(subsets, key=lambda subset: (sum(choice.price for choice in subset), len(subset)))


def _by_gain(context: np.ndarray, choices: list[_Choice]) -> list[_Choice]:
    taken = _covering(context, _meet(context, choices), choices)
    for choice in sorted(taken, key=lambda choice: -choice.price):
        rest = [other for other in taken if other is not choice]
        # A choice without which the meet has as many blocks is redundant.
        if _meet(context, rest).max() == _meet(context, taken).max():
            taken = rest
    return taken


def _by_price(context: np.ndarray, choices: list[_Choice]) -> list[_Choice]:
    """Return choices that separate as much as all of them together, the cheapest set found by going down in price.

    What cheaper choices separate together is computed first; at each price, only what these leave is covered.
    """
    price = attrgetter("price")
    levels = [list(level) for _, level in groupby(sorted(choices, key=price), key=price)]
    # `cheaper[i]` is the meet of the context with all choices of the i lowest prices.
    cheaper = [context]
    for level in levels:
        cheaper.append(_meet(cheaper[-1], level))
    taken: list[_Choice] = []
    for i in reversed(range(len(levels))):
        goal = _meet(cheaper[i + 1], taken)
        taken += _covering(_meet(cheaper[i], taken), goal, levels[i])
    return _by_gain(context, taken)


def _covering(context: np.ndarray, goal: np.ndarray, choices: list[_Choice]) -> list[_Choice]:
    """Return choices whose meet with `context` is as fine as `goal`: greedily, most blocks, then lowest price."""
    finer = np.stack([choice.finer for choice in choices])
    prices = np.array([choice.price for choice in choices])
    taken: list[_Choice] = []
    while context.max() < goal.max():
        rows, blocks, _ = partition_kernels.meets(context, finer)
        # Among the choices that leave most blocks, only those of the lowest price remain.
        dear = np.where(blocks == blocks.max(), prices, prices.max() + 1)
        equals = np.flatnonzero(dear == dear.min())
        best = int(equals[np.argmin((block_sizes(rows[equals]) ** 2).sum(axis=1))])  # fewest pairs of states together
        taken.append(choices[best])
        context = rows[best]
    return taken


def _meet(context: np.ndarray, choices: list[_Choice]) -> np.ndarray:
    return meet(context, *(choice.finer for choice in choices))
