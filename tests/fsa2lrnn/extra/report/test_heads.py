import numpy as np
import pytest
import torch

from fsa2lrnn import compile_machine, zoo
from fsa2lrnn.extra.report.align import align
from fsa2lrnn.extra.report.facts import Model, ReportFacts
from fsa2lrnn.extra.report.gather import heads_of, inside, machine_facts
from fsa2lrnn.extra.report.page import build
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig


@pytest.fixture(scope="module")
def hard():
    """Two one-hot heads over the letters of parity, the first of which is parity itself."""
    torch.manual_seed(3)
    layer = BlockLayerConfig((2, 3), 2, 2, gate="table")
    model = LRNN(LRNNConfig(("0", "1"), (False, True), (layer,), embedding_dim=2, normalisation="onehot"))
    for letter, rows in enumerate(([0, 1], [1, 0])):
        model.recurrences[0].set_map(letter, 0, torch.tensor(rows))
    return model


def test_heads_follow_the_models_states(hard):
    found = heads_of(hard, 12)
    tokens = np.random.default_rng(0).integers(0, 2, 30)
    with torch.no_grad():
        state = hard.initial_state()
        for a in tokens:
            _, state = hard.advance(torch.tensor([[a]]), state)
    at = state[0].x[0].argmax(-1).tolist()
    for h, head in found.items():
        q = head.machine.start
        for a in tokens:
            q = head.machine.delta[a][q]
        assert head.states[q] == at[h]
    assert sorted(found) == [0, 1]


def test_what_is_no_automaton_or_too_large_is_left_out(hard):
    assert sorted(heads_of(hard, 2)) in ([0], [0, 1])
    assert heads_of(hard, 1).keys() <= {1}
    assert heads_of(compile_machine(zoo.parity(), layout="index"), 12) == {}
    assert heads_of(compile_machine(zoo.mod_arith(5), form="cascade"), 12) == {}
    learned = LRNN(LRNNConfig(("0", "1"), (False, True), (BlockLayerConfig((2,), 2, 2),), embedding_dim=2))
    assert heads_of(learned, 12) == {}


def test_the_page_draws_them_and_says_which_carry_the_state(hard):
    machine = zoo.parity()
    within = inside(hard, machine, align(hard, machine, n_words=40))
    model = Model("hard", "learned", inside=within)
    facts = ReportFacts("t", "task:parity", "1 May", machine_facts(machine), [model])
    page = build(facts)
    assert "The heads of hard as automata" in page
    assert "head 1: carries a function of the state" in page
    assert page.count('class="automaton"') == 1 + len(within.automata)
