"""All short words, and models compared with each other."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import Budget, MooreMachine, Proved, Refuted, prove_equivalent, zoo
from fsa2lrnn.compile.lower import DTYPES, compile_machine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification.falsify.frontiers import exhaustive
from fsa2lrnn.verification.falsify.model_comparison import ModelComparison


def search(model, machine, below=100, ignore=(), **budget):
    return exhaustive(ModelComparison(model, machine, ignore), Budget(**budget), below, Deadline(60))


@st.composite
def mutated(draw):
    """A machine and the same with one transition led elsewhere."""
    machine = draw(machines(max_states=6, max_letters=2))
    delta = machine.delta.copy()
    place = draw(st.integers(0, delta.size - 1))
    delta.flat[place] = draw(st.integers(0, machine.n_states - 1))
    return machine, MooreMachine(delta, machine.outputs, machine.start, machine.alphabet)


@given(mutated(), st.sampled_from(DTYPES), st.sampled_from(["dense", "index"]))
def test_one_mutated_transition_is_found_by_a_shortest_word_or_matters_to_none(pair, dtype, layout):
    machine, mutant = pair
    model = compile_machine(mutant, dtype=dtype, layout=layout)
    outcome, verdict = search(model, machine), prove_equivalent(model, machine, empty_word=False)
    if isinstance(verdict, Refuted):
        assert len(outcome.failure.tokens) == len(verdict.word)
        assert outcome.length == len(verdict.word) - 1
    else:
        assert isinstance(verdict, Proved)
        assert outcome.failure is None
        assert outcome.closed


def test_states_are_joined_and_wide_levels_end_the_search():
    machine = zoo.sum_mod(3)
    outcome = search(compile_machine(machine), machine)
    assert outcome.closed
    assert "no more than 3 joint states" in outcome.what
    machine = zoo.mod_arith(2)
    torch.manual_seed(0)
    model = LRNN(LRNNConfig(machine.alphabet, (0, 1), (BlockLayerConfig((2,), 4, 4),), 4, 4))
    with torch.no_grad():  # always right: the wanted output has all of the say
        model.readout[2].weight.zero_()
        model.readout[2].bias.copy_(torch.tensor([1.0, 0.0]))
    zero = MooreMachine(machine.delta, [0 if output in (0, 1) else output for output in machine.outputs], machine.start,
                        machine.alphabet)  # fmt: skip
    outcome = search(model, zero, ignore="lacked", words=100)
    assert (outcome.failure, outcome.length, outcome.words) == (None, 5, 72)  # 2 · 3 · 2 · 3 · 2 legal words, then 216
    assert outcome.finished
    assert search(model, zero, below=3, ignore="lacked").length == 2
    machine = zoo.sum_mod(3)
    outcome = exhaustive(ModelComparison(compile_machine(machine), machine), Budget(), 100, Deadline(-1.0))
    assert not outcome.finished
    assert outcome.length <= 1


@pytest.mark.parametrize("options", [{"token_shift": True}, {"connection": "residual"}, {}])
def test_several_layers_against_brute_force(options):
    torch.manual_seed(1)
    layers = (BlockLayerConfig((2, 2), 4, 4), BlockLayerConfig((2, 2), 4, 4))
    model = LRNN(LRNNConfig(("a", "b"), (0, 1), layers, embedding_dim=4, readout_hidden=16, **options))
    words = torch.tensor([[int(bit) for bit in f"{i:04b}"] for i in range(16)])
    outputs = model(words, "sequential").argmax(-1)
    right_on = 3  # a machine that is right on all words of three letters, and then always says 1 − the model's output
    states, delta = [""], []
    for state in states:
        if len(state) < right_on:
            states += [state + "0", state + "1"]
    number = {state: i for i, state in enumerate(states)}
    delta = [[number[(s + c)[:right_on]] if len(s) < right_on else len(states) for s in states] for c in "01"]
    wanted = [int(outputs[int(s.ljust(4, "0"), 2), len(s) - 1]) if s else 0 for s in states]
    flipped = 1 - int(outputs[5, 3])
    machine = MooreMachine([[*row, len(states)] for row in delta], [*wanted, flipped], 0, ("a", "b"))
    outcome = search(model, machine)
    assert len(outcome.failure.tokens) == 4
    wrong = outputs[int("".join(map(str, outcome.failure.tokens.tolist())), 2), 3]
    assert int(wrong) == 1 - flipped


PARITY = MooreMachine([[0, 1], [1, 0]], [0, 1])


def test_margins_ties_and_cut_failures():
    judge = ModelComparison(compile_machine(PARITY), PARITY)
    nan, inf = float("nan"), float("inf")
    logits = torch.tensor([[3.0, 1.0], [3.0, 1.0], [2.0, 2.0], [2.0, 2.0], [nan, 1.0], [inf, inf], [-inf, -inf]])
    wrong, margin = judge.marks(logits, np.array([0, 1, 0, 1, 0, 0, 0]))
    assert wrong.tolist() == [False, True, False, True, True, False, False]  # ties go to the first output
    assert margin[:5].tolist() == [2, -2, 0, 0, -inf]
    assert judge.marks(logits, np.array([0, 1, 0, 1, 0, 0, 0])).worst(2).tolist() == [4, 1]
    judge = ModelComparison(compile_machine(PARITY), MooreMachine([[0, 1], [1, 1]], [0, 1]))
    failure = judge.confirm(np.array([0, 1, 0, 1, 0, 1]))
    assert (failure.tokens.tolist(), failure.outputs.tolist()) == ([0, 1, 0, 1], [0, 1, 1, 0])
    assert failure.margin < 0
    assert failure.scans == judge.model.methods
    assert judge.confirm(np.array([0, 1, 0])) is None
    assert judge.confirm(np.empty(0, np.int64)) is None


def test_a_word_must_fail_sequentially_and_by_default():
    class OneScanFails(LRNN):
        def forward(self, tokens, method="auto"):
            logits = super().forward(tokens, method)
            return -logits if method == self.broken else logits

    model = compile_machine(PARITY)
    model.__class__ = OneScanFails
    judge = ModelComparison(model, PARITY)
    for model.broken in ("sequential", "auto", "pscan"):
        assert judge.confirm(np.array([0, 1])) is None


def test_unlike_symbols_are_refused_and_missing_outputs_are_wrong():
    with pytest.raises(InvalidMachine, match="the alphabets differ"):
        ModelComparison(compile_machine(PARITY), zoo.sum_mod(3))
    with pytest.raises(UnsupportedFormat, match="none of the machine's"):
        ModelComparison(compile_machine(PARITY), MooreMachine([[0, 1], [1, 0]], "xy"), "lacked")
    judge = ModelComparison(compile_machine(PARITY), MooreMachine([[0, 1], [1, 1]], [0, "over"]))
    wrong, margin = judge.marks(torch.tensor([[3.0, 1.0], [3.0, 1.0], [1.0, 3.0]]), np.array([0, 1, 1]))
    assert (wrong.tolist(), margin.tolist()) == ([False, True, True], [2, -np.inf, -np.inf])
    assert judge.confirm(np.array([0, 1, 0])).tokens.tolist() == [0, 1]
    judge = ModelComparison(compile_machine(PARITY), PARITY)
    logits = torch.tensor([[1.0, 1.0 + 2.0**-40]], dtype=torch.float64)
    assert judge.marks(logits, np.array([0])).wrong.tolist() == [True]
    assert judge.marks(logits, np.array([1])).wrong.tolist() == [False]
