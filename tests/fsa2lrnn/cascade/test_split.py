"""Components split by congruences, subgroups, holonomy and labels; fibre codes; machines by their group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.cascade import refine as module
from fsa2lrnn.cascade.cascade import Cascade, Component
from fsa2lrnn.cascade.congruence import canonical, lattice
from fsa2lrnn.cascade.coordinates import Cover, assemble
from fsa2lrnn.cascade.decomposition import congruence_coordinates, split_large
from fsa2lrnn.cascade.group_cover import group_cover, regular
from fsa2lrnn.cascade.refine import fibre_code
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, NotExpressible


def single(machine):
    """The machine as a cascade of one component."""
    keys = np.arange(len(machine.delta))[:, None]
    return Cascade(machine, (Component(machine.n_states, machine.start, (), 0, keys, machine.delta.copy()),))


def pairs_of_five():
    """S₅ on the ten pairs of five points: a primitive group, which no congruence splits."""
    points = [(i, j) for j in range(5) for i in range(j)]
    number = {pair: k for k, pair in enumerate(points)}
    generators = [(1, 0, 2, 3, 4), (1, 2, 3, 4, 0)]
    delta = [[number[tuple(sorted((g[i], g[j])))] for i, j in points] for g in generators]
    return MooreMachine(delta, points)


def test_by_congruences_subgroups_and_holonomy():
    cascade = split_large(single(zoo.group("Z60").minimise()), 5)
    assert cascade.block_sizes == ((5, 4, 3),)
    machine = pairs_of_five()
    assert len(lattice(machine.delta).partitions) == 2
    cascade = split_large(single(machine), 5)
    assert cascade.max_block == 5
    cascade = split_large(single(zoo.elevator(6)), 5)
    assert cascade.max_block == 1
    cascade = single(zoo.sum_mod(5))
    assert split_large(cascade, 5) is cascade


def test_what_is_left_is_named():
    with pytest.raises(NotExpressible, match=r"group of order 60 on 60 states needs .* more than max_block=4"):
        split_large(single(zoo.group("A5").minimise()), 4)
    with pytest.raises(NotExpressible, match=r"no congruence .* at most 8 states, and .* more than 200 elements"):
        split_large(single(MooreMachine([[1, 0, *range(2, 9)], [*range(1, 9), 0]], range(9))), 8)


@pytest.mark.parametrize(("order", "alike"), [(0, False), (-1, True)])
def test_forgetful_letters_move_a_coordinate_alike_on_demand(order, alike):
    """+ and − set the term; with the value as coordinate they need not know what it was (T18 of docs/theory.md)."""
    machine = zoo.mod_arith(5, "register").minimise()
    term = canonical([label.term for label in machine.labels])
    values, _ = congruence_coordinates(machine.delta, [[term], [np.arange(25)]], order)
    for letter in "+-":
        row = machine.delta[machine.alphabet.index(letter)]
        moves = set(zip(values[:, 1].tolist(), values[row, 1].tolist(), strict=True))
        assert (len(moves) == 5) == alike


def register():
    """ModArith(5) in two registers: the term, and the sum that reads it."""
    machine = zoo.mod_arith(5, "register").minimise()
    values = np.array([[label.term, label.sum] for label in machine.labels])
    return assemble(machine, Cover(machine.delta, np.arange(25), values, (0, 1)))


def test_the_fibre_code_grows_where_letters_forget_and_is_bounded(monkeypatch):
    machine = MooreMachine([[0, 1, 2, 3], [1, 2, 3, 0]], range(4))
    q = np.arange(4)
    cascade = assemble(machine, Cover(machine.delta, q, np.stack([q % 2, q // 2], axis=1), (0, 1)))
    now = assemble(machine, fibre_code(cascade), reads_now=True)
    assert now.reads_now
    assert [c.n_states for c in now.components] == [2, 2]
    now = assemble(register().machine, fibre_code(register()), reads_now=True)
    assert [c.n_states for c in now.components] == [13, 5]
    assert now.transduce("1+2-3*4") == register().transduce("1+2-3*4")
    monkeypatch.setattr(module, "MAX_JOINT_STATES", 2)
    with pytest.raises(BudgetExceeded, match="more than 2 states"):
        fibre_code(register())


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
    """S₃ and the coordinates e, c of each of its elements sᵉ∘rᶜ, where s = (0 1) and r = (0 1 2). From the left s
    changes e alone; r adds 1 to c or, if e = 1, takes 1 away."""
    elements, _ = regular(S3)
    swap = np.array([1, 0, 2])
    signs = [sign(g) for g in elements]
    turns = [int((swap[g] if odd else g)[0]) for g, odd in zip(elements, signs, strict=True)]
    return elements, np.stack([signs, turns], axis=1)


def test_chains_of_subgroups_and_what_is_none():
    elements, coordinates = sign_and_turn()
    delta = np.concatenate([S3, [[0, 0, 0]]])
    cover = group_cover(delta, 1, elements, coordinates, (0, 1))
    assert (cover.sizes, cover.levels) == ((2, 3, 3), (0, 1, 2))
    cascade = assemble(MooreMachine(delta, "xyz", 1), cover)
    assert [component.kind for component in cascade.components] == ["permutation", "permutation", "reset"]
    assert [component.reads for component in cascade.components] == [(), (0,), (0, 1)]
    assert cascade.block_sizes == ((1,), (3,), (1, 1))
    with pytest.raises(InvalidMachine, match="coordinate 1 of level 0 does not follow"):
        assemble(MooreMachine(S3, "xyz"), group_cover(S3, 0, elements, coordinates, (1, 0)))
    with pytest.raises(InvalidMachine, match=r"map 1, \[0, 0, 2\], is neither a permutation nor a constant: take the"):
        regular(np.array([[1, 2, 0], [0, 0, 2]]))
    with pytest.raises(BudgetExceeded, match="permutations of 5 states generate a group of more than 119 elements: al"):
        regular(np.array([[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]]), limit=119)
    elements, _ = regular(S3)
    with pytest.raises(InvalidMachine, match=r"coordinates \[0\] and \[0\] of elements 0 and 2 may be equal: give"):
        group_cover(S3, 0, elements, np.array([[0], [1], [0], [2], [3], [4]]), (0,))
    with pytest.raises(InvalidMachine, match=r"coordinates \[0\] and \[-1\] of elements 0 and 5 may be equal"):
        group_cover(S3, 0, elements, np.array([[0], [1], [2], [3], [4], [-1]]), (0,))
