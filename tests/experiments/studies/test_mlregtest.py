"""The words and verdicts of the MLRegTest study, on machines that a person can check."""

import time
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from experiments.studies.mlregtest import board, leaderboard, likelihood
from experiments.studies.mlregtest.data_alone import agrees_from, wrong_words
from experiments.studies.mlregtest.decision_lists import DecisionList, Greed, Rule
from experiments.studies.mlregtest.hierarchy import by_hierarchy, by_lists
from experiments.studies.mlregtest.languages import names
from experiments.studies.mlregtest.letter_classes import letter_classes
from experiments.studies.mlregtest.likelihood import description, improved, likely
from experiments.studies.mlregtest.literals import Factor, FactorFamily, Subsequence, SubsequenceFamily
from experiments.studies.mlregtest.networks import by_gru
from experiments.studies.mlregtest.state_merging import by_state_merging
from experiments.studies.mlregtest.state_search import complexity, search, simplified
from experiments.studies.mlregtest.words import LONG, SHORT, LanguageWords, data, read_published
from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.learning import from_pairs, learn

NO_AA = MooreMachine([[1, 2, 2], [0, 0, 2]], [True, True, False], alphabet="ab")
EVEN = MooreMachine([[1, 0], [0, 1]], [True, False], alphabet="ab")


def distance(u, v) -> int:
    row = list(range(len(v) + 1))
    for i, a in enumerate(u, 1):
        row, before = [i], row
        for j, b in enumerate(v, 1):
            row.append(min(row[-1] + 1, before[j] + 1, before[j - 1] + (a != b)))
    return row[-1]


def test_training_words_are_balanced_by_length_and_label_and_rightly_labelled():
    words = LanguageWords(NO_AA).training(200)
    assert Counter((len(word), label) for word, label in words) == {(n, y): 10 for n in SHORT for y in (True, False)}
    assert all(NO_AA.accepts("".join("ab"[a] for a in word)) == label for word, label in words)
    assert LanguageWords(NO_AA).training(200) == words
    given = data(words, NO_AA)
    assert given.n_labels == 200
    assert wrong_words(NO_AA, data(words, NO_AA)) == 0


def test_words_are_uniform_among_those_of_a_label():
    drawn = Counter(map(tuple, LanguageWords(NO_AA).draw(4, True, 8000).tolist()))
    assert len(drawn) == 8  # Fibonacci
    assert all(abs(n / 8000 - 1 / 8) < 0.02 for n in drawn.values())


def test_random_test_words_are_new_and_pairs_differ_by_one_edit(monkeypatch):
    draw = LanguageWords(NO_AA)
    training = draw.training(400)
    fresh = draw.random_test(SHORT, 200, training)
    assert len({word for word, _ in fresh}) == len(fresh) == 200
    assert not {word for word, _ in fresh} & {word for word, _ in training}
    pairs = LanguageWords(EVEN).adversarial_test(LONG, 80)
    pairs += LanguageWords(NO_AA).adversarial_test(LONG, 80)  # of a language with few accepted words
    assert len(pairs) == 160
    for (u, accepted), (v, rejected) in zip(pairs[::2], pairs[1::2], strict=True):
        assert (accepted, rejected) == (True, False)
        assert distance(u, v) == 1
    assert wrong_words(NO_AA, data(fresh, NO_AA)) == wrong_words(EVEN, data(pairs[:80], EVEN)) == 0
    monkeypatch.setattr("experiments.studies.mlregtest.words._TRIES", 0)
    with pytest.raises(UnsupportedFormat, match="have a neighbour of the other label"):
        LanguageWords(NO_AA).adversarial_test(LONG, 80)


def test_sets_that_there_are_not_are_refused(tmp_path):
    everything = MooreMachine([[0]], [True], alphabet="a")
    with pytest.raises(UnsupportedFormat, match="no word of 20 letters is rejected"):
        LanguageWords(everything).training(200)
    one = MooreMachine([[0, 1], [1, 1]], [True, False], alphabet="ab")  # a*
    with pytest.raises(UnsupportedFormat, match="only 0 of 5 words of 20 letters with label True"):
        LanguageWords(one).random_test(SHORT, 100, LanguageWords(one).training(200))
    with pytest.raises(UnsupportedFormat, match=r"has no \.att file"):
        names(tmp_path)


def test_published_files_are_read_and_others_refused(tmp_path: Path):
    path = tmp_path / "04.04.SL.2.1.0_Train.txt"
    path.write_text("abca\tTRUE\nbb\tFALSE\n")
    assert read_published(path) == [("abca", True), ("bb", False)]
    path.write_text("abca\tTRUE\nbb 0\n")
    with pytest.raises(UnsupportedFormat, match="line 2: 'bb 0' is not a word, a tab, and TRUE or FALSE"):
        read_published(path)
    path.write_text("")
    with pytest.raises(UnsupportedFormat, match="is empty"):
        read_published(path)


