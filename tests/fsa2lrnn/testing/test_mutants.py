"""Mutants change what they say, and nothing in the model that they were made from."""

import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.extraction import extract
from fsa2lrnn.lower import compile_machine, lower
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.normalise import normalise
from fsa2lrnn.lrnn.scans.reference import pscan, schedule, spt
from fsa2lrnn.testing import mutants

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


def test_a_transposed_block_and_a_broken_head():
    model = compile_machine(SHIFT, normalisation="none")
    broken = mutants.transpose_block(model, "a")
    with torch.no_grad():
        (A, _), (B, _) = (m.layers[0].tables(m.embedding.weight) for m in (model, broken))
    assert torch.equal(B[0], A[0].transpose(-1, -2))
    assert torch.equal(B[1], A[1])
    model = compile_machine(zoo.group("Z3xZ2"))
    letter = model.alphabet[0]
    broken = mutants.flip_transition(model, letter, 0, 0, head=1)
    with torch.no_grad():
        A, _ = broken.layers[0].tables(broken.embedding.weight)
    assert A[0, 1, :2, 0].tolist() == [1, 0]


def test_what_cannot_be_broken_is_said_even_of_an_index_table():
    model = compile_machine(SHIFT, layout="index")
    with pytest.raises(UnsupportedFormat, match="nothing to transpose: use a dense model"):
        mutants.transpose_block(model, "a")
    with pytest.raises(InvalidWord, match="letter 'c'"):
        mutants.drop_letter(model, "c")
    trained = LRNN(LRNNConfig("ab", (0, 1), (BlockLayerConfig((2,), 2, 2),), 2, 2))
    with pytest.raises(UnsupportedFormat, match="not a compiled one-layer model"):
        mutants.drop_letter(trained, "a")
    model = compile_machine(SHIFT, layout="index")
    for break_it in (lambda: mutants.wrong_gate_weight(model, 0, 0, 0), lambda: mutants.swap_heads(model, 0, 0, 0)):
        with pytest.raises(UnsupportedFormat, match="has neither gates nor heads to break: use a dense model"):
            break_it()


def test_single_faults_of_gates_maps_and_starts(stacks):
    machine = zoo.sum_mod(3)
    broken = mutants.reset_for_map(compile_recurrence(machine))
    assert broken.transduce("1021") == [1, 0, 2, 0]
    assert machine.transduce("1021") == [1, 1, 0, 1]
    with pytest.raises(UnsupportedFormat, match="no place for a reset: use a dense layout"):
        mutants.reset_for_map(compile_recurrence(machine, layout="index"))
    model = lower(stacks["registers"][0])
    broken = mutants.wrong_gate_weight(model, 1, 2, 35, "transition")
    changed = {name: (broken.state_dict()[name] - part).nonzero() for name, part in model.state_dict().items()}
    assert {name: where.tolist() for name, where in changed.items() if len(where)} == {
        "layers.1.transition.0.weight": [[2, 35]]
    }
    model = lower(stacks["registers"][0])
    broken = mutants.shift_by_zeros(model)
    assert isinstance(broken, LRNN)
    for before, after in zip(model.initial_state(2), broken.initial_state(2), strict=True):
        assert torch.equal(before.x, after.x)
        assert not after.u.any()
    assert model.initial_state(2)[1].u.any()
    with pytest.raises(UnsupportedFormat, match="has no token shift"):
        mutants.shift_by_zeros(lower(stacks["counter"][0]))


def test_swapped_heads_swap_their_states(stacks):
    recurrence, _ = stacks["repeats"]
    model = lower(recurrence)
    tokens = torch.tensor([[0, 1, 2, 2, 1, 0]])
    states = []
    for m in (model, mutants.swap_heads(model, 0, 0, 1)):
        u = m.embedding(tokens)
        u = torch.cat([u, torch.zeros_like(u)], dim=-1)
        states.append(m.layers[0](u, m.layers[0].initial_state(1))[0].unflatten(-1, (3, 3)))
    assert torch.equal(states[1], states[0][:, :, [1, 0, 2]])
    assert not torch.equal(*states)
    with pytest.raises(UnsupportedFormat, match=r"heads 1 and 2 have blocks of sizes \(1, 1, 3\)"):
        mutants.swap_heads(model, 0, 1, 2)


def scan_inputs(length):
    generator = torch.Generator().manual_seed(length)
    shapes = [(2, length, 1, 3, 3), (2, length, 1, 3), (2, 1, 3)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def test_broken_scans_schedules_and_rules_break_one_thing_each():
    for length in (2, 7, 8):
        A, v, x0 = scan_inputs(length)
        right = pscan(A, v, x0)
        assert torch.equal(mutants.twice(pscan)(A, v, x0), right)
        assert torch.equal(mutants.wrong_at(pscan, 7)(A, v, x0), right) == (length != 7)
        for broken in (mutants.early_transitions(pscan), mutants.forgetful(pscan), mutants.idle(pscan)):
            assert broken(A, v, x0).shape == right.shape
            assert not torch.allclose(broken(A, v, x0), right)
    assert mutants.swapped_names(schedule)(7)[1] == [["A2", "A2A3"], ["A6", "A6A7"]]
    A = scan_inputs(7)[0].unsqueeze(2)
    (_, right), (_, wrong) = spt(A), mutants.swapped_products(A)
    assert torch.equal(right[:, :, 0], wrong[:, :, 0])
    torch.testing.assert_close(right[:, 0, 1], A[:, 2, 0] @ A[:, 1, 0])
    torch.testing.assert_close(wrong[:, 0, 1], A[:, 1, 0] @ A[:, 2, 0])
    A = 2 * torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for rule in ("clip", "paper", "none"):
        right = normalise(A, rule, 1.2)
        assert not torch.equal(mutants.shrinking_rule(A, rule, 1.2), right)
        assert torch.equal(mutants.unclipped_rule(A, rule, 1.2), right) == (rule != "clip")
        assert torch.equal(mutants.uncentred_rule(A, rule, 1.2), right) == (rule != "paper")
