import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, compile_machine, zoo
from fsa2lrnn.cli.run import Step, Tracer, header, line, with_vectors
from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.layers.diagonal import LRUConfig


def test_letters_and_outputs_meet_whatever_the_pieces_and_the_order_of_letters():
    machine = zoo.sum_mod(3)
    word = np.array([1, 2, 2, 1, 0, 1])
    letters = [machine.alphabet[a] for a in word]
    outputs = np.array([machine.outputs.index(output) for output in machine.transduce(letters)])
    for sizes in ([6], [1, 5], [2, 0, 4]):
        tracer = Tracer(machine.alphabet, machine.outputs, machine)
        pieces = np.split(word, np.cumsum(sizes)[:-1])
        found, at = [], 0
        for piece in tracer.read(pieces):
            for part in np.array_split(piece, 2):
                found += tracer.steps(outputs[at : at + len(part)])
                at += len(part)
        assert [step.letter for step in found] == letters
        assert [step.output for step in found] == [machine.outputs[j] for j in outputs]
        assert len({(step.state, step.output) for step in found}) == 3
    machine = MooreMachine([[1, 0], [0, 1]], [0, 1], 0, "ab", ["even", "odd"])
    tracer = Tracer(("b", "a"), (0, 1), machine)
    list(tracer.read([np.array([1, 0])]))
    assert [step.state for step in tracer.steps(np.array([1, 1]))] == ["odd", "odd"]


def numbers(x):
    return (torch.view_as_real(x) if x.is_complex() else x).flatten()


def state_size(model):
    return len(numbers(model.initial_state()[0].x))


def test_vectors_are_the_states_after_each_letter():
    torch.manual_seed(0)
    config = LRNNConfig(("a", "b"), (0, 1), (LRUConfig(4, 3),) * 2, embedding_dim=4, connection="full-residual")
    model = LRNN(config)
    tokens = np.array([0, 1, 1])
    steps = list(with_vectors(model, [tokens]))
    assert [[len(row) for row in step.vectors] for step in steps] == [[state_size(model)] * 2] * 3
    with torch.no_grad():
        _, state = model.advance(torch.from_numpy(tokens)[None], model.initial_state())
    assert torch.allclose(torch.tensor(steps[-1].vectors[1]), numbers(state[1].x), atol=1e-6)
    table = compile_machine(zoo.sum_mod(3), layout="index")
    assert [step.vectors for step in with_vectors(table, [np.array([1, 1])])] == [[[1]], [[2]]]


@pytest.mark.parametrize("has_states", [True, False])
def test_lines_have_the_columns_of_their_header(has_states):
    step = Step("a", None, ("x", 1), [[0.5, -1.0], [1e-9]])
    rows = line(3, step, has_states).split("\n")
    assert rows[0].count("\t") == header(has_states).count("\t")
    assert rows[1:] == ["\tx0\t0.5 -1", "\tx1\t1e-09"]
    assert rows[0].startswith("3\ta\t")