def test_exact_means_right_on_all_words_from_a_length_on():
    late = MooreMachine([[1, 2, 3, 3], [1, 2, 3, 3]], [True, False, True, True], alphabet="ab")
    everything = MooreMachine([[0], [0]], [True], alphabet="ab")
    assert agrees_from(late, everything, 2)
    assert not agrees_from(late, everything, 1)
    assert not agrees_from(NO_AA, everything, 20)
    reordered = MooreMachine(np.asarray(NO_AA.delta)[::-1], NO_AA.outputs, alphabet="ba")
    assert agrees_from(reordered, NO_AA, 0)


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
    words = data(LanguageWords(target).training(1500), target)
    arrays = words.tokens.numpy(), words.lengths.numpy(), words.labels.numpy()[np.arange(1500), words.lengths.numpy()]
    assert letter_classes(*arrays, 6).tolist() == [0, 1, 2, 2, 2, 2]
    for learned in (by_hierarchy(words), by_lists(words), likely(words, seconds=1.0)):
        assert agrees_from(learned, target, 0)
        assert wrong_words(learned, words) == 0


TARGETS = {
    "a factor": MooreMachine([[1, 2, 2], [0, 0, 2]], [True, True, False], alphabet=range(2)),
    "no permutation is a list": MooreMachine([[1, 2, 0], [1, 0, 2]], [True, False, False], alphabet=range(2)),
    "a factor after a factor": MooreMachine(
        [[1, 1, 3, 3], [0, 2, 2, 2], [0, 0, 2, 2]], [True, True, True, False], alphabet=range(3)
    ),
}


