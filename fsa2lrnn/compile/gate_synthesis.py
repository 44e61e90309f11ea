"""Synthesise integer gates from tables: cover a labelled table by few boxes, and make each box a hidden unit.

A box is a product of sets of values of many-valued coordinates, one set per coordinate (docs/theory.md §6). Two-level
minimisation is NP-hard, so the best of three greedy covers is taken for each label: *merge* starts from the keys and
joins boxes that differ in one coordinate only; *split* merges the leaves of a decision tree (Breiman et al. 1984);
*grow* enlarges boxes from single keys, also over unused combinations of values, as long as they contain no key of
another label (Espresso, Brayton et al. 1984).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.cascade.rows import number_rows
from fsa2lrnn.compile.integer_tables import ReluGate
from fsa2lrnn.errors import InvalidMachine, NotExact

LARGEST_SUM = 256  # bfloat16 holds every integer up to here
_ROWS = 65_536  # keys per batch of the check


@dataclass(frozen=True)
class Coordinate:
    """A coordinate of a gate's input, one-hot in `n_values` features; `omits_zero` leaves out that of value 0."""

    n_values: int
    omits_zero: bool = False

    @property
    def width(self) -> int:
        """The number of features."""
        return self.n_values - self.omits_zero


def features(keys: np.ndarray, coordinates: Sequence[Coordinate]) -> np.ndarray:
    """Return the 0/1 features of rows of J coordinates, concatenated: int (R, J) -> int8 (R, D).

    >>> features(np.array([[1, 2], [0, 0]]), [Coordinate(2), Coordinate(3, omits_zero=True)]).tolist()
    [[0, 1, 0, 1], [1, 0, 0, 0]]
    """
    parts = [
        (column[:, None] == np.arange(coordinate.omits_zero, coordinate.n_values))
        for column, coordinate in zip(keys.T, coordinates, strict=True)
    ]
    return np.concatenate(parts, axis=1).astype(np.int8)


def synthesise(keys: np.ndarray, targets: np.ndarray, coordinates: Sequence[Coordinate]) -> ReluGate:
    """Return a gate with few units whose output at the features of each key is its target (docs/theory.md §6).

    A coordinate with values 0 … m−1 is encoded as m one-hot features, or m − 1 without the feature of 0. The indicator
    of a set S of values is affine in them, Σ_{i∈S} f_i or 1 − Σ_{i∉S} f_i. For J such indicators s_j, the unit
    relu(Σ_j s_j − (J − 1)) is 1 if all are 1, else 0: one unit per box of `boxes`. The target that needs the most boxes
    is the output bias; each unit adds the difference between its target and this one. Other inputs may have any output.

    Args:
        keys: distinct rows of values, int, shape (R, J), of the J coordinates.
        targets: small integers, shape (R, E).

    Raises:
        InvalidMachine: if a key occurs twice.
        NotExact: if a sum could exceed 256, beyond which bfloat16 rounds, or the final check finds a wrong output.

    >>> gate = synthesise(np.array([[0], [1], [2]]), np.array([[5], [5], [7]]), [Coordinate(3)])
    >>> gate.n_units, gate(np.eye(3, dtype=int)).tolist()
    (1, [[5], [5], [7]])
    """
    values, labels = np.unique(targets, axis=0, return_inverse=True)
    cover, default = boxes(keys, labels.reshape(-1))
    W1 = np.zeros((len(cover), sum(coordinate.width for coordinate in coordinates)), np.int64)
    b1 = np.zeros(len(cover), np.int64)
    for unit, box in enumerate(cover):
        W1[unit], b1[unit] = _conjunction(box, coordinates)
    # T19 (a): the bias gives the default target, and a unit adds what its box's target differs by.
    b2 = values[default]
    others = values[[label for _, label in cover]] if cover else values[:0]
    gate = ReluGate(W1, b1, np.ascontiguousarray((others - b2).T), b2)
    _check(gate, keys, targets, coordinates)
    return gate


def _conjunction(box: Box, coordinates: Sequence[Coordinate]) -> tuple[np.ndarray, int]:
    """Return weights and bias with relu(w·x + bias) = 1 inside a box of one-hot coordinates, and 0 outside.

    Each bounded coordinate adds its indicator minus 1 to the sum 1, so the sum is 1 only if all hold, otherwise at most
    0. A coordinate that omits the unit of 0 counts the values outside its set instead if 0 lies inside.
    """
    sets, _ = box
    weights: list[np.ndarray] = []
    bias = 1
    for inside, coordinate in zip(sets, coordinates, strict=True):
        w = np.zeros(coordinate.width, np.int64)
        if inside is not None:
            bias -= 1
            outside = set(range(coordinate.n_values)) - inside
            if coordinate.omits_zero and 0 in inside:
                bias += 1
                # [value ∈ S] = 1 − Σ f_i over the values outside; 0, which has no feature, lies inside.
                w[[i - 1 for i in outside]] = -1
            else:
                w[[i - coordinate.omits_zero for i in inside]] = 1
        weights.append(w)
    return np.concatenate(weights), bias


