"""Choose congruences by layer (Hartmanis & Stearns 1966), so that few layers of small components implement a machine.

The first layer has a context φ of one block. A layer takes congruences whose components are small; their meet with φ is
the context of the next layer, and the last context is the identity. A finer context never increases the block size of a
component, so taking all small components in every layer gives the fewest layers (docs/theory.md §6), and so does any
subset with the same meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np

from fsa2lrnn.cascade import partition_kernels
from fsa2lrnn.cascade.congruence import Lattice, block_sizes, meet
from fsa2lrnn.errors import NotExpressible

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
