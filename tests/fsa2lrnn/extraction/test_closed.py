"""From weights back to the machine, where the states close."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.extraction import extract
from fsa2lrnn.lower import DTYPES, compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.testing.strategies import machines


def random_model(**options):
    torch.manual_seed(0)
    return LRNN(LRNNConfig(("a", "b"), (0, 1), (BlockLayerConfig((2,), 4, 4),), 4, 4, **options))


@given(machines(), st.sampled_from(DTYPES), st.sampled_from(["dense", "index"]))
def test_round_trip_gives_the_minimal_machine(machine, dtype, layout):
    assert extract(compile_machine(machine, dtype=dtype, layout=layout)) == machine.minimise()


def test_a_model_whose_states_do_not_close_runs_out_of_the_budget():
    with pytest.raises(BudgetExceeded, match=r"500 states .* do not close.*\(extract --method suffixes\)"):
        extract(random_model(), max_states=500)


@pytest.mark.parametrize("options", [{}, {"token_shift": True}, {"connection": "residual"}, {"connection": "concat"}])
def test_a_model_that_forgets_closes_whatever_its_wiring(options, forgetful):
    model = forgetful(**options)
    machine = extract(model)
    for word in ("a", "ab", "abba", "bbbaab"):
        assert machine.transduce(word) == model.transduce(word)


def test_states_without_an_output_are_refused():
    model = random_model(normalisation="none")
    with torch.no_grad():
        model.layers[0].transition[2].bias.fill_(1e30)
    with pytest.raises(NotExact, match="NaN logits"):
        extract(model)


def test_every_weight_matters_to_the_extraction():
    """A changed read-out is a changed machine."""
    model = compile_machine(zoo.sum_mod(3))
    with torch.no_grad():
        model.readout[2].weight[[0, 1]] = model.readout[2].weight[[1, 0]].clone()
    assert extract(model) != zoo.sum_mod(3).minimise()
