"""The words and verdicts of the MLRegTest study, on machines that a person can check."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from experiments.studies.mlregtest.data_alone import agrees_from, wrong_words
from experiments.studies.mlregtest.languages import names
from experiments.studies.mlregtest.words import LONG, SHORT, LanguageWords, data, read_published
from fsa2lrnn import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat

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
