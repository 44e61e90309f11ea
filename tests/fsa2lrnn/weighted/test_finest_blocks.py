"""The finest common blocks of transition matrices over the rational numbers."""

from itertools import cycle

import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import WeightedAutomaton, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.weighted import EqualFunctions
from fsa2lrnn.weighted.finest_blocks import block_form
from fsa2lrnn.weighted.networks import compile_machine, prove_equivalent
from tests.fsa2lrnn.weighted.test_automaton import automata


def conjugated(w, numbers):
    """The automaton in another basis: a product of unit triangular matrices with these entries."""
    n = w.n_states
    entries = cycle(numbers)
    lower = fmpq_mat(n, n, [next(entries) if i > j else int(i == j) for i in range(n) for j in range(n)])
    T = lower * fmpq_mat(n, n, [next(entries) if i < j else int(i == j) for i in range(n) for j in range(n)])
    maps = [T * fmpq_mat([list(row) for row in A]) * T.inv() for A in exactly(w)]
    final = fmpq_mat([[fmpq(x.numerator, x.denominator) for x in w.final]]) * T.inv()
    initial = T * fmpq_mat([[fmpq(x.numerator, x.denominator)] for x in w.initial])
    return WeightedAutomaton(w.alphabet, initial.entries(), [A.tolist() for A in maps], final.entries())


def exactly(w):
    return [[[fmpq(x.numerator, x.denominator) for x in row] for row in A] for A in w.transitions]


@settings(max_examples=10)
@given(
    st.lists(automata(3).filter(lambda w: w.n_states), min_size=1, max_size=3),
    st.booleans(),
    st.lists(
        st.fractions(-2, 2, max_denominator=2).map(lambda x: fmpq(x.numerator, x.denominator)), min_size=3, max_size=5
    ),
)
def test_a_direct_sum_in_another_basis_is_split_again(summands, twice, numbers):
    w = sum(summands[1:] + summands[:1] * twice, summands[0])
    hidden = conjugated(w, numbers)
    found = block_form(hidden, seconds=3)
    assert max(found.sizes) <= max(part.n_states for part in summands)
    assert found.automaton.equivalent(hidden) is None
    assert found.automaton.equivalent(w) is None
    position = 0
    for size in found.sizes:  # nothing outside of the blocks
        for A in found.automaton.transitions:
            for i in range(position, position + size):
                assert not any(A[i][:position] + A[i][position + size : sum(found.sizes)])
        position += size


def test_blocks_that_no_basis_splits():
    """A field, a Jordan block, the regular representation of a group, and quaternions, which are not decided."""
    root = WeightedAutomaton("a", [1, 0], [[[0, 2], [1, 0]]], [1, 0])
    jordan = WeightedAutomaton("a", [1] * 3, [[[0, 1, 0], [0, 0, 1], [0, 0, 0]]], [1] * 3)
    for w in (root, jordan):
        assert (block_form(w).sizes, block_form(w).is_finest) == ((w.n_states,), True)
    found = block_form(WeightedAutomaton.from_machine(zoo.from_task("group(S3)"), "()"))
    assert (sorted(found.sizes), found.is_finest) == ([1, 1, 2, 2], True)
    found = block_form(WeightedAutomaton.from_machine(zoo.from_task("group(Q8)"), "1"))
    assert (sorted(found.sizes), found.is_finest) == ([1, 1, 1, 1, 4], False)


@pytest.mark.usefixtures("out_of_time")
def test_blocks_are_not_known_to_be_finest_without_time():
    found = block_form(conjugated(WeightedAutomaton("a", [1, 1], [[[1, 0], [0, 2]]], [1, 1]), [1, 1]), seconds=1.0)
    assert (found.sizes, found.is_finest) == ((2,), False)


def test_the_finest_blocks_are_compiled():
    w = conjugated(
        WeightedAutomaton(
            "ab", [1, 1, 1], [[[1, 0, 0], [0, 2, 1], [0, 1, 1]], [[3, 0, 0], [0, 1, 1], [0, 1, 0]]], [1, 1, 1]
        ),
        [1, -1, 2],
    )
    assert compile_machine(w).layers[0].block_sizes == (3,)
    model = compile_machine(w, blocks="finest")
    assert sorted(block_form(w).sizes) == [1, 2]
    assert model.layers[0].block_sizes == (2, 2)
    assert isinstance(prove_equivalent(model, w), EqualFunctions)
    shifted = block_form(WeightedAutomaton("a", [0, 1], [[["1/2", 1], [0, 1]]], [1, 0]))
    assert (shifted.sizes, shifted.automaton.n_states) == ((1,), 2)
    with pytest.raises(UnsupportedFormat, match="blocks = 'largest': choose connected or finest"):
        compile_machine(w, blocks="largest")
