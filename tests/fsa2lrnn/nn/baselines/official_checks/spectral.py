"""S5 and LRU against their released code."""

import torch
from torch.nn.functional import layer_norm

from fsa2lrnn.nn.layers.diagonal import LRUConfig, LRULayer, S5Config, S5Layer

from ....conftest import by_steps
from . import official
from .numbers import assert_close, loaded, run

EPS = 1e-6  # of Flax's LayerNorm


def check_s5(numbers, options):
    config = S5Config(
        options["H"], options["ssm_size"], options["blocks"], options["C_init"], options["discretization"],
        options["dt_min"], options["dt_max"], options["clip_eigs"], options["conj_sym"],
        options["activation"].replace("full_glu", "glu"),
    )  # fmt: skip
    assert not options["bidirectional"]
    assert not options["batchnorm"]
    layer, bare = (
        S5Layer(config.width, each).double() for each in (config, S5Config(**{**vars(config), "mixing": "none"}))
    )
    check_sequence_layer(numbers, options, layer, bare, official.s5_layer, "norm")
    rates, B, _ = loaded(bare, bare_weights(official.s5_layer(numbers.weights()))).discretised()
    numbers.check("Lambda_bar", rates)
    numbers.check("B_bar", B)
    if "init.Lambda" in numbers:
        start = S5Layer(config.width, config)
        assert_close(torch.complex(start.Lambda_re, start.Lambda_im).to(torch.complex128), numbers["init.Lambda"])


def check_lru(numbers, options):
    config = LRUConfig(
        options["d_model"], options["d_hidden"], options["r_min"], options["r_max"], options["max_phase"]
    )
    assert options["norm"] == "layer"
    layer, bare = (
        LRULayer(config.width, each).double() for each in (config, LRUConfig(**{**vars(config), "mixing": "none"}))
    )
    check_sequence_layer(numbers, options, layer, bare, official.lru_layer, "normalization")
    numbers.check("lambda", loaded(bare, bare_weights(official.lru_layer(numbers.weights()))).discretised()[0])


def bare_weights(ours):
    return {name: x for name, x in ours.items() if not name.startswith("mixing")}


def check_sequence_layer(numbers, options, layer, bare, convert, norm):
    """norm, layer, + input; or layer, + input, norm."""
    theirs = numbers.weights()
    ours = convert(theirs)

    def normed(x):
        return layer_norm(x, x.shape[-1:], theirs[f"{norm}.scale"], theirs[f"{norm}.bias"], EPS)

    for method in layer.methods:
        u = numbers["input"].clone().requires_grad_()
        if options["prenorm"]:
            y = u + run(layer, ours, normed(u), method=method)[0]
        else:
            y = normed(u + run(layer, ours, u, method=method)[0])
        numbers.check("output", y)
        numbers.check_gradients(y, u, theirs)
        alone = run(bare, bare_weights(ours), u, method=method)[0]
        numbers.check("ssm_output_on_input", alone)
    y, state = by_steps(loaded(bare, bare_weights(ours)), numbers["input"])
    numbers.check("step_ssm_output", y)
    numbers.check("step_state_final", torch.view_as_complex(state.unflatten(-1, (-1, 2))))
