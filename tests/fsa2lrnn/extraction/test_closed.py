"""From weights back to the machine, where the states close."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.extraction import ModelSystem, extract
from fsa2lrnn.extraction.runner import to_bytes
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


def test_a_state_is_handed_over_where_a_new_tensor_would_begin():
    """Products may add up otherwise where numbers begin elsewhere: of one row, a slice is a view into its middle."""
    config = LRNNConfig(("a", "b"), (0, 1), (BlockLayerConfig((3,), 4, 4),) * 3, 5, 4, token_shift=True)
    system = ModelSystem(LRNN(config), at_once=1)
    rows = system.start()
    parts = [part for layer in system.state_of(rows) for part in layer]
    assert len(parts) == 6
    assert all(part.data_ptr() % 64 == 0 for part in parts)
    assert to_bytes(tuple(parts)).tobytes() == rows.tobytes()
    assert not any(np.shares_memory(part.numpy(), rows) for part in parts)
