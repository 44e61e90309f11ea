import numpy as np
import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.decomposition.cascade import Cascade, Component
from fsa2lrnn.decomposition.congruence import canonical, lattice
from fsa2lrnn.decomposition.coordinates import FREE
from fsa2lrnn.decomposition.split import congruence_coordinates, split_large
from fsa2lrnn.errors import NotExpressible


def single(machine):
    keys = np.arange(len(machine.delta))[:, None]
    return Cascade(machine, (Component(machine.n_states, machine.start, (), 0, keys, machine.delta.copy()),))


def pairs_of_five():
    """S₅ on the ten pairs of five points: a primitive group, which no congruence splits."""
    points = [(i, j) for j in range(5) for i in range(j)]
    number = {pair: k for k, pair in enumerate(points)}
    generators = [(1, 0, 2, 3, 4), (1, 2, 3, 4, 0)]
    delta = [[number[tuple(sorted((g[i], g[j])))] for i, j in points] for g in generators]
    return MooreMachine(delta, points)


def test_by_congruences():
    cascade = split_large(single(zoo.group("Z60").minimise()), 5)
    assert cascade.block_sizes == ((5, 4, 3),)


def test_by_the_subgroups_of_a_primitive_group():
    machine = pairs_of_five()
    assert len(lattice(machine.delta).partitions) == 2
    cascade = split_large(single(machine), 5)
    assert cascade.max_block == 5


def test_by_holonomy():
    cascade = split_large(single(zoo.elevator(6)), 5)
    assert cascade.max_block == 1


def test_what_is_left_is_named():
    with pytest.raises(
        NotExpressible, match=r"group of order 60 on 60 states needs a block of more than max_block = 4"
    ):
        split_large(single(zoo.group("A5").minimise()), 4)
    with pytest.raises(NotExpressible, match=r"no congruence .* at most 8 states, and .* more than 200 elements"):
        split_large(single(MooreMachine([[1, 0, *range(2, 9)], [*range(1, 9), 0]], range(9))), 8)


def test_small_components_are_left_alone():
    cascade = single(zoo.sum_mod(5))
    assert split_large(cascade, 5) is cascade


def test_coordinates_are_free_where_a_context_tells_all():
    maps = np.array([[d * t % 5 for t in range(5)] for d in range(5)])
    is_zero, all_apart = np.array([0, 1, 1, 1, 1]), np.arange(5)
    values, levels = congruence_coordinates(maps, [[is_zero], [all_apart]])
    assert levels == (0, 1)
    assert values[0, 1] == FREE
    assert sorted(values[1:, 1].tolist()) == [0, 1, 2, 3]


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
