"""Which outputs count, and what is the same once some do not."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn.automata import MooreMachine, equivalent, zoo
from fsa2lrnn.automata.counting import counted_words, positions_of, smallest_after_first
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.testing.strategies import machines


def words(machine, longest):
    return (w for n in range(1, longest + 1) for w in itertools.product(machine.alphabet, repeat=n))


@given(machines(max_states=4, max_letters=2), machines(max_states=4, max_letters=2))
def test_equivalence_after_the_first_letter_against_all_words(a, b):
    if a.alphabet != b.alphabet:
        return
    difference = next((w for w in words(a, 9) if a.transduce(w)[-1] != b.transduce(w)[-1]), None)
    found = equivalent(a, b, empty_word=False)
    assert (found is None) == (difference is None)
    if found is not None:
        assert len(found) == len(difference)
        assert a.transduce(found)[-1] != b.transduce(found)[-1]


@given(machines(max_states=6, max_letters=2))
def test_the_smallest_machine_after_the_first_letter_is_equivalent_and_no_larger(machine):
    smallest = smallest_after_first(machine)
    assert equivalent(smallest, machine, empty_word=False) is None
    assert smallest.n_states in (machine.minimise().n_states, machine.minimise().n_states - 1)
    for output in (0, 1, 2):  # whatever the empty word is given, no machine is smaller
        delta = np.concatenate([machine.delta, machine.delta[:, [machine.start]]], axis=1)
        other = MooreMachine(delta, [*machine.outputs, output], machine.n_states, machine.alphabet)
        assert smallest.n_states <= other.minimise().n_states


def test_even_pair_keeps_its_start_and_sum_loses_an_odd_one():
    assert smallest_after_first(zoo.even_pair(3)).n_states == 7
    odd = MooreMachine([[0, 1, 0], [1, 0, 1]], [0, 1, "start"], 2)
    assert smallest_after_first(odd) == MooreMachine([[0, 1], [1, 0]], [0, 1])


def blank_outputs(machine, kept):
    """The smallest machine with the same outputs where they are among `kept`, and None everywhere else."""
    outputs = [output if output in kept else None for output in machine.outputs]
    return MooreMachine(machine.delta, outputs, machine.start, machine.alphabet).minimise()


def test_a_mask_counts_what_its_acceptor_accepts_and_draws_live_words():
    legal = blank_outputs(zoo.mod_arith(2), (0, 1))
    acceptor = MooreMachine(legal.delta, [output is not None for output in legal.outputs], 0, legal.alphabet)
    letters = tuple(reversed(legal.alphabet))
    for empty_word in (False, True):
        mask = positions_of(letters, acceptor, empty_word)
        tokens = mask.random_words(np.random.default_rng(0), 50, 7)
        for word, row in zip(tokens, mask.counts[mask.path(tokens)], strict=True):
            assert [output is not None for output in legal.transduce([letters[a] for a in word])] == row.tolist()
            assert row.tolist() == [True, False] * 3 + [True]
    assert not positions_of("ab", None, False).counts[positions_of("ab", None, False).start]
    assert positions_of("ab", None, True).counts.all()
    with pytest.raises(InvalidMachine, match="the alphabets differ"):
        positions_of("ab", acceptor, False)


@given(machines(max_states=4, max_letters=2), machines(max_states=4, max_letters=2))
def test_equivalence_where_some_outputs_are_ignored_against_all_words(a, b):
    if a.alphabet != b.alphabet:
        return
    ignored = {b.outputs[-1]}
    differ = (w for w in words(a, 7) if b.transduce(w)[-1] not in ignored and a.transduce(w)[-1] != b.transduce(w)[-1])
    difference, found = next(differ, None), equivalent(a, b, ignored, empty_word=False)
    if difference is not None or found is None:
        assert (found is None) == (difference is None)
    if difference is not None:
        assert len(found) == len(difference)
        assert b.transduce(found)[-1] not in ignored
    starts_apart = a.outputs[a.start] != b.outputs[b.start] not in ignored
    assert (equivalent(a, b, ignored) == ()) == starts_apart


def test_words_that_count_are_accepted():
    machine = zoo.mod_arith(2)
    acceptor = counted_words(machine, set(machine.outputs) - {0, 1})
    for word in words(machine, 3):
        assert acceptor.transduce(word) == [output in (0, 1) for output in machine.transduce(word)]
