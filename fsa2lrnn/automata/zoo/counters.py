"""Counters: modular, resettable, saturating, and the remainder of a number read digit by digit."""

from __future__ import annotations

from collections.abc import Hashable

from fsa2lrnn.automata.explore import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import at_least, digits, text, within_budget
from fsa2lrnn.errors import InvalidMachine


def length_mod(n: int, letters: str = "ab") -> MooreMachine:
    """The length of the word modulo n: every letter does the same.

    The one cyclic task within reach of input-independent layers (T3 of docs/theory.md), where Sum(n) is not. Group
    Z_n, minimal with n states.

    >>> length_mod(3).transduce("abba")
    [1, 2, 0, 1]
    """
    n = at_least(2, "length_mod", "n", n, "modulo 1 every length is 0")
    letters = text("length_mod", "letters", letters)
    within_budget(f"length_mod({n})", n, len(letters))
    return explore(letters, 0, lambda length, _: (length + 1) % n, lambda length: length)


def count_mod(n: int, letter: str = "a", letters: str = "ab") -> MooreMachine:
    """How often `letter` has occurred, modulo n; the other letters are identities.

    The least that a group task can ask: one generator of Z_n, and when to apply it. Minimal with n states.

    >>> count_mod(3).transduce("abbaaa")
    [1, 1, 1, 2, 0, 1]
    """
    n = at_least(2, "count_mod", "n", n, "modulo 1 every count is 0")
    letter, letters = text("count_mod", "letter", letter), text("count_mod", "letters", letters)
    if letter not in letters or len(letter) != 1:
        raise InvalidMachine(f"count_mod(letter={letter!r}): it must be one of the letters {letters!r}")
    within_budget(f"count_mod({n})", n, len(letters))
    return explore(letters, 0, lambda count, a: (count + (a == letter)) % n, lambda count: count)


def resettable_counter(n: int) -> MooreMachine:
    """A counter modulo n with "+" to count and "0" to reset.

    The smallest mixture of a group and resets: Z_n with n constant maps, in one component that is neither, so it
    separates layers that hold permutations or resets from those that hold both. Minimal with n states.

    >>> resettable_counter(3).transduce("++0+++")
    [1, 2, 0, 1, 2, 0]
    """
    n = at_least(2, "resettable_counter", "n", n, "modulo 1 every count is 0")
    within_budget(f"resettable_counter({n})", n, 2)
    return explore("+0", 0, lambda count, a: (count + 1) % n if a == "+" else 0, lambda count: count)


def elevator(n: int) -> MooreMachine:
    """The floor of a lift with n floors after "u" (up) and "d" (down); at the top and the bottom it stays.

    A counter that saturates instead of wrapping: aperiodic for every n, though its letters resemble a shift. The
    one-dimensional gridworld of Liu et al. (2023), "Transformers learn shortcuts to automata". Minimal with n states.

    >>> elevator(3).transduce("uuudd")
    [1, 2, 2, 1, 0]
    """
    n = at_least(2, "elevator", "n", n, "one floor leaves nowhere to go")
    within_budget(f"elevator({n})", n, 2)

    def step(floor: int, letter: Hashable) -> int:
        return min(floor + 1, n - 1) if letter == "u" else max(floor - 1, 0)

    return explore("ud", 0, step, lambda floor: floor)


def remainder(n: int, base: int = 2) -> MooreMachine:
    """The number read so far, written in `base` with the leading digit first, modulo n.

    The step is r ← base·r + d. With base and n coprime every digit permutes the remainders (an affine group); else
    multiplication loses information, and for n a power of the base the machine is a shift register. So one parameter
    moves it between the kinds. Minimal with n states.

    >>> remainder(3).transduce("1101")
    [1, 0, 0, 1]
    """
    n = at_least(2, "remainder", "n", n, "modulo 1 every remainder is 0")
    base = at_least(2, "remainder", "base", base, "a positional system needs two digits")
    within_budget(f"remainder({n})", n, base)
    value: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(base))}
    return explore(digits(base), 0, lambda r, letter: (base * r + value[letter]) % n, lambda r: r)
