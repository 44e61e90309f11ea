"""The vanilla recurrence: by sequences, by steps, in models, and its tables."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.vanilla import TRANSITIONS, VanillaConfig, VanillaLayer
from fsa2lrnn.lrnn.scans import scan


@pytest.mark.parametrize(("transition", "lengths"), [("dense", (1, 2, 39, 40)), ("diagonal", (1, 2, 39, 40, 500))])
def test_all_ways_agree(sequences, transition, lengths):
    sequences(VanillaConfig(8, transition), lengths)


@pytest.mark.parametrize("transition", TRANSITIONS)
def test_models(model_of, transition):
    model_of(VanillaConfig(8, transition), connection="residual", layer_norm=True)


@pytest.mark.parametrize(("transition", "family"), [("dense", "lti"), ("diagonal", "lti-diagonalisable")])
def test_its_tables_are_what_it_scans(transition, family):
    torch.manual_seed(0)
    layer = VanillaLayer(5, VanillaConfig(8, transition)).double()
    u, start = torch.randn(2, 9, 5, dtype=torch.float64), layer.initial_state(2)
    A, v = layer.tables(u)
    y, _ = layer(u, start)
    torch.testing.assert_close(scan(A.contiguous(), v, start, "sequential").flatten(-2), y)
    assert layer.has_tables
    assert layer.family == family


def test_a_spectral_radius_above_one_overflows_and_shows():
    layer = VanillaLayer(2, VanillaConfig(2))
    with torch.no_grad():
        layer.A.copy_(3 * torch.eye(2))
    y, _ = layer(torch.ones(1, 200, 2), layer.initial_state(1))
    assert not y[0, -1].isfinite().any()


def test_misfits_are_refused():
    with pytest.raises(UnsupportedFormat, match="transition 'sparse' is none of dense, diagonal"):
        VanillaConfig(8, "sparse")
    with pytest.raises(UnsupportedFormat, match="width = 0: a layer needs at least one state"):
        VanillaConfig(0)
