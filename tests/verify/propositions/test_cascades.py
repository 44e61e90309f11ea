"""What the checkers of cascades look at: machines that really have what they speak of."""

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.decomposition.search import decompose
from fsa2lrnn.testing.strategies import wreath_products
from verify.propositions import Effort, Refuted
from verify.propositions.cascades import EXACT, PRICED, SHIFTED, WITHOUT_SHIFT, choose, zeros_will_do

SMOKE = Effort("smoke", examples=5, exhaustive=1)


def test_the_machines_listed_have_components_of_every_kind():
    kinds, layers = set(), []
    for name, max_block in EXACT.items():
        cascade = decompose(zoo.from_task(name), max_block).cascade
        kinds |= {component.kind for component in cascade.components}
        layers.append(cascade.n_layers)
    assert kinds == {"reset", "permutation", "permutation-reset", "general"}
    assert max(layers) >= 3


@pytest.mark.parametrize("name", WITHOUT_SHIFT)
def test_without_token_shift_there_is_something_to_do(name):
    found = decompose(zoo.from_task(name), token_shift=False).cascade
    assert found.reads_now or not found.has_reads
    if name != "even_pair(2)":
        assert found.has_reads


def test_prices_are_compared_where_the_choice_goes_either_way():
    assert {choose(zoo.from_task(name)).form for name in PRICED} == {"onehot", "cascade"}


@pytest.mark.parametrize(("name", "max_block"), SHIFTED.items())
def test_shifted_machines_have_a_token_shift(name, max_block):
    assert compile_recurrence(zoo.from_task(name), "cascade", max_block).tables.token_shift


def test_the_witness_against_zeros_is_wrong_as_it_says():
    answer = zeros_will_do(SMOKE)
    assert isinstance(answer, Refuted)
    machine = zoo.from_task(answer.data["machine"])
    failure = answer.data["failure"]
    assert str(machine.transduce(failure["word"])[-1]) == failure["wanted"][-1] != failure["given"][-1]


@given(wreath_products(max_states=8))
def test_most_wreath_products_decompose_within_their_factors(machine):
    found = decompose(machine)
    assert found.cascade.machine == machine.minimise()
    word = [machine.alphabet[a] for a in np.random.default_rng(0).integers(len(machine.alphabet), size=20)]
    assert found.cascade.transduce(word) == machine.transduce(word)
