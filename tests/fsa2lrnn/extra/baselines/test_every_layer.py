"""What every baseline must do: all ways of running agree, models are saved and read, misfits are refused."""

import math
from dataclasses import replace

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.liquid_s4 import LiquidS4Config
from fsa2lrnn.extra.baselines.lru import LRUConfig
from fsa2lrnn.extra.baselines.rwkv4 import RWKV4Config, RWKV4Layer
from fsa2lrnn.extra.baselines.s4 import S4Config
from fsa2lrnn.extra.baselines.s4d import S4DConfig, S4DLayer
from fsa2lrnn.extra.baselines.s5 import S5Config
from fsa2lrnn.extra.baselines.vanilla import TRANSITIONS, VanillaConfig

S4D, S5, LRU = S4DConfig(8, d_state=8), S5Config(8, ssm_size=8, blocks=2), LRUConfig(8, states=4)
LIQUID, NARROW = LiquidS4Config(8, d_state=8), S4DConfig(width=4, d_state=8)
SHORT = (1, 2, 39, 40)


@pytest.mark.parametrize(
    "config",
    [
        *(S4Config(8, d_state=8, n_ssm=n_ssm) for n_ssm in (1, None)),
        *(replace(S4D, init=i, discretisation=d) for i, d in [("lin", "zoh"), ("inv", "bilinear"), ("legs", "zoh")]),
        S5,
        replace(S5, ssm_size=4, conj_sym=False, discretisation="bilinear", mixing="glu"),
        replace(S5, blocks=1),
        LRU,
        *(RWKV4Config(8, place, 2) for place in (0, 1)),
        VanillaConfig(8, "diagonal"),
    ],
)
def test_all_ways_agree(sequences, config):
    sequences(config)


@pytest.mark.parametrize("config", [LIQUID, VanillaConfig(8, "dense")])
def test_all_ways_agree_on_short_words(sequences, config):
    sequences(config, SHORT)


@pytest.mark.parametrize("config", [S4Config(8, d_state=8), S4D, S5, LRU, LIQUID])
def test_models(model_of, config):
    model_of(config, connection="full-residual", layer_norm=True)


def test_models_of_rwkv4_and_vanilla_networks(model_of):
    model_of(RWKV4Config(8), layer_norm="readout")
    for transition in TRANSITIONS:
        model_of(VanillaConfig(8, transition), connection="residual", layer_norm=True)


@pytest.mark.parametrize(
    ("config", "change", "wording"),
    [
        (NARROW, {"width": 0}, "width = 0: a layer needs at least one channel"),
        (NARROW, {"d_state": 7}, "d_state = 7: states come in conjugate pairs"),
        (NARROW, {"d_state": 2048}, "d_state = 2,048: at most 1,024 states make a system"),
        (NARROW, {"n_ssm": 3}, "n_ssm = 3: 4 channels cannot share so many copies of A and B evenly"),
        (NARROW, {"n_ssm": 0}, "n_ssm = 0: 4 channels cannot share"),
        (NARROW, {"dt_min": 0.2}, "dt_min = 0.2, dt_max = 0.1: give 0 < dt_min ≤ dt_max, both finite"),
        (NARROW, {"dt_max": math.inf}, "dt_min = 0.001, dt_max = inf: give 0 < dt_min"),
        (NARROW, {"dt_transform": "log"}, "dt_transform 'log' is none of softplus, exp"),
        (NARROW, {"mixing": "swish"}, "mixing 'swish' is not known: choose one of none, gelu, glu, half_glu1"),
        (NARROW, {"l_max": 0}, "l_max = 0: give at least 1, or None"),
        (NARROW, {"beyond": "wrap"}, "beyond 'wrap' is none of refuse, cut"),
        (NARROW, {"width": 1 << 20}, "at most 65,536 make a layer"),
        (S4D, {"init": "random"}, "init 'random' is not known: choose one of lin, inv, legs"),
        (S4D, {"discretisation": "euler"}, "discretisation 'euler' is none of zoh, bilinear"),
        (S5, {"width": 0}, "width = 0: a layer needs at least one channel"),
        (S5, {"blocks": 3}, "blocks = 3: 8 states cannot be cut evenly into so many"),
        (S5, {"ssm_size": 6}, "ssm_size/blocks = 3: states come in conjugate pairs"),
        (S5, {"c_init": "zeros"}, "c_init 'zeros' is not known: choose one of trunc_standard_normal"),
        (S5, {"discretisation": "euler"}, "discretisation 'euler' is none of zoh, bilinear"),
        (S5, {"dt_min": -1.0}, "dt_min = -1.0, dt_max = 0.1: give 0 < dt_min"),
        # refused before anything is made
        *((S5, {"ssm_size": 1 << 16, "conj_sym": c}, "ssm_size = 65,536: at most 1,024 states") for c in (True, False)),
        (LRU, {"width": 0}, "width = 0: a layer needs at least one"),
        (LRU, {"states": 0}, "states = 0: a layer needs at least one"),
        (LRU, {"r_max": 1.5}, "r_min = 0.0, r_max = 1.5: give 0 ≤ r_min < r_max ≤ 1"),
        (LRU, {"r_min": 1.0}, "r_min = 1.0, r_max = 1.0: give 0 ≤ r_min < r_max ≤ 1"),
        (LRU, {"max_phase": 0.0}, "max_phase = 0.0: give a finite angle above 0"),
        (LIQUID, {"kernel": "polya"}, "kernel 'polya' is not known: choose one of exact, polyb, kb"),
        (LIQUID, {"degree": 1}, "degree = 1: products have at least two factors"),
        (LIQUID, {"l_max": 40}, "l_max = 40: Liquid-S4 has no limit to words"),
        (RWKV4Config(8), {"place": 2, "depth": 2}, "place = 2: blocks are numbered from 0, and there are 2"),
        (RWKV4Config(8), {"width": 0}, "width = 0: a layer needs at least one channel"),
        (VanillaConfig(8), {"transition": "sparse"}, "transition 'sparse' is none of dense, diagonal"),
        (VanillaConfig(8), {"width": 0}, "width = 0: a layer needs at least one state"),
    ],
)
def test_misfits_are_refused(config, change, wording):
    with pytest.raises(UnsupportedFormat, match=wording):
        replace(config, **change)


def test_the_stream_is_as_wide_as_the_layer():
    with pytest.raises(UnsupportedFormat, match="S4DLayer of width 4 reads 8 numbers: its channels go in and out"):
        S4DLayer(8, NARROW)
    with pytest.raises(UnsupportedFormat, match="RWKV4Layer of width 8 reads 4 numbers"):
        RWKV4Layer(4, RWKV4Config(8))
