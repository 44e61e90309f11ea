"""Permutation-reset machines by their group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.decomposition.coordinates import assemble
from fsa2lrnn.decomposition.groups import group_cover, regular
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine


@st.composite
def permutation_resets(draw, max_states=4):
    """Machines of permutations and constants, every state with an output of its own."""
    n = draw(st.integers(1, max_states))
    constant = st.integers(0, n - 1).map(lambda y: [y] * n)
    delta = draw(st.lists(st.permutations(range(n)) | constant, min_size=1, max_size=3))
    return MooreMachine(delta, range(n), draw(st.integers(0, n - 1)))


def is_permutation(row):
    return len(set(row.tolist())) == len(row)


@given(permutation_resets())
def test_regular_representation(m):
    elements, table = regular(m.delta)
    n = m.n_states
    permutations = {tuple(row) for row in m.delta.tolist() if len(set(row)) == n}
    group = {tuple(range(n))}
    while more := {tuple(h[x] for x in g) for g in group for h in permutations} - group:
        group |= more
    assert {tuple(g) for g in elements.tolist()} == group
    assert (len(elements), elements[0].tolist()) == (len(group), list(range(n)))
    for row, moved in zip(m.delta, table, strict=True):
        expected = row[elements] if is_permutation(row) else elements
        assert (elements[moved] == expected).all()


@given(permutation_resets())
def test_an_element_and_a_point_run_the_machine(m):
    elements, table = regular(m.delta)
    cover = group_cover(m.delta, m.start, elements, np.arange(len(elements))[:, None], (0,))
    assert cover.image[0] == m.start
    assert (cover.image[cover.delta] == m.delta[:, cover.image]).all()
    assert (cover.values[cover.delta, 0] == table[:, cover.values[:, 0]]).all()
    for row, targets in zip(m.delta, cover.delta, strict=True):
        if len(cover.levels) == 2 and is_permutation(row):
            assert (cover.values[targets, 1] == cover.values[:, 1]).all()
    assert {component.kind for component in assemble(m, cover).components} <= {"trivial", "reset", "permutation"}


def sign(g):
    return sum(g[i] > g[j] for i in range(len(g)) for j in range(i, len(g))) % 2


S3 = np.array([[1, 0, 2], [1, 2, 0]])


def sign_and_turn():
    """S₃ and the coordinates e, c of each of its elements sᵉ∘rᶜ, where s = (0 1) and r = (0 1 2).

    From the left s changes e alone; r adds 1 to c or, if e = 1, takes 1 away.
    """
    elements, _ = regular(S3)
    swap = np.array([1, 0, 2])
    signs = [sign(g) for g in elements]
    turns = [int((swap[g] if odd else g)[0]) for g, odd in zip(elements, signs, strict=True)]
    return elements, np.stack([signs, turns], axis=1)


def test_a_chain_of_subgroups():
    elements, coordinates = sign_and_turn()
    delta = np.concatenate([S3, [[0, 0, 0]]])
    cover = group_cover(delta, 1, elements, coordinates, (0, 1))
    assert (cover.sizes, cover.levels, cover.names) == ((2, 3, 3), (0, 1, 2), ("", "", ""))
    cascade = assemble(MooreMachine(delta, "xyz", 1), cover)
    assert [component.kind for component in cascade.components] == ["permutation", "permutation", "reset"]
    assert [component.reads for component in cascade.components] == [(), (0,), (0, 1)]
    assert cascade.block_sizes == ((1,), (3,), (1, 1))
    with pytest.raises(InvalidMachine, match="coordinate 1 of level 0 does not follow"):
        assemble(MooreMachine(S3, "xyz"), group_cover(S3, 0, elements, coordinates, (1, 0)))


def test_several_subgroups_in_one_level_and_no_point_without_constants():
    elements, _ = regular(S3)
    cover = group_cover(S3, 2, elements, elements[:, :2], (0, 0))
    assert (cover.sizes, cover.levels) == ((3, 3), (0, 0))
    cascade = assemble(MooreMachine(S3, "xyz"), group_cover(S3, 0, elements, elements[:, :2], (0, 0)))
    assert cascade.n_layers == 1
    elements, _ = regular(S3)
    number = np.arange(6)[:, None]
    assert group_cover(S3, 0, elements, number, (0,)).levels == (0,)
    resets = np.array([[0, 1, 2], [2, 2, 2], [0, 0, 0]])
    elements, _ = regular(resets)
    cover = group_cover(resets, 1, elements, np.empty((1, 0), np.int64), ())
    assert (cover.values.tolist(), cover.levels) == ([[1], [2], [0]], (0,))


def test_errors():
    with pytest.raises(InvalidMachine, match=r"map 1, \[0, 0, 2\], is neither a permutation nor a constant: take the"):
        regular(np.array([[1, 2, 0], [0, 0, 2]]))
    with pytest.raises(BudgetExceeded, match="permutations of 5 states generate a group of more than 119 elements: al"):
        regular(np.array([[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]]), limit=119)
    elements, _ = regular(S3)
    with pytest.raises(InvalidMachine, match=r"coordinates \[0\] and \[0\] of elements 0 and 2 may be equal: give"):
        group_cover(S3, 0, elements, np.array([[0], [1], [0], [2], [3], [4]]), (0,))
    with pytest.raises(InvalidMachine, match=r"coordinates \[0\] and \[-1\] of elements 0 and 5 may be equal"):
        group_cover(S3, 0, elements, np.array([[0], [1], [2], [3], [4], [-1]]), (0,))
