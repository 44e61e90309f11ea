"""Mamba, whole, as its own code runs it on a CPU."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface import mamba
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.extra.huggingface.refuse import refuse
from fsa2lrnn.verdicts import Proved

from .conftest import MACHINES


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MACHINES)
def test_prefill_and_decode_agree_with_the_machine(exported, agrees, name, dtype):
    folder, written = exported(MACHINES[name], "mamba", dtype)
    assert "MambaForCausalLM" in str(written.verdict.covers)
    model = load(folder)
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=130).tolist()
    assert agrees(model, word)
    assert agrees(model, word[:30], 1)


def test_a_cascade_through_ten_layers(exported, agrees):
    """Ramps are flat, so that what is written in a layer is no less right than in the one before."""
    model = load(exported("dyck(1, 2)", "mamba", "bfloat16")[0])
    assert model.model.config.num_hidden_layers == 10
    assert agrees(model, np.random.default_rng(1).integers(2, size=40).tolist())


def test_a_channel_holds_one_number_a_value_exactly(exported):
    model = load(exported(MACHINES["register"], "mamba")[0])
    cache, states = None, set()
    for a in [1, 0, 0, 3, 0, 5, 5, 3, *[0] * 50]:
        _, cache = model.code.read(model.model, torch.tensor([a]), cache)
        states.add(tuple(cache.layers[0].recurrent_states[0][0, :5, 0].tolist()))
    assert states == {tuple(2.0**15 * (q == held) for q in range(5)) for held in (0, 2, 4)}


@pytest.mark.parametrize(("logit", "kept"), [(-512, 1.0), (-103, 1.0), (-10, None), (10, None), (104, 0.0), (512, 0.0)])
@pytest.mark.parametrize("by_scan", [False, True])
def test_gates_are_exact_at_their_ends_and_not_between(logit, kept, by_scan):
    """exp(−softplus(logit)) in their one-token step and in their scan, of a number that no power of two hides."""
    code, h, nothing = modeling("mamba"), torch.tensor([[[0.7]]]), torch.zeros(1, 1)
    A, dt = torch.tensor([[-1.0]]), torch.tensor([[float(logit)]])
    if by_scan:
        # The first letter writes 0.7: Δ·B·x with Δ = 512.
        x, dts = torch.tensor([[[0.7 / 512, 0.0]]]), torch.tensor([[[512.0, float(logit)]]])
        ones = torch.ones(1, 1, 2)
        _, after = code.mamba_selective_scan(x, dts, A, ones, ones, delta_softplus=True, return_last_state=True)
        h = torch.tensor([[[512 * x[0, 0, 0].item()]]])
    else:
        after = h.clone()
        code.mamba_selective_state_update(after, nothing, dt, A, nothing, nothing, dt_softplus=True)
    if kept is None:
        assert 0 < (after / h).item() < 1
    else:
        assert torch.equal(after, kept * h)


def test_their_calls_of_several_tokens_forget_what_was_before(exported):
    """Why letters after the first call are read one by one here: the state starts at 0 in each such call."""
    model = load(exported("flip_flop", "mamba")[0])
    tokens = torch.tensor([0, *[2] * 7])  # set, and then keep
    wanted, _ = model.code.read(model.model, tokens, None)
    _, cache = model.code.read(model.model, tokens[:4], None)
    with transformers(), torch.no_grad():
        anew = model.model(input_ids=tokens[None, 4:], use_cache=True, cache_params=cache).logits[0].argmax(dim=1)
    assert wanted[-1] != anew[-1]
    _, cache = model.code.read(model.model, tokens[:4], None)
    assert model.code.read(model.model, tokens[4:], cache)[0].tolist() == wanted[4:].tolist()


@pytest.mark.parametrize("part", ["in_proj.weight", "x_proj.weight", "dt_proj.weight", "out_proj.weight", "A_log"])
def test_a_changed_weight_is_noticed(exported, part):
    model = load(exported(MACHINES["ab_star"], "mamba")[0])
    weight = model.model.backbone.layers[2].mixer.get_parameter(part)
    with torch.no_grad():
        weight.copy_(torch.full_like(weight, -torch.inf) if part == "A_log" else -weight)  # A = 0 forgets nothing
    assert not isinstance(prove(model, budget=200), Proved)


@pytest.mark.parametrize("task", ["parity", "sum_mod(5)", "group(S3)", "group(S3, transpositions)", "tomita(3)"])
def test_groups_are_refused(task):
    found = refuse(zoo.from_task(task), "mamba")
    assert found.check().startswith("impossible: one layer or a stack of them without attention of mamba,")


def test_reflections_are_no_plan_for_it():
    with pytest.raises(NotExpressible, match="keep all that they hold or forget it"):
        mamba.build(construct(zoo.group("S3", "transpositions"), has_reflections=True), torch.float32)


def test_nor_are_heads_of_other_values():
    with pytest.raises(NotExpressible, match="one value of 64 at a time"):
        mamba.build(_with_values_of_32(), torch.float32)


def _with_values_of_32():
    from dataclasses import replace

    from fsa2lrnn.extra.huggingface.plan import orbit

    plan = construct(zoo.flip_flop(), has_reflections=False)
    (stage,) = plan.stages
    head = stage.orbits[0].head
    smaller = orbit(replace(head, values=head.values / 2))
    return replace(plan, stages=(replace(stage, orbits=(smaller,)),))


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_a_hundred_thousand_letters(exported, agrees, name):
    model = load(exported(MACHINES[name], "mamba")[0])
    word = np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist()
    assert agrees(model, word, len(word))  # in one call
    assert agrees(model, word[:3_000], 1)
    if name == "ab_star":
        assert agrees(model, [0, 1] * 50_000, 100_000)
