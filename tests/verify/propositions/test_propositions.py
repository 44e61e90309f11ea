"""Propositions of each part on a few cases, and their registry."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.decomposition.search import decompose
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import Witness, represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.lrnn.layers import LAYERS, name_of
from fsa2lrnn.lrnn.scans import METHODS, sequential
from fsa2lrnn.testing.strategies import wreath_products
from verify import propositions
from verify.brute_force import by_T3
from verify.propositions import (
    FAST,
    REGISTRY,
    Effort,
    Outcome,
    Proposition,
    Proved,
    Refuted,
    Tested,
    Undecided,
    contradiction,
    layers,
)
from verify.propositions.cascades import EXACT, PRICED, SHIFTED, WITHOUT_SHIFT, choose, zeros_will_do
from verify.propositions.compilation import columns_have_unit_norm, transitions_depend_on_the_input
from verify.propositions.contradiction import (
    PAPER,
    PARITY,
    cancels,
    commutator,
    dense,
    diagonal,
    input_independent,
    liquid,
    missing,
)
from verify.propositions.families import integer_subtraction, parity_subtraction
from verify.propositions.grids import no_layer_of_a_grid_contradicts
from verify.propositions.registry import refuted, trial
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
        return replace(verdict, form=tuple(replace(channel, shifts=channel.shifts[::-1]) for channel in verdict.form))

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


SMALL = Effort("small", examples=40, exhaustive=1)


def proposition(answer, expects):
    return Proposition("p", "Statement.", "none", "here", lambda effort: answer, expects)  # noqa: ARG005


@pytest.mark.parametrize("answer", [Proved("by hand", 1), Tested("cases", 3, 0), refuted("no"), Undecided("1 s")])
@pytest.mark.parametrize("expects", [Proved, Tested, Refuted, Undecided])
def test_an_answer_is_expected_if_it_is_of_the_kind_named(answer, expects):
    (outcome,) = propositions.run([proposition(answer, expects)])
    assert outcome == Outcome(outcome.proposition, answer)
    assert outcome.expected == (type(answer) is expects)


def test_answers_witnesses_and_ids():
    with pytest.raises(TypeError, match="Tested is not a truth value"):
        bool(Tested("", 1, 0))
    wanted = [p for p in REGISTRY if p.expects is Refuted]
    assert len(wanted) >= 5
    for outcome in propositions.run(wanted, SMALL):
        json.dumps(dict(outcome.answer.data))
    assert len({p.id for p in REGISTRY}) == len(REGISTRY)
    assert FAST.examples < propositions.DEEP.examples


def test_trials_count_repeat_and_give_the_smallest_case():
    seen = []

    def fault(n):
        seen.append(n)

    first = trial("integers", st.integers(), fault, SMALL)
    before = list(seen)
    seen.clear()
    assert trial("integers", st.integers(), fault, SMALL) == first == Tested("integers", 40, 0)
    assert seen == before
    seen.clear()
    assert trial("integers", st.integers(), fault, Effort("other", 40, 1, seed=1)).seed == 1
    assert seen != before
    assert trial("a bit", st.booleans(), lambda _: None, SMALL) == Tested("a bit", 2, 0)
    answer = trial("lists", st.lists(st.integers(0, 99)), lambda xs: f"sum {sum(xs)}" if sum(xs) > 10 else None, SMALL)
    assert answer == refuted("sum 11", case="[11]")
    with pytest.raises(ZeroDivisionError):
        trial("integers", st.integers(), lambda n: None if 1 / n else "", SMALL)


def test_progress_and_selection():
    told = []
    effort = Effort("watched", 5, 1, progress=lambda done, total: told.append((done, total)))
    assert list(effort.track("abc")) == ["a", "b", "c"]
    trial("integers", st.integers(), lambda _: None, effort)
    assert told == [(0, 3), (1, 3), (2, 3), *((k, 5) for k in range(1, 6))]
    assert propositions.select(REGISTRY, []) == list(REGISTRY)
    assert [p.id for p in propositions.select(REGISTRY, ["eq-7", "prop-1-words"])] == ["prop-1-words", "eq-7"]
    with pytest.raises(
        UnsupportedFormat, match="proposition 'eq-8' is not in the registry: choose from prop-1-words, "
    ):
        propositions.select(REGISTRY, ["eq-8"])


WORDS = st.dictionaries(st.text("01-", max_size=4), st.integers(-2, 2), max_size=5)


def weights(family, generator):
    """Integer transitions of a family of three dimensions, one a letter."""
    one = generator.integers(-2, 3, (3, 3))
    shifts = {letter: np.diag(generator.integers(-9, 10, 3)) for letter in "01-"}
    return {
        letter: {
            "lti": one,
            "diagonal": np.diag(generator.integers(-2, 3, 3)),
            "dense": generator.integers(-2, 3, (3, 3)),
            "liquid": one + shifts[letter],
        }[family]
        for letter in "01-"
    }


def run(word, A, u, z):
    x = z
    for letter in word:
        x = A[letter] @ x + u[letter]
    return x


@given(WORDS, st.sampled_from(["lti", "diagonal", "dense", "liquid"]))
def test_states_cancel_formally_just_if_they_cancel_for_weights_in_general(words, family):
    commutation = {"lti": input_independent, "diagonal": diagonal, "dense": dense, "liquid": liquid}[family]
    generator, vanish = np.random.default_rng(0), True
    for _ in range(4):
        A = weights(family, generator)
        u, z = {letter: generator.integers(-9, 10, 3) for letter in "01-"}, generator.integers(-9, 10, 3)
        vanish &= not sum((n * run(word, A, u, z) for word, n in words.items()), np.zeros(3, int)).any()
    assert cancels(words, commutation) == vanish


@pytest.mark.parametrize(
    ("words", "families"),
    [(PAPER, {input_independent, diagonal}), (PARITY, {input_independent}), ({"0": 1, "0-": -1}, set())],
)
def test_which_families_the_words_speak_of(words, families):
    assert {f for f in (input_independent, diagonal, dense) if cancels(words, f)} == families


@pytest.mark.parametrize("pair", [("", "-"), ("0", "1"), ("0-", "1-0")])
def test_differences_of_liquid_s4_commute_and_those_of_dense_layers_do_not(pair):
    words = commutator(*pair, "01", "0-")
    assert sum(words.values()) == 0
    assert [cancels(words, f) for f in (liquid, diagonal, input_independent, dense)] == [True, True, True, False]


def test_words_and_equations():
    assert missing(PAPER, lambda word: word == "1-0") is None
    assert missing(PAPER, len) == (
        "the weighted states leave nothing, not a multiple of one difference: 0-1 ↦ 3, 1-0 ↦ 3, 0-0-1 ↦ 5, 0-1-0 ↦ 5"
    )
    assert "leave {'a': 1}" in missing({"a": 1}, str)
    assert contradiction.equation(PAPER) == "x_0-1 − x_1-0 − x_0-0-1 + x_0-1-0 = 0"
