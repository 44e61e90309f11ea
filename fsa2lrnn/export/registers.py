"""Plan registers, heads that store the last written value, for machines that are a register behind a window of letters.

If each letter of a machine either is the identity or leads all states to one, the machine is one register: a head with
a unit key and β = 1. Behind a window, this need only hold among the states that are possible after the last letters.
For example, each letter of (ab)* leads to two states, but two equal letters in sequence lead to the sink, and two
different letters change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.export.plan import MAX_STATES, UNIT, Orbit, Stage, StageHead, StagePlan, Unit, orbit

MAX_WINDOW = 3  # the number of previous letters that a convolution of width 4 reads
_MAX_HEADS = 32  # the most values of a register behind a window, each of which takes a head

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
                    parent[find(elements[window, q])] = find(elements[after, int(row[q])])
    roots = {element: find(i) for element, i in elements.items()}
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
        taken = {numbers.get(other) for roots in together if root in roots for other in roots}
        numbers[root] = next(i for i in range(len(numbers) + 1) if i not in taken)
    return numbers


def two_stages(machine: MooreMachine, behind: WindowRegister) -> StagePlan | None:
    """Return a plan of two layers: the first holds the previous letters, the second the register, a head per value.

    The result is None if there are more than 32 values.
    """
    if behind.n_values > _MAX_HEADS:
        return None
    n = len(machine.alphabet)
    before = tuple(letter_ago(n, lag) for lag in range(1, behind.length + 1))
    first = tuple(
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


def letter_ago(n: int, lag: int) -> Orbit:
    """Return a head that holds which of n symbols was read `lag` letters ago: mark 1 + a for symbol a, 0 for none."""
    head = StageHead(np.ones((n, 1)), UNIT * np.eye(n), np.ones(n), np.ones(n), np.ones(1), np.ones(n), np.full(n, lag))
    states = (np.zeros((1, n)), *(UNIT * np.eye(n)[None, a] for a in range(n)))
    table = np.tile(np.arange(1, n + 1)[:, None], (1, n + 1))
    return Orbit(head, states, table, np.stack([head.mark(S) for S in states]))


def _held(n_values: int, value: int) -> Orbit:
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
