"""Theorems against every layer with entries from a grid: T3 on every small machine (`verify.brute_force`), T62, T69."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.export.confused_words import ConfusedWords, confused
from fsa2lrnn.families import Verdict
from fsa2lrnn.families.identities import FORCED
from verify.brute_force import by_T3, compare
from verify.propositions.registry import Answer, Effort, Proposition, Proved, refuted


def no_layer_of_a_grid_contradicts(effort: Effort, decide: Callable[[MooreMachine, str], Verdict] = by_T3) -> Answer:
    """Compare T3 with the grid on all tables of few states over two letters, in every family that T3 decides."""
    machines, found, cases = 0, 0, [(family, n) for family in FORCED for n in range(1, effort.exhaustive + 1)]
    for family, n_states in effort.track(cases):
        seen = compare(family, n_states, decide=decide)
        for machine in seen.contradicted:
            shown = f"{machine.delta.tolist()} is called impossible for {family}, and a layer of the grid represents it"
            return refuted(shown, delta=machine.delta.tolist(), family=family)
        for machine in seen.unconfirmed:
            shown = f"the witness of {family} for {machine.delta.tolist()} is none when it is run"
            return refuted(shown, delta=machine.delta.tolist(), family=family)
        machines, found = machines + seen.machines, found + sum(seen.found.values())
    how = (
        f"all tables of at most {effort.exhaustive} states over two letters and {', '.join(FORCED)}: every layer of a "
        f"grid was tried, which has one for {found:,} of the pairs"
    )
    return Proved(how, machines)


Decide = Callable[[MooreMachine, str], ConfusedWords | None]
_ONE = 1 << 20  # stands for 1, so that entries of a half stay whole
_MOST_VALUES = 6  # of a coordinate


def heads_that_cannot_both_keep_and_forget(
    effort: Effort,
    entries: Sequence[Sequence[float]] = ((0, 0.5), (0.5, 1)),
    decide: Decide = confused,
) -> Answer:
    """Run every coordinate of a grid, and random ones above it, and compare their machines with the decision.

    Converse: where the decision excludes nothing, long words with the same ends lead to the same state.
    """
    machines = dict[tuple[str, bytes], MooreMachine]()
    rng = np.random.default_rng(effort.seed)
    for kind, window in (("last-letter-stack", 1), ("ends-stack", 2)):
        for grid in entries:
            inputs = 2 if window == 1 else 6  # the letter, or with the one before it, which may be none
            pairs = [(a, v) for a in grid for v in (0.0, 1.0)]
            for steps in product(pairs, repeat=inputs):
                lower = _stack(steps, window)
                if lower is None:
                    continue
                drawn: list[list[int]] = rng.integers(len(pairs), size=(2, 6 * _MOST_VALUES)).tolist()
                for joint in (lower, *(_above(lower, [pairs[i] for i in numbers]) for numbers in drawn)):
                    if joint is not None:
                        machines[kind, joint.tobytes()] = MooreMachine(joint, range(joint.shape[1]))
    for (kind, _), machine in effort.track(list(machines.items())):
        if decide(machine, kind) is not None:
            return refuted(f"{kind}: layers of the grid run {machine.delta.tolist()}", delta=machine.delta.tolist())
    tables = 0
    for machine in _small_tables():
        tables += 1
        if decide(machine, "ends-stack") is None and (words := _twins(machine, _ends)):
            return refuted(f"{machine.delta.tolist()}: {words} have the same ends", delta=machine.delta.tolist())
    how = (
        f"{len(machines):,} machines of coordinates of a grid and of two layers; {tables:,} tables of at most 3 states"
    )
    return Proved(how, len(machines) + tables)


def layers_whose_decays_read_the_letter(effort: Effort, decide: Decide = confused) -> Answer:
    """Run coordinates of a grid, alone and in pairs, and compare their machines with the decision of T69.

    Converse: where the decision excludes nothing, what such a layer can remember of a word determines the state.
    """
    tables = list[np.ndarray]()
    for decays in product((0, 0.5, 1), repeat=2):
        for values in product((-1.0, 0.0, 1.0), repeat=6):  # of a letter with the one before it, which may be none
            steps = [(decays[i % 2], value) for i, value in enumerate(values)]
            if (table := _stack(steps, 2)) is not None:
                tables.append(table)
    drawn: list[list[int]] = np.random.default_rng(effort.seed).integers(len(tables), size=(800, 2)).tolist()
    pairs = [_side_by_side(tables[i], tables[j]) for i, j in drawn]
    tables += [pair for pair in pairs if pair is not None]
    machines = {table.tobytes(): MooreMachine(table, range(table.shape[1])) for table in tables}
    for machine in effort.track(list(machines.values())):
        if decide(machine, "diagonal-layer-2") is not None:
            return refuted(f"a layer of the grid runs {machine.delta.tolist()}", delta=machine.delta.tolist())
    n_tables = 0
    for machine in _small_tables():
        n_tables += 1
        if decide(machine, "diagonal-layer-2") is None and (words := _twins(machine, _remembered)):
            return refuted(f"{machine.delta.tolist()}: {words} are the same", delta=machine.delta.tolist())
    how = f"{len(machines):,} machines of coordinates of a grid; {n_tables:,} tables of at most 3 states"
    return Proved(how, len(machines) + n_tables)


def _small_tables() -> Iterator[MooreMachine]:
    """Yield all tables of at most three states over two letters, with an output per state."""
    for n in range(1, 4):
        for flat in product(range(n), repeat=2 * n):
            yield MooreMachine(np.reshape(flat, (2, n)), range(n))


def _stack(steps: Sequence[tuple[float, float]], window: int) -> np.ndarray | None:
    """Return the table of a coordinate x ↦ a x + v with its window, from 0, or None for more than a few states."""

    def step(state: tuple[int, ...], a: int) -> tuple[int, ...] | None:
        before, x = state
        factor, v = steps[2 * before + a]  # before is 0 without a window, and for no letter
        # A value that a half divides further than the scale is one of infinitely many.
        return None if factor == 0.5 and x % 2 else (a + 1 if window == 2 else 0, int(factor * x) + int(v * _ONE))

    return _reached((0, 0), step, 3 * _MOST_VALUES)


def _side_by_side(one: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """Return the table of two coordinates, or None for more than a few states."""
    return _reached((0, 0), lambda state, a: (int(one[a, state[0]]), int(other[a, state[1]])), 30)


def _above(lower: np.ndarray, steps: Sequence[tuple[float, float]]) -> np.ndarray | None:
    """Return the table of a coordinate whose step is a function of the letter and of the state below after it."""

    def step(state: tuple[int, ...], a: int) -> tuple[int, ...] | None:
        q = int(lower[a, state[0]])
        factor, v = steps[2 * q + a]
        return None if factor == 0.5 and state[1] % 2 else (q, int(factor * state[1]) + int(v * _ONE))

    return _reached((0, 0), step, 30)


def _reached(
    start: tuple[int, ...], step: Callable[[tuple[int, ...], int], tuple[int, ...] | None], most: int
) -> np.ndarray | None:
    """Return the table of the states that two letters reach, or None if they are more than `most`."""
    numbers, rows = {start: 0}, list[list[int]]()
    for state in (queue := [start]):  # grows
        row = list[int]()
        for a in range(2):
            if (after := step(state, a)) is None or (after not in numbers and len(numbers) == most):
                return None
            if after not in numbers:
                queue.append(after)
            row.append(numbers.setdefault(after, len(numbers)))
        rows.append(row)
    return np.array(rows).T


Word = tuple[int, ...]


def _twins(machine: MooreMachine, key: Callable[[Word], object]) -> tuple[Word, Word] | None:
    """Return two words of three to seven letters with the same key that lead to two states, or None."""
    known = dict[object, tuple[int, Word]]()
    for word in (word for n in range(3, 8) for word in product(range(2), repeat=n)):
        q = machine.start
        for a in word:
            q = int(machine.delta[a, q])
        other, before = known.setdefault(key(word), (q, word))
        if other != q:
            return before, word
    return None


def _ends(word: Word) -> tuple[Word, Word]:
    return word[:3], word[-3:]


def _remembered(word: Word) -> tuple[Word, ...]:
    """Return the first letter, the last two, and for each letter its last occurrence with the letters beside it."""
    lasts = [max((i for i, b in enumerate(word) if b == a), default=-9) for a in (0, 1)]
    return word[:1], word[-2:], *(word[max(i - 1, 0) : max(i + 2, 0)] for i in lasts)


PROPOSITIONS = (
    Proposition(
        "T3-grid",
        "No layer with numbers from a grid represents a machine of few states that T3 says none of its family does; "
        "what T3 constructs is a representation when it is run.",
        "as many states as stated, two letters, an output of its own for each state",
        "docs/theory.md, T3",
        no_layer_of_a_grid_contradicts,
        Proved,
    ),
    Proposition(
        "T62-grid",
        "Coordinates that keep or forget, but not both, run only machines whose state the first and the last letters "
        "of long words determine, and the last letter alone if they read no letter before it.",
        "one coordinate with entries 0, ½, 1 over two letters and windows of two; a random one above it",
        "docs/theory.md, T62",
        heads_that_cannot_both_keep_and_forget,
        Proved,
    ),
    Proposition(
        "T69-grid",
        "One layer whose decays depend on the letter, and whose inputs depend on the last two letters, runs no machine "
        "that T69 excludes; where it excludes none, the letters beside last occurrences determine the state.",
        "one and two coordinates, decays 0, ½, 1 and inputs −1, 0, 1, two letters; tables of at most three states",
        "docs/theory.md, T69",
        layers_whose_decays_read_the_letter,
        Proved,
    ),
)
