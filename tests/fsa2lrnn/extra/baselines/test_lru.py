"""LRU: by sequences, by steps, in models; what it computes, test_official says."""

from dataclasses import replace

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.lru import LRUConfig, LRULayer

SMALL = LRUConfig(8, states=4)


def test_all_ways_agree(sequences):
    sequences(SMALL)


def test_few_inputs_are_read_by_their_responses(on_letters):
    on_letters(SMALL)


def test_models(model_of):
    model_of(SMALL, connection="full-residual", layer_norm=True)


def test_rates_start_in_the_ring_and_inputs_are_scaled_by_what_they_lack_to_one():
    torch.manual_seed(0)
    layer = LRULayer(4, LRUConfig(4, states=2000, r_min=0.9, r_max=0.999))
    rates = layer.discretised()[0].detach()
    assert 0.9 <= float(rates.abs().min()) <= float(rates.abs().max()) <= 0.999 + 1e-6
    torch.testing.assert_close(
        layer.gamma_log.detach().double().exp(), (1 - rates.abs() ** 2).sqrt(), rtol=1e-4, atol=0
    )
    assert float((rates.abs() ** 2).mean()) == pytest.approx((0.9**2 + 0.999**2) / 2, rel=1e-2)


@pytest.mark.parametrize(
    ("change", "wording"),
    [
        ({"width": 0}, "width = 0: a layer needs at least one"),
        ({"states": 0}, "states = 0: a layer needs at least one"),
        ({"r_max": 1.5}, "r_min = 0.0, r_max = 1.5: give 0 ≤ r_min < r_max ≤ 1"),
        ({"r_min": 1.0}, "r_min = 1.0, r_max = 1.0: give 0 ≤ r_min < r_max ≤ 1"),
        ({"max_phase": 0.0}, "max_phase = 0.0: give a finite angle above 0"),
    ],
)
def test_misfits_are_refused(change, wording):
    with pytest.raises(UnsupportedFormat, match=wording):
        replace(SMALL, **change)


def test_hints_halve_the_rate():
    hints = LRULayer(8, SMALL).parameter_hints()
    assert set(hints) == {"nu_log", "theta_log", "gamma_log", "B"}
    assert all(hint.rate_for(1e-3) == 5e-4 and hint.decay == 0 for hint in hints.values())
