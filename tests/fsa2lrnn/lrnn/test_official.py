"""Our layers against numbers made by the code that was released with them: parameters, inputs, outputs, gradients.

A set of such numbers is a folder of NAME.npz and a fixtures.json that says which layer with which options each is of.
A small one lies in data/; a larger one is read from the folder shared/baselines beside the checkout, or from the one
that FSA2LRNN_FIXTURES names, where it is there. We compute in double precision, and must agree to 1e-6 of the largest
number of an array.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn.functional import layer_norm

from fsa2lrnn.lrnn import LRNN, LRNNConfig, official
from fsa2lrnn.lrnn.layers import (
    LiquidS4Config,
    LiquidS4Layer,
    LRUConfig,
    LRULayer,
    RWKV4Config,
    S4Config,
    S4DConfig,
    S4DLayer,
    S4Layer,
    S5Config,
    S5Layer,
    VanillaConfig,
    VanillaLayer,
)
from fsa2lrnn.lrnn.layers.rwkv4 import Read
from fsa2lrnn.lrnn.ssm import hippo
from fsa2lrnn.lrnn.ssm.response import respond
from fsa2lrnn.lrnn.ssm.transition import from_planes, planes
from fsa2lrnn.lrnn.ssm.wkv import METHODS, NOTHING, wkv

from .layers.conftest import by_steps

TOLERANCE = 1e-6
EPS = 1e-6  # of Flax's LayerNorm
COMMITTED = Path(__file__).parent / "data"
BESIDE = Path(os.environ.get("FSA2LRNN_FIXTURES", Path(__file__).parents[4] / "shared" / "baselines"))


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


def doubled(x):
    return x.double() if x.is_floating_point() else x.to(torch.complex128) if x.is_complex() else x


class Numbers(dict):
    """The arrays of a fixture, those of a small set fewer than of a large one."""

    def weights(self, prefix="param."):
        """Parameters as leaves, so that gradients can be asked for."""
        found = {**official.part(self, prefix), **{name: x for name, x in self.items() if name.startswith("frozen.")}}
        return {name: x.double().requires_grad_() if x.is_floating_point() else x for name, x in found.items()}

    def check(self, name, found, scale=None):
        """`found` against the array of that name, if it is there."""
        if name in self:
            assert_close(found, self[name], name, scale)

    def check_gradients(self, output, inputs, weights, grad_input="grad_input"):
        """Those of sum(output ⊙ loss_weight)."""
        named = {name: x for name, x in weights.items() if f"grad.{name}" in self}
        assert named or "loss_weight" not in self
        leaves = [inputs, *named.values()] if inputs is not None else list(named.values())
        found = torch.autograd.grad((output * self["loss_weight"]).sum(), leaves, retain_graph=True)
        if inputs is not None:
            self.check(grad_input, found[0])
        for name, gradient in zip(named, found[len(leaves) - len(named) :], strict=True):
            self.check(f"grad.{name}", gradient)


def assert_close(found, wanted, name="", scale=None):
    found, wanted = found.detach(), wanted.detach()
    assert found.shape == wanted.shape, name
    if wanted.numel():
        allowed = TOLERANCE * (float(wanted.abs().max()) if scale is None else scale)
        assert float((found - wanted).abs().max()) <= allowed, name


def run(layer, weights, u, state=None, method="auto"):
    """Outputs and last state with those weights."""
    state = layer.initial_state(len(u)) if state is None else state
    return functional_call(layer, weights, (u, state, method))


def loaded(layer, weights):
    layer.load_state_dict({name: x.detach() for name, x in weights.items()})
    return layer


def s4_options(options):
    dims = {"width": options["d_model"], "d_state": options["d_state"]}
    mixing = {"glu": "glu", None: "gelu"}[options.get("final_act", "glu")]
    assert options.get("activation", "gelu") == "gelu"
    shared = {
        **dims,
        "n_ssm": options.get("n_ssm"),
        "dt_transform": options.get("dt_transform", "exp"),
        "mixing": mixing,
        "l_max": options.get("l_max"),
        "beyond": "cut",
    }
    if options["mode"] == "diag":
        shared |= {"init": options["init"].removeprefix("diag-"), "discretisation": options.get("disc", "zoh")}
        return S4DLayer, S4DConfig(**shared)
    return S4Layer, S4Config(**shared)


def check_s4_block(numbers, options):
    kind, config = s4_options(options)
    layer, theirs = kind(config.width, config).double(), numbers.weights()
    kept_for = int(numbers.get("l_kernel_before_long", options["length"])) if kind is S4Layer else None
    ours = official.s4_block(theirs, kept_for, config.dt_transform)
    for method in layer.methods:
        u = numbers["input"].clone().requires_grad_()
        y, _ = run(layer, ours, u, method=method)
        numbers.check("output", y)
        numbers.check_gradients(y, u, theirs)
        if "input_long" in numbers:
            numbers.check("output_long", run(layer, ours, numbers["input_long"], method=method)[0])
    layer = loaded(layer, ours)
    check_system(numbers, layer)
    if "param_after_long.layer.kernel.C" in numbers:
        later = {**theirs, "layer.kernel.C": numbers["param_after_long.layer.kernel.C"]}
        assert_close(official.s4_block(later, int(numbers["l_kernel_after_long"]), config.dt_transform)["C"], ours["C"])
    y, state = by_steps(layer, numbers["input"])
    numbers.check("step_output", y)
    if "step_state_final" in numbers:  # of all states or of the stored half
        assert_close(planes(numbers["step_state_final"][..., : config.d_state // 2]), state)
    if "step_output_long" in numbers:
        numbers.check("step_output_long", by_steps(layer, numbers["input_long"])[0])


def check_system(numbers, layer):
    """The discretised system, and its impulse response."""
    system, n = layer.system(), layer.config.d_state // 2
    if "dB" in numbers:
        assert_close(system.B, numbers["dB"][..., :n])
        x = torch.randn(len(system.B), n, dtype=torch.complex128)
        A, whole = numbers["dA"], torch.cat([x, x.conj()], -1)
        moved = (A @ whole.unsqueeze(-1)).squeeze(-1)[:, :n] if A.ndim == 3 else A * x
        assert_close(system.transition.times(x), moved)
        assert_close(system.C, numbers["dC"][0, :, :n])
    if "dt" in numbers:
        assert_close(layer.dt(), numbers["dt"])
    if "kernel" in numbers:
        K = numbers["kernel"][0]
        own = respond(system.transition, system.B, system.C, K.shape[1])
        assert_close(own.K.T, K)


def check_liquid_released(numbers, options):
    config = LiquidS4Config(
        options["d_model"],
        options["d_state"],
        n_ssm=options["n_ssm"],
        dt_min=options["dt_min"],
        dt_max=options["dt_max"],
        kernel=options["liquid_kernel"],
        degree=options["liquid_degree"],
        allcombs=options.get("allcombs", True),
        mixing="none" if options.get("linear") else "glu",
    )
    assert options.get("liquid_contract") is None
    layer, theirs = LiquidS4Layer(config.width, config).double(), numbers.weights()
    ours = official.liquid_block(theirs, options["length"])
    u = numbers["input"].mT.clone().requires_grad_()  # there (B, H, L)
    y, _ = run(layer, ours, u)
    numbers.check("output", y.mT)
    numbers.check_gradients(y.mT, u, theirs, grad_input="")
    if "grad_input" in numbers:
        (found,) = torch.autograd.grad((run(layer, ours, u)[0].mT * numbers["loss_weight"]).sum(), u)
        assert_close(found.mT, numbers["grad_input"])
    if "input_long" in numbers:
        numbers.check("output_long", run(layer, ours, numbers["input_long"].mT)[0].mT)
    if "change_of_output_when_last_input_plus_1" in numbers:
        more = numbers["input"].mT.clone()
        more[:, -1] += 1
        change = (run(layer, ours, more)[0] - y).detach().abs().amax((0, 2))
        assert_close(change, numbers["change_of_output_when_last_input_plus_1"], scale=float(y.detach().abs().max()))
    plain = S4Layer(
        config.width, S4Config(config.width, config.d_state, None, dt_transform="exp", mixing=config.mixing)
    )
    weights = {name: x for name, x in ours.items() if not name.startswith("frozen")}
    numbers.check("output_without_liquid_term", run(plain.double(), weights, numbers["input"].mT)[0].mT)
    check_system(numbers, loaded(plain, weights))


def check_liquid_exact(numbers, options):
    config = LiquidS4Config(options["d_model"], options["d_state"], n_ssm=options["n_ssm"], mixing="none")
    assert options["linear"]
    layer = LiquidS4Layer(config.width, config).double()
    weights = official.liquid_block(numbers.weights(), options["length"])
    n, u = config.d_state // 2, numbers["input"].mT
    for method in ("sequential", "fused"):
        y, state = run(layer, weights, u, method=method)
        numbers.check("output_exact_recurrence", y.mT)
        assert_close(state, planes(numbers["state_final"][..., :n]))
    y, state = by_steps(loaded(layer, weights), u)
    numbers.check("output_exact_recurrence", y.mT)
    system = layer.system()
    assert_close(system.B, numbers["B_bar"][:, :n])
    assert_close(2 * system.C, numbers["C_bar"][0, :, :n] * 2)
    plain = S4Layer(config.width, S4Config(config.width, config.d_state, None, dt_transform="exp", mixing="none"))
    numbers.check("output_plain_s4", run(plain.double(), weights, u)[0].mT)


def check_s5(numbers, options):
    config = S5Config(
        options["H"],
        options["ssm_size"],
        options["blocks"],
        options["C_init"],
        options["discretization"],
        options["dt_min"],
        options["dt_max"],
        options["clip_eigs"],
        options["conj_sym"],
        options["activation"].replace("full_glu", "glu"),
    )
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
    numbers.check("step_state_final", from_planes(state))


def check_rwkv4(numbers, options):
    depth, width, letters = options["n_layer"], options["n_embd"], tuple(range(options["vocab"]))
    blocks = tuple(RWKV4Config(width, i, depth) for i in range(depth))
    config = LRNNConfig(letters, letters, blocks, embedding_dim=width, layer_norm="readout")
    model, theirs = LRNN(config).double(), numbers.weights()
    ours = rwkv4_model(theirs, depth)
    for method in model.methods:
        logits = functional_call(model, ours, (numbers["input_tokens"], method))
        numbers.check("output_logits", logits)
        numbers.check_gradients(logits, None, theirs)
    loaded(model, ours)
    state, logits = model.initial_state(len(numbers["input_tokens"])), []
    for token in numbers["input_tokens"].split(1, 1):
        one, state = model.advance(token, state)
        logits.append(one)
    numbers.check("step_output_logits", torch.cat(logits, 1))
    for i, (x, _) in enumerate(state):
        for name, found in zip(("p", "q", "o", "xa", "xf"), x.unbind(1), strict=True):
            numbers.check(f"step_state_final.{i}.{name}", found)
    check_rwkv4_start(numbers, LRNN(config), depth)
    check_rwkv4_parts(numbers, model)


def rwkv4_model(weights, depth):
    ours = {
        "embedding.weight": weights["emb.weight"],
        "norms.0.weight": weights["ln_out.weight"],
        "norms.0.bias": weights["ln_out.bias"],
        "readout.weight": weights["head.weight"],
    }
    for i in range(depth):
        block = official.rwkv4_block(official.part(weights, f"blocks.{i}."))
        ours |= {f"layers.{i}.{name}": x for name, x in block.items()}
    return ours


def check_rwkv4_start(numbers, model, depth):
    """What of a new model is not drawn, and the size of what is. The blocks' matrices are left out: the released code
    starts most of them at zero, as ours does, but where its modules are scripted, as for these numbers, at none."""
    theirs, ours = numbers.weights("param_at_init."), model.state_dict()
    for name, x in (rwkv4_model(theirs, depth) if theirs else {}).items():
        if ".time_" in name or ".ln" in name or name.startswith("norms."):
            assert_close(ours[name].double(), x, name, scale=1)
        elif name in ("embedding.weight", "readout.weight"):
            assert float(ours[name].norm()) == pytest.approx(float(x.detach().norm()), rel=1e-5), name


def check_rwkv4_parts(numbers, model):
    if "module_input" in numbers:
        block, u = model.layers[0], numbers["module_input"]
        zero = torch.zeros_like(u[:, 0])
        read = Read(u, None, zero)
        mixed, _ = block.att(read, block.initial_state(len(u))[:, :3], "auto")
        numbers.check("time_mix_layer0_output", mixed)
        numbers.check("channel_mix_layer0_output", block.ffn(read))
    if "wkv.k" in numbers:
        names = ("time_decay", "time_first", "k", "v")
        given = [numbers[f"wkv.{name}"].clone().requires_grad_() for name in names]
        decay, first, k, v = given
        state = torch.zeros(len(k), 3, k.shape[-1], dtype=k.dtype)
        state[:, 2] = NOTHING
        for method in METHODS:
            y, _ = wkv(-decay.exp(), first, k, v, state, method)
            numbers.check("wkv.output", y)
            gradients = torch.autograd.grad((y * numbers["wkv.loss_weight"]).sum(), given)
            for name, gradient in zip(names, gradients, strict=True):
                numbers.check(f"wkv.grad_{name}", gradient)


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
    A, B, _ = hippo.legs(N)
    numbers.check("A", torch.from_numpy(A))
    numbers.check("B", torch.from_numpy(B))
    start = hippo.normal_plus_low_rank(N, clipped=False)
    poles, inputs, P = (torch.from_numpy(x) for x in start)
    assert_close(poles, numbers["Lambda"])
    unclipped = numbers["B_tilde_unclipped"]
    assert_close(inputs.abs(), unclipped.abs())
    assert_close(inputs * P.conj(), unclipped * numbers["P_tilde"][0].conj())  # whatever the eigenvectors' phases
    clipped = torch.complex(unclipped.real, unclipped.imag.clamp(-2, 2))
    assert_close(clipped, numbers["B_tilde"])
    for name, made in (("lin", hippo.diagonal_lin), ("inv", hippo.diagonal_inv), ("legs", hippo.diagonal_legs)):
        found = made(N)
        numbers.check(f"s4d_{name}.A", torch.from_numpy(found.poles))
        if name != "legs":
            numbers.check(f"s4d_{name}.B", torch.from_numpy(found.B))


CHECKS = {
    "S4Block": check_s4_block,
    "Liquid-S4, exact recurrence": check_liquid_exact,
    "Liquid-S4": check_liquid_released,
    "S5 SequenceLayer": check_s5,
    "LRU SequenceLayer": check_lru,
    "RWKV-4": check_rwkv4,
    "vanilla LRNN": check_vanilla,
    "state-spaces SequenceModel": check_backbone,
    "HiPPO-LegS": check_hippo,
}
