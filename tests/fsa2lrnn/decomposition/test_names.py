import numpy as np
import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.decomposition.congruence import canonical
from fsa2lrnn.decomposition.split import field_layers, field_names


def partition(machine, field):
    return canonical([getattr(label, field) for label in machine.labels])


def test_the_three_rooms_of_mod_arith():
    machine = zoo.mod_arith(5, "eager").minimise()
    layers = field_layers(machine)
    assert field_names(machine, layers) == ("operator", "term", "accumulator")


def test_fields_that_are_told_together():
    machine = zoo.mod_arith(5).minimise()
    layers = field_layers(machine)
    assert field_names(machine, layers) == ("last", "term", "sum & output")
    assert field_names(machine, [[np.arange(51)]]) == ("last & sum & term & output",)


def test_a_field_that_is_told_in_part_gives_no_name():
    machine = zoo.mod_arith(5, "register").minimise()
    is_zero = canonical([label.term == 0 for label in machine.labels])
    assert field_names(machine, [[is_zero], [partition(machine, "term")], [np.arange(25)]]) == ("", "term", "sum")


@pytest.mark.parametrize(
    "machine",
    [
        zoo.parity(),
        zoo.dyck(1, 3).minimise(),
        MooreMachine([[1, 2, 3, 0]], range(4), labels=[(q % 2, q // 2) for q in range(4)]),
    ],
)
def test_labels_without_named_fields_give_no_names(machine):
    assert field_layers(machine) is None
    assert field_names(machine, [[np.arange(machine.n_states)]]) == ("",)


def test_fields_that_need_each_other_are_no_layers():
    """Each of two coordinates moves by the other."""
    from typing import NamedTuple

    class Pair(NamedTuple):
        x: int
        y: int

    states = [Pair(x, y) for x in range(2) for y in range(2)]
    swap = [states.index(Pair(q.y, 1 - q.x)) for q in states]
    assert field_layers(MooreMachine([swap], range(4), labels=states)) is None
