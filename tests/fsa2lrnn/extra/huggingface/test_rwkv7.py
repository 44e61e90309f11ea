"""RWKV-7 as the package runs it, where that is installed; its refusals, and how near to a reflection it comes."""

import math

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.extra.huggingface.refuse import refuse
from fsa2lrnn.optional import is_installed
from fsa2lrnn.verdicts import Proved

has_it = pytest.mark.skipif(not is_installed("rwkv"), reason="rwkv is not installed")
MACHINES = {
    "flip_flop": zoo.flip_flop(),
    "ab_star": zoo.ab_star(),
    "shift_register": zoo.shift_register(2),
    "register": MooreMachine([range(5), *([q] * 5 for q in range(5))], "vwxyz", alphabet="-01234"),
}


@pytest.mark.parametrize("task", ["parity", "sum_mod(5)", "group(S3)", "group(S3, transpositions)", "length_mod(2)"])
def test_groups_are_refused(task):
    found = refuse(zoo.from_task(task), "rwkv-7")
    assert len(found.repeated) == 1
    assert found.check().startswith("impossible: one layer or a stack of them without attention of rwkv-7")


def test_of_two_letters_in_turn_nothing_is_said():
    assert len(refuse(zoo.mod_arith(2), "qwen3-next").repeated) == 2
    assert refuse(zoo.mod_arith(2), "rwkv-7") is None


def test_the_theorem_in_numbers():
    """Gates at their ends and between them: real eigenvalues above −0.4548, and a smaller one is met nearly."""
    rng, least = np.random.default_rng(0), 1.0
    for _ in range(1_000):
        w = np.exp(-0.606531 * rng.choice([0, 0.5, 1], size=4))
        a, k = rng.choice([0.0, 0.4, 1.0], size=4), rng.choice([0.0, 1.0, -0.5], size=4)
        k /= max(np.linalg.norm(k), 1)
        values = np.linalg.eigvals(np.diag(w) - np.outer(k, a * k))
        assert np.abs(values.imag).max() < 1e-6
        least = min(least, values.real.min())
        assert values.real.max() < 1 + 1e-9
    assert math.exp(-0.606531) - 1 - 1e-9 < least < -0.4547


def test_reflections_are_no_plan_for_it():
    plan = construct(zoo.group("S3", "transpositions"), has_reflections=True)
    with pytest.raises(NotExpressible, match="keep all that they hold or forget it"):
        layer_file("rwkv-7").build(plan, torch.float32)


def test_two_letters_back_are_no_plan_for_it():
    plan = construct(zoo.shift_register(3), has_reflections=False)
    with pytest.raises(NotExpressible, match="rwkv-7 looks one letter back"):
        layer_file("rwkv-7").build(plan, torch.float32)


@has_it
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MACHINES)
def test_whole_words_and_single_letters_agree_with_the_machine(exported, agrees, name, dtype):
    folder, written = exported(MACHINES[name], "rwkv-7", dtype)
    assert "RWKV_x070 of rwkv" in str(written.verdict.covers)
    model = load(folder)
    assert model.dtype == dtype
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=130).tolist()
    assert agrees(model, word)
    assert agrees(model, word[:30], 1)


@has_it
@pytest.mark.parametrize("part", ["att.a1", "att.value.weight", "ffn.key.weight"])
def test_a_changed_weight_is_noticed(exported, part):
    model = load(exported(MACHINES["ab_star"], "rwkv-7")[0])
    model.model.z[f"blocks.1.{part}"].neg_()
    assert not isinstance(prove(model, budget=200), Proved)


@has_it
def test_the_nearest_to_a_reflection_fades(exported):
    """w at its least and a = 1 turn the sign and leave 0.4548 of a number; twice the removal would leave all of it."""
    model = load(exported(MACHINES["flip_flop"], "rwkv-7")[0])
    _, cache = model.code.read(model.model, torch.tensor([0]), None)
    z = model.model.z
    z["blocks.0.att.w0"].fill_(512)  # w = exp(−0.606531)
    z["blocks.0.att.a0"].fill_(1e4)  # a = 1
    z["blocks.0.att.value.weight"].zero_()
    held = int(cache[1][0, :, 0].argmax())
    sizes = [cache[1][0, held, 0].item()]
    for _ in range(200):
        _, cache = model.code.read(model.model, torch.tensor([2]), cache)
        sizes.append(cache[1][0, held, 0].item())
    ratios = np.array(sizes[1:20]) / np.array(sizes[:19])
    assert np.allclose(ratios, math.exp(-0.606531) - 1, rtol=1e-6)
    assert next(n for n, size in enumerate(sizes) if not size) == 144


@has_it
@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_a_hundred_thousand_letters(exported, agrees, name):
    model = load(exported(MACHINES[name], "rwkv-7")[0])
    assert agrees(model, np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist())
