"""The machine that a model has learned, and the evidence for it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.counting import smallest_after_first
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.errors import NotExact, UnsupportedFormat
from fsa2lrnn.extraction import extract_learned
from fsa2lrnn.extraction.learned import METHODS
from fsa2lrnn.lower import DTYPES, compile_machine
from fsa2lrnn.lrnn import LRNN
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.testing.strategies import machines
from tests.fsa2lrnn.automata.test_language import blank_outputs


def drifting(machine, noise):
    """The compiled model with noise on its transitions: right on short words, wrong on long ones."""
    tables = switched(compile_machine(machine))
    torch.manual_seed(0)
    A = tables.A + noise * torch.randn(tables.A.shape)
    return LRNN.from_tables(A, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)


ZOO = [zoo.sum_mod(5), zoo.even_pair(3), zoo.even_pairs(), zoo.tomita(3), zoo.group("S3"), zoo.flip_flop()]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("machine", ZOO, ids=lambda machine: f"{machine.n_states} states")
def test_compiled_machines_come_back(machine, method):
    model = compile_machine(machine)
    assert extract_learned(model, method, empty_word=True).machine == machine.minimise()
    found = extract_learned(model, method)
    assert equivalent(found.machine, machine, empty_word=False) is None
    assert found.machine.n_states == smallest_after_first(machine).n_states
    assert found.held_out.agreement == 1
    assert found.held_out.first_disagreement is None


@settings(max_examples=25)
@given(machines(max_states=5, max_letters=3), st.sampled_from(DTYPES), st.sampled_from(["dense", "index"]))
def test_any_compiled_machine_comes_back(machine, dtype, layout):
    found = extract_learned(compile_machine(machine, dtype=dtype, layout=layout), empty_word=True)
    assert found.machine == machine.minimise()
    assert found.classes == found.machine.n_states


@pytest.mark.parametrize("method", METHODS)
def test_a_model_that_drifts_is_still_a_machine_on_short_words(method):
    """Its states do not close, and on long words it is wrong: the evidence says from where on."""
    machine = zoo.even_pair(3)
    model = drifting(machine, 0.02)
    found = extract_learned(model, method, horizon=12)
    assert equivalent(found.machine, machine, empty_word=False) is None
    assert found.machine.n_states == 7
    assert found.held_out.agreement == 1
    later = extract_learned(model, horizon=2_000).held_out
    assert later.agreement < 1
    assert 12 < later.first_disagreement <= 2_000


def test_the_start_merges_where_it_can_and_else_has_the_output_of_the_model():
    odd = MooreMachine([[0, 1, 0], [1, 0, 1]], [0, 1, 1], 2)
    assert extract_learned(compile_machine(odd)).machine == MooreMachine([[0, 1], [1, 0]], [0, 1])
    assert extract_learned(compile_machine(odd), empty_word=True).machine == odd.minimise()
    pairs = extract_learned(compile_machine(zoo.even_pairs())).machine
    assert pairs == zoo.even_pairs().minimise()


@pytest.mark.parametrize("method", METHODS)
def test_only_outputs_that_count_are_learned(method):
    """Between digits the model may say what it likes; the machine gives None there."""
    machine = zoo.mod_arith(2)
    wild = MooreMachine(
        machine.delta,
        [q % 2 if output not in (0, 1) else output for q, output in enumerate(machine.outputs)],
        machine.start,
        machine.alphabet,
    )
    legal = blank_outputs(machine, (0, 1))
    counts = MooreMachine(legal.delta, [output is not None for output in legal.outputs], 0, legal.alphabet)
    found = extract_learned(compile_machine(wild), method, counts=counts, horizon=15)
    assert found.machine == smallest_after_first(legal)


def test_what_cannot_be_asked_is_said():
    model = compile_machine(zoo.sum_mod(2))
    with pytest.raises(UnsupportedFormat, match="method 'vote' is not known: choose one of suffixes, lstar"):
        extract_learned(model, "vote")
    counts = MooreMachine([[0], [0]], [True], alphabet=model.alphabet)
    named = compile_machine(MooreMachine([[0, 1], [1, 0]], [None, 1], alphabet=model.alphabet))
    with pytest.raises(UnsupportedFormat, match="None is an output of the model"):
        extract_learned(named, counts=counts)
    assert extract_learned(named).machine.outputs == (None, 1)
    with torch.no_grad():
        model.layers[0].x0.fill_(float("nan"))
    with pytest.raises(NotExact, match="NaN"):
        extract_learned(model)
