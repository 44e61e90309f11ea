"""Kimi Delta Attention in a whole model, as transformers runs it on a CPU."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.huggingface import kimi_linear
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.packages import modeling
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.extra.huggingface.refuse import refuse
from fsa2lrnn.verdicts import Proved

from .conftest import MACHINES


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MACHINES)
def test_prefill_pieces_and_decode_agree_with_the_machine(exported, agrees, name, dtype):
    folder, written = exported(MACHINES[name], "kimi-linear", dtype)
    assert "KimiLinearForCausalLM" in str(written.verdict.covers)
    model = load(folder)
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=130).tolist()
    for chunk, letters in ((130, 130), (50, 130), (1, 20)):
        assert agrees(model, word[:letters], chunk)


def test_what_is_held_is_exact(exported):
    model = load(exported(MACHINES["register"], "kimi-linear")[0])
    cache, states = None, set()
    for a in [1, 0, 0, 3, 0, 5, 5, 3, *[0] * 20]:
        _, cache = model.code.read(model.model, torch.tensor([a]), cache)
        states.add(tuple(cache.layers[0].recurrent_states[0][0, 0, 0, :5].tolist()))
    assert states == {tuple(256.0 * (q == held) for q in range(5)) for held in (0, 2, 4)}


@pytest.mark.parametrize(("logit", "kept"), [(-512, 1.0), (-17, 1.0), (-10, None), (10, None), (104, 0.0), (512, 0.0)])
def test_decays_are_exact_at_their_ends_and_not_between(logit, kept):
    """exp(−log(1 + exp(logit))), the logarithm by hand: 1 from −17 down, where softplus is still above 0."""
    config = modeling("kimi_linear").KimiLinearConfig(hidden_size=2, linear_num_heads=1, linear_head_dim=2)
    gate = modeling("kimi_linear").KimiLinearForgetGate(config)
    with torch.no_grad():
        for parameter in gate.parameters():
            parameter.zero_()
        gate.dt_bias.fill_(float(logit))
        found = gate(torch.zeros(1, 1, 2)).exp().unique().item()
    assert found == kept if kept is not None else 0 < found < 1


@pytest.mark.parametrize("part", ["q_proj", "k_proj", "v_proj", "forget_gate.f_b_proj", "o_proj"])
def test_a_changed_weight_is_noticed(exported, part):
    model = load(exported(MACHINES["register"], "kimi-linear")[0])
    with torch.no_grad():
        model.model.model.layers[0].self_attn.get_submodule(part).weight.neg_()
    assert not isinstance(prove(model, budget=100), Proved)


def test_attention_to_more_than_zeros_is_refused(exported):
    model = load(exported(MACHINES["flip_flop"], "kimi-linear")[0])
    with torch.no_grad():
        model.model.model.layers[-1].self_attn.kv_b_proj.weight.fill_(1)
    with pytest.raises(UnsupportedFormat, match="layer 1 attends to more than zeros"):
        prove(model)


@pytest.mark.parametrize("task", ["parity", "sum_mod(5)", "group(S3)", "group(S3, transpositions)", "tomita(3)"])
def test_groups_are_refused(task):
    found = refuse(zoo.from_task(task), "kimi-linear")
    assert found.check().startswith("impossible: one layer or a stack of them without attention of kimi-linear,")


def test_reflections_are_no_plan_for_it():
    with pytest.raises(NotExpressible, match="β = 2 is asked for, and this layer reaches 1"):
        kimi_linear.build(construct(zoo.group("S3", "transpositions"), has_reflections=True), torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_a_hundred_thousand_letters(exported, agrees, name):
    model = load(exported(MACHINES[name], "kimi-linear")[0])
    word = np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist()
    assert agrees(model, word)
    assert agrees(model, word[:3_000], 1)
    if name == "ab_star":
        assert agrees(model, [0, 1] * 50_000)
