"""Small machines: counters, memory, and the regular tasks of Delétang et al. (2023) and others.

The tasks of Delétang et al., "Neural networks and the Chomsky hierarchy", have one answer per string; the machines give
it after every prefix. Parity, even pairs and modular arithmetic are the ancestors of the paper's Sum, EvenPair and
ModArith; their "modular arithmetic (simple)", without brackets and with M = 5, is `mod_arith(5)`.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product

from fsa2lrnn.automata.language import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import at_least, digits, one_of, text, within_budget
from fsa2lrnn.errors import InvalidMachine


def length_mod(n: int, letters: str = "ab") -> MooreMachine:
    """Return a machine that outputs the length of the word modulo n; all letters act alike.

    Input-independent layers represent this cyclic task, but not Sum(n) (T3 of docs/theory.md). The monoid is the group
    Z_n; the machine is minimal with n states.

    >>> length_mod(3).transduce("abba")
    [1, 2, 0, 1]
    """
    n = at_least(2, "length_mod", "n", n, "modulo 1 every length is 0")
    letters = text("length_mod", "letters", letters)
    within_budget(f"length_mod({n})", n, len(letters))
    return explore(letters, 0, lambda length, _: (length + 1) % n, lambda length: length)


def count_mod(n: int, letter: str = "a", letters: str = "ab") -> MooreMachine:
    """Return a machine that counts occurrences of `letter` modulo n; the other letters are identities.

    This is the simplest group task: a generator of Z_n and the identity. The machine is minimal with n states.

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
    """Return a machine that counts modulo n, with "+" to count and "0" to reset.

    This is the smallest mixture of a group and resets: Z_n with n constant maps, in one component. So it separates
    layers that represent only permutations or only resets from those that represent both. The machine is minimal with n
    states.

    >>> resettable_counter(3).transduce("++0+++")
    [1, 2, 0, 1, 2, 0]
    """
    n = at_least(2, "resettable_counter", "n", n, "modulo 1 every count is 0")
    within_budget(f"resettable_counter({n})", n, 2)
    return explore("+0", 0, lambda count, a: (count + 1) % n if a == "+" else 0, lambda count: count)


def elevator(n: int) -> MooreMachine:
    """Return a machine that outputs the floor of a lift, 0 … n−1, after "u" (up) and "d" (down), limited at both ends.

    This is the one-dimensional gridworld of Liu et al. (2023), "Transformers learn shortcuts to automata". It saturates
    instead of wrapping, so it is aperiodic for every n. The machine is minimal with n states.

    >>> elevator(3).transduce("uuudd")
    [1, 2, 2, 1, 0]
    """
    n = at_least(2, "elevator", "n", n, "one floor leaves nowhere to go")
    within_budget(f"elevator({n})", n, 2)

    def step(floor: int, letter: Hashable) -> int:
        return min(floor + 1, n - 1) if letter == "u" else max(floor - 1, 0)

    return explore("ud", 0, step, lambda floor: floor)


def remainder(n: int, base: int = 2) -> MooreMachine:
    """Return a machine that outputs, modulo n, the number read so far in `base`, leading digit first.

    The step is r ← base·r + d. If base and n are coprime, every digit permutes the remainders (an affine group). Else
    multiplication loses information, and if n is a power of the base, the machine is a shift register. So `base` and n
    determine the kind of the machine, which is minimal with n states.

    >>> remainder(3).transduce("1101")
    [1, 0, 0, 1]
    """
    n = at_least(2, "remainder", "n", n, "modulo 1 every remainder is 0")
    base = at_least(2, "remainder", "base", base, "a positional system needs two digits")
    within_budget(f"remainder({n})", n, base)
    value: dict[Hashable, int] = {letter: d for d, letter in enumerate(digits(base))}
    return explore(digits(base), 0, lambda r, letter: (base * r + value[letter]) % n, lambda r: r)


def flip_flop() -> MooreMachine:
    """Return a machine with one bit of memory: "s" sets it, "r" resets it, "." leaves it unchanged.

    Its maps are two constants and the identity; with simple groups it is the building block of Krohn & Rhodes (1965).
    The machine is minimal with 2 states and aperiodic. One channel of a diagonal layer with entries in [0, 1]
    represents it; no input-independent layer does.

    >>> flip_flop().transduce(".s..r.")
    [0, 1, 1, 1, 0, 0]
    """
    written: dict[Hashable, int] = {"s": 1, "r": 0}
    return explore("sr.", 0, lambda bit, letter: written.get(letter, bit), lambda bit: bit)


def shift_register(n: int, output: str = "oldest") -> MooreMachine:
    """Return a machine that stores the last n bits, initially zeros, and outputs the "oldest" or all ("content").

    Its state depends on the last n letters only, so it is the universal definite machine. An input-independent layer of
    dimension n represents it; for n > 1 no diagonal layer does (T3 of docs/theory.md). The machine is aperiodic and
    minimal with 2^n states. With `output="content"` the output is a string of n bits. Labels are tuples of the bits,
    oldest first.

    >>> shift_register(2).transduce("1011")
    [0, 1, 0, 1]
    >>> shift_register(2, output="content").transduce("1011")
    ['01', '10', '01', '11']
    """
    n = at_least(1, "shift_register", "n", n)
    one_of(("oldest", "content"), "shift_register", "output", output)
    within_budget(f"shift_register({n})", 2 ** min(n, 64), 2)

    def show(bits: tuple[int, ...]) -> Hashable:
        return bits[0] if output == "oldest" else "".join(map(str, bits))

    return explore("01", tuple([0] * n), lambda bits, letter: (*bits[1:], int(letter == "1")), show)


