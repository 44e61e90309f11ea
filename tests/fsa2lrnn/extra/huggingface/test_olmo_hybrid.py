"""OLMo-Hybrid, whole, as its own code runs it."""

from itertools import product

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.folder import load, run
from fsa2lrnn.extra.huggingface.packages import transformers


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
@pytest.mark.parametrize("task", ["parity", "flip_flop", "group(S3, transpositions)", "ab_star", "group(S4)"])
def test_prefill_decode_and_pieces_agree_with_the_machine(exported, task, dtype):
    model = load(exported(task, "olmo-hybrid", dtype)[0])
    assert model.dtype == dtype
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=150).tolist()
    for chunk in (1, 64, 150):
        check(model, [word], chunk)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_word_of_eight_letters(exported, dtype):
    """And so, at each letter, every shorter one."""
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


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "task", ["group(S3, transpositions)", "group(S4, transpositions)", "group(S5, transpositions)"]
)
def test_a_hundred_thousand_letters(exported, task, dtype):
    model = load(exported(task, "olmo-hybrid", dtype)[0])
    check(model, [np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist()])
