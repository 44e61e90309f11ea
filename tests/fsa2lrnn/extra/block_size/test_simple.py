"""Machines whose functions form a simple module."""

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.simple import simple
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import functions_module


@pytest.mark.parametrize("source", ["cerny(7)", "tomita(4)", "dyck(2, 2)", "contains(abaab)", "all_maps(4)"])
def test_the_element_kills_a_row_and_a_column_and_no_more(source):
    module = functions_module(zoo.from_task(source).minimise().delta)
    element, function, covector = simple(module)
    matrix = module.element(element)
    assert not any((function * matrix).entries())
    assert not any((covector * matrix.transpose()).entries())
    assert linear.rank(matrix) == module.dimension - 1


@pytest.mark.parametrize("machine", [zoo.sum_mod(5), zoo.even_pair(3), zoo.group("S3"), zoo.shift_register(2)])
def test_others_are_not_called_simple(machine):
    assert simple(functions_module(machine.minimise().delta)) is None
