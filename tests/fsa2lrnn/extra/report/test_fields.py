"""Labels with named parts tell the rooms of a cascade."""

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.report.demonstration.compiled import by_fields


def test_the_rooms_of_mod_arith():
    cascade = by_fields(zoo.mod_arith(5, "eager").minimise())
    assert [component.name for component in cascade.components] == ["operator", "term", "accumulator"]
    assert cascade.block_sizes == ((1, 1), (5,), (5,))
    assert cascade.reads_now
    assert cascade.transduce("1+2-3*4")[-1] == 1


def test_labels_without_fields_have_no_rooms():
    with pytest.raises(NotExpressible, match="have no fields that stand in layers"):
        by_fields(zoo.parity())