def cerny(n: int) -> MooreMachine:
    """Return Černý's automaton: "a" turns a cycle of n states, "b" maps the last to the first and fixes the others.

    The shortest word that leads all states to one has (n − 1)² letters, and Černý (1964) conjectured that no
    synchronising n-state machine needs more; so a wrong state may persist for a long word. The monoid contains Z_n and
    is neither a group nor aperiodic. The machine is minimal with n states, and the output is the state.

    >>> cerny(4).transduce("aaaba")
    [1, 2, 3, 0, 1]
    """
    n = at_least(2, "cerny", "n", n)
    within_budget(f"cerny({n})", n, 2)

    def step(q: int, letter: Hashable) -> int:
        return (q + 1) % n if letter == "a" or q == n - 1 else q

    return explore("ab", 0, step, lambda q: q)


def all_maps(n: int) -> MooreMachine:
    """Return a machine whose letters generate all nⁿ maps of n states to themselves.

    "c" is the cycle, "t" exchanges states 0 and 1, "m" merges state 1 into 0. No n-state machine is harder to
    decompose: the monoid contains S_n, and the machine has no congruence except the trivial ones. The monoid is neither
    a group nor aperiodic. The machine is minimal with n states.

    >>> all_maps(4).transduce("ccctm")
    [1, 2, 3, 3, 3]
    """
    n = at_least(2, "all_maps", "n", n)
    within_budget(f"all_maps({n})", n, 3)

    def step(q: int, letter: Hashable) -> int:
        if letter == "c":
            return (q + 1) % n
        return {"t": {0: 1, 1: 0}, "m": {1: 0}}[str(letter)].get(q, q)

    return explore("ctm", 0, step, lambda q: q)


def parity() -> MooreMachine:
    """Return an acceptor of the strings of "0" and "1" that have an odd number of ones.

    This is the smallest group task (Z₂, 2 states), and the smallest machine that no diagonal layer with entries in
    [0, 1] represents. As a transduction it is `sum_mod(2)`, with False and True for 0 and 1.

    >>> parity().transduce("1101")
    [True, False, False, True]
    """
    return explore("01", False, lambda odd, letter: odd != (letter == "1"), lambda odd: odd)


def even_pairs() -> MooreMachine:
    """Return an acceptor of the strings of "a" and "b" in which "ab" and "ba" occur an even number of times in all.

    Each occurrence is a change of letter, so the number is even if and only if the last letter equals the first. The
    machine is minimal with 5 states and aperiodic. It differs from `even_pair(2)` in the names of the letters, in the
    outputs True and False in place of 1 and 0, and in accepting the empty word, which has no change.

    >>> even_pairs().transduce("aabba")
    [True, True, False, False, True]
    """

    def step(ends: tuple[Hashable, Hashable], letter: Hashable) -> tuple[Hashable, Hashable]:
        return letter if ends[0] is None else ends[0], letter

    start: tuple[Hashable, Hashable] = (None, None)
    return explore("ab", start, step, lambda ends: ends[0] == ends[1])


def cycle_navigation(n: int = 5) -> MooreMachine:
    """Return a machine that outputs the position on a cycle of n places after steps "+", "-" and "0" (stay).

    This group task (Z_n, n states) is `sum_mod(n)` with the digits 0, 1 and n − 1 only. Delétang et al. take n = 5.

    >>> cycle_navigation(5).transduce("-0--")
    [4, 4, 3, 2]
    """
    n = at_least(2, "cycle_navigation", "n", n, "a cycle of one place has nowhere to go")
    within_budget(f"cycle_navigation({n})", n, 3)
    move: dict[Hashable, int] = {"0": 0, "+": 1, "-": -1}
    return explore(move, 0, lambda place, letter: (place + move[letter]) % n, lambda place: place)


def arbiter(n: int, policy: str = "round_robin") -> MooreMachine:
    """Return a machine that grants a resource to one of n clients at a time; requests wait until they are granted.

    A letter has a bit per client, "1" for a request; the output is the number of the client that is granted, or "none".
    "round_robin" grants the first waiting client after the one that was granted last, "priority" the one of the least
    number. Arbiters are benchmarks of the synthesis competition SYNTCOMP. "priority" has 2ⁿ states and is aperiodic.

    >>> arbiter(2).transduce(["11", "10", "00"])
    [0, 1, 0]
    >>> arbiter(2, policy="priority").transduce(["11", "10", "00"])
    [0, 0, 1]
    """
    n = at_least(1, "arbiter", "n", n)
    one_of(("round_robin", "priority"), "arbiter", "policy", policy)
    within_budget(f"arbiter({n})", n * n * 2**n, 2**n)

    def step(state: tuple[int, frozenset[int], Hashable], letter: Hashable) -> tuple[int, frozenset[int], Hashable]:
        last, waiting, _ = state
        waiting |= {client for client, bit in enumerate(str(letter)) if bit == "1"}
        if not waiting:
            return last, waiting, "none"
        granted = min(waiting, key=lambda client: (client - last - 1) % n)
        return (granted if policy == "round_robin" else n - 1), waiting - {granted}, granted

    letters = ("".join(bits) for bits in product("01", repeat=n))
    start: tuple[int, frozenset[int], Hashable] = (n - 1, frozenset(), "none")
    return explore(letters, start, step, lambda state: state[2])
