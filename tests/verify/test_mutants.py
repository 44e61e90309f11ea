"""Mutants change what they say, and nothing in the model that they were made from."""

import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.extract import extract
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from verify import mutants

SHIFT = MooreMachine([[1, 2, 2], [0, 0, 1]], "xyz", alphabet="ab")


@pytest.mark.parametrize("layout", ["dense", "index"])
def test_each_mutant_computes_the_machine_with_that_fault(layout):
    model = compile_machine(SHIFT, layout=layout)
    expected = {
        mutants.flip_transition(model, "b", 2, 0): MooreMachine([[1, 2, 2], [0, 0, 0]], "xyz", alphabet="ab"),
        mutants.drop_letter(model, "a"): MooreMachine([[0, 1, 2], [0, 0, 1]], "xyz", alphabet="ab"),
        mutants.swap_outputs(model, 0, 2): MooreMachine([[1, 2, 2], [0, 0, 1]], "zyx", alphabet="ab"),
    }
    for broken, machine in expected.items():
        assert extract(broken) == machine.minimise()
    assert extract(model) == SHIFT


def test_a_transposed_block_is_the_transpose():
    model = compile_machine(SHIFT, normalisation="none")
    broken = mutants.transpose_block(model, "a")
    with torch.no_grad():
        (A, _), (B, _) = (m.layers[0].tables(m.embedding.weight) for m in (model, broken))
    assert torch.equal(B[0], A[0].transpose(-1, -2))
    assert torch.equal(B[1], A[1])


def test_a_head_of_a_product_can_be_broken():
    model = compile_machine(zoo.group("Z3xZ2"))
    letter = model.alphabet[0]
    broken = mutants.flip_transition(model, letter, 0, 0, head=1)
    with torch.no_grad():
        A, _ = broken.layers[0].tables(broken.embedding.weight)
    assert A[0, 1, :2, 0].tolist() == [1, 0]


def test_what_cannot_be_broken_is_said():
    model = compile_machine(SHIFT, layout="index")
    with pytest.raises(UnsupportedFormat, match="nothing to transpose: use a dense model"):
        mutants.transpose_block(model, "a")
    with pytest.raises(InvalidWord, match="letter 'c'"):
        mutants.drop_letter(model, "c")
    trained = LRNN(LRNNConfig("ab", (0, 1), (BlockLayerConfig((2,), 2, 2),), 2, 2))
    with pytest.raises(UnsupportedFormat, match="no compiled one-layer model"):
        mutants.drop_letter(trained, "a")