@pytest.mark.parametrize(
    "name", [name if name == "a factor" else pytest.param(name, marks=pytest.mark.slow) for name in TARGETS]
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


def labelled_words(random, tries, alphabet, longest, count):
    """Yield labelled words of drawn machines, of up to `longest` letters, where both labels occur."""
    words = [word for k in range(1, longest + 1) for word in product(alphabet, repeat=k)]
    for _ in range(tries):
        n = random.randrange(2, 6)
        delta = [[random.randrange(n) for _ in range(n)] for _ in alphabet]
        outputs = [True, *(random.random() < 0.5 for _ in range(n - 2)), False]
        target = MooreMachine(delta, outputs, alphabet=alphabet)
        pairs = [(word, target.transduce(word)[-1]) for word in random.sample(words, count)]
        if len({label for _, label in pairs}) == 2:
            yield pairs


def test_merging_on_arrays_agrees_with_aalpy():
    pytest.importorskip("aalpy")
    for pairs in labelled_words(Random(1), 6, "ab", 8, 200):
        given = from_pairs(pairs, "ab")
        assert by_state_merging(given, by_evidence=False) == learn(given, method="rpni", held_out=0).machine
        assert wrong_words(by_state_merging(given, by_evidence=True), given) == 0


def edsm(pairs, alphabet):
    """EDSM by its definition, on copies of the whole tree: children, labels and words of each node."""
    tree = [{}], [None], [0]
    for word, label in pairs:
        node = 0
        for a in word:
            if a not in tree[0][node]:
                tree[0][node][a] = len(tree[0])
                for part, new in zip(tree, ({}, None, 0), strict=True):
                    part.append(new)
            node = tree[0][node][a]
        tree[1][node], tree[2][node] = label, tree[2][node] + 1

    def weight(node):
        return tree[2][node] + sum(map(weight, tree[0][node].values()))

    def folded(child, labels, words, onto, node):
        if None not in (labels[onto], labels[node]) and labels[onto] != labels[node]:
            raise ValueError
        equal = int(labels[node] is not None and labels[onto] == labels[node])
        labels[onto] = labels[node] if labels[onto] is None else labels[onto]
        words[onto] += words[node]
        for a, below in child[node].items():
            if a in child[onto]:
                equal += folded(child, labels, words, child[onto][a], below)
            else:
                child[onto][a] = below
        return equal

    states = [0]
    while children := [(q, a) for q in states for a in alphabet if tree[0][q].get(a, 0) not in states]:
        q, a = max(children, key=lambda place: weight(tree[0][place[0]][place[1]]))
        node, best = tree[0][q][a], (-1, None)
        for onto in states:
            after = deepcopy(tree)
            after[0][q][a] = onto
            with suppress(ValueError):
                best = max(best, (folded(*after, onto, node), after), key=lambda each: each[0])
        if best[1] is None:
            states.append(node)
        else:
            tree = best[1]
    number = {q: i for i, q in enumerate(states)}
    delta = [[number.get(tree[0][q].get(a), number[q]) for q in states] for a in alphabet]
    labels = [tree[1][q] for q in states]
    return MooreMachine(
        delta, [pairs[0][1] if y is None else y for y in labels], 0, alphabet
    ).minimise(), None in labels


def test_edsm_on_arrays_agrees_with_its_definition():
    compared = 0
    for pairs in labelled_words(Random(3), 30, "abc", 5, 40):
        machine, is_open = edsm(pairs, "abc")  # the output of a state without a label is any
        compared += not is_open
        assert is_open or by_state_merging(from_pairs(pairs, "abc"), by_evidence=True) == machine
    assert compared > 10


def test_the_gru_of_the_benchmark_learns_which_letter_a_word_ends_with():
    given = from_pairs([(word, word[-1] == "a") for k in (3, 5) for word in product("ab", repeat=k)], "ab")
    learned = by_gru(given, epochs=40)
    assert wrong_words(learned, given) == 0
    assert not learned.model.training
    other = from_pairs([("bbbba", False), ("aaaaaab", True)], "ba")  # other numbers for letters, and wrong labels
    assert wrong_words(learned, other) == 2
    assert torch.equal(by_gru(given, epochs=1).model.embedding.weight, by_gru(given, epochs=1).model.embedding.weight)


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


QUICK = ("onehot", "released", "pd_ssm")  # one-hot, trained and verified, searched alone


@pytest.mark.parametrize(
    "arm", [arm if arm in QUICK else pytest.param(arm, marks=pytest.mark.slow) for arm in leaderboard.ARMS]
)
def test_each_layer_runs_and_is_verified_or_searched(arm, monkeypatch):
    monkeypatch.setattr(leaderboard, "language", lambda _: zoo.ab_star())
    monkeypatch.setattr(leaderboard, "PROTOCOL", {**leaderboard.PROTOCOL, "steps": 2, "evaluate_every": 2})
    monkeypatch.setattr(leaderboard, "CERTIFY", 0.1)
    monkeypatch.setattr(leaderboard, "SEARCH", replace(leaderboard.SEARCH, seconds=0.1))
    monkeypatch.setattr(leaderboard, "WORDS", 20)
    monkeypatch.setattr(leaderboard, "LENGTHS", (5, 9))
    run = leaderboard.run_one("ab_star", arm, 0)
    assert run["last_9"] >= run["whole_9"]
    if arm == "onehot":
        assert run["proved"]
        assert run["whole_9"] == leaderboard.WORDS
    else:
        assert not run["proved"]
        assert run["certified"] is None or run["fails_at"] is None or run["certified"] < run["fails_at"]


def test_rows_of_the_stored_results_compare_the_same_languages():
    results = board.document()
    runs = Counter(run["arm"] for run in results["runs"])
    assert set(runs) == set(results["asked"]["arms"])
    assert set(runs.values()) == {results["complete"].total()}
    assert results["finished"] >= len(results["runs"])
    for run in results["runs"]:
        if run.get("certified") is not None and run["fails_at"] is not None:
            assert run["certified"] < run["fails_at"]


def test_rules_that_make_too_many_states_are_left_out(monkeypatch):
    calls = []

    def refined(*_):
        calls.append(1)
        raise BudgetExceeded("too many states")

    monkeypatch.setattr(likelihood, "refined", refined)
    machine = MooreMachine([[0, 1], [1, 1]], [True, False])  # no word with b, of which few are accepted
    drawn = [LanguageWords(machine).draw(8, label, 100) for label in (True, False)]
    words = np.concatenate(drawn), np.full(200, 8), np.repeat([1, 0], 100)
    assert likelihood._with_rules(machine, words, 2, 0.1, time.process_time() + 60) == machine
    assert calls


def test_a_transition_changes_where_the_words_get_more_likely_and_none_wrong():
    # States: the start, the last letter, a sink. Words begin with c and lack "ac", "ba", "cb"; `wider` allows "cb".
    a, b, c, outputs = [4, 1, 4, 1, 4], [4, 2, 2, 4, 4], [3, 4, 3, 3, 4], [True] * 4 + [False]
    target, wider = (MooreMachine([a, of_b, c], outputs).minimise() for of_b in (b, [4, 2, 2, 2, 4]))
    drawn = [LanguageWords(target).draw(24, True, 1000), LanguageWords(wider).draw(24, False, 1000)]
    words = np.concatenate(drawn), np.full(2000, 24), np.repeat([1, 0], 1000)
    assert improved(wider, words) == target
    few = tuple(part[[0, *range(1000, 1020)]] for part in words)
    assert improved(wider, few) == wider
    wrong = *words[:2], 1 - words[2]
    assert improved(wider, wrong) == wider
    # Rejected words are rarer without "cb"; a state more costs bits, and no words are described in fewer.
    assert description(target, words) < description(wider, words) - 100
    twice = np.vstack([target.delta.T, target.delta.T[-1:]]).T
    larger = MooreMachine(twice, [*target.outputs, target.outputs[-1]])
    nothing = description(larger, few) - description(target, few)
    assert 0 < nothing == pytest.approx(description(larger, words) - description(target, words))