def _check(gate: ReluGate, keys: np.ndarray, targets: np.ndarray, coordinates: Sequence[Coordinate]) -> None:
    for start in range(0, len(keys), _ROWS):
        rows = slice(start, start + _ROWS)
        u = features(keys[rows], coordinates)
        if (wrong := (gate(u) != targets[rows]).any(1)).any():
            raise NotExact(f"a synthesised gate gives a wrong value for key {keys[rows][wrong][0].tolist()}")
        if (largest := gate.largest_sum(u)) > LARGEST_SUM:
            raise NotExact(f"a gate's sums reach {largest}, but bfloat16 holds all integers only up to {LARGEST_SUM}")


Box = tuple[tuple[frozenset[int] | None, ...], int]


def boxes(keys: np.ndarray, labels: np.ndarray) -> tuple[list[Box], int]:
    """Return a cover of a labelled table by boxes, without the label that needs the most boxes (the default).

    Every key with another label is in exactly one box, which has its label; keys with the default label are in none.
    Rows that are not in the table may be in any box.

    Args:
        keys: distinct rows of values, int ≥ 0, shape (R, J).
        labels: int, shape (R,).

    Returns:
        The boxes, pairs of a tuple and a label, and the default label. The tuple has a set of values for each
        coordinate, or None for all values in the table.

    Raises `InvalidMachine` if a key occurs twice.

    >>> keys = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> boxes(keys, np.array([0, 0, 0, 7]))
    ([((frozenset({1}), frozenset({1})), 7)], 0)
    """
    if len(np.unique(number_rows(keys))) < len(keys):
        raise InvalidMachine(f"of {len(keys)} keys some are equal: give each key once, with one label")
    table = Table(keys)
    values, sizes = np.unique(labels, return_counts=True)
    order = np.lexsort(
        (values, sizes)
    )  # the largest last: it is usually the default, whose cover need not be completed
    covers: dict[int, list[Sets]] = {}
    for i in order:
        most = max((len(cover) for cover in covers.values()), default=0)
        # The label with the most boxes becomes the default and needs none, so it is enough to know that the last one
        # has more than all others.
        covers[int(values[i])] = table.cover(labels == values[i], most + 1 if i == order[-1] else None)
    default = max(covers, key=lambda label: len(covers[label]))
    result = [
        (tuple(None if s == v else s for s, v in zip(sets, table.values, strict=True)), label)
        for label, cover in covers.items()
        if label != default
        for sets in cover
    ]
    return result, default


Sets = tuple[frozenset[int], ...]

_WORK = 2_000_000_000  # table entries that growing boxes may read, some seconds
_SEED_ENTRIES = 500_000  # table entries that limit the number of seeds of one box
_MAX_SEEDS = 6


