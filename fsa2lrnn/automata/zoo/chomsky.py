"""The four regular tasks of Delétang et al. (2023), "Neural networks and the Chomsky hierarchy".

Theirs are classifications: one answer for a whole string. As Moore machines they give the answer after every prefix.
Parity, even pairs and modular arithmetic are the ancestors of the paper's Sum, EvenPair and ModArith; their "modular
arithmetic (simple)", without brackets and with M = 5, is `mod_arith(5)`.
"""

from __future__ import annotations

from collections.abc import Hashable

from fsa2lrnn.automata.explore import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import at_least, within_budget


def parity() -> MooreMachine:
    """Whether the number of ones is odd, for a string of "0" and "1".

    The smallest group task (Z₂, 2 states), and the smallest that a diagonal layer with entries in [0, 1] can't do. As
    a transduction it is `sum_mod(2)`, with False and True for 0 and 1.

    >>> parity().transduce("1101")
    [True, False, False, True]
    """
    return explore("01", False, lambda odd, letter: odd != (letter == "1"), lambda odd: odd)


def even_pairs() -> MooreMachine:
    """Whether the number of places where "ab" or "ba" stands is even, for a string of "a" and "b".

    Each such place is a switch of letter, so the number is even exactly when the last letter equals the first. Minimal
    with 5 states, aperiodic. It is `even_pair(2)` but for the names of the letters, for True and False in place of 1
    and 0, and for the empty word, which has no switch and so is accepted here.

    >>> even_pairs().transduce("aabba")
    [True, True, False, False, True]
    """

    def step(ends: tuple[Hashable, Hashable], letter: Hashable) -> tuple[Hashable, Hashable]:
        return letter if ends[0] is None else ends[0], letter

    start: tuple[Hashable, Hashable] = (None, None)
    return explore("ab", start, step, lambda ends: ends[0] == ends[1])


def cycle_navigation(n: int = 5) -> MooreMachine:
    """The position on a cycle of n places after steps "+" (forwards), "-" (backwards) and "0" (stay).

    A group task (Z_n, n states) with the identity among its letters: `sum_mod(n)` with the digits 0, 1 and n − 1 only.
    Delétang et al. take n = 5.

    >>> cycle_navigation(5).transduce("-0--")
    [4, 4, 3, 2]
    """
    n = at_least(2, "cycle_navigation", "n", n, "a cycle of one place has nowhere to go")
    within_budget(f"cycle_navigation({n})", n, 3)
    move: dict[Hashable, int] = {"0": 0, "+": 1, "-": -1}
    return explore(move, 0, lambda place, letter: (place + move[letter]) % n, lambda place: place)
