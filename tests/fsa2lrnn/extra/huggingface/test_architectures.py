"""What each architecture of transformers holds and computes, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface import mamba
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.folder import load, run
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.extra.huggingface.plan import orbit
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.verdicts import Proved

from .conftest import MACHINES

pytest.importorskip("transformers")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_state_is_the_plan_s_bit_for_bit(exported, agrees, dtype):
    model = load(exported("group(S3, transpositions)", "olmo-hybrid", dtype)[0])
    head = construct(model.machine, True).stages[0].orbits[0]
    word = np.random.default_rng(1).integers(2, size=3_000).tolist()
    cache, state = run(model, torch.tensor(word), 512)[1], 0
    assert agrees(model, word, 512)
    for a in word:
        state = head.table[a, state]
    S = cache.layers[0].recurrent_states[0][0, 0].numpy()
    assert np.array_equal(S, head.states[state] * np.sqrt(S.size))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_layer_of_a_stack_rounds(exported, dtype):
    """In every layer each head holds a matrix of its plan after each letter, times a power of two."""
    folder, written = exported("group(S4)", "olmo-hybrid", dtype)
    model, cache = load(folder), None
    for a in np.random.default_rng(3).integers(2, size=25).tolist():
        cache = run(model, torch.tensor([a]), cache=cache)[1]
        for layer, stage in zip(cache.layers, written.plan.stages, strict=False):
            held = layer.recurrent_states[0][0].numpy() / np.sqrt(layer.recurrent_states[0][0, 0].numel())
            for S, head in zip(held, stage.orbits, strict=False):
                rows, columns = head.states[0].shape
                assert any(np.array_equal(S[:rows, :columns], state) for state in head.states)


def test_generation_goes_on_from_a_prompt(exported):
    folder, _ = exported("parity")
    with transformers() as package:
        model = package.AutoModelForCausalLM.from_pretrained(folder)
        words = package.AutoTokenizer.from_pretrained(folder)
        answer = model.generate(**words("01101", return_tensors="pt"), max_new_tokens=1, do_sample=False)
    assert words.decode(answer[0, -1:]) == "=accept"


@pytest.mark.parametrize(
    ("layer", "held", "place"),
    [("kimi-linear", 2.0**8, (0, 0, 0)), ("mamba", 2.0**15, (0, ..., 0)), ("mamba-2", 2.0**24, (0, 0, ..., 0))],
)
def test_what_is_held_is_one_number_a_value_exactly(exported, layer, held, place):
    """What was written last, times powers of two, is the same after any number of letters that keep it."""
    model = load(exported(MACHINES["register"], layer)[0])
    cache, states = None, set()
    for a in [1, 0, 0, 3, 0, 5, 5, 3, *[0] * 50]:
        _, cache = model.code.read(model.model, torch.tensor([a]), cache)
        states.add(tuple(cache.layers[0].recurrent_states[0][place].flatten()[:5].tolist()))
    assert states == {tuple(held * (q == value) for q in range(5)) for value in (0, 2, 4)}


def decay_of_kimi(logit):
    config = modeling("kimi_linear").KimiLinearConfig(hidden_size=2, linear_num_heads=1, linear_head_dim=2)
    gate = modeling("kimi_linear").KimiLinearForgetGate(config)
    with torch.no_grad():
        for parameter in gate.parameters():
            parameter.zero_()
        gate.dt_bias.fill_(float(logit))
        return gate(torch.zeros(1, 1, 2)).exp().unique().item()


def decay_of_a_step(logit):
    h, nothing = torch.tensor([[[0.7]]]), torch.zeros(1, 1)  # a number that no power of two hides
    A, dt = torch.tensor([[-1.0]]), torch.tensor([[float(logit)]])
    modeling("mamba").mamba_selective_state_update(h, nothing, dt, A, nothing, nothing, dt_softplus=True)
    return (h / 0.7).item()


def decay_of_a_scan(logit):
    """The first letter writes 0.7: Δ·B·x with Δ = 512."""
    x, dts = torch.tensor([[[0.7 / 512, 0.0]]]), torch.tensor([[[512.0, float(logit)]]])
    A, ones = torch.tensor([[-1.0]]), torch.ones(1, 1, 2)
    _, h = modeling("mamba").mamba_selective_scan(x, dts, A, ones, ones, delta_softplus=True, return_last_state=True)
    return (h / (512 * x[0, 0, 0])).item()


@pytest.mark.parametrize(("decay", "least"), [(decay_of_kimi, -17), (decay_of_a_step, -103), (decay_of_a_scan, -103)])
def test_gates_are_exact_at_their_ends_and_not_between(decay, least):
    """exp(−log(1 + exp(logit))), by the code of the layers."""
    assert (decay(-512), decay(least), decay(104), decay(512)) == (1.0, 1.0, 0.0, 0.0)
    assert 0 < decay(10) < decay(-10) < 1


def test_a_cascade_through_ten_layers(exported, agrees):
    """Ramps are flat, so that what is written in a layer is no less right than in the one before."""
    model = load(exported("dyck(1, 2)", "mamba", "bfloat16")[0])
    assert model.model.config.num_hidden_layers == 10
    assert agrees(model, np.random.default_rng(1).integers(2, size=40).tolist())


def test_mamba_forgets_between_calls_and_channels_that_keep_all_are_noticed(exported):
    model = load(exported("flip_flop", "mamba")[0])
    tokens = torch.tensor([0, *[2] * 7])  # set, and then keep
    wanted, _ = model.code.read(model.model, tokens, None)
    _, cache = model.code.read(model.model, tokens[:4], None)
    with transformers(), torch.no_grad():
        anew = model.model(input_ids=tokens[None, 4:], use_cache=True, cache_params=cache).logits[0].argmax(dim=1)
    assert wanted[-1] != anew[-1]
    _, cache = model.code.read(model.model, tokens[:4], None)
    assert model.code.read(model.model, tokens[4:], cache)[0].tolist() == wanted[4:].tolist()
    model = load(exported(MACHINES["ab_star"], "mamba")[0])
    with torch.no_grad():
        model.model.backbone.layers[2].mixer.A_log.fill_(-torch.inf)  # A = 0
    assert not isinstance(prove(model, budget=200), Proved)
    with pytest.raises(NotExpressible, match="one value of 64 at a time"):
        mamba.build(_with_values_of_32(), torch.float32)


def _with_values_of_32():
    plan = construct(zoo.flip_flop(), has_reflections=False)
    (stage,) = plan.stages
    head = stage.orbits[0].head
    smaller = orbit(replace(head, values=head.values / 2))
    return replace(plan, stages=(replace(stage, orbits=(smaller,)),))
