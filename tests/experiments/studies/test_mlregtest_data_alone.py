"""Learning from words alone: each part of the subregular search against a direct definition, mergers against AALpy."""

import time
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from experiments.studies.mlregtest.counters import counter
from experiments.studies.mlregtest.data_alone import agrees_from, wrong_words
from experiments.studies.mlregtest.decision_lists import DecisionList, Greed, Rule, product_table
from experiments.studies.mlregtest.hierarchy import by_hierarchy, end_labels, with_rest
from experiments.studies.mlregtest.letter_classes import letter_classes
from experiments.studies.mlregtest.likelihood import likely, refined
from experiments.studies.mlregtest.literals import Factor, FactorFamily, Subsequence, SubsequenceFamily
from experiments.studies.mlregtest.networks import by_layer
from experiments.studies.mlregtest.state_merging import by_state_merging
from experiments.studies.mlregtest.state_search import complexity, entropy, errors_of, search, simplified
from experiments.studies.mlregtest.words import LanguageWords, data
from fsa2lrnn import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning import from_pairs, learn

RANDOM = Random(0)
WORDS = [tuple(RANDOM.randrange(3) for _ in range(RANDOM.randrange(9))) for _ in range(300)]
LENGTHS = np.array([len(word) for word in WORDS])
TOKENS = np.array([word + (0,) * (8 - len(word)) for word in WORDS])


def occurs(literal, word) -> bool:
    if isinstance(literal, Subsequence):
        letters = iter(word)
        return all(a in letters for a in literal.letters)
    on_tier = (-1, *(a for a in word if a in literal.tier), -2)
    k = len(literal.letters)
    return sum(on_tier[i : i + k] == literal.letters for i in range(len(on_tier) - k + 1)) >= literal.times


@pytest.mark.parametrize("tier", [(0, 1, 2), (0, 2), (1,)])
def test_literals_their_automata_and_their_counts_agree_with_the_definition(tier):
    everything, labels = np.arange(len(WORDS)), np.array([len(word) % 2 for word in WORDS])
    for family in FactorFamily(TOKENS, LENGTHS, tier, 3), SubsequenceFamily(TOKENS, LENGTHS, 3, 3):
        counts = family.counts(everything, labels)
        for number in range(0, family.size, 3):
            literal = family.literal(number)
            expected = np.array([occurs(literal, word) for word in WORDS])
            assert (family.holds(number, everything) == expected).all(), literal
            assert counts[:, number].tolist() == [int(expected[labels == y].sum()) for y in (0, 1)]
            delta, accepts = literal.table(3)
            for word, holds in zip(WORDS, expected, strict=True):
                q = 0
                for a in word:
                    q = delta[a, q]
                assert accepts[q] == holds, (literal, word)


def test_the_automaton_of_a_list_agrees_with_its_rules():
    first = Rule(((Factor((0, 1), 2, (0, 1)), True), (Subsequence((2, 2)), False)), 1)
    rules = DecisionList((first, Rule(((Factor((-1, 0), 1, (0, 1, 2)), True),), 0)), 1, 0.0, 0, Greed((0, 1), 1.0))
    machine = rules.machine(3)
    for word, label in zip(WORDS, rules.predict(TOKENS, LENGTHS, 3).tolist(), strict=True):
        expected = next((r.label for r in rules.rules if all(occurs(x, word) == p for x, p in r.condition)), 1)
        q = machine.start
        for a in word:
            q = int(machine.delta[a, q])
        assert label == machine.outputs[q] == expected


def test_letters_are_united_exactly_if_they_act_alike():
    delta = [[0, 2, 2], [1, 1, 2], *[[0, 1, 2]] * 4]  # a after b is rejected; other letters do nothing
    target = MooreMachine(delta, [True, True, False], alphabet="abcdef").minimise()
    words = data(LanguageWords(target).training(4000), target)
    arrays = words.tokens.numpy(), words.lengths.numpy(), words.labels.numpy()[np.arange(4000), words.lengths.numpy()]
    assert letter_classes(*arrays, 6).tolist() == [0, 1, 2, 2, 2, 2]
    learned = by_hierarchy(words)
    assert agrees_from(learned, target, 0)
    assert wrong_words(learned, words) == 0


def test_counters_are_learned_and_nothing_else_is_a_counter():
    weights = np.array([1, 0, 2])
    labels = np.array([sum(weights[a] for a in word) % 3 == 1 for word in WORDS]).astype(int)
    learned = counter(TOKENS, LENGTHS, labels, 3)
    assert learned is not None
    assert learned.n_states == 3
    contains = np.array([occurs(Subsequence((0, 1)), word) for word in WORDS]).astype(int)
    assert counter(TOKENS, LENGTHS, contains, 3) is None


FACTORS = (0, 1, 2, 3, 0), (3, 3, 1, 2)

TARGETS = {
    "no permutation is a list": MooreMachine([[1, 2, 0], [1, 0, 2]], [True, False, False], alphabet=range(2)),
    "a factor after a factor": MooreMachine(
        [[1, 1, 3, 3], [0, 2, 2, 2], [0, 0, 2, 2]], [True, True, True, False], alphabet=range(3)
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param("no permutation is a list", marks=pytest.mark.slow), "a factor after a factor"]
)
def test_the_search_finds_the_automaton_and_nothing_simpler_is_right(name):
    target = TARGETS[name]
    words = data(LanguageWords(target).training(3000), target)
    lengths = words.lengths.numpy()
    arrays = words.tokens.numpy(), lengths, words.labels.numpy()[np.arange(len(lengths)), lengths]
    learned, _ = search(arrays, len(target.alphabet), 20.0)
    assert learned is not None
    assert agrees_from(learned, target.minimise(), 0)
    assert simplified(learned, arrays) == learned
    twice = MooreMachine(
        np.hstack([learned.delta, np.asarray(learned.delta) + learned.n_states]), 2 * learned.outputs, learned.start
    )
    assert complexity(simplified(twice, arrays)) == complexity(learned)


