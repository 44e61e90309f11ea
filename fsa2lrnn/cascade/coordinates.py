"""Build the cascade that computes given coordinates of the states of a machine.

Each state of a *cover* of a machine represents a state of the machine. The coordinates of a cover are the states of a
cascade's components: by Krohn & Rhodes' theorem there are coordinates whose next values depend on the letter and on
earlier coordinates. `assemble` determines the maps of each coordinate, and which others it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cascade.cascade import Cascade, Component, tells
from fsa2lrnn.cascade.rows import distinct_rows
from fsa2lrnn.deadline import check_current
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

FREE = -1
_MAX_WORK = 40_000_000  # some seconds
_MAX_ROWS = 100_000  # rows of a component's table after the expansion of free coordinates


@dataclass(frozen=True, eq=False)
class Cover:
    """A machine whose states represent states of a covered machine and have coordinates; its start is state 0.

    The next value of a coordinate is a function of the letter, its own value and coordinates of lower levels. If a
    coordinate of a state is free, the next states do not depend on its value.

    Args:
        delta: the next states for each letter, int (k, N).
        image: the state of the covered machine that each state represents, int (N,).
        values: the coordinates of each state, int (N, C), −1 where free.
        levels: the level of each coordinate.

    Raises `InvalidMachine` if the shapes do not fit.
    """

    delta: np.ndarray
    image: np.ndarray
    values: np.ndarray
    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        n, n_coordinates = self.values.shape
        if self.delta.shape[1] != n or self.image.shape != (n,):
            raise InvalidMachine(
                f"a cover's values {self.values.shape} ask for image ({n},) and delta (k, {n}), not "
                f"{self.image.shape} and {self.delta.shape}"
            )
        if len(self.levels) != n_coordinates:
            raise InvalidMachine(f"{n_coordinates} coordinates have {len(self.levels)} levels")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each coordinate."""
        return tuple(int(column.max(initial=0)) + 1 for column in self.values.T)

    def pinned(self) -> Cover:
        """Return the cover with 0 in place of every free value."""
        return replace(self, values=np.maximum(self.values, 0))


def assemble(machine: MooreMachine, cover: Cover, reads_now: bool = False) -> Cascade:
    """Return the cascade that has a component per coordinate of a cover, with few reads and in few layers.

    Args:
        machine: the covered machine, over the same letters.
        cover: coordinates that together determine the represented state.
        reads_now: whether coordinates of lower levels are read after the letter, not before it.

    Raises:
        InvalidMachine: if a coordinate depends on more than the letter, itself and lower levels, or if the coordinates
            do not determine the machine's state.
        BudgetExceeded: if the cover is too large, or the cascade reaches too many joint states.

    >>> mod4 = MooreMachine([[1, 2, 3, 0]], range(4))
    >>> bits = Cover(mod4.delta, np.arange(4), np.array([[0, 0], [1, 0], [0, 1], [1, 1]]), (0, 1))
    >>> [(c.kind, c.reads, c.layer) for c in assemble(mod4, bits).components]
    [('permutation', (), 0), ('permutation', (0,), 1)]
    """
    work = cover.delta.size * len(cover.levels) ** 2
    if work > _MAX_WORK:
        raise BudgetExceeded(
            f"{len(cover.image):,} states with {len(cover.levels)} coordinates are too many to find out who reads whom "
            f"({work:,} entries to compare, more than {_MAX_WORK:,}): keep one block, or allow larger ones"
        )
    cascades = list[Cascade]()
    if _expanded_rows(cover) <= _MAX_ROWS:
        cascades.append(_built(machine, cover, reads_now))
    if not cascades or len(cascades[0].states) > len(cover.image):
        # A component may need to read less if free coordinates have a value; else its maps are correct for all values.
        # Fixing free values at 0 is one filling of every state, so T11 (a) still applies.
        cascades.append(_built(machine, cover.pinned(), reads_now))
    return min(cascades, key=_size)


def _size(cascade: Cascade) -> tuple[int, int]:
    return cascade.n_layers, sum(len(component.keys) for component in cascade.components)


def _built(machine: MooreMachine, cover: Cover, reads_now: bool) -> Cascade:
    coordinates = [_component(cover, i, reads_now) for i in range(len(cover.levels))]
    return _without_idle(_in_layers(machine, coordinates, reads_now))


