"""The vanilla layer, models of S4's backbone, and HiPPO's matrices against their numbers."""

import torch
from torch.func import functional_call
from torch.nn.functional import layer_norm

from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.layers.channel_layer import diagonal_inv, diagonal_legs, diagonal_lin, legs, normal_plus_low_rank
from fsa2lrnn.nn.layers.s4 import S4Layer
from fsa2lrnn.nn.layers.vanilla import VanillaConfig, VanillaLayer

from ....conftest import by_steps
from . import official
from .channels import s4_options
from .numbers import assert_close, loaded, run


def check_vanilla(numbers, options):
    layer = VanillaLayer(options["d_model"], VanillaConfig(options["n"], options["kind"])).double()
    for method in layer.methods:
        weights, u = numbers.weights(), numbers["input"].clone().requires_grad_()
        start = functional_call(InitialState(layer), {f"layer.{name}": x for name, x in weights.items()}, (len(u),))
        y, _ = run(layer, weights, u, start, method)
        numbers.check("output", y)
        numbers.check_gradients(y, u, weights)
    numbers.check("output", by_steps(loaded(layer, numbers.weights()), numbers["input"])[0])


class InitialState(torch.nn.Module):
    """The initial state as a function of the weights."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, batch):
        return self.layer.initial_state(batch)


def check_backbone(numbers, options):
    """A model whose letters are the positions, each embedded as what stands there."""
    assert options["residual"] == "R"
    assert options["norm"] == "layer"
    assert options["dropout"] == 0
    kind, layer = s4_options({**options["layer"], "d_model": options["d_model"]})
    theirs = numbers.weights()
    for name in ("input", "input_long"):
        u = numbers[name].clone().requires_grad_()
        if options["prenorm"]:
            weights, model = backbone(theirs, u, kind, layer, options)
            tokens = torch.arange(u.shape[0] * u.shape[1]).view(u.shape[:2])
            y = functional_call(model, weights, (tokens,))
        else:
            y = postnorm(theirs, u, kind, layer, options)
        numbers.check(name.replace("input", "output"), y)
        if name == "input":
            numbers.check_gradients(y, u, theirs)
    if options["prenorm"] and "step_output_long" in numbers:
        loaded(model, weights)
        state, outputs = model.initial_state(len(u)), []
        for token in tokens.split(1, 1):
            one, state = model.advance(token, state)
            outputs.append(one)
        numbers.check("step_output_long", torch.cat(outputs, 1))


def backbone(theirs, u, kind, layer, options):
    n, d = options["n_layers"], options["d_model"]
    letters = tuple(range(u.shape[0] * u.shape[1]))
    config = LRNNConfig(
        letters, tuple(range(d)), (layer,) * n, embedding_dim=d, connection="full-residual", layer_norm=True
    )
    weights = {
        "embedding.weight": u.flatten(0, 1),
        "readout.weight": torch.eye(d, dtype=torch.float64),
        "readout.bias": torch.zeros(d, dtype=torch.float64),
        **{f"norms.{n}.{name}": x for name, x in official.part(theirs, "norm.norm.").items()},
    }
    for i in range(n):
        weights |= {f"layers.{i}.{name}": x for name, x in of_block(theirs, i, kind, options).items()}
        weights |= {f"norms.{i}.{name}": x for name, x in official.part(theirs, f"layers.{i}.norm.norm.").items()}
    return weights, LRNN(config).double()


def of_block(theirs, i, kind, options):
    kept_for = options["length"] if kind is S4Layer else None
    transform = options["layer"].get("dt_transform", "exp")
    return official.s4_block(official.part(theirs, f"layers.{i}.layer."), kept_for, transform)


def postnorm(theirs, u, kind, layer, options):
    for i in range(options["n_layers"]):
        y, _ = run(kind(layer.width, layer).double(), of_block(theirs, i, kind, options), u)
        norm = official.part(theirs, f"layers.{i}.norm.norm.")
        u = layer_norm(u + y, u.shape[-1:], norm["weight"], norm["bias"])
    return u


def check_hippo(numbers, options):
    N = options["N"]
    A, B, _ = legs(N)
    numbers.check("A", torch.from_numpy(A))
    numbers.check("B", torch.from_numpy(B))
    start = normal_plus_low_rank(N, clipped=False)
    poles, inputs, P = (torch.from_numpy(x) for x in start)
    assert_close(poles, numbers["Lambda"])
    unclipped = numbers["B_tilde_unclipped"]
    assert_close(inputs.abs(), unclipped.abs())
    assert_close(inputs * P.conj(), unclipped * numbers["P_tilde"][0].conj())  # whatever the eigenvectors' phases
    clipped = torch.complex(unclipped.real, unclipped.imag.clamp(-2, 2))
    assert_close(clipped, numbers["B_tilde"])
    for name, made in (("lin", diagonal_lin), ("inv", diagonal_inv), ("legs", diagonal_legs)):
        found = made(N)
        numbers.check(f"s4d_{name}.A", torch.from_numpy(found.poles))
        if name != "legs":
            numbers.check(f"s4d_{name}.B", torch.from_numpy(found.B))
