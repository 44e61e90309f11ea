"""States along words, and fixpoints, against machines run letter by letter."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata.table_kernels import coaccessible, paths, settled
from fsa2lrnn.testing.strategies import machines


def reached(machine, q):
    found = {q}
    for _ in range(machine.n_states):
        found |= {int(to) for p in found for to in machine.delta[:, p]}
    return found


@given(machines(max_states=6), st.integers(0, 2**32 - 1), st.integers(0, 9), st.integers(0, 7))
def test_paths_are_the_runs_of_the_machine(machine, seed, n, length):
    rng = np.random.default_rng(seed)
    tokens, starts = rng.integers(0, len(machine.alphabet), (n, length)), rng.integers(0, machine.n_states, n)
    for turned in (tokens, np.asfortranarray(tokens)):
        found = paths(machine.delta, starts, turned)
        assert found.shape == (n, length)
        for q, word, states in zip(starts, tokens, found, strict=True):
            for a, state in zip(word, states, strict=True):
                q = machine.delta[a, q]
                assert q == state


@given(machines(max_states=6, outputs=(False, True)))
def test_coaccessible_states_reach_what_is_wanted(machine):
    wanted = np.array(machine.outputs)
    reach = [reached(machine, q) for q in range(machine.n_states)]
    assert coaccessible(machine.delta, wanted).tolist() == [any(wanted[p] for p in found) for found in reach]


@given(machines(max_states=6, outputs=(0, 1)))
def test_settled_states_never_leave_their_class(machine):
    classes = np.array(machine.outputs)
    reach = [reached(machine, q) for q in range(machine.n_states)]
    assert settled(machine.delta, classes).tolist() == [len({classes[p] for p in found}) == 1 for found in reach]
