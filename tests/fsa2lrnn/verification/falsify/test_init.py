"""From a model to a failing word: every word found fails, compiled models have none, and what was searched is said."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import InvalidWord
from fsa2lrnn.lower import DTYPES, compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verdicts import Refuted, Undecided
from fsa2lrnn.verification.falsify import Budget, falsify

SMALL = Budget(words=300, length=200, periodic_words=50, random_words=16, width=8, rounds=2)


def drifting(machine, noise, seed=0, dtype=torch.float32):
    """The compiled model with noise on its transitions: right on short words, wrong on long ones."""
    tables = switched(compile_machine(machine, dtype=dtype))
    torch.manual_seed(seed)
    A = tables.A + noise * torch.randn(tables.A.shape).to(tables.dtype)
    return LRNN.from_tables(A, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)


def assert_fails(model, machine, verdict):
    """The word is wrong at its last letter and nowhere before, whatever the scan."""
    wanted = machine.transduce(verdict.word)
    assert list(verdict.failure.wanted) == wanted
    assert verdict.position == len(verdict.word) == len(verdict.failure.given)
    for method in ("auto", "sequential"):
        given = model.transduce(verdict.word, method)
        assert given[-1] != wanted[-1]
        assert given[:-1] == wanted[:-1]
    assert list(verdict.failure.given) == model.transduce(verdict.word, "sequential")
    assert "sequential" in verdict.failure.scans
    assert verdict.failure.margin <= 0


@given(machines(max_states=5, max_letters=2), st.sampled_from(DTYPES), st.sampled_from(["dense", "index"]))
def test_compiled_models_have_no_failing_word(machine, dtype, layout):
    verdict = falsify(compile_machine(machine, dtype=dtype, layout=layout), machine, SMALL)
    assert isinstance(verdict, Undecided)
    assert verdict.checked_length is None
    assert [search.name for search in verdict.searches] == ["exhaustive"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("machine", [zoo.sum_mod(3), zoo.even_pair(3)])
def test_a_model_that_drifts_is_found_out(machine, dtype):
    model = drifting(machine, 0.02, dtype=dtype)
    verdict = falsify(model, machine, SMALL)
    assert isinstance(verdict, Refuted)
    assert_fails(model, machine, verdict)
    assert all(search.finished for search in verdict.searches)
    assert verdict.position > verdict.checked_length >= 4
    finds = [search.found for search in verdict.searches if search.found]
    assert min(finds) == verdict.position
    assert sorted(finds, reverse=True) == finds  # each search looks below what was found before it
    assert verdict.found_by in {search.name for search in verdict.searches if search.found == verdict.position}
    for search in verdict.searches:
        assert search.letters >= search.length or search.words == 0


def test_equal_budgets_give_equal_answers():
    machine, model = zoo.sum_mod(3), drifting(zoo.sum_mod(3), 0.02)
    first, second = falsify(model, machine, SMALL), falsify(model, machine, SMALL)
    assert first.word == second.word
    plain = [[dataclasses.replace(search, seconds=0) for search in v.searches] for v in (first, second)]
    assert plain[0] == plain[1]
    machine = zoo.sum_mod(3)
    verdict = falsify(drifting(machine, 0.02), machine, SMALL)
    assert "guided" in [search.name for search in verdict.searches]
    shifted = compile_machine(machine, layout="index")
    assert "guided" not in [search.name for search in falsify(shifted, machine, SMALL).searches]
    machine = zoo.sum_mod(3)
    wrong = MooreMachine(machine.delta, [0, 1, 1], 0, machine.alphabet)
    verdict = falsify(compile_machine(machine), wrong, SMALL)
    assert (verdict.word, verdict.found_by, verdict.is_shortest) == (("2",), "exhaustive", True)
    assert len(verdict.searches) == 1


def test_a_known_word_is_run_first_and_only_shorter_ones_count():
    machine, model = zoo.sum_mod(3), drifting(zoo.sum_mod(3), 0.02)
    found = falsify(model, machine, SMALL)
    nothing = Budget(words=0, length=200, periodic_words=0, random_words=0, width=0, rounds=0)
    again = falsify(model, machine, nothing, known=found.word)
    assert (again.word, again.found_by, again.searches[0].name) == (found.word, "known", "known")
    longer = falsify(model, machine, nothing, known=[*found.word, "0", "1"])
    assert longer.position <= found.position
    right = falsify(compile_machine(machine), machine, SMALL, known=found.word)
    assert isinstance(right, Undecided)
    assert right.checked_length is None
    with pytest.raises(InvalidWord, match="'7'"):
        falsify(model, machine, SMALL, known=["7"])


@pytest.mark.parametrize("options", [{"token_shift": True}, {"connection": "concat"}, {}])
def test_untrained_models_of_two_layers_fail_soon(options):
    torch.manual_seed(0)
    layers = (BlockLayerConfig((2, 2), 4, 4), BlockLayerConfig((2, 2), 4, 4))
    machine = zoo.sum_mod(2)
    model = LRNN(LRNNConfig(machine.alphabet, (0, 1), layers, embedding_dim=4, readout_hidden=16, **options))
    verdict = falsify(model, machine, SMALL)
    assert isinstance(verdict, Refuted)
    assert_fails(model, machine, verdict)
    assert verdict.is_shortest


def test_numbers_that_are_none_are_failures_where_they_count():
    machine = zoo.sum_mod(2)
    tables = switched(compile_machine(machine))
    model = LRNN.from_tables(tables.A * 1e4, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)
    verdict = falsify(model, machine, SMALL)
    assert verdict.failure.given[-1] == "NaN"
    assert "NaN" not in verdict.failure.given[:-1]
    assert verdict.failure.margin == float("-inf")


def test_time_that_runs_out_is_said():
    machine = zoo.even_pair(3)
    verdict = falsify(drifting(machine, 0.001), machine, Budget(seconds=1e-6))
    assert isinstance(verdict, Undecided)
    assert not all(search.finished for search in verdict.searches)
