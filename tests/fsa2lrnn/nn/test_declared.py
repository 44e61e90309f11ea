"""Layers of which nothing can be proved, and layers that are not causal, before all judges: refused by name, or run."""

import numpy as np
import pytest
import torch

from fsa2lrnn import Budget, MooreMachine, Refuted, certify, check, falsify, prove_equivalent, repair, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN, LRNNConfig, layers
from fsa2lrnn.nn.layers.diagonal import LRUConfig, S5Config
from fsa2lrnn.nn.layers.liquid_s4 import LiquidS4Config
from fsa2lrnn.nn.layers.rwkv import RWKV4Config
from fsa2lrnn.nn.layers.s4 import S4Config, S4DConfig
from fsa2lrnn.nn.layers.vanilla import VanillaConfig
from fsa2lrnn.verification.extraction import extract, extract_learned
from fsa2lrnn.verification.modelled import check_causal, check_provable

PARITY = zoo.parity()
BLOCK = layers.BlockLayerConfig((2, 2), 4, 4)
UNPROVED = {
    "s4": S4Config(4, d_state=4), "s4d": S4DConfig(4, d_state=4), "liquid_s4": LiquidS4Config(4, d_state=4),
    "s5": S5Config(4, ssm_size=4), "lru": LRUConfig(4, states=4), "rwkv4": RWKV4Config(4),
}  # fmt: skip


def model_of(*configs):
    torch.manual_seed(0)
    return LRNN(LRNNConfig(PARITY.alphabet, PARITY.outputs, configs, embedding_dim=4))


@pytest.mark.parametrize("name", UNPROVED)
def test_no_judge_says_anything_of_them_but_by_running_them(name):
    model = model_of(UNPROVED[name])
    wording = f"layers.0 is of kind {name}, whose .* no verifier models: compare and falsify run it on words"
    for judge in (prove_equivalent, certify):
        with pytest.raises(UnsupportedFormat, match=wording):
            judge(model, PARITY)
    with pytest.raises(UnsupportedFormat, match=wording):
        extract(model)
    with pytest.raises(UnsupportedFormat, match=wording):
        check_provable(model)
    with pytest.raises(UnsupportedFormat, match=f"has a layer of kind {name}: only one layer with tables"):
        repair(model, PARITY)
    found = falsify(model, PARITY, Budget(seconds=5))
    assert isinstance(found, Refuted)
    wrong = found.word
    assert model.transduce(wrong)[-1] != PARITY.transduce(wrong)[-1]


@pytest.mark.long
def test_proofs_and_certificates_of_others_are_none_of_them():
    model = model_of(BLOCK, UNPROVED["lru"])
    with pytest.raises(UnsupportedFormat, match=r"layers\.1 is of kind lru"):
        prove_equivalent(model, PARITY)
    vanilla = model_of(VanillaConfig(4))
    check_provable(vanilla)
    own = MooreMachine([[0], [0]], [PARITY.outputs[0]], alphabet=PARITY.alphabet)
    with pytest.raises(UnsupportedFormat, match="VanillaLayer declares no bound on how its tables may round"):
        certify(vanilla, own)
    compiled = model_of(BLOCK)
    certificate = certify(compiled, own, work=1e5)
    with pytest.raises(UnsupportedFormat, match=r"layers\.0 is of kind s4, "):
        check(certificate, model_of(UNPROVED["s4"]))


@pytest.mark.parametrize("kernel", ["polyb", "kb"])
def test_what_is_not_causal_is_no_automaton(kernel):
    model = model_of(LiquidS4Config(4, d_state=4, kernel=kernel))
    asked = (
        lambda: model.transduce("01" * 4), lambda: next(model.stream([np.zeros(8, np.int64)])),
        lambda: prove_equivalent(model, PARITY), lambda: certify(model, PARITY), lambda: falsify(model, PARITY),
        lambda: extract(model), lambda: extract_learned(model), lambda: check_causal(model),
    )  # fmt: skip
    for ask in asked:
        with pytest.raises(UnsupportedFormat, match=r"layers\.0 is of kind liquid_s4 and not causal: its"):
            ask()
    assert not model.is_causal
    assert model(torch.zeros(1, 8, dtype=torch.int64)).shape == (1, 8, 2)
