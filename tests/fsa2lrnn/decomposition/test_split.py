"""Components split by congruences, subgroups, holonomy and the fields of labels."""

from typing import NamedTuple

import numpy as np
import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.decomposition.cascade import Cascade, Component
from fsa2lrnn.decomposition.congruence import canonical, lattice
from fsa2lrnn.decomposition.coordinates import FREE
from fsa2lrnn.decomposition.split import congruence_coordinates, field_layers, field_names, split_large
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
    with pytest.raises(
        NotExpressible, match=r"group of order 60 on 60 states needs a block of more than max_block = 4"
    ):
        split_large(single(zoo.group("A5").minimise()), 4)
    with pytest.raises(NotExpressible, match=r"no congruence .* at most 8 states, and .* more than 200 elements"):
        split_large(single(MooreMachine([[1, 0, *range(2, 9)], [*range(1, 9), 0]], range(9))), 8)


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


def partition(machine, field):
    return canonical([getattr(label, field) for label in machine.labels])


def test_fields_of_labels_name_layers():
    machine = zoo.mod_arith(5, "eager").minimise()
    layers = field_layers(machine)
    assert field_names(machine, layers) == ("operator", "term", "accumulator")
    machine = zoo.mod_arith(5).minimise()
    layers = field_layers(machine)
    assert field_names(machine, layers) == ("last", "term", "sum & output")
    assert field_names(machine, [[np.arange(51)]]) == ("last & sum & term & output",)
    machine = zoo.mod_arith(5, "register").minimise()
    is_zero = canonical([label.term == 0 for label in machine.labels])
    assert field_names(machine, [[is_zero], [partition(machine, "term")], [np.arange(25)]]) == ("", "term", "sum")


class Pair(NamedTuple):
    x: int
    y: int


def test_labels_without_named_fields_and_fields_that_need_each_other_give_no_names():
    plain = MooreMachine([[1, 2, 3, 0]], range(4), labels=[(q % 2, q // 2) for q in range(4)])
    for machine in (zoo.parity(), zoo.dyck(1, 3).minimise(), plain):
        assert field_layers(machine) is None
        assert field_names(machine, [[np.arange(machine.n_states)]]) == ("",)
    states = [Pair(x, y) for x in range(2) for y in range(2)]
    swap = [states.index(Pair(q.y, 1 - q.x)) for q in states]  # each of two coordinates moves by the other
    assert field_layers(MooreMachine([swap], range(4), labels=states)) is None
