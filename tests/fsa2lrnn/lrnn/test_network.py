"""What searches ask of a model: both kinds of models have it."""

from torch import nn

from fsa2lrnn.automata import zoo
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn.network import Network


def test_a_model_is_a_network_and_a_plain_module_is_none():
    assert isinstance(compile_machine(zoo.parity()), Network)
    assert isinstance(compile_machine(zoo.parity(), layout="index"), Network)
    assert not isinstance(nn.Linear(2, 2), Network)
