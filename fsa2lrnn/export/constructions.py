"""Choose a construction of a machine by gated delta layers: one head, heads in parallel, or a stack of layers.

*Registers*  are heads that store the last written value. If each letter of a machine either is the identity or leads
all states to one, the machine is one register: a head with a unit key and β = 1. Behind a window, this need only hold
among the states that are possible after the last letters. For example, each letter of (ab)* leads to two states, but
two equal letters in sequence lead to the sink, and two different letters change nothing.

*Reflections*  are letters I − 2kkᵀ with dyadic, non-negative unit keys k, so that nothing is rounded. Keys are e_i, or
½ on four coordinates. The supports of two keys can be chosen so that their product is ½ or 0; the product of their
reflections then has order 3 or 2. Letters that are involutions, whose pairwise products have order 2 or 3, are thus
reflections of a group that covers their group, because all relations of a finite simply laced reflection group are of
this kind. Signs are free: a root may be replaced by its negative.

S starts at 0, which is not a regular point. So letters act on C − S, where C is a multiple of the identity: with
v_a = Cᵀk_a, S is C − gC after the group element g.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cascade.congruence import lattice, meet
from fsa2lrnn.deadline import check_current
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, OutOfTime
from fsa2lrnn.export.cascade_plan import cascaded
from fsa2lrnn.export.plan import (
    DECIMALS,
    MAX_STATES,
    UNIT,
    Orbit,
    Stage,
    StageHead,
    StagePlan,
    Unit,
    letter_ago,
    orbit,
    side_by_side,
)

MAX_WINDOW = 3  # the number of previous letters that a convolution of width 4 reads
_MAX_HEADS = 8  # the most heads in parallel
_CONGRUENCES = 300  # the most congruences whose quotients are tried as heads


def construct(machine: MooreMachine, has_reflections: bool, longest_lag: int = MAX_WINDOW) -> StagePlan:
    """Return a plan of gated delta layers that implements the minimal machine.

    Args:
        machine: any machine; it is minimised first.
        has_reflections: whether β reaches 2 in the layer.
        longest_lag: the number of previous letters that the convolution of a layer reads.

    Raises:
        NotExpressible: if no stack of the constructions is found. This does not prove that none exists.
        BudgetExceeded: for a machine with more than `MAX_STATES` states, or if every construction exceeded a limit on
            windows or units.

    >>> from fsa2lrnn.automata import zoo
    >>> construct(zoo.parity(), has_reflections=True).how
    'one layer, one head: reflections, 2 matrices'
    """
    plan = _constructed(minimise(machine), has_reflections, longest_lag)
    if isinstance(plan, StagePlan):
        return plan
    raise plan.with_traceback(None)


@lru_cache(maxsize=8)  # models with the same recurrence share their plans
def _constructed(
    minimal: MooreMachine, has_reflections: bool, longest_lag: int
) -> StagePlan | BudgetExceeded | NotExpressible:
    """Return the plan, or the error that says why there is none; an `OutOfTime` is raised, and so not remembered."""
    try:
        return _construct(minimal, has_reflections, longest_lag)
    except OutOfTime:
        raise
    except (BudgetExceeded, NotExpressible) as fault:
        return fault


def _construct(minimal: MooreMachine, has_reflections: bool, longest_lag: int) -> StagePlan:
    if minimal.n_states > MAX_STATES:
        raise BudgetExceeded(
            f"{minimal.n_states:,} states, and whole models are written for {MAX_STATES:,} at most, each a unit of the "
            "MLP: give a smaller machine"
        )
    identity = np.arange(minimal.n_states)
    for partition in _partitions(minimal, only_all=True):
        if (heads := _heads_for(minimal, [partition], has_reflections)) is not None:
            return heads
    too_many: BudgetExceeded | None = None
    for length in range(1, longest_lag + 1):
        try:
            behind = windowed(minimal, length)
        except BudgetExceeded as fault:  # other constructions need no windows
            too_many = fault
            break
        if behind is not None and (plan := two_stages(minimal, behind)) is not None:
            return plan
    chosen, refined = list[np.ndarray](), np.zeros(minimal.n_states, np.int64)
    for partition in _partitions(minimal, only_all=False):
        check_current("searching for heads")
        finer = meet(refined, partition)
        if finer.max() == refined.max() or _one_head(minimal, partition, has_reflections) is None:
            continue
        chosen, refined = [*chosen, partition], finer
        if np.array_equal(refined, identity) and len(chosen) <= _MAX_HEADS:
            heads = _heads_for(minimal, chosen, has_reflections)
            if heads is not None:
                return heads
    if (cascade := cascaded(minimal, has_reflections)) is not None:
        return cascade
    if too_many is not None:
        raise too_many
    kinds = "registers and transpositions above counters" if has_reflections else "registers"
    raise NotExpressible(
        f"no stack of the known constructions was found for this machine of {minimal.n_states} states (heads side by "
        f"side, a register behind windows of {longest_lag + 1} letters, a cascade of {kinds}); this does not prove "
        "that there is none"
    )


def _partitions(minimal: MooreMachine, only_all: bool) -> Iterator[np.ndarray]:
    if only_all:
        yield np.arange(minimal.n_states)
        return
    yield from lattice(np.unique(minimal.delta, axis=0), _CONGRUENCES).partitions[1:]


def _one_head(minimal: MooreMachine, partition: np.ndarray, has_reflections: bool) -> tuple[Orbit, str] | None:
    first = np.unique(partition, return_index=True)[1]
    delta = partition[minimal.delta[:, first]]
    if (orbit := register(delta)) is not None:
        return orbit, "a register"
    if has_reflections and (orbit := reflections(delta, int(partition[minimal.start]))) is not None:
        return orbit, "reflections"
    return None


def _heads_for(minimal: MooreMachine, partitions: list[np.ndarray], has_reflections: bool) -> StagePlan | None:
    """Return a plan with one head per quotient of the minimal machine, or None if a quotient has no head.

    The result is also None if the states of the heads do not determine the output, or are too many.
    """
    candidates = [_one_head(minimal, partition, has_reflections) for partition in partitions]
    heads = [pair for pair in candidates if pair is not None]
    if len(heads) < len(candidates):
        return None
    kinds = ", ".join(kind for _, kind in heads)
    count = "one head" if len(heads) == 1 else f"{len(heads)} heads side by side"
    sizes = " × ".join(str(len(orbit.states)) for orbit, _ in heads)
    try:
        return side_by_side(minimal, [orbit for orbit, _ in heads], f"one layer, {count}: {kinds}, {sizes} matrices")
    except (BudgetExceeded, NotExpressible):
        return None


_MOST_VALUES = 32  # the most values of a register behind a window, each of which takes a head

Window = tuple[int, ...]


def register(delta: np.ndarray) -> Orbit | None:
    """Return a head for letters that are the identity or a reset, None for other letters; `delta` is int64 (|Σ|, n).

    >>> len(register(np.array([[0, 1], [0, 0], [1, 1]])).states)    # unwritten, and two values
    3
    """
    n_letters, n = delta.shape
    values, betas = np.zeros((n_letters, n)), np.zeros(n_letters)
    for a, row in enumerate(delta):
        if (row == row[0]).all():
            values[a, row[0]], betas[a] = UNIT, 1.0
        elif not np.array_equal(row, np.arange(n)):
            return None
    keys = np.where(betas[:, None] > 0, 1.0, 0.0)
    return orbit(StageHead(keys, values, np.ones(n_letters), betas, np.ones(1), np.ones(n)))


@dataclass(frozen=True)
class WindowRegister:
    """A machine as a register behind a window of the last letters.

    Args:
        length: the length of the windows; shorter ones occur at the beginning of a word.
        windows: all windows, shorter ones first.
        values: the register's value for each pair of a window and a state that is possible after it.
        writes: for each window and letter the value that is written, None if the register keeps its value.
        n_values: the number of values.
    """

    length: int
    windows: tuple[Window, ...]
    values: dict[tuple[Window, int], int]
    writes: dict[tuple[Window, int], int | None]
    n_values: int


def windowed(machine: MooreMachine, length: int) -> WindowRegister | None:
    """Return the machine as a register behind windows of `length` letters, or None if it is not one.

    It is one if each letter after each window keeps all possible states apart or merges them all, consistently. Raises
    `BudgetExceeded` for more than `MAX_STATES` windows.

    >>> from fsa2lrnn.automata import zoo
    >>> windowed(zoo.ab_star(), 0) is None, windowed(zoo.ab_star(), 1).n_values
    (True, 2)
    """
    images: dict[Window, set[int]] = {(): {machine.start}}
    stack: list[Window] = [()]
    while stack:  # the states that can follow each window
        window = stack.pop()
        for a, row in enumerate(machine.delta):
            after = _after(window, a, length)
            new = {int(row[q]) for q in images[window]} - images.setdefault(after, set())
            if new:
                images[after] |= new
                stack.append(after)
        if len(images) > MAX_STATES:
            raise BudgetExceeded(f"there are more than {MAX_STATES:,} windows: give a smaller alphabet")
    windows = tuple(sorted(images, key=lambda window: (len(window), window)))
    elements = {(window, q): i for i, (window, q) in enumerate((w, q) for w in windows for q in sorted(images[w]))}
    parent = list(range(len(elements)))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    constants: dict[tuple[Window, int], tuple[Window, int]] = {}
    for window in windows:
        for a, row in enumerate(machine.delta):
            after, reached = _after(window, a, length), {int(row[q]) for q in images[window]}
            if len(reached) == 1:
                constants[window, a] = after, reached.pop()
            elif len(reached) < len(images[window]):
                return None
            else:
                for q in images[window]:
                    # A letter that keeps states apart does not write, so state and image must have one value in the
                    # register.
                    parent[find(elements[window, q])] = find(elements[after, int(row[q])])
    roots = {element: find(i) for element, i in elements.items()}
    # Two possible states after one window with the same value could not be told apart.
    if any(len({roots[w, q] for q in images[w]}) < len(images[w]) for w in windows):
        return None
    numbers = _numbered([{roots[w, q] for q in images[w]} for w in windows])
    values = {element: numbers[root] for element, root in roots.items()}
    writes = {
        (window, a): values[constants[window, a]] if (window, a) in constants else None
        for window in windows
        for a in range(len(machine.delta))
    }
    return WindowRegister(length, windows, values, writes, 1 + max(numbers.values()))


def _numbered(together: list[set[int]]) -> dict[int, int]:
    numbers: dict[int, int] = {}
    for root in sorted(set().union(*together)):
        # Greedy colouring: values that are possible after one window get different numbers, others may share one.
        taken = {numbers.get(other) for roots in together if root in roots for other in roots}
        numbers[root] = next(i for i in range(len(numbers) + 1) if i not in taken)
    return numbers


def two_stages(machine: MooreMachine, behind: WindowRegister) -> StagePlan | None:
    """Return a plan of two layers: the first holds the previous letters, the second the register, a head per value.

    The result is None if there are more than 32 values.
    """
    if behind.n_values > _MOST_VALUES:
        return None
    n = len(machine.alphabet)
    before = tuple(letter_ago(n, lag) for lag in range(1, behind.length + 1))
    first = tuple(
        # Symbol n_values keeps the register.
        Unit(a, _window_marks(window, behind.length), behind.n_values if value is None else value)
        for (window, a), value in behind.writes.items()
    )
    held = tuple(_held(behind.n_values, value) for value in range(behind.n_values))
    outputs = {output: i for i, output in enumerate(dict.fromkeys(machine.outputs))}
    second = set[Unit]()
    for window, q in behind.values:
        for a, row in enumerate(machine.delta):
            after = _after(window, a, behind.length), int(row[q])
            written = behind.values[after]
            marks = tuple(int(i == written) for i in range(behind.n_values))
            second.add(Unit(a, (*_window_marks(window, behind.length), *marks), outputs[machine.outputs[after[1]]]))
    stages = (
        Stage(before, first, behind.n_values + 1),
        Stage(held, tuple(sorted(second, key=str)), len(outputs)),
    )
    how = f"a register of {behind.n_values} values behind windows of {behind.length + 1} letters, in two layers"
    return StagePlan(machine, stages, how)


def _held(n_values: int, value: int) -> Orbit:
    """Return a head that holds `UNIT` exactly while the register holds `value`; symbol `n_values` keeps it."""
    n = n_values + 1
    keeps, writes = np.arange(n) == n_values, np.arange(n) == value
    head = StageHead(
        np.ones((n, 1)),
        np.full((n, 1), UNIT),
        keeps.astype(float),
        writes.astype(float),
        np.ones(1),
        np.ones(1),
    )
    return orbit(head)


def _after(window: Window, a: int, length: int) -> Window:
    return (*window, a)[-length:] if length else ()


def _window_marks(window: Window, length: int) -> tuple[int, ...]:
    return tuple(1 + window[-lag] if lag <= len(window) else 0 for lag in range(1, length + 1))


_MAX_KEYS = 8  # the most different reflections
_MAX_SETS = 3_000  # the most partial choices of supports that are tried


def reflections(delta: np.ndarray, start: int) -> Orbit | None:
    """Return a head for letters that are the identity, involutions, or resets to the start; None for others.

    `delta` is the table, int64 (|Σ|, n), of a machine whose states are all reachable. The result is also None if the
    product of two involutions has an order above 3, or if no keys are found.

    >>> swaps = np.array([[1, 0, 2], [0, 2, 1]])           # (0 1) and (1 2): two reflections of S3
    >>> len(reflections(swaps, 0).states)
    6
    """
    n = delta.shape[1]
    identity = np.arange(n)
    kinds = list[int | None]()  # the number of a reflection, None for the identity, −1 for a reset
    maps = list[np.ndarray]()
    for row in delta:
        if np.array_equal(row, identity):
            kinds.append(None)
        elif n > 1 and (row == start).all():
            kinds.append(-1)
        elif np.array_equal(row[row], identity):
            index = next((i for i, other in enumerate(maps) if np.array_equal(row, other)), None)
            kinds.append(len(maps) if index is None else index)
            maps += [row] if index is None else []
        else:
            return None
    if not 1 <= len(maps) <= _MAX_KEYS:
        return None
    products = np.zeros((len(maps), len(maps)))
    for i, j in combinations(range(len(maps)), 2):
        # The order of the product of two reflections fixes the product of their keys: order 3 needs ½, order 2 needs
        # 0.
        turn = maps[i][maps[j]]
        if np.array_equal(turn[turn[turn]], identity):
            products[i, j] = products[j, i] = 0.5
        elif not np.array_equal(turn[turn], identity):
            return None
    best: Orbit | None = None
    for keys in roots(products):
        orbit = _best_query(kinds, keys)
        if orbit is not None and (best is None or len(orbit.states) < len(best.states)):
            best = orbit
        if best is not None and len(best.states) <= 2 * n:
            break
    return best


def roots(products: np.ndarray) -> Iterator[np.ndarray]:
    """Yield keys, unit vectors with entries 0, ½ and 1, shape (m, d), whose products are the matrix `products` (m, m).

    Choices that differ only in the order of coordinates are yielded once; the search ends after `_MAX_SETS` choices.
    """
    tried = 0

    def extend(chosen: list[frozenset[int]], used: int) -> Iterator[list[frozenset[int]]]:
        nonlocal tried
        tried += 1
        if tried > _MAX_SETS:
            return
        if len(chosen) == len(products):
            yield chosen
            return
        row = products[len(chosen)]
        # A unit key has one entry 1 or four entries ½; it may use `old` coordinates of earlier keys, and new ones are
        # all alike.
        for size in (1, 4):
            for old in range(min(size, used), -1, -1):
                for inside in combinations(range(used), old):
                    support = frozenset(inside) | frozenset(range(used, used + size - old))
                    if all(_product(support, other) == row[i] for i, other in enumerate(chosen)):
                        yield from extend([*chosen, support], used + size - old)

    for supports in extend([], 0):
        keys = np.zeros((len(supports), max(max(support) for support in supports) + 1))
        for key, support in zip(keys, supports, strict=True):
            key[list(support)] = 1.0 if len(support) == 1 else 0.5
        yield keys


def _product(support: frozenset[int], other: frozenset[int]) -> float:
    entries = (1.0 if len(support) == 1 else 0.5) * (1.0 if len(other) == 1 else 0.5)
    return entries * len(support & other)


def _best_query(kinds: list[int | None], keys: np.ndarray) -> Orbit | None:
    """Return the head with these keys that is read in the direction that separates its marks best, or None.

    The candidates are directions at equal distance from all mirrors, on each side; for S_n their images are the corners
    of a permutohedron. If keys are not simple roots, some candidates lie on other mirrors, so directions at distances
    1, 2, 3 … are tried too. The result is None if no direction separates the marks.
    """
    d = keys.shape[1]
    rows = np.array([keys[kind] if kind is not None and kind >= 0 else np.zeros(d) for kind in kinds])
    alphas = np.array([0.0 if kind == -1 else 1.0 for kind in kinds])
    betas = np.array([2.0 if kind is not None and kind >= 0 else 0.0 for kind in kinds])
    inverse, best = np.linalg.pinv(keys), None
    sides = [np.array([1.0, *signs]) for signs in product((1.0, -1.0), repeat=len(keys) - 1)]
    for distances in [*sides, *(side * np.arange(1, len(keys) + 1) for side in sides)]:
        # The products of the query with the keys, its distances from the mirrors, are prescribed.
        query = np.round(inverse @ distances, DECIMALS) + 0.0  # no −0
        # A query on a mirror would be fixed by that reflection, and two states would have one mark.
        if np.abs(keys @ query).min() < 1e-6:
            continue
        head = StageHead(rows, UNIT * rows, alphas, betas, query, query / np.linalg.norm(query))
        if best is None:
            try:
                best = orbit(head)
            except BudgetExceeded:
                return None
            continue
        # The states do not depend on the query, so that only the marks are computed anew.
        candidate = Orbit(head, best.states, best.table, np.stack([head.mark(S) for S in best.states]))
        best = candidate if candidate.gap > best.gap + 1e-12 else best
    return best if best is not None and best.gap > 1e-6 else None
