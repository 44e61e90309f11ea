"""RWKV-4, vanilla networks and layers of channels."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.channels import written_poles
from fsa2lrnn.extra.baselines.kernels.hippo import Start
from fsa2lrnn.extra.baselines.rwkv4 import RWKV4Config, RWKV4Layer
from fsa2lrnn.extra.baselines.s4d import S4DConfig, S4DLayer
from fsa2lrnn.extra.baselines.vanilla import VanillaConfig, VanillaLayer
from fsa2lrnn.lrnn.scans import scan

SMALL = S4DConfig(width=4, d_state=8)


@pytest.mark.parametrize("transform", ["softplus", "exp"])
def test_steps_of_time_start_between_their_bounds(transform):
    layer = S4DLayer(512, S4DConfig(width=512, d_state=2, dt_transform=transform))
    dt = layer.dt().detach()
    assert dt.shape == (512, 1)
    assert 0.999e-3 < float(dt.min()) < 2e-3
    assert 0.05 < float(dt.max()) < 1.001e-1
    raw = layer.inv_dt.detach().double().unsqueeze(-1)
    torch.testing.assert_close(dt, raw.exp() if transform == "exp" else softplus(raw))


def test_channels_take_copies_in_turns():
    layer = S4DLayer(4, replace(SMALL, n_ssm=2))
    with torch.no_grad():
        layer.A_imag[1] += 100
    assert torch.equal(layer.poles()[0], layer.poles()[2])
    assert torch.equal(layer.poles()[1], layer.poles()[3])
    assert not torch.equal(layer.poles()[0], layer.poles()[1])


def test_poles_that_grow_cannot_be_written():
    with pytest.raises(UnsupportedFormat, match=r"pole 1 is 0.2.*its real part is kept as −exp of a parameter"):
        written_poles(Start(np.array([-0.5 + 1j, 0.2 + 1j]), np.ones(2, np.complex128)))


def test_longer_words_than_l_max_are_refused_or_cut():
    torch.manual_seed(0)
    u = torch.randn(2, 30, 4, dtype=torch.float64)
    free = S4DLayer(4, SMALL).double()
    layers = [S4DLayer(4, replace(SMALL, l_max=10, beyond=beyond)).double() for beyond in ("refuse", "cut")]
    for layer in layers:
        layer.load_state_dict(free.state_dict())
        torch.testing.assert_close(layer(u[:, :10], layer.initial_state(2)), free(u[:, :10], free.initial_state(2)))
    refusing, cutting = layers
    for run in (refusing, refusing.outputs):
        with pytest.raises(UnsupportedFormat, match="a word of 30 letters and l_max = 10: the impulse response would"):
            run(u, refusing.initial_state(2))
    y, after = cutting(u, cutting.initial_state(2))
    moved = u.clone()
    moved[:, 0] += 1
    assert not torch.allclose(cutting(moved, cutting.initial_state(2))[0][:, 9], y[:, 9])
    torch.testing.assert_close(cutting(moved, cutting.initial_state(2))[0][:, 10:], y[:, 10:])
    with pytest.raises(UnsupportedFormat, match="a word in pieces, longer than l_max = 10"):
        cutting(u, after)


def test_released_rates_are_hinted():
    hints = S4DLayer(4, SMALL).parameter_hints()
    assert set(hints) == {"inv_dt", "A_real", "A_imag", "B"}
    assert all(hint.rate_for(5e-3) == 1e-3 and hint.decay == 0 for hint in hints.values())


def test_a_single_block_starts_like_the_first_of_many():
    one, first = RWKV4Layer(8, RWKV4Config(8)), RWKV4Layer(8, RWKV4Config(8, 0, 5))
    assert torch.equal(one.att.time_decay, first.att.time_decay)
    assert one.att.time_decay.isfinite().all()
    assert RWKV4Config(8).at(2, 3) == RWKV4Config(8, 2, 3)


def test_only_the_first_block_norms_the_embedding():
    assert RWKV4Layer(8, RWKV4Config(8, 0, 2)).ln0 is not None
    assert RWKV4Layer(8, RWKV4Config(8, 1, 2)).ln0 is None


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
