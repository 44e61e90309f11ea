"""Pairs of states, as far as words can still fail, against words read one by one."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.extraction import ModelSystem
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification.specification import specification_of
from fsa2lrnn.verification.walk import JointWalk


def closed(walk):
    """All pairs, each with its word, and the words read in all."""
    words = {int(walk.tags[0]): ()}
    read = [()]
    while len(walk):
        ahead, states = walk.look()
        new = [tuple(walk.word(ahead, i).tolist()) for i in range(len(states))]
        read += new
        for word, state in zip(new, states.tolist(), strict=True):
            words.setdefault(state, word)
        walk.keep_new(ahead, states)
    return words, read


@given(machines(max_states=5, max_letters=2), st.booleans())
def test_every_pair_is_met_once_by_a_shortest_word(machine, all_count):
    """The model is the machine's own, so that there is one pair a state."""
    minimal = machine.minimise()
    ignore = () if all_count or len(set(minimal.outputs)) == 1 else (minimal.outputs[-1],)
    model = compile_machine(machine)
    goal = specification_of(model, machine, ignore)
    walk = JointWalk(ModelSystem(model), goal)
    words, read = closed(walk)
    assert walk.seen == len(words)
    assert walk.letters == len(read) - 1
    shortest = {}
    for length in range(minimal.n_states + 1):
        for word in itertools.product(range(len(machine.alphabet)), repeat=length):
            states = list(itertools.accumulate(word, lambda q, a: int(minimal.delta[a, q]), initial=minimal.start))
            if goal.coaccessible[states].all():
                shortest.setdefault(states[-1], word)
    assert {q: len(word) for q, word in words.items()} == {q: len(word) for q, word in shortest.items()}


def test_letters_after_which_nothing_counts_are_not_read():
    trap = MooreMachine([[0, 1], [1, 1]], [0, "?"], 0, "ab")
    model = compile_machine(MooreMachine([[0, 1], [1, 1]], [0, 1], 0, "ab"))
    for ignore, letters in (((), 4), ("lacked", 1)):
        walk = JointWalk(ModelSystem(model), specification_of(model, trap, ignore))
        assert np.array_equal(walk.live, [[True, not ignore]])
        closed(walk)
        assert walk.letters == letters
