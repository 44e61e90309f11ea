"""The holonomy decomposition: every machine is covered by a cascade of permutations and resets (Krohn & Rhodes 1965).

It is computed from the images of the set Q of all states, without enumerating the monoid (Zeiger 1967; Eilenberg,
*Automata, Languages, and Machines* B, 1976, chapter II; Egri-Nagy & Nehaniv 2015). Let I* be the set of the images Q·w
of Q under all words w, including Q, and of the singletons.

* P ≤ R if P is contained in R·w for some word w (*subduction*). If also R ≤ P, the sets are equivalent: words map each
  onto the other, one to one. The *height* of a singleton is 0. The height of another set is the largest number of sets
  of two or more states in a chain that descends strictly from this set, which counts.
* The *tiles* of R are its maximal proper subsets in I*, numbered by *names*. In a class of equivalent sets, a spanning
  tree of letters carries the names from the first set to all others; so letters of the tree keep the names.
* A state of the cover is a chain from Q to a singleton {q}, in which each set is a tile of the set before it. Its
  coordinate at height h is the name of the tile that follows the set of height h, free if the chain has no such set.

A letter a leads the set P of a chain at height h into the set R of the next chain. If P·a = R, then a maps tiles to
tiles, and the names are permuted. Otherwise P·a is a proper subset of R, hence of some tile of R, and this tile follows
R whichever followed P: a reset. The coordinates of greater height determine P and R, hence the permutation or reset.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fsa2lrnn.automata.language import reachable_table
from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.elements import Images
from fsa2lrnn.automata.monoid.facts import Action
from fsa2lrnn.cascade.coordinates import FREE, Cover, constant_coordinates
from fsa2lrnn.errors import BudgetExceeded

MAX_SETS = 10_000
MAX_CHAINS = 200_000


def holonomy(maps: np.ndarray, start: int, max_sets: int = MAX_SETS, max_chains: int = MAX_CHAINS) -> Cover:
    """Return the cover of a machine by chains of image sets, whose coordinates move by permutations and resets only.

    Args:
        maps: the next state of each state for each letter, int (k, n).
        start: the start state.
        max_sets: the largest number of image sets, of which there may be 2ⁿ.
        max_chains: the largest number of chains, the states of the cover, which may far exceed n.

    Raises `BudgetExceeded` if there are more image sets or chains.

    >>> cover = holonomy(np.array([[1, 2, 0], [0, 0, 2]]), 0)
    >>> cover.sizes, cover.levels, len(cover.image)
    ((3, 2), (0, 1), 6)
    """
    tiling = _Tiling.of(maps, max_sets)
    chains, delta = _explore(tiling, _chain(tiling, start), len(maps), max_chains)
    image = tiling.ends(chains)
    # Any chain that ends in the start state may be the start; one from which fewest chains can be reached is taken.
    component, candidates = map_kernels.components(delta.T.copy()), np.flatnonzero(image == start)
    order, delta = reachable_table(delta, int(candidates[component[candidates].argmin()]))
    cover = Cover(delta, image[order], _renumbered(chains[order]), tuple(range(chains.shape[1])))
    return constant_coordinates(cover)


@dataclass(frozen=True, eq=False)
class _Tiling:
    """The sets of I*, Q first, with the graph of letters on them, heights and tiles.

    Args:
        sets: the indicators of the sets, bool (N, n).
        graph: the number of the set to which each letter leads a set, int (N, k).
        height: the height of each set, int (N,).
        tiles: the numbers of the tiles of each set by name, int (N, T), −1 beyond the last.
        moves: a cache: for sets P, R and a letter, the next name for each name of a tile, int (T,), −1 for no tile.
    """

    sets: np.ndarray
    graph: np.ndarray
    height: np.ndarray
    tiles: np.ndarray
    moves: dict[tuple[int, int, int], np.ndarray] = field(default_factory=dict[tuple[int, int, int], np.ndarray])

    @classmethod
    def of(cls, maps: np.ndarray, max_sets: int) -> _Tiling:
        sets, graph = _image_sets(maps, max_sets)
        # Sets in one strongly connected component of the graph are equivalent: words lead each onto the other.
        component = map_kernels.components(graph)
        size = sets.sum(axis=1)
        height = np.zeros(len(sets), np.int64)
        tiles: list[list[int]] = [[] for _ in sets]
        # Letters and inclusions lead to sets that come earlier in this order, or in the same class.
        order = np.lexsort((np.arange(len(sets)), component, size))
        for members in np.split(order, np.flatnonzero(np.diff(component[order])) + 1):
            root = int(members[0])
            if size[root] > 1:
                tiles[root] = _maximal_subsets(sets, size, root)
                _carry(tiles, graph, component, root)
                below = np.concatenate([graph[members].reshape(-1), tiles[root]])
                # By the lemma before T15, sets that are not equivalent to R and lie below it have smaller heights.
                height[members] = 1 + height[below[component[below] != component[root]]].max()
        width = max(1, *map(len, tiles))
        padded = [[*row, *[-1] * (width - len(row))] for row in tiles]
        return cls(sets, graph, height, np.array(padded))

    @property
    def levels(self) -> int:
        """The number of coordinates of a chain: the height of Q, or 1 if that is a singleton."""
        return max(1, int(self.height[0]))

    def step(self, chains: np.ndarray, a: int) -> np.ndarray:
        """Return the images of chains under a letter, int (F, C), −1 where free."""
        after = np.full_like(chains, FREE)
        old, new = np.zeros(len(chains), np.int64), np.zeros(len(chains), np.int64)  # the sets P and R
        for level in range(self.levels):
            # Level l is the height `levels` − l; R stays where it is if its own height is lower, and its coordinate is
            # free.
            here = self.height[new] == self.levels - level
            codes, which = np.unique(old[here] * len(self.sets) + new[here], return_inverse=True)
            if len(codes):
                # Chains with the same P and R share one move, so each pair of sets is computed once.
                moves = np.stack([self._move(*divmod(int(code), len(self.sets)), a) for code in codes])
                # If the old coordinate is free, the move is a reset, so that any name gives the right result.
                after[here, level] = moves[which.reshape(-1), np.maximum(chains[here, level], 0)]
            old, new = self._descend(old, chains[:, level]), self._descend(new, after[:, level])
        return after

    def ends(self, chains: np.ndarray) -> np.ndarray:
        """Return the state in the singleton at the end of each chain, int (F,)."""
        sets = np.zeros(len(chains), np.int64)
        for level in range(self.levels):
            sets = self._descend(sets, chains[:, level])
        return self.sets[sets].argmax(axis=1)

    def tile_around(self, big: int, small: int) -> int:
        """Return the name of the first tile of the set `big` that contains the set `small`; one must contain it."""
        tiles = self.tiles[big][self.tiles[big] >= 0]
        return int((self.sets[tiles] >= self.sets[small]).all(axis=1).argmax())

    def _descend(self, sets: np.ndarray, names: np.ndarray) -> np.ndarray:
        return np.where(names == FREE, sets, self.tiles[sets, names])

    def _move(self, old: int, new: int, a: int) -> np.ndarray:
        """Return the tile of set `new` that letter a makes of each tile of set `old`, −1 for none.

        If the letter maps the set onto `new`, it permutes tiles; otherwise the image lies inside one tile, and the move
        is a reset to that tile.
        """
        key = old, new, a
        if key not in self.moves:
            # T15: P·a = R makes the letter a permutation of tiles, by the lemma; otherwise P·a lies inside one tile of
            # R.
            target = int(self.graph[old, a])
            if target == new:
                name = {tile: y for y, tile in enumerate(self.tiles[new].tolist())}
                self.moves[key] = np.array([name[self.graph[x, a]] if x >= 0 else -1 for x in self.tiles[old]])
            else:
                self.moves[key] = np.full(self.tiles.shape[1], self.tile_around(new, target))
        return self.moves[key]


def _image_sets(maps: np.ndarray, cap: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the images of the state set under words, (S, n) bool, with all singletons, and their table (|Σ|, S).

    Holonomy tiles each image by smaller ones, down to singletons; those that are no image of the whole set are
    appended.
    """
    n = maps.shape[1]
    names = tuple(range(len(maps)))
    images = Images(Action(maps.astype(np.uint32), names, names), cap)
    if not images.whole:
        raise BudgetExceeded(
            f"words lead the set of all {n} states to more than {images.cap:,} sets: allow more, or keep one block"
        )
    found = images.sets.astype(bool)
    alone = np.full(n, -1)
    singletons = np.flatnonzero(found.sum(axis=1) == 1)
    alone[found[singletons].argmax(axis=1)] = singletons
    missing = np.flatnonzero(alone < 0)
    alone[missing] = len(found) + np.arange(len(missing))
    sets = np.concatenate([found, np.eye(n, dtype=bool)[missing]])
    return sets, np.concatenate([images.graph, alone[maps[:, missing].T]])