class Table:
    """The keys of a table, int (R, J), with one index for every value of every coordinate.

    Value x of coordinate j has the index offsets[j] + x. A box is a mask of indices, bool (offsets[-1],): it contains a
    key if the indices of all its values are set. `work` is the number of table entries that growing may still read.
    """

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys
        sizes = keys.max(0, initial=-1) + 1
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.codes = np.ascontiguousarray((keys + self.offsets[:-1]).T.astype(np.int32))  # (J, R)
        self.values: list[frozenset[int]] = [frozenset(np.unique(column).tolist()) for column in keys.T]
        self.work = _WORK

    def cover(self, good: np.ndarray, enough: int | None) -> list[Sets]:
        """Return boxes that contain each key of the mask `good`, bool (R,), once, and no other key.

        Growing is given up as soon as it seems to need more than `enough` boxes.
        """
        points = [tuple(frozenset([x]) for x in row) for row in self.keys[good].tolist()]
        leaves = [self._sets(box) for box in self._leaves(good)]
        best = min(merge(points), merge(leaves), key=len)
        grown = self._grow_all(good, min(len(best), enough or len(best)))
        return best if grown is None or len(best) <= len(grown) else grown

    def _leaves(self, good: np.ndarray) -> list[np.ndarray]:
        """Return the leaves with keys in `good` of a decision tree (Breiman et al. 1984), as masks of values."""
        leaves: list[np.ndarray] = []
        pending = [(np.ones(self.offsets[-1], bool), np.arange(len(good)))]
        while pending:
            box, rows = pending.pop()
            n_good = int(good[rows].sum())
            if n_good == len(rows):
                leaves.append(box)
            elif n_good:
                j, inside = self._best_split(rows, good)
                own = slice(self.offsets[j], self.offsets[j + 1])
                for side in (inside, ~inside):
                    part = box.copy()
                    part[own] &= side[own]
                    pending.append((part, rows[side[self.codes[j, rows]]]))
        return leaves

    def _best_split(self, rows: np.ndarray, good: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the coordinate and the set of its values with the best split by Gini impurity (Breiman et al. 1984).

        The best set is a prefix of the values in the order of their share of good keys."""
        n_values = int(self.offsets[-1])
        codes = self.codes[:, rows]
        total = np.bincount(codes.ravel(), minlength=n_values)
        n_good = np.bincount(codes[:, good[rows]].ravel(), minlength=n_values)
        coordinate = np.repeat(np.arange(len(self.codes)), np.diff(self.offsets))
        # Values are sorted by coordinate, used ones before unused ones, and by falling share of good keys.
        order = np.lexsort((-n_good / np.maximum(total, 1), total == 0, coordinate))
        first = self.offsets[coordinate]  # the first index of each value's coordinate, where sums start
        # Prefix sums over all coordinates at once; the sum before each coordinate's first value is subtracted below.
        total_up, good_up = (np.concatenate([[0], np.cumsum(part[order])]) for part in (total, n_good))
        left = (total_up[1:] - total_up[first]).astype(float)
        left_good = good_up[1:] - good_up[first]
        right, right_good = len(rows) - left, int(good[rows].sum()) - left_good
        # Minimal Gini impurity is maximal Σ (good² + bad²) / size over the two sides.
        purity = (left_good**2 + (left - left_good) ** 2) / np.maximum(left, 1)
        purity += (right_good**2 + (right - right_good) ** 2) / np.maximum(right, 1)
        # A split with an empty side would not end.
        purity[(left == 0) | (right == 0)] = -1
        best = int(purity.argmax())
        j = int(coordinate[order[best]])
        inside = np.zeros(n_values, bool)
        inside[order[self.offsets[j] : best + 1]] = True
        return j, inside

    def _grow_all(self, good: np.ndarray, limit: int) -> list[Sets] | None:
        """Return the greedy cover by growing; None if it is likely to exceed `limit` boxes or the work is used up."""
        left, bad = good.copy(), ~good
        cover: list[Sets] = []
        sizes: list[int] = []
        while left.any():
            hope = max(sizes[-10:], default=len(left))  # later greedy boxes are rarely larger
            if int(left.sum()) > (limit - len(cover)) * hope or self.work <= 0:
                return None
            box, inside = self._best(left, bad)
            # Covered keys count as bad from now on: each key has to lie in exactly one box (T19).
            left &= ~inside
            bad |= inside
            sizes.append(int(inside.sum()))
            cover.append(self._sets(box))
        return merge(cover)

    def _best(self, left: np.ndarray, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.flatnonzero(left)
        n_seeds = int(np.clip(_SEED_ENTRIES // self.codes.size, 1, min(_MAX_SEEDS, len(rows))))
        seeds = rows[np.linspace(0, len(rows) - 1, n_seeds).astype(int)]
        grown = [self._grow(int(seed), left, bad) for seed in seeds]
        return max(grown, key=lambda result: int(result[1].sum()))

    def _grow(self, seed: int, left: np.ndarray, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        box = _GrowingBox(self, seed, bad)
        while (value := box.best_value(left)) is not None:
            box.add(value)
        box.drop()
        self.work -= box.work
        return box.inside, (box.distance == 0) & left

    def _sets(self, box: np.ndarray) -> Sets:
        parts = (np.flatnonzero(box[a:b]) for a, b in zip(self.offsets, self.offsets[1:], strict=False))
        return tuple(frozenset(part.tolist()) & v for part, v in zip(parts, self.values, strict=True))


class _GrowingBox:
    def __init__(self, table: Table, seed: int, bad: np.ndarray) -> None:
        self.codes, self.offsets, self.bad = table.codes, table.offsets, bad
        self.inside = np.zeros(table.offsets[-1], bool)
        self.inside[self.codes[:, seed]] = True
        outside = (self.codes != self.codes[:, seed, None]).astype(np.float32)
        # The number of coordinates in which a key is outside of the box; 0 means inside.
        self.distance = outside.sum(0).astype(np.int16)
        # The sum of the numbers of these coordinates: at distance 1 it names the only one, and it is updated by
        # subtraction.
        numbers = np.arange(len(outside), dtype=np.float32)
        self.which = (numbers @ outside).astype(np.int32)  # at distance 1, the coordinate where the key is outside
        self.work = 3 * self.codes.size

    def add(self, value: int) -> None:
        j = int(np.searchsorted(self.offsets, value, side="right")) - 1
        self.inside[value] = True
        self._nearer(j, self.codes[j] == value)

    def drop(self) -> None:
        """Add, for each coordinate in turn, all its values if the box then contains no bad key."""
        blocked = np.zeros(len(self.codes), bool)
        blocked[self.which[self.bad & (self.distance == 1)]] = True
        for j, codes in enumerate(self.codes):
            own = slice(self.offsets[j], self.offsets[j + 1])
            if not blocked[j] and not self.inside[own].all():
                self._nearer(j, ~self.inside[codes])
                self.inside[own] = True
                blocked[self.which[self.bad & (self.distance == 1)]] = True

    def best_value(self, left: np.ndarray) -> int | None:
        """Return the value that adds the most remaining keys, or else one that brings most of the nearest closer."""
        # Keys that one more value would bring into the box; that value is theirs in the coordinate where they are
        # outside.
        near = np.flatnonzero(self.distance == 1)
        missing = self.codes[self.which[near], near]
        blocked = np.zeros(len(self.inside), bool)
        # A value that would bring in a bad key stays out for good, because the box only grows.
        blocked[missing[self.bad[near]]] = True
        gain = np.bincount(missing[left[near]], minlength=len(self.inside))
        gain[blocked] = 0
        self.work += 3 * len(self.distance)
        if gain.any():
            return int(gain.argmax())
        return self._step_towards(np.flatnonzero(left & (self.distance > 1)), blocked)

    def _step_towards(self, rows: np.ndarray, blocked: np.ndarray) -> int | None:
        codes = self.codes[:, rows]
        self.work += 5 * codes.size
        missing = ~self.inside[codes]
        # A key is within reach if none of its missing values is blocked.
        within_reach = ~(missing & blocked[codes]).any(0)
        if not within_reach.any():
            return None
        nearest = within_reach & (self.distance[rows] == self.distance[rows[within_reach]].min())
        return int(np.bincount(codes[:, nearest][missing[:, nearest]], minlength=len(blocked)).argmax())

    def _nearer(self, j: int, rows: np.ndarray) -> None:
        self.distance -= rows
        self.which[rows] -= j
        self.work += 4 * len(rows)


def merge(boxes: list[Sets]) -> list[Sets]:
    """Return boxes with the same union, after joining boxes that differ in one coordinate only.

    >>> [[sorted(s) for s in box] for box in merge([(frozenset({x}), frozenset({y})) for x in (0, 1) for y in (0, 1)])]
    [[[0, 1], [0, 1]]]
    """
    numbers: dict[frozenset[int], int] = {}
    rows = np.array([[numbers.setdefault(s, len(numbers)) for s in sets] for sets in boxes], np.int64)
    sets = list(numbers)
    # Rounds over all coordinates, until one of them joins nothing.
    before = len(rows) + 1
    while 1 < len(rows) < before:
        before = len(rows)
        for j in np.argsort([-len(np.unique(column)) for column in rows.T], kind="stable"):  # the largest first
            rows = _merge_along(rows, int(j), sets, numbers)
    merged: list[list[int]] = rows.tolist()
    return [tuple(sets[s] for s in row) for row in merged]


def _merge_along(
    rows: np.ndarray, j: int, sets: list[frozenset[int]], numbers: dict[frozenset[int], int]
) -> np.ndarray:
    """Return boxes (N, k) merged along coordinate j: rows that agree elsewhere become one with the union of sets.

    Entries number `sets`; new unions are appended to `sets` and `numbers`. The rows stay disjoint, and their union
    stays.
    """
    rest = np.delete(rows, j, axis=1)
    # Rows of a group agree in all coordinates but j, so the union of their sets in j gives one box with the same
    # keys.
    group = number_rows(rest)
    order = np.argsort(group, kind="stable")
    firsts = np.flatnonzero(np.diff(group[order], prepend=-1))
    merged = rows[order[firsts]]
    for g in np.flatnonzero(np.diff(firsts, append=len(order)) > 1):
        last = firsts[g + 1] if g + 1 < len(firsts) else len(order)
        joined: list[int] = rows[order[firsts[g] : last], j].tolist()
        union = frozenset(x for s in joined for x in sets[s])
        if union not in numbers:
            numbers[union] = len(sets)
            sets.append(union)
        merged[g, j] = numbers[union]
    return merged