def constant_coordinates(cover: Cover) -> Cover:
    """Return a cover without its constant coordinates, or with the first if all are constant."""
    chosen = [i for i, size in enumerate(cover.sizes) if size > 1] or [0]
    return replace(
        cover,
        values=cover.values[:, chosen],
        levels=tuple(cover.levels[i] for i in chosen),
    )


class _CoordinateTable(NamedTuple):
    keys: np.ndarray  # (R, 1 + reads)
    maps: np.ndarray  # (R, m), −1 where any value is allowed


def _component(cover: Cover, i: int, reads_now: bool) -> Component:
    """Return coordinate i of a cover as a component that reads as few lower coordinates as possible.

    A read is dropped if the moves remain a function of the rest, and the component keeps the kind reset, permutation or
    permutation-reset (`_virtues`).
    """
    size = cover.sizes[i]
    moves = _moves(cover, i, reads_now)
    reads = [j for j, level in enumerate(cover.levels) if level < cover.levels[i]]
    table = _table(cover, moves, reads, i, size)
    if table is None:
        raise InvalidMachine(
            f"coordinate {i} of level {cover.levels[i]} does not follow from the letter, itself and those below"
        )
    # Drop reads of the highest levels first, so that the component gets into the lowest layer.
    for j in sorted(reads, key=lambda j: (-cover.levels[j], -cover.sizes[j], j)):
        fewer = [x for x in reads if x != j]
        smaller = _table(cover, moves, fewer, i, size)
        if smaller is not None and _virtues(table.maps) <= _virtues(smaller.maps):
            reads, table = fewer, smaller
    start = max(0, int(cover.values[0, i]))
    return Component(size, start, tuple(reads), 0, table.keys, _complete(table.maps))


def _moves(cover: Cover, i: int, reads_now: bool) -> np.ndarray:
    blocks = list[np.ndarray]()
    for a, targets in enumerate(cover.delta):
        read = cover.values[targets] if reads_now else cover.values
        ends = np.stack([cover.values[:, i], cover.values[targets, i]], axis=1)
        blocks.append(np.concatenate([np.full((len(read), 1), a), read, ends], axis=1))
    return distinct_rows(np.concatenate(blocks))[0]


def _table(cover: Cover, moves: np.ndarray, reads: list[int], i: int, size: int) -> _CoordinateTable | None:
    """Return the maps that the moves require if only `reads` are read, or None if two moves contradict each other."""
    check_current("searching for a cascade")
    sizes = cover.sizes
    # The columns are the letter, the coordinates read, the own value before and the own value after.
    rows, _ = distinct_rows(moves[:, [0, *(1 + j for j in reads), -2, -1]])
    for column, j in enumerate([*reads, i], start=1):
        rows = _expand(rows, column, sizes[j])
    keys, row = distinct_rows(rows[:, :-2])
    maps = np.full((len(keys), size), FREE)
    # Where the next value is free, any map will do (C1); all other rows prescribe one entry of a map.
    required = rows[:, -1] != FREE
    row, old, new = row[required], rows[required, -2], rows[required, -1]
    maps[row, old] = new
    # Of two rows that prescribe the same entry the last was written: the comparison shows whether they agree.
    return _CoordinateTable(keys, maps) if (maps[row, old] == new).all() else None


def _expand(rows: np.ndarray, column: int, size: int) -> np.ndarray:
    free = rows[:, column] == FREE
    if not free.any():
        return rows
    copies = np.repeat(rows[free], size, axis=0)
    copies[:, column] = np.tile(np.arange(size), int(free.sum()))
    return np.concatenate([rows[~free], copies])


def _expanded_rows(cover: Cover) -> float:
    copies = np.where(cover.values == FREE, np.array(cover.sizes), 1).astype(float)
    return float(copies.prod(axis=1).sum()) * len(cover.delta)


