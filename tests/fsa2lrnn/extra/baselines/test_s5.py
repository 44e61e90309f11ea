"""S5: by sequences, by steps, in models; what it computes, test_official says."""

from dataclasses import replace

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.s5 import C_STARTS, S5Config, S5Layer

SMALL = S5Config(8, ssm_size=8, blocks=2)


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        replace(SMALL, ssm_size=4, conj_sym=False, discretisation="bilinear", mixing="glu"),
        replace(SMALL, blocks=1),
    ],
)
def test_all_ways_agree(sequences, config):
    sequences(config)


def test_few_inputs_are_read_by_their_responses(on_letters):
    on_letters(S5Config(8, ssm_size=8))


def test_models(model_of):
    model_of(SMALL, connection="full-residual", layer_norm=True)


@pytest.mark.parametrize(
    ("change", "wording"),
    [
        ({"width": 0}, "width = 0: a layer needs at least one channel"),
        ({"blocks": 3}, "blocks = 3: 8 states can't be cut evenly into so many, give a divisor of ssm_size"),
        ({"ssm_size": 6}, "ssm_size/blocks = 3: states come in conjugate pairs"),
        ({"c_init": "zeros"}, "c_init 'zeros' is not known: choose one of trunc_standard_normal"),
        ({"discretisation": "euler"}, "discretisation 'euler' is none of zoh, bilinear"),
        ({"dt_min": -1.0}, "dt_min = -1.0, dt_max = 0.1: give 0 < dt_min"),
    ],
)
def test_misfits_are_refused(change, wording):
    with pytest.raises(UnsupportedFormat, match=wording):
        replace(SMALL, **change)


def test_poles_in_the_right_half_plane_explode_unless_clipped():
    u = torch.ones(1, 4000, 8)
    for clip_eigs in (True, False):
        layer = S5Layer(8, replace(SMALL, clip_eigs=clip_eigs, mixing="none"))
        with torch.no_grad():
            layer.Lambda_re[0], layer.log_step[0] = 1.0, -1.0
        y, _ = layer(u, layer.initial_state(1))
        assert bool(y.isfinite().all()) == clip_eigs


def test_more_states_than_can_be_meant_are_refused_before_anything_is_made():
    for conj_sym in (True, False):
        with pytest.raises(UnsupportedFormat, match="ssm_size = 65,536: at most 1,024 states make a system"):
            S5Config(4, ssm_size=1 << 16, conj_sym=conj_sym)


@pytest.mark.parametrize("c_init", C_STARTS)
def test_matrices_start_with_the_variances_that_their_names_say(c_init):
    torch.manual_seed(0)
    layer = S5Layer(256, S5Config(256, ssm_size=64, c_init=c_init))
    wanted = {"trunc_standard_normal": 1 / 64, "lecun_normal": 1 / (256 * 64), "complex_normal": 0.5}[c_init]
    assert float(layer.C.detach().var()) == pytest.approx(wanted, rel=0.1)
    assert float(layer.B.detach().var()) == pytest.approx(1 / 128, rel=0.1)  # real numbers of variance 1/64, rotated
    assert (layer.Lambda_im < 0).all()


def test_hints_leave_the_rate_and_drop_the_decay():
    hints = S5Layer(8, SMALL).parameter_hints()
    assert set(hints) == {"Lambda_re", "Lambda_im", "log_step", "B"}
    assert all(hint.rate_for(2e-3) == 2e-3 and hint.decay == 0 for hint in hints.values())
