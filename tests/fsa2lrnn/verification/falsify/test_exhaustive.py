"""All short words are tried: what is found is shortest, and what closes is right for ever."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lower import DTYPES, compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification import Proved, Refuted, prove_equivalent
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.exhaustive import exhaustive
from fsa2lrnn.verification.falsify.verdict import Budget


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


def test_states_of_one_letter_are_joined_and_levels_counted():
    machine = zoo.sum_mod(3)
    outcome = search(compile_machine(machine), machine)
    assert outcome.closed
    assert "3 joint states, closed" in outcome.what


def test_a_level_too_wide_ends_the_search_and_dead_letters_do_not_count():
    """The states of a random model do not close; of the words of ModArith(2) only the legal ones are held."""
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


def test_time_that_runs_out_is_said():
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
