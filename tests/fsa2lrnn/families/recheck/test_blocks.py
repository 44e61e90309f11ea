"""Blocks are judged over the field that they are said to be over."""

from tests.fsa2lrnn.families.conftest import rejected
from tests.fsa2lrnn.families.forgeries import CERTIFICATES


def test_another_field_is_refused_where_the_weights_are_less():
    rejected({**CERTIFICATES["chain, a field"], "field": "C"}, "comes after level 1 without a reason|are told apart")
    rejected(
        {**CERTIFICATES["chain, quaternions"], "field": "C"}, "comes after level . without a reason|are told apart"
    )
    rejected({**CERTIFICATES["blocks, a complex field"], "field": "R"}, "a block has size 4, more than 2")
    rejected({**CERTIFICATES["blocks, a real field"], "field": "Q"}, "a block has numbers that are not rational")
    rejected({**CERTIFICATES["simple"], "field": "F"}, "is no field: rational, real and complex are Q, R and C")
