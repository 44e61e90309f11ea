"""What each baseline does as its paper or code says."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import softplus

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.extra.baselines.liquid_s4 import LiquidS4Config, LiquidS4Layer, _subsets
from fsa2lrnn.extra.baselines.lru import LRUConfig, LRULayer
from fsa2lrnn.extra.baselines.rwkv4 import RWKV4Config, RWKV4Layer
from fsa2lrnn.extra.baselines.s4 import S4Config, S4Layer
from fsa2lrnn.extra.baselines.s4d import S4DConfig, S4DLayer
from fsa2lrnn.extra.baselines.s5 import C_STARTS, S5Config, S5Layer
from fsa2lrnn.extra.baselines.vanilla import VanillaConfig, VanillaLayer
from fsa2lrnn.lrnn import LRNN, LRNNConfig, load, save
from fsa2lrnn.lrnn.scans import scan

S4D = S4DConfig(8, d_state=8)
S5 = S5Config(8, ssm_size=8, blocks=2)
LRU = LRUConfig(8, states=4)


@pytest.mark.parametrize(
    ("layer", "family", "names", "rates"),
    [
        (S4Layer(8, S4Config(8, d_state=8)), "lti", "inv_dt A_real A_imag B P", (1e-3, 1e-3)),
        (S4DLayer(8, S4D), "lti-diagonalisable", "inv_dt A_real A_imag B", (1e-3, 1e-3)),
        (S5Layer(8, S5), "lti-diagonalisable", "Lambda_re Lambda_im log_step B", (5e-3, 2e-3)),
        (LRULayer(8, LRU), "lti-diagonalisable", "nu_log theta_log gamma_log B", (2.5e-3, 1e-3)),
    ],
)
def test_families_and_published_rates_are_declared(layer, family, names, rates):
    assert layer.family == family
    hints = layer.parameter_hints()
    assert set(hints) == set(names.split())
    assert all((h.rate_for(5e-3), h.rate_for(2e-3), h.decay) == (*rates, 0) for h in hints.values())


def test_poles_in_the_right_half_plane_explode_unless_clipped():
    u = torch.ones(1, 4000, 8)
    for clip_eigs in (True, False):
        layer = S5Layer(8, replace(S5, clip_eigs=clip_eigs, mixing="none"))
        with torch.no_grad():
            layer.Lambda_re[0], layer.log_step[0] = 1.0, -1.0
        y, _ = layer(u, layer.initial_state(1))
        assert bool(y.isfinite().all()) == clip_eigs


@pytest.mark.parametrize("c_init", C_STARTS)
def test_matrices_start_with_the_variances_that_their_names_say(c_init):
    torch.manual_seed(0)
    layer = S5Layer(256, S5Config(256, ssm_size=64, c_init=c_init))
    wanted = {"trunc_standard_normal": 1 / 64, "lecun_normal": 1 / (256 * 64), "complex_normal": 0.5}[c_init]
    assert float(layer.C.detach().var()) == pytest.approx(wanted, rel=0.1)
    assert float(layer.B.detach().var()) == pytest.approx(1 / 128, rel=0.1)  # real numbers of variance 1/64, rotated
    assert (layer.Lambda_im < 0).all()


def test_rates_start_in_the_ring_and_inputs_are_scaled_by_what_they_lack_to_one():
    torch.manual_seed(0)
    layer = LRULayer(4, LRUConfig(4, states=2000, r_min=0.9, r_max=0.999))
    rates = layer.discretised()[0].detach()
    assert 0.9 <= float(rates.abs().min()) <= float(rates.abs().max()) <= 0.999 + 1e-6
    torch.testing.assert_close(
        layer.gamma_log.detach().double().exp(), (1 - rates.abs() ** 2).sqrt(), rtol=1e-4, atol=0
    )
    assert float((rates.abs() ** 2).mean()) == pytest.approx((0.9**2 + 0.999**2) / 2, rel=1e-2)


LIQUID = LiquidS4Config(8, d_state=8)
RELEASED = ("polyb", "kb")


@pytest.mark.parametrize("kernel", RELEASED)
def test_the_released_code_looks_ahead(kernel):
    torch.manual_seed(0)
    layer = LiquidS4Layer(8, replace(LIQUID, kernel=kernel)).double()
    u = torch.randn(2, 40, 8, dtype=torch.float64)
    moved = u.clone()
    moved[:, -1] += 1
    start = layer.initial_state(2)
    assert not torch.allclose(layer(u, start)[0][:, 0], layer(moved, start)[0][:, 0], atol=1e-9)
    assert not layer.is_causal
    assert layer.family is None


def test_liquid_s4_does_not_look_ahead_and_takes_pairs_of_last_letters():
    layer = LiquidS4Layer(8, LIQUID).double()
    u = torch.randn(2, 40, 8, dtype=torch.float64)
    moved = u.clone()
    moved[:, -1] += 1
    start = layer.initial_state(2)
    assert torch.equal(layer(u, start)[0][:, :-1], layer(moved, start)[0][:, :-1])
    assert layer.family == "liquid-s4"
    pairs = _subsets(40, 2, torch.device("cpu")).flip(0)
    assert pairs.shape == (40, 2)
    assert pairs[0].tolist() == [30, 36]
    assert pairs[-1].tolist() == [38, 39]
    assert int(pairs.min()) == 30


@pytest.mark.parametrize("kernel", RELEASED)
def test_without_a_state_there_are_no_steps_and_no_pieces(kernel):
    layer, u = LiquidS4Layer(8, replace(LIQUID, kernel=kernel)), torch.randn(2, 40, 8)
    wording = f"Liquid-S4 with kernel '{kernel}' is not causal: its outputs depend on later letters, so it "
    with pytest.raises(UnsupportedFormat, match=wording + "cannot be run step by step; give whole words"):
        layer.step(u[:, 0], layer.initial_state(2))
    _, after = layer(u, layer.initial_state(2))
    with pytest.raises(UnsupportedFormat, match=wording + "cannot read a word in pieces"):
        layer(u, after)
    with pytest.raises(InvalidWord, match="a word of 4 letters: Liquid-S4's released code needs as many products of 2"):
        layer(u[:, :4], layer.initial_state(2))


@pytest.mark.parametrize("kernel", RELEASED)
def test_frozen_constants_are_saved_with_the_model_and_do_not_learn(kernel, tmp_path):
    torch.manual_seed(0)
    config = LRNNConfig("abc", (0, 1), (replace(LIQUID, kernel=kernel),), embedding_dim=8, connection="full-residual")
    model, tokens = LRNN(config), torch.randint(3, (2, 20))
    model(tokens).sum().backward()
    assert not [name for name, _ in model.named_parameters() if "frozen" in name]
    save(model, tmp_path / "model.safetensors")
    torch.manual_seed(1)
    assert torch.equal(load(tmp_path / "model.safetensors")(tokens), model(tokens))


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


def test_a_single_block_starts_like_the_first_of_many():
    one, first = RWKV4Layer(8, RWKV4Config(8)), RWKV4Layer(8, RWKV4Config(8, 0, 5))
    assert torch.equal(one.att.time_decay, first.att.time_decay)
    assert one.att.time_decay.isfinite().all()
    assert RWKV4Config(8).at(2, 3) == RWKV4Config(8, 2, 3)


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
