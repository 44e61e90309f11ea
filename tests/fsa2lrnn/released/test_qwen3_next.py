"""Qwen3-Next, whole, as its own code runs it."""

from itertools import product

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.released.folder import load, run

REGISTER = MooreMachine([[0, 1, 2, 3, 4], *([q] * 5 for q in range(5))], "vwxyz", alphabet="-01234")


def check(model, word, chunk=2_048):
    """No letter of this word is answered wrongly."""
    numbers = {output: len(model.machine.alphabet) + j for j, output in enumerate(model.outputs)}
    wanted = [numbers[output] for output in model.machine.transduce([model.machine.alphabet[a] for a in word])]
    assert run(model, torch.tensor(word), chunk)[0].tolist() == wanted


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "machine", [zoo.flip_flop(), zoo.ab_star(), REGISTER], ids=["flip_flop", "ab_star", "register"]
)
def test_prefill_and_decode_agree_with_the_machine(exported, machine, dtype):
    folder, written = exported(machine, "qwen3-next", dtype)
    assert "Qwen3NextForCausalLM" in str(written.verdict.covers)
    model = load(folder)
    word = np.random.default_rng(0).integers(len(machine.alphabet), size=130).tolist()
    for chunk in (1, 130):
        check(model, word, chunk)


def test_every_short_word_and_a_long_good_one(exported):
    model = load(exported(zoo.ab_star(), "qwen3-next")[0])
    for length in range(1, 6):
        for word in product(range(2), repeat=length):
            check(model, word)
    word = [0, 1] * 300
    check(model, word)
    word[300] = 1
    check(model, word)


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine", [zoo.flip_flop(), zoo.ab_star(), REGISTER], ids=["flip_flop", "ab_star", "register"]
)
def test_a_hundred_thousand_letters(exported, machine):
    model = load(exported(machine, "qwen3-next")[0])
    check(model, np.random.default_rng(2).integers(len(machine.alphabet), size=100_000).tolist())
    if len(machine.alphabet) == 2:
        check(model, [0, 1] * 50_000)
