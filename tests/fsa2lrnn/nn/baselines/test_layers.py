"""What each baseline does as its paper or code says."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.nn import LRNN, LRNNConfig, load, save
from fsa2lrnn.nn.layers.diagonal import C_STARTS, LRUConfig, LRULayer, S5Config, S5Layer
from fsa2lrnn.nn.layers.liquid_s4 import LiquidS4Config, LiquidS4Layer, _subsets
from fsa2lrnn.nn.layers.rwkv import RWKV4Config, RWKV4Layer
from fsa2lrnn.nn.layers.s4 import S4Config, S4DConfig, S4DLayer, S4Layer
from fsa2lrnn.nn.layers.vanilla import TRANSITIONS, VanillaConfig

from .official_checks.channels import check_liquid_exact, check_liquid_released, check_s4_block
from .official_checks.models import check_backbone, check_hippo, check_vanilla
from .official_checks.numbers import Numbers, doubled
from .official_checks.rwkv4 import check_rwkv4
from .official_checks.spectral import check_lru, check_s5

S4D = S4DConfig(8, d_state=8)
S5 = S5Config(8, ssm_size=8, blocks=2)
LRU = LRUConfig(8, states=4)


@pytest.mark.parametrize(("layer", "family", "names", "rates"), [
    (S4Layer(8, S4Config(8, d_state=8)), "lti", "inv_dt A_real A_imag B P", (1e-3, 1e-3)),
    (S4DLayer(8, S4D), "lti-diagonalisable", "inv_dt A_real A_imag B", (1e-3, 1e-3)),
    (S5Layer(8, S5), "lti-diagonalisable", "Lambda_re Lambda_im log_step B", (5e-3, 2e-3)),
    (LRULayer(8, LRU), "lti-diagonalisable", "nu_log theta_log gamma_log B", (2.5e-3, 1e-3)),
])  # fmt: skip
def test_families_and_published_rates_are_declared(layer, family, names, rates):
    assert layer.family == family
    hints = layer.parameter_hints()
    assert set(hints) == set(names.split())
    assert all((h.rate_for(5e-3), h.rate_for(2e-3), h.decay) == (*rates, 0) for h in hints.values())


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


@pytest.mark.parametrize("kernel", ["exact", *RELEASED])
def test_the_released_code_looks_ahead_and_the_recurrence_does_not(kernel):
    torch.manual_seed(0)
    layer = LiquidS4Layer(8, replace(LIQUID, kernel=kernel)).double()
    u = torch.randn(2, 40, 8, dtype=torch.float64)
    moved = u.clone()
    moved[:, -1] += 1
    y, other = (layer(each, layer.initial_state(2))[0][:, :-1] for each in (u, moved))
    assert layer.is_causal == (kernel == "exact") == torch.equal(y, other)
    assert layer.is_causal or not torch.allclose(y[:, 0], other[:, 0], atol=1e-9)
    assert layer.family == ("liquid-s4" if layer.is_causal else None)


def test_the_released_code_takes_pairs_of_last_letters():
    pairs = _subsets(40, 2, torch.device("cpu")).flip(0)
    assert pairs.shape == (40, 2)
    assert (pairs[0].tolist(), pairs[-1].tolist(), int(pairs.min())) == ([30, 36], [38, 39], 30)


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


NARROW = S4DConfig(width=4, d_state=8)
SHORT = (1, 2, 39, 40)


@pytest.mark.parametrize("config", [
    *(S4Config(8, d_state=8, n_ssm=n_ssm) for n_ssm in (1, None)),
    *(replace(S4D, init=i, discretisation=d) for i, d in [("lin", "zoh"), ("inv", "bilinear"), ("legs", "zoh")]),
    S5,
    replace(S5, ssm_size=4, conj_sym=False, discretisation="bilinear", mixing="glu"),
    replace(S5, blocks=1),
    LRU,
    *(RWKV4Config(8, place, 2) for place in (0, 1)),
    VanillaConfig(8, "diagonal"),
    LIQUID,
    VanillaConfig(8, "dense"),
])  # fmt: skip
def test_all_ways_agree(sequences, config):
    is_slow = isinstance(config, LiquidS4Config) or config == VanillaConfig(8, "dense")
    sequences(config, *([SHORT] if is_slow else []))


@pytest.mark.parametrize(("config", "options"), [
    *((c, {"connection": "full-residual", "layer_norm": True}) for c in (S4Config(8, d_state=8), S4D, S5, LRU)),
    (LIQUID, {"connection": "full-residual", "layer_norm": True}),
    (RWKV4Config(8), {"layer_norm": "readout"}),
    *((VanillaConfig(8, kind), {"connection": "residual", "layer_norm": True}) for kind in TRANSITIONS),
])  # fmt: skip
def test_models(model_of, config, options):
    model_of(config, **options)


@pytest.mark.parametrize(("config", "change", "wording"), [
    (NARROW, {"width": 0}, "width = 0: .*Config needs a positive whole number"),
    (NARROW, {"d_state": 7}, "d_state = 7: states come in conjugate pairs"),
    (NARROW, {"d_state": 2048}, "d_state = 2,048: at most 1,024 states make a system"),
    (NARROW, {"n_ssm": 3}, "n_ssm = 3: 4 channels cannot share so many copies of A and B evenly"),
    (NARROW, {"n_ssm": 0}, "n_ssm = 0: 4 channels cannot share"),
    (NARROW, {"dt_min": 0.2}, "dt_min = 0.2, dt_max = 0.1: give 0 < dt_min ≤ dt_max, both finite"),
    (NARROW, {"dt_max": math.inf}, "dt_min = 0.001, dt_max = inf: give 0 < dt_min"),
    (NARROW, {"dt_transform": "log"}, "dt_transform = 'log': one of softplus, exp"),
    (NARROW, {"mixing": "swish"}, "mixing = 'swish': one of none, gelu, glu, half_glu1"),
    (NARROW, {"l_max": 0}, "l_max = 0: give at least 1, or None"),
    (NARROW, {"beyond": "wrap"}, "beyond = 'wrap': one of refuse, cut"),
    (NARROW, {"width": 1 << 20}, "at most 65,536 make a layer"),
    (S4D, {"init": "random"}, "init = 'random': one of lin, inv, legs"),
    (S4D, {"discretisation": "euler"}, "discretisation = 'euler': one of zoh, bilinear"),
    (S5, {"width": 0}, "width = 0: .*Config needs a positive whole number"),
    (S5, {"blocks": 3}, "blocks = 3: 8 states cannot be cut evenly into so many"),
    (S5, {"ssm_size": 6}, "ssm_size/blocks = 3: states come in conjugate pairs"),
    (S5, {"c_init": "zeros"}, "c_init = 'zeros': one of trunc_standard_normal"),
    (S5, {"discretisation": "euler"}, "discretisation = 'euler': one of zoh, bilinear"),
    (S5, {"dt_min": -1.0}, "dt_min = -1.0, dt_max = 0.1: give 0 < dt_min"),
    # refused before anything is made
    *((S5, {"ssm_size": 1 << 16, "conj_sym": c}, "ssm_size = 65,536: at most 1,024 states") for c in (True, False)),
    (LRU, {"width": 0}, "width = 0: .*Config needs a positive whole number"),
    (LRU, {"states": 0}, "states = 0: .*Config needs a positive whole number"),
    (LRU, {"r_max": 1.5}, "r_min = 0.0, r_max = 1.5: give 0 ≤ r_min < r_max ≤ 1"),
    (LRU, {"r_min": 1.0}, "r_min = 1.0, r_max = 1.0: give 0 ≤ r_min < r_max ≤ 1"),
    (LRU, {"max_phase": 0.0}, "max_phase = 0.0: give a finite angle above 0"),
    (LIQUID, {"kernel": "polya"}, "kernel = 'polya': one of exact, polyb, kb"),
    (LIQUID, {"degree": 1}, "degree = 1: products have at least two factors"),
    (LIQUID, {"l_max": 40}, "l_max = 40: Liquid-S4 has no limit to words"),
    (RWKV4Config(8), {"place": 2, "depth": 2}, "place = 2: blocks are numbered from 0, and there are 2"),
    (RWKV4Config(8), {"width": 0}, "width = 0: .*Config needs a positive whole number"),
    (VanillaConfig(8), {"transition": "sparse"}, "transition = 'sparse': one of dense, diagonal"),
    (VanillaConfig(8), {"width": 0}, "width = 0: .*Config needs a positive whole number"),
])  # fmt: skip
def test_misfits_are_refused(config, change, wording):
    with pytest.raises(UnsupportedFormat, match=wording):
        replace(config, **change)


def test_the_stream_is_as_wide_as_the_layer():
    with pytest.raises(UnsupportedFormat, match="S4DLayer of width 4 reads 8 numbers: its channels go in and out"):
        S4DLayer(8, NARROW)
    with pytest.raises(UnsupportedFormat, match="RWKV4Layer of width 8 reads 4 numbers"):
        RWKV4Layer(4, RWKV4Config(8))


COMMITTED = Path(__file__).parent / "data"
BESIDE = Path(os.environ.get("FSA2LRNN_FIXTURES", Path(__file__).parents[5] / "shared" / "baselines"))


CHECKS = {
    "S4Block": check_s4_block, "Liquid-S4, exact recurrence": check_liquid_exact, "Liquid-S4": check_liquid_released,
    "S5 SequenceLayer": check_s5, "LRU SequenceLayer": check_lru, "RWKV-4": check_rwkv4, "vanilla LRNN": check_vanilla,
    "state-spaces SequenceModel": check_backbone, "HiPPO-LegS": check_hippo,
}  # fmt: skip


def listed(folder):
    path = folder / "fixtures.json"
    fixtures = json.loads(path.read_text("utf-8"))["fixtures"] if path.is_file() else []
    return [pytest.param(folder, each, id=f"{folder.name}-{each['name']}") for each in fixtures]


def full_set():
    missing = pytest.mark.skip(reason=f"no {BESIDE / 'fixtures.json'}: the larger set of numbers is not here")
    return listed(BESIDE) or [pytest.param(BESIDE, None, id="beside", marks=missing)]


@pytest.mark.parametrize(("folder", "fixture"), listed(COMMITTED) + full_set())
def test_agrees_with_the_released_code(folder, fixture):
    arrays = np.load(folder / f"{fixture['name']}.npz")
    numbers = Numbers({name: doubled(torch.from_numpy(arrays[name])) for name in arrays.files})
    CHECKS[next(prefix for prefix in CHECKS if fixture["layer"].startswith(prefix))](numbers, fixture["options"])
