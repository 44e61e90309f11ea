"""Machines of three classes, minimal and drawn from a seed: groups, aperiodic ones, and those that are neither.

Uniform tables (`zoo.random_dfa`) are neither with near certainty, and uniform permutations nearly always generate the
symmetric or the alternating group. So that a class holds more than one kind of machine, two are drawn in two ways:

- group: uniform permutations; or the translations of a small group by random elements.
- aperiodic: maps that keep an order of the states; or a cascade of two-state memories, each told by the letter and the
  memories before it to keep, set or clear its bit. Both generate aperiodic monoids only, and by Krohn and Rhodes every
  aperiodic machine divides one of the second kind.
- mixed: uniform tables, of which those that `classify` finds in another class are drawn anew.

States accept with probability ½. Whatever is not minimal with the wanted number of states is drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata import MooreMachine, minimise, zoo
from fsa2lrnn.automata.monoid.classification import classify
from fsa2lrnn.errors import BudgetExceeded

KINDS = ("group", "aperiodic", "mixed")
STATES, LETTERS = range(4, 17), range(2, 5)
_TRIES = 100_000
MONOID = 20_000  # elements after which a class counts as undecided
_GROUPS = {
    n: [f"Z{n}", *([f"D{n // 2}"] if n % 2 == 0 and n >= 6 else []), *{4: ["Z2xZ2"], 8: ["Q8"], 12: ["A4"]}.get(n, [])]
    for n in STATES
}


class Drawn(NamedTuple):
    """A machine of the study, by its number."""

    number: int
    kind: str
    machine: MooreMachine

    @property
    def name(self) -> str:
        """The name of the machine in tables: class and number."""
        return f"{self.kind} {self.number}"


def drawn(number: int) -> Drawn:
    """Return the machine of that number: the classes in turn, the sizes in turn within a class.

    >>> [(m.kind, m.machine.n_states, len(m.machine.alphabet)) for m in map(drawn, range(4))]
    [('group', 4, 2), ('aperiodic', 4, 2), ('mixed', 4, 2), ('group', 9, 3)]
    """
    kind, turn = KINDS[number % 3], number // 3
    n, k = STATES[5 * turn % len(STATES)], LETTERS[turn % len(LETTERS)]
    generator = np.random.Generator(np.random.PCG64([2022, number]))
    table = _TABLES[kind][turn // len(LETTERS) % len(_TABLES[kind])]
    for _ in range(_TRIES):
        if (delta := table(n, k, generator)) is None:
            continue
        outputs = generator.integers(2, size=delta.shape[1]).astype(bool).tolist()
        machine = MooreMachine(delta, outputs, 0, "abcd"[:k])
        # Numbered breadth first, so that no table shows how it was drawn.
        if (minimal := minimise(machine)).n_states == n and classify(minimal, MONOID).kind == kind:
            return Drawn(number, kind, minimal)
    raise BudgetExceeded(f"no minimal {kind} machine of {n} states over {k} letters in {_TRIES:,} draws")


def _permutations(n: int, k: int, generator: np.random.Generator) -> np.ndarray:
    return np.array([generator.permutation(n) for _ in range(k)])


def _translations(n: int, k: int, generator: np.random.Generator) -> np.ndarray:
    whole = zoo.group(str(generator.choice(_GROUPS[n])), generators="all").delta
    return whole[generator.choice(len(whole), size=k, replace=False)]


def _order_keeping(n: int, k: int, generator: np.random.Generator) -> np.ndarray:
    chain = np.sort(generator.integers(n, size=(k, n)), axis=1)
    place = generator.permutation(n)
    renamed = np.empty_like(chain)
    renamed[:, place] = place[chain]
    return renamed


def _memories(n: int, k: int, generator: np.random.Generator) -> np.ndarray | None:
    """Return a cascade of bits with `n` reachable states, or None if another number is reached."""
    n_bits = int(np.ceil(np.log2(n)))
    states = np.arange(1 << n_bits)
    delta = np.zeros((k, len(states)), np.int64)
    for bit in range(n_bits):
        told = generator.integers(3, size=(k, 1 << bit))[:, states % (1 << bit)]  # keep, set, clear
        delta |= np.where(told == 0, states >> bit & 1, told == 1).astype(np.int64) << bit
    return delta if len(_reached(delta)) >= n else None


def _reached(delta: np.ndarray) -> set[int]:
    found, waiting = {0}, [0]
    while waiting:
        new = set(delta[:, waiting.pop()].tolist()) - found
        found |= new
        waiting += new
    return found


def _uniform(n: int, k: int, generator: np.random.Generator) -> np.ndarray:
    return generator.integers(n, size=(k, n))


_TABLES: dict[str, tuple[Callable[[int, int, np.random.Generator], np.ndarray | None], ...]] = {
    "group": (_permutations, _translations),
    "aperiodic": (_order_keeping, _memories),
    "mixed": (_uniform,),
}
