"""S4, S4D and Liquid-S4 against their released code."""

import torch

from fsa2lrnn.nn.layers.liquid_s4 import LiquidS4Config, LiquidS4Layer
from fsa2lrnn.nn.layers.s4 import S4Config, S4DConfig, S4DLayer, S4Layer
from fsa2lrnn.nn.layers.transitions import planes, respond

from ....conftest import by_steps
from . import official
from .numbers import assert_close, loaded, run


def s4_options(options):
    dims = {"width": options["d_model"], "d_state": options["d_state"]}
    mixing = {"glu": "glu", None: "gelu"}[options.get("final_act", "glu")]
    assert options.get("activation", "gelu") == "gelu"
    shared = {
        **dims, "n_ssm": options.get("n_ssm"), "dt_transform": options.get("dt_transform", "exp"), "mixing": mixing,
        "l_max": options.get("l_max"), "beyond": "cut",
    }  # fmt: skip
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
        options["d_model"], options["d_state"], n_ssm=options["n_ssm"], dt_min=options["dt_min"],
        dt_max=options["dt_max"], kernel=options["liquid_kernel"], degree=options["liquid_degree"],
        allcombs=options.get("allcombs", True), mixing="none" if options.get("linear") else "glu",
    )  # fmt: skip
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
