"""Factors are counted, and an inner product that exists is not denied."""

import copy

from tests.fsa2lrnn.families.conftest import rejected
from tests.fsa2lrnn.families.forgeries import CERTIFICATES


def test_an_inner_product_that_exists_is_not_denied():
    certificate = copy.deepcopy(CERTIFICATES["factors, too few"])
    certificate["words"] = [[[0], [1], [0, 1]]] * len(certificate["kinds"])
    rejected(certificate, "kind 0 may have an inner product")


def test_ranks_of_heads_are_counted():
    rejected({**CERTIFICATES["factors, enough"], "family": "householder(1)"}, "a letter needs 2 factors in a head")
