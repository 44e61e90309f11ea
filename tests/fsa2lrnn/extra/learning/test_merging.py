import sys

import pytest

from fsa2lrnn import zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import MissingPackage, OutOfTime, UnsupportedFormat
from fsa2lrnn.extra.learning.merging import merge
from fsa2lrnn.extra.learning.word_files import from_pairs


def words(n):
    return [()] if not n else [(*word, a) for word in words(n - 1) for a in "012"]


def test_rpni_finds_the_machine_of_clean_words():
    target = zoo.sum_mod(3)
    pairs = [((), 0)] + [(word, target.transduce(word)[-1]) for n in range(1, 5) for word in words(n)]
    assert equivalent(merge(from_pairs(pairs)), target) is None


def test_contradictions_are_refused():
    with pytest.raises(UnsupportedFormat, match="RPNI takes words that don't contradict each other"):
        merge(from_pairs([("a", 0), ("a", 1)]))


def test_without_aalpy_the_install_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "aalpy", None)
    monkeypatch.setitem(sys.modules, "aalpy.learning_algs.deterministic_passive.GsmRPNI", None)
    with pytest.raises(MissingPackage, match=r'method="rpni" needs aalpy, which is not installed: pip install'):
        merge(from_pairs([("a", 0), ("b", 1)]))


def test_a_deadline_ends_rpni():
    with pytest.raises(OutOfTime, match="merging states by RPNI: the limit of 0 s has passed"):
        merge(from_pairs([("a", 0), ("b", 1)]), Deadline(0.0))
