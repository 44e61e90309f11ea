"""The initial state apart: same language, no letter leads back to it; live words keep out of sinks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import compile_machine
from fsa2lrnn.automata import zoo
from fsa2lrnn.repairing.observed import RepairStates
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification.specification import specification_of


def states_of(machine):
    return RepairStates.of(specification_of(compile_machine(machine), machine))


@given(machines(max_states=6), st.integers(0, 2**32 - 1))
def test_outputs_along_words_are_the_machines(machine, seed):
    states = states_of(machine)
    rng = np.random.default_rng(seed)
    tokens = states.draw(rng, 3, 12, is_live=bool(seed % 2))
    outputs = compile_machine(machine).outputs
    for row, reached in zip(tokens, states.path(tokens), strict=True):
        word = [machine.alphabet[a] for a in row]
        assert [outputs[j] for j in states.wanted[reached]] == machine.transduce(word)
    assert (states.delta != states.initial).all()
    assert states.counts.tolist() == [True] * states.initial + [False]


@given(machines(max_states=6))
def test_access_words_reach_every_state_and_no_shorter_word_does(machine):
    states = states_of(machine)
    reached, lengths = {states.initial}, {}
    for length in range(1, states.initial + 2):
        reached = {int(q) for q in states.delta[:, list(reached)].ravel()}
        for q in reached:
            lengths.setdefault(q, length)
    words = states.access_words()
    assert [len(word) for word in words] == [lengths[q] for q in range(states.initial)]
    for q, word in enumerate(words):
        assert states.path(np.array([word]))[0, -1] == q


def test_live_words_stay_out_of_the_sink():
    states = states_of(zoo.tomita(4))
    sink = next(q for q in range(states.initial) if (states.delta[:, q] == q).all())
    rng = np.random.default_rng(0)
    assert (states.path(states.draw(rng, 50, 30, is_live=True)) != sink).all()
    assert (states.path(states.draw(rng, 50, 30)) == sink).any()
