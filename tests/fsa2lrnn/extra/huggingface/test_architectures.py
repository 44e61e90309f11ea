"""What each architecture of transformers holds and computes, bit for bit."""

from itertools import product

import numpy as np
import pytest
import torch

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.huggingface import mamba
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.folder import load, run
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.verdicts import Proved

from .conftest import MACHINES

pytest.importorskip("transformers")


def check(model, words, chunk=2_048):
    """No letter of these words is answered wrongly."""
    machine = model.machine
    numbers = {output: len(machine.alphabet) + j for j, output in enumerate(model.outputs)}
    for word in words:
        wanted = [numbers[output] for output in machine.transduce([machine.alphabet[a] for a in word])]
        got, cache = run(model, torch.tensor(word), chunk)
        assert got.tolist() == wanted
    return cache


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_word_of_eight_letters(exported, dtype):
    model = load(exported("group(S3, transpositions)", "olmo-hybrid", dtype)[0])
    with transformers(), torch.no_grad():
        words = torch.tensor(list(product(range(2), repeat=8)))
        tokens = model.model(words).logits.argmax(dim=2) - 2
    for word, found in zip(words.tolist(), tokens.tolist(), strict=True):
        letters = [model.machine.alphabet[a] for a in word]
        assert [model.outputs[j] for j in found] == model.machine.transduce(letters)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_state_is_the_plan_s_bit_for_bit(exported, dtype):
    model = load(exported("group(S3, transpositions)", "olmo-hybrid", dtype)[0])
    orbit = construct(model.machine, True).stages[0].orbits[0]
    word = np.random.default_rng(1).integers(2, size=3_000).tolist()
    cache, state = check(model, [word], 512), 0
    for a in word:
        state = orbit.table[a, state]
    S = cache.layers[0].recurrent_states[0][0, 0].numpy()
    assert np.array_equal(S, orbit.states[state] * np.sqrt(S.size))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_layer_of_a_stack_rounds(exported, dtype):
    """In every layer each head holds a matrix of its plan after each letter, times a power of two."""
    folder, written = exported("group(S4)", "olmo-hybrid", dtype)
    model, cache = load(folder), None
    for a in np.random.default_rng(3).integers(2, size=60).tolist():
        cache = run(model, torch.tensor([a]), cache=cache)[1]
        for layer, stage in zip(cache.layers, written.plan.stages, strict=False):
            held = layer.recurrent_states[0][0].numpy() / np.sqrt(layer.recurrent_states[0][0, 0].numel())
            for S, orbit in zip(held, stage.orbits, strict=False):
                rows, columns = orbit.states[0].shape
                assert any(np.array_equal(S[:rows, :columns], known) for known in orbit.states)


def test_generation_goes_on_from_a_prompt(exported):
    folder, _ = exported("parity")
    with transformers() as package:
        model = package.AutoModelForCausalLM.from_pretrained(folder)
        words = package.AutoTokenizer.from_pretrained(folder)
        answer = model.generate(**words("01101", return_tensors="pt"), max_new_tokens=1, do_sample=False)
    assert words.decode(answer[0, -1:]) == "=accept"


def test_every_short_word_and_a_long_good_one(exported, agrees):
    model = load(exported(zoo.ab_star(), "qwen3-next")[0])
    for length in range(1, 6):
        for word in product(range(2), repeat=length):
            assert agrees(model, word)
    word = [0, 1] * 300
    assert agrees(model, word)
    word[300] = 1
    assert agrees(model, word)


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


def test_attention_to_more_than_zeros_is_refused(exported):
    model = load(exported(MACHINES["flip_flop"], "kimi-linear")[0])
    with torch.no_grad():
        model.model.model.layers[-1].self_attn.kv_b_proj.weight.fill_(1)
    with pytest.raises(UnsupportedFormat, match="layer 1 attends to more than zeros"):
        prove(model)


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
    from dataclasses import replace

    from fsa2lrnn.extra.huggingface.plan import orbit

    plan = construct(zoo.flip_flop(), has_reflections=False)
    (stage,) = plan.stages
    head = stage.orbits[0].head
    smaller = orbit(replace(head, values=head.values / 2))
    return replace(plan, stages=(replace(stage, orbits=(smaller,)),))


def test_a_head_holds_one_number_a_value_exactly(exported):
    """What was written last, times Δ and B: powers of two, the same after any number of letters that keep it."""
    model = load(exported(MACHINES["register"], "mamba-2")[0])
    cache, states = None, set()
    for a in [1, 0, 0, 3, 0, 5, 5, 3, *[0] * 50]:
        _, cache = model.code.read(model.model, torch.tensor([a]), cache)
        states.add(tuple(cache.layers[0].recurrent_states[0][0, 0, :5, 0].tolist()))
    assert states == {tuple(2.0**24 * (q == held) for q in range(5)) for held in (0, 2, 4)}
