import pytest
import torch

from fsa2lrnn import LRNN, compile_machine, extract, zoo
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.lower import DTYPES, harden
from fsa2lrnn.lower.harden import heads_of
from fsa2lrnn.lrnn.config import LRNNConfig
from fsa2lrnn.lrnn.layers import BlockLayerConfig
from fsa2lrnn.verification import Proved, Refuted, prove_equivalent


def model(gate="table", seed=0, sizes=(3, 3)):
    torch.manual_seed(seed)
    layer = BlockLayerConfig(sizes, 8, 1, gate=gate)
    return LRNN(LRNNConfig(("a", "b"), (0, 1, 2), (layer,), embedding_dim=2, normalisation="onehot"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gate", ["table", "relu"])
def test_states_and_outputs_are_those_of_the_compiled_form_in_every_scan_and_dtype(dtype, gate):
    soft = model(gate, seed=2).to(dtype)
    hard, heads = harden(soft), heads_of(soft)
    tokens = torch.randint(2, (6, 30), generator=torch.Generator().manual_seed(1))
    wanted, states = hard(tokens).argmax(-1), torch.from_numpy(heads.states(tokens.numpy())[:, 1:])
    for train in (False, True):
        for method in (*soft.methods, "letters", "auto"):
            soft.train(train)
            assert torch.equal(soft(tokens, method).argmax(-1), wanted)
            x, _ = soft.layers[0](soft.first_inputs(), soft.layers[0].initial_state(6), method, tokens)
            one_hot = torch.nn.functional.one_hot(states, 3).to(dtype).flatten(-2)
            assert torch.equal(x, one_hot)


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_form_is_proved_equal_and_the_model_with_it(seed):
    soft = model(seed=seed, sizes=(4, 3))
    machine = extract(soft)
    assert isinstance(prove_equivalent(harden(soft), machine), Proved)
    assert isinstance(prove_equivalent(soft, machine), Proved)


@pytest.mark.parametrize("broken", ["column", "heads"])
def test_the_judge_sees_a_wrong_column_and_heads_that_changed_places(broken):
    machine = zoo.sum_mod(5)
    torch.manual_seed(0)
    right = compile_machine(machine, normalisation="onehot")
    assert isinstance(prove_equivalent(harden(right), machine), Proved)
    layer = right.recurrences[0]
    if broken == "column":
        layer.set_map(2, 0, torch.tensor([2, 3, 4, 0, 0]))
        assert isinstance(prove_equivalent(harden(right), machine), Refuted)
        return
    soft = next(m for m in (model(seed=s) for s in range(20)) if extract(m).n_states > 3)
    target = extract(soft)
    soft.recurrences[0].swap_heads(0, 1)
    assert isinstance(prove_equivalent(harden(soft), target), Refuted)


def test_what_is_no_automaton_is_refused():
    with pytest.raises(UnsupportedFormat, match="the model has 1 layers under the column rule 'clip'"):
        harden(compile_machine(zoo.sum_mod(3)))
    with pytest.raises(BudgetExceeded):
        harden(next(m for m in (model(seed=s) for s in range(20)) if extract(m).n_states > 3), max_states=2)
