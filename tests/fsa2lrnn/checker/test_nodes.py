"""Nodes, against words read one by one."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.checker.nodes import nodes
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification.specification import Specification


@st.composite
def goals(draw):
    """A machine of up to 5 states and 3 letters, some of whose outputs may not count."""
    machine = draw(machines(max_states=5, outputs=(0, 1, 2)))
    wanted = np.array(machine.outputs)
    return Specification(machine.delta, wanted < 2, machine.start, wanted, machine.alphabet, (0, 1, 2), 3, False)


@given(goals(), st.integers(1, 3), st.data())
def test_nodes_are_where_words_lead(goal, memory, data):
    frame_memory = data.draw(st.integers(1, memory))
    found = nodes(goal.target, memory, frame_memory)
    k, coaccessible = len(goal.delta), goal.coaccessible
    reached = set()
    for word in itertools.product(range(k), repeat=memory + 1):
        states = [goal.start]
        for a in word:
            states.append(int(goal.delta[a, states[-1]]))
        number = lambda letters: sum(a * k**i for i, a in enumerate(reversed(letters)))  # noqa: E731
        before, j0 = found.numbers(np.array([states[-2]]), np.array([number(word[:memory])]))
        f, j = found.numbers(np.array([states[-1]]), np.array([number(word[1:])]))
        assert (f[0] >= 0) == coaccessible[states[-1]]
        if f[0] < 0:
            continue
        reached.add(int(f[0]))
        assert found.state[f[0]] == states[-1]
        assert found.oldest[f[0]] == word[-frame_memory]
        assert before[0] >= 0
        assert found.delta[word[-1], before[0]] == f[0]
        if found.older > 1:  # the oldest letter goes, the frame's oldest joins
            assert j[0] == j0[0] * k % found.older + found.oldest[before[0]]
    assert set(range(len(found.state))) >= reached
    assert len(set(found.codes.tolist())) == len(found.state)
