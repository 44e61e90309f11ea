"""Mamba-2, whole, as its own code runs it."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface import mamba2
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.verdicts import Proved

from .conftest import MACHINES


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MACHINES)
def test_prefill_and_decode_agree_with_the_machine(exported, agrees, name, dtype):
    folder, written = exported(MACHINES[name], "mamba-2", dtype)
    assert "Mamba2ForCausalLM" in str(written.verdict.covers)
    model = load(folder)
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=130).tolist()
    assert agrees(model, word)
    assert agrees(model, word[:30], 1)


def test_a_head_holds_one_number_a_value_exactly(exported):
    """What was written last, times Δ and B: powers of two, the same after any number of letters that keep it."""
    model = load(exported(MACHINES["register"], "mamba-2")[0])
    cache, states = None, set()
    for a in [1, 0, 0, 3, 0, 5, 5, 3, *[0] * 50]:
        _, cache = model.code.read(model.model, torch.tensor([a]), cache)
        states.add(tuple(cache.layers[0].recurrent_states[0][0, 0, :5, 0].tolist()))
    assert states == {tuple(2.0**24 * (q == held) for q in range(5)) for held in (0, 2, 4)}


@pytest.mark.parametrize("part", ["in_proj", "out_proj"])
def test_a_changed_weight_is_noticed(exported, part):
    model = load(exported(MACHINES["ab_star"], "mamba-2")[0])
    with torch.no_grad():
        getattr(model.model.backbone.layers[1].mixer, part).weight.neg_()
    assert not isinstance(prove(model, budget=200), Proved)


def test_reflections_are_no_plan_for_it():
    from fsa2lrnn.extra.huggingface.construct import construct

    plan = construct(zoo.group("S3", "transpositions"), has_reflections=True)
    with pytest.raises(NotExpressible, match="keep all that they hold or forget it"):
        mamba2.build(plan, torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_a_hundred_thousand_letters(exported, agrees, name):
    model = load(exported(MACHINES[name], "mamba-2")[0])
    assert agrees(model, np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist())
    if name == "ab_star":
        assert agrees(model, [0, 1] * 50_000)
