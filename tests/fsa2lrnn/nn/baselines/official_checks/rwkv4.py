"""RWKV-4 against its released code: models, their parts, and how they start."""

import pytest
import torch
from torch.func import functional_call

from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.layers.rwkv import METHODS, NOTHING, RWKV4Config, shifted, wkv

from . import official
from .numbers import assert_close, loaded


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
        "embedding.weight": weights["emb.weight"], "norms.0.weight": weights["ln_out.weight"],
        "norms.0.bias": weights["ln_out.bias"], "readout.weight": weights["head.weight"],
    }  # fmt: skip
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
        earlier = shifted(u, torch.zeros_like(u[:, 0]))
        mixed, _ = block.att(u, earlier, block.initial_state(len(u))[:, :3], "auto")
        numbers.check("time_mix_layer0_output", mixed)
        numbers.check("channel_mix_layer0_output", block.ffn(u, earlier))
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