def _virtues(maps: np.ndarray) -> tuple[bool, ...]:
    """Return whether partial maps (K, m) extend to: identities and resets; permutations; permutations and resets.

    Entries equal to `FREE` are not required. They are replaced by distinct negative values, so that a row is injective
    if its sorted entries differ.
    """
    required = maps != FREE
    states = np.arange(len(maps.T))
    identity = np.all(~required | (maps == states), axis=1)
    # A partial map extends to a constant iff all required entries are equal, hence equal to their maximum.
    top = np.max(np.where(required, maps, -2), axis=1)
    constant = np.all(~required | (maps == top[:, None]), axis=1)
    ordered = np.sort(np.where(required, maps, -2 - states), axis=1)
    injective = np.all(np.diff(ordered, axis=1) != 0, axis=1)
    # Two states too: a map with one required entry of which resets are made is a reset, not an exchange.
    resets, with_resets = np.logical_or(identity, constant), np.logical_or(injective, constant)
    return bool(np.all(resets)), bool(np.all(injective)), bool(np.all(with_resets))


def _complete(maps: np.ndarray) -> np.ndarray:
    resets, permutations, _ = _virtues(maps)
    pool: Counter[tuple[int, ...]] = Counter()
    done = np.empty_like(maps)
    # Maps with the fewest free entries come first, as they leave the least choice; later ones can reuse them.
    for r in np.argsort((maps == FREE).sum(1), kind="stable"):
        total = _completed(maps[r], pool, resets, permutations)
        pool[total] += 1
        done[r] = total
    return done


def _completed(row: np.ndarray, pool: Counter[tuple[int, ...]], resets: bool, permutations: bool) -> tuple[int, ...]:
    """Return a total map that extends a partial one (m,), with as few distinct maps in the component as possible.

    A map in `pool`, which counts those already chosen, is taken before a new one; identities and resets come first, as
    they need no gate units or no matrix.
    """
    states = np.arange(len(row))
    required = row != FREE
    values = row[required]
    identity = tuple(states.tolist())
    moves = bool((values != states[required]).any())
    if not moves and (len(values) != 1 or resets or permutations or identity in pool):
        return identity
    constant = tuple([int(values[0])] * len(row))
    is_constant = bool((values == values[0]).all())
    if resets:
        return constant
    for total, _ in pool.most_common():
        if (np.array(total)[required] == values).all():
            return total
    if is_constant and not permutations:
        return constant
    if len(set(values.tolist())) == len(values):
        return _permutation(row)
    return tuple(np.where(required, row, states).tolist())


def _permutation(row: np.ndarray) -> tuple[int, ...]:
    unused = [x for x in range(len(row)) if x not in row]
    total = row.tolist()
    for x in np.flatnonzero(row == FREE).tolist():
        if x in unused:
            total[x] = x
            unused.remove(x)
    return tuple(unused.pop(0) if x == FREE else x for x in total)


def _in_layers(machine: MooreMachine, coordinates: Sequence[Component], reads_now: bool) -> Cascade:
    """Return the cascade of coordinates, each in the lowest layer above all that it reads, renumbered by layer."""
    layer: dict[int, int] = {}

    def layer_of(i: int) -> int:
        if i not in layer:
            layer[i] = 1 + max((layer_of(j) for j in coordinates[i].reads), default=-1)
        return layer[i]

    order = sorted(range(len(coordinates)), key=lambda i: (layer_of(i), i))
    number = {i: new for new, i in enumerate(order)}
    components = tuple(_renumbered(coordinates[i], number, layer[i]) for i in order)
    return Cascade(machine, components, reads_now)


def _renumbered(component: Component, number: dict[int, int], layer: int) -> Component:
    reads = [number[j] for j in component.reads]
    order = np.argsort(np.array(reads, np.int64))
    keys = component.keys[:, [0, *(1 + order)]]
    return replace(component, reads=tuple(sorted(reads)), layer=layer, keys=keys)


def _without_idle(cascade: Cascade) -> Cascade:
    """Return the cascade without components that no other reads and that the joint state determines without."""
    for i in reversed(range(len(cascade.components))):
        others = [j for j in range(len(cascade.components)) if j != i]
        if not others or any(i in component.reads for component in cascade.components):
            continue
        if tells(cascade.states[:, others], cascade.image):
            number = {j: new for new, j in enumerate(others)}
            needed = (cascade.components[j] for j in others)
            return _without_idle(
                Cascade(
                    cascade.machine,
                    tuple(_renumbered(component, number, component.layer) for component in needed),
                    cascade.reads_now,
                )
            )
    return cascade
