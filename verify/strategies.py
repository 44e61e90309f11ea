"""Hypothesis strategies for machines and words: for our tests and for the checks that users run on their own.

Every strategy builds valid values directly and filters nothing, so that it stays fast and shrinks well: towards one
state, one letter, the first output, and the shortest word.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fsa2lrnn.automata.machine import MooreMachine

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@st.composite
def machines(
    draw: DrawFn,
    max_states: int = 8,
    max_letters: int = 3,
    outputs: Sequence[Hashable] = (0, 1, 2),
    alphabet: Sequence[Hashable] | None = None,
) -> MooreMachine:
    """Moore machines with 1 … `max_states` states, any of which may be the start, unreachable or equivalent to another.

    The letters are "a", "b", … (at most `max_letters`), or exactly those of `alphabet`. Every complete table over them
    can come up. Shrinks towards one state, one letter, the start 0, transitions to state 0 and the first of `outputs`.
    """
    n = draw(st.integers(1, max_states))
    if alphabet is None:
        alphabet = _LETTERS[: draw(st.integers(1, min(max_letters, len(_LETTERS))))]
    state = st.integers(0, n - 1)
    row = st.lists(state, min_size=n, max_size=n)
    delta = [draw(row) for _ in alphabet]
    omega = draw(st.lists(st.sampled_from(outputs), min_size=n, max_size=n))
    return MooreMachine(delta, omega, draw(state), alphabet)


def dfas(
    max_states: int = 8, max_letters: int = 3, alphabet: Sequence[Hashable] | None = None
) -> SearchStrategy[MooreMachine]:
    """Acceptors: `machines` with the outputs False and True. Shrinks towards the one-state machine that rejects all."""
    return machines(max_states, max_letters, (False, True), alphabet)


@st.composite
def permutation_machines(
    draw: DrawFn, max_states: int = 8, max_letters: int = 3, outputs: Sequence[Hashable] = (0, 1, 2)
) -> MooreMachine:
    """Machines whose every letter permutes the states. Shrinks towards one state and identities."""
    n = draw(st.integers(1, max_states))
    alphabet = _LETTERS[: draw(st.integers(1, min(max_letters, len(_LETTERS))))]
    delta = [draw(st.permutations(range(n))) for _ in alphabet]
    omega = draw(st.lists(st.sampled_from(outputs), min_size=n, max_size=n))
    return MooreMachine(delta, omega, draw(st.integers(0, n - 1)), alphabet)


def words(machine: MooreMachine, max_size: int = 20) -> SearchStrategy[list[Hashable]]:
    """Words over the machine's alphabet, as lists of letters. Shrinks towards the empty word and the first letters."""
    return st.lists(st.sampled_from(machine.alphabet), max_size=max_size)