def _maximal_subsets(sets: np.ndarray, size: np.ndarray, root: int) -> list[int]:
    inside = np.flatnonzero((sets <= sets[root]).all(axis=1) & (size < size[root]))
    # The largest set left is maximal, and whatever it contains is not.
    inside = inside[np.argsort(-size[inside], kind="stable")]
    tiles: list[int] = []
    while len(inside):
        tiles.append(int(inside[0]))
        inside = inside[~(sets[inside] <= sets[inside[0]]).all(axis=1)]
    return tiles


def _carry(tiles: list[list[int]], graph: np.ndarray, component: np.ndarray, root: int) -> None:
    queue = [root]
    for i in queue:
        for a, j in enumerate(graph[i].tolist()):
            if component[j] == component[root] and not tiles[j]:
                # A letter of the spanning tree maps tiles to tiles and keeps their names.
                tiles[j] = graph[tiles[i], a].tolist()
                queue.append(j)


def _chain(tiling: _Tiling, q: int) -> np.ndarray:
    chain = np.full((1, tiling.levels), FREE)
    here = 0
    single = int(np.flatnonzero(tiling.sets[:, q] & (tiling.sets.sum(axis=1) == 1))[0])
    while here != single:
        name = tiling.tile_around(here, single)
        chain[0, tiling.levels - tiling.height[here]] = name
        here = int(tiling.tiles[here, name])
    return chain


def _explore(tiling: _Tiling, start: np.ndarray, k: int, cap: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the N chains reachable from `start`, int (N, C), and their next chains by letter, int (k, N)."""
    number = {start[0].tobytes(): 0}
    chains, columns = [start], list[np.ndarray]()
    while len(chains[-1]):
        targets, new = np.empty((k, len(chains[-1])), np.int64), list[np.ndarray]()
        for a in range(k):
            for i, row in enumerate(tiling.step(chains[-1], a)):
                known = len(number)
                targets[a, i] = number.setdefault(row.tobytes(), known)
                if len(number) > known:
                    new.append(row)
        if len(number) > cap:
            raise BudgetExceeded(
                f"the holonomy decomposition has more than {cap:,} chains of {tiling.levels} coordinates: allow more, "
                "or keep one block"
            )
        columns.append(targets)
        chains.append(np.array(new, np.int64).reshape(-1, tiling.levels))
    return np.concatenate(chains), np.concatenate(columns, axis=1)


def _renumbered(chains: np.ndarray) -> np.ndarray:
    values = np.full_like(chains, FREE)
    for i, column in enumerate(chains.T):
        taken = column != FREE
        values[taken, i] = np.unique(column[taken], return_inverse=True)[1].reshape(-1)
    return values
