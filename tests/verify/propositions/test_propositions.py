"""Propositions of each part, on a few cases."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.decomposition.search import decompose
from fsa2lrnn.families import Witness, represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.lrnn.layers import LAYERS, name_of
from fsa2lrnn.lrnn.scans import METHODS, sequential
from fsa2lrnn.testing.strategies import wreath_products
from verify.brute_force import by_T3
from verify.propositions import FAST, Effort, Proved, Refuted, Undecided, layers
from verify.propositions.cascades import EXACT, PRICED, SHIFTED, WITHOUT_SHIFT, choose, zeros_will_do
from verify.propositions.compilation import columns_have_unit_norm, transitions_depend_on_the_input
from verify.propositions.families import integer_subtraction, parity_subtraction
from verify.propositions.grids import no_layer_of_a_grid_contradicts
from verify.propositions.scans import multiplications, pscan_work, signed_permutations
from verify.propositions.stability import ONE_NORM, closed_under_products, no_state_grows, no_state_grows_when_centred

SMOKE = Effort("smoke", examples=5, exhaustive=1)


def test_machines_listed_and_prices_compared():
    kinds, layers = set(), []
    for name, max_block in EXACT.items():
        cascade = decompose(zoo.from_task(name), max_block).cascade
        kinds |= {component.kind for component in cascade.components}
        layers.append(cascade.n_layers)
    assert kinds == {"reset", "permutation", "permutation-reset", "general"}
    assert max(layers) >= 3
    assert {choose(zoo.from_task(name)).form for name in PRICED} == {"onehot", "cascade"}
    answer = zeros_will_do(SMOKE)
    assert isinstance(answer, Refuted)
    machine = zoo.from_task(answer.data["machine"])
    failure = answer.data["failure"]
    assert str(machine.transduce(failure["word"])[-1]) == failure["wanted"][-1] != failure["given"][-1]


@pytest.mark.parametrize("name", WITHOUT_SHIFT)
def test_without_token_shift_there_is_something_to_do(name):
    found = decompose(zoo.from_task(name), token_shift=False).cascade
    assert found.reads_now or not found.has_reads
    if name != "even_pair(2)":
        assert found.has_reads


@pytest.mark.parametrize(("name", "max_block"), SHIFTED.items())
def test_shifted_machines_have_a_token_shift(name, max_block):
    assert compile_recurrence(zoo.from_task(name), "cascade", max_block).tables.token_shift


@given(wreath_products(max_states=8))
def test_most_wreath_products_decompose_within_their_factors(machine):
    found = decompose(machine)
    assert found.cascade.machine == machine.minimise()
    word = [machine.alphabet[a] for a in np.random.default_rng(0).integers(len(machine.alphabet), size=20)]
    assert found.cascade.transduce(word) == machine.transduce(word)


def test_index_tables_and_machines_that_ignore_letters():
    dense, index = (
        columns_have_unit_norm(SMOKE, lambda m, layout=layout: compile_recurrence(m, layout=layout))
        for layout in ("dense", "index")
    )
    assert dense.cases > 1_000
    assert index.cases > 1_000
    answer = transitions_depend_on_the_input(SMOKE)
    assert isinstance(answer, Refuted)
    assert "length_mod(3)" in answer.data["machines"]
    assert all(len(set(map(bytes, zoo.from_task(name).minimise().delta))) == 1 for name in answer.data["machines"])


digits = st.lists(st.sampled_from("01"), min_size=1, max_size=12)


def value(word):
    first, *others = map(int, word.split("-"))
    return first - sum(others)


@given(digits)
def test_a_window_that_is_large_enough_subtracts_as_python_does(word):
    text = "-".join(word)
    for beyond in ("saturate", "error"):
        assert integer_subtraction(len(word), beyond).transduce(text)[-1] == value(text)


@pytest.mark.parametrize(("beyond", "last"), [("saturate", -1), ("error", "error")])
def test_beyond_the_window(beyond, last):
    assert integer_subtraction(1, beyond).transduce("0-1-1")[-1] == last


def test_strings_that_are_illegal_and_their_completion():
    for word in ("-", "00", "0--", "1-0-1-0-1-1-1-11"):
        assert integer_subtraction(3).transduce(word)[-1] == "error"
    machine, given_ = zoo.subtraction(2), parity_subtraction()
    for length in range(1, 7):
        for word in itertools.product("01", repeat=length):
            text = "-".join(word)
            assert given_.transduce(text) == machine.transduce(text)
    assert given_.transduce("00") != machine.transduce("00")


TWO = Effort("two", examples=1, exhaustive=2)


def test_every_table_of_two_states_is_tried_in_every_family():
    answer = no_layer_of_a_grid_contradicts(TWO)
    assert isinstance(answer, Proved)
    assert answer.cases == len(FORCED) * (1 + 12)
    assert "all tables of at most 2 states" in answer.how
    assert "for 42 of the pairs" in answer.how


def test_wrong_verdicts_and_witnesses_are_named():
    def decide(machine, family):
        impossible = represent(zoo.subtraction(3), family)
        return impossible if machine.delta.tolist() == [[1, 0], [1, 0]] else by_T3(machine, family)

    answer = no_layer_of_a_grid_contradicts(TWO, decide)
    assert isinstance(answer, Refuted)
    assert answer.data == {"delta": [[1, 0], [1, 0]], "family": "lti"}

    def decide(machine, family):
        verdict = by_T3(machine, family)
        if not isinstance(verdict, Witness) or family != "diagonal[0,1]" or not verdict.form:
            return verdict
        return replace(verdict, form=tuple(replace(lane, shifts=lane.shifts[::-1]) for lane in verdict.form))

    answer = no_layer_of_a_grid_contradicts(TWO, decide)
    assert isinstance(answer, Refuted)
    assert answer.witness.startswith("the witness of diagonal[0,1] for ")


def test_layers_and_chance_are_those_of_the_paper():
    assert {name: name_of(config) for name, config in layers.FIXED.items()} == {
        name: name.lower() for name in ("S4", "S4D", "S5", "LRU")
    }
    assert all(isinstance(layers.new_layer(config), LAYERS[name.lower()]) for name, config in layers.FIXED.items())
    found = layers.levels(FAST, list(layers.TABLE_2))
    assert {task: round(level.best_of_looks, 3) for task, level in found.items()} == {
        "task:sum_mod(5)": 0.279,
        "task:even_pair(5)": 0.873,
        "task:mod_arith(5)": 0.279,
    }


def test_signed_permutations_and_counted_multiplications():
    A, v, x0 = signed_permutations(2, 50, 3, 4, torch.Generator().manual_seed(0))
    assert (A.abs().sum(-1) == 1).all()
    assert (A.abs().sum(-2) == 1).all()
    assert {float(a) for a in A.unique()} == {-1.0, 0.0, 1.0}
    assert (v == v.round()).all()
    assert (x0 == x0.round()).all()
    assert sequential(A, v, x0).abs().max() <= 4 * 4 * 51
    assert not torch.equal(A[0, 0] @ A[0, 1], A[0, 1] @ A[0, 0])
    assert multiplications(sequential, 5, 2, 3) == 5 * 2 * 9
    assert multiplications(sequential, 0, 2, 3) == 0
    assert pscan_work(0, 2, 3) == 0
    assert pscan_work(1, 1, 4) == 16
    assert [pscan_work(2**k - 1, 1, 1) for k in (1, 2, 3)] == [0 + 1, 1 + 4, 5 + 12]


@pytest.mark.parametrize("method", METHODS)
def test_they_are_the_same_for_a_seed(method):
    first, second = (signed_permutations(1, 9, 1, 4, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(METHODS[method](*first), METHODS[method](*second))


@pytest.mark.parametrize(("p", "growth"), [(1.2, 1.4142), (2.0, 2.8284)])
def test_growth_and_lengths_are_data(p, growth):
    answer = no_state_grows(FAST, p)
    assert isinstance(answer, Refuted)
    assert round(answer.data["growth"], 4) == growth
    assert set(answer.data["overflow"]) == set(answer.data["measured"]) == {"float16", "bfloat16", "float32", "float64"}


def test_one_norms():
    assert isinstance(no_state_grows(FAST, 1.0), Undecided)
    assert isinstance(no_state_grows_when_centred(FAST, 1.0), Undecided)
    assert sorted(ONE_NORM.extreme_points(2)) == [(-1, 0), (0, -1), (0, 1), (1, 0)]
    answer = closed_under_products(FAST)
    assert isinstance(answer, Proved)
    assert answer.cases >= 2**2 + 16**2 + 216**2
