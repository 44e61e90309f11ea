"""Machines about remembering, forgetting and synchronising."""

from __future__ import annotations

from collections.abc import Hashable

from fsa2lrnn.automata.explore import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import at_least, one_of, within_budget


def flip_flop() -> MooreMachine:
    """One bit of memory: "s" sets it, "r" resets it, "." reads it and changes nothing.

    The building block that Krohn & Rhodes (1965) need in addition to simple groups: two constant maps and the identity.
    Minimal with 2 states, aperiodic; one lane of a diagonal layer with entries in [0, 1] holds it, an input-independent
    layer can't.

    >>> flip_flop().transduce(".s..r.")
    [0, 1, 1, 1, 0, 0]
    """
    written: dict[Hashable, int] = {"s": 1, "r": 0}
    return explore("sr.", 0, lambda bit, letter: written.get(letter, bit), lambda bit: bit)


def shift_register(n: int, output: str = "oldest") -> MooreMachine:
    """The last n bits, zeros at the start. The output is the "oldest" of them or their "content" as a string.

    The universal definite machine: what it knows, n letters make it forget. An input-independent layer of dimension n
    holds it, which no diagonal layer does for n > 1 (T3 of docs/theory.md). Aperiodic, minimal with 2^n states. State
    labels: the tuple of the bits, oldest first.

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
    """Černý's automaton: "a" turns a cycle of n states, "b" sends the last state to the first and fixes the others.

    The slowest synchronising automata known: the shortest word that sends all states to one has (n − 1)² letters, and
    Černý (1964) conjectured that no n-state machine needs more. Here because errors meet late: a wrong state may
    survive a long word. Contains Z_n; neither group nor aperiodic. Minimal with n states, the output is the state.

    >>> cerny(4).transduce("aaaba")
    [1, 2, 3, 0, 1]
    """
    n = at_least(2, "cerny", "n", n)
    within_budget(f"cerny({n})", n, 2)

    def step(q: int, letter: Hashable) -> int:
        return (q + 1) % n if letter == "a" or q == n - 1 else q

    return explore("ab", 0, step, lambda q: q)


def all_maps(n: int) -> MooreMachine:
    """A machine whose letters generate every map of n states to themselves, nⁿ of them.

    "c" is the cycle, "t" exchanges states 0 and 1, "m" merges state 1 into 0. The hardest n-state machine for any
    decomposition: it holds S_n, and no congruence helps. Neither group nor aperiodic. Minimal with n states.

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