def test_the_search_returns_no_machine_for_labels_without_a_rule_but_a_table():
    labels = np.random.default_rng(0).integers(0, 2, len(WORDS))
    learned, table = search((TOKENS, LENGTHS, labels), 3, 0.2)
    assert learned is None
    assert (
        0 < entropy(table, (TOKENS, LENGTHS, labels)) < entropy(np.zeros((3, 1), np.int64), (TOKENS, LENGTHS, labels))
    )


@pytest.mark.parametrize("has_counter", [True, False])
def test_what_a_table_leaves_open_is_learned_again(has_counter):
    # Words with bb are rejected; of the others, those with an even number of c (or those that begin with a).
    first = np.array([[0, 0, 2], [1, 2, 2], [1, 0, 2]])
    second = np.array([[0, 1], [0, 1], [1, 0]]) if has_counter else np.array([[1, 1, 2], [2, 1, 2], [2, 1, 2]])
    table, pairs = product_table(first, second)
    outputs = (pairs[:, 0] < 2) & (pairs[:, 1] == (0 if has_counter else 1))
    target = MooreMachine(table, outputs.tolist(), alphabet=range(3)).minimise()
    random = np.random.default_rng(0)
    tokens, lengths = random.integers(0, 3, (4000, 9)), random.integers(5, 10, 4000)
    labels = np.array([int(target.transduce(word[:n])[-1]) for word, n in zip(tokens.tolist(), lengths, strict=True)])
    learned = with_rest(first, (tokens, lengths, labels), 2.0, time.process_time() + 60)
    assert learned is not None
    assert errors_of(learned, (tokens, lengths, labels)) == 0
    assert agrees_from(learned, target, 5)
    nothing = np.zeros((3, 1), np.int64)
    assert with_rest(nothing, (tokens, lengths, labels), 2.0, time.process_time() + 60) is None
    assert with_rest(first, (tokens, lengths, labels), 2.0, time.process_time()) is None


def test_a_second_factor_that_no_word_contradicts_makes_the_words_more_likely():
    contains = [
        DecisionList((Rule(((Factor(f, 1, (0, 1, 2, 3)), False),), 0),), 1, 0.0, 0, Greed((0,), 1.0)) for f in FACTORS
    ]
    both = DecisionList(tuple(each.rules[0] for each in contains), 1, 0.0, 0, Greed((0,), 1.0)).machine(4)
    words = data(LanguageWords(both).training(2000), both)
    arrays = end_labels(words)
    learned = refined(contains[0].machine(4), True, arrays, 4, 20.0, seed=0)
    assert agrees_from(learned, both, 0)
    assert refined(learned, True, arrays, 4, 20.0, seed=1) == learned
    assert wrong_words(likely(words), words) == 0


@pytest.mark.parametrize("arm", ["released", "lru"])
def test_a_layer_learns_the_last_letter_from_words_of_several_lengths(arm):
    machine = MooreMachine([[1, 1], [0, 0]], [False, True], alphabet="ab")
    words = data(LanguageWords(machine).training(400), machine)
    ends = np.arange(len(words.tokens)), words.lengths.numpy()
    labels = words.labels.clone()
    labels[ends] = 1 - labels[ends]
    learned = by_layer(words, arm, steps=80)
    assert wrong_words(learned, words) == 0
    assert wrong_words(learned, replace(words, labels=labels)) == len(words.tokens)


def test_merging_on_arrays_agrees_with_aalpy():
    pytest.importorskip("aalpy")
    random = Random(1)
    for _ in range(6):
        n = random.randrange(2, 6)
        delta = [[random.randrange(n) for _ in range(n)] for _ in "ab"]
        target = MooreMachine(delta, [True, *(random.random() < 0.5 for _ in range(n - 2)), False], alphabet="ab")
        words = [word for k in range(1, 9) for word in product("ab", repeat=k)]
        pairs = [(word, target.transduce(word)[-1]) for word in random.sample(words, 200)]
        if len({label for _, label in pairs}) < 2:
            continue
        given = from_pairs(pairs, "ab")
        assert by_state_merging(given, by_evidence=False) == learn(given, method="rpni", held_out=0).machine
        assert wrong_words(by_state_merging(given, by_evidence=True), given) == 0


@pytest.mark.parametrize("method", [by_hierarchy, lambda given: by_state_merging(given, by_evidence=True)])
def test_words_that_these_methods_do_not_take_are_refused(method):
    with pytest.raises(UnsupportedFormat, match="line 2 gives False after 'ab', line 1 True"):
        method(from_pairs([("ab", True), ("ab", False)], "ab"))
    with pytest.raises(UnsupportedFormat, match="3 outputs for 3 words"):
        method(from_pairs([("a", 0), ("ab", 1), ("b", 2)], "ab"))
    with pytest.raises(UnsupportedFormat, match="the output True and no other"):
        method(from_pairs([("a", True), ("ab", True)], "ab"))
    with pytest.raises(UnsupportedFormat, match="has no words"):
        method(from_pairs([], "ab"))
    with pytest.raises(UnsupportedFormat, match="'c'"):
        method(from_pairs([("a", True), ("c", False)], "ab"))
