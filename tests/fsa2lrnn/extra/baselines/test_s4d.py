"""S4D: by sequences, by steps, in models; what its kernel is, test_official says."""

from dataclasses import replace

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.s4d import S4DConfig, S4DLayer

SMALL = S4DConfig(8, d_state=8)


@pytest.mark.parametrize(("init", "discretisation"), [("lin", "zoh"), ("inv", "bilinear"), ("legs", "zoh")])
def test_all_ways_agree(sequences, init, discretisation):
    sequences(replace(SMALL, init=init, discretisation=discretisation))


def test_few_inputs_are_read_by_their_responses(on_letters):
    on_letters(SMALL)


def test_models(model_of):
    model_of(SMALL, connection="full-residual", layer_norm=True)


def test_misfits_are_refused():
    with pytest.raises(UnsupportedFormat, match="init 'random' is not known: choose one of lin, inv, legs"):
        replace(SMALL, init="random")
    with pytest.raises(UnsupportedFormat, match="discretisation 'euler' is none of zoh, bilinear"):
        replace(SMALL, discretisation="euler")


def test_it_is_in_the_family_of_diagonalisable_input_independent_layers():
    assert S4DLayer(8, SMALL).family == "lti-diagonalisable"
