"""Qwen3-Next and Qwen3.5, whole, as their own code runs them."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("transformers")

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.folder import load

REGISTER = MooreMachine([[0, 1, 2, 3, 4], *([q] * 5 for q in range(5))], "vwxyz", alphabet="-01234")


@pytest.mark.parametrize("layer", ["qwen3-next", "qwen3.5"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "machine", [zoo.flip_flop(), zoo.ab_star(), REGISTER], ids=["flip_flop", "ab_star", "register"]
)
def test_prefill_and_decode_agree_with_the_machine(exported, agrees, machine, dtype, layer):
    folder, written = exported(machine, layer, dtype)
    assert layer_file(layer).CODE.kind in str(written.verdict.covers)
    model = load(folder)
    word = np.random.default_rng(0).integers(len(machine.alphabet), size=130).tolist()
    for chunk in (1, 130):
        assert agrees(model, word, chunk)


def test_every_short_word_and_a_long_good_one(exported, agrees):
    model = load(exported(zoo.ab_star(), "qwen3-next")[0])
    for length in range(1, 6):
        for word in product(range(2), repeat=length):
            assert agrees(model, word)
    word = [0, 1] * 300
    assert agrees(model, word)
    word[300] = 1
    assert agrees(model, word)


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine", [zoo.flip_flop(), zoo.ab_star(), REGISTER], ids=["flip_flop", "ab_star", "register"]
)
def test_a_hundred_thousand_letters(exported, agrees, machine):
    model = load(exported(machine, "qwen3-next")[0])
    assert agrees(model, np.random.default_rng(2).integers(len(machine.alphabet), size=100_000).tolist())
    if len(machine.alphabet) == 2:
        assert agrees(model, [0, 1] * 50_000)
