"""Rules and changes that make words likelier, and where they are refused."""

from collections import Counter

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, equivalent, learn
from fsa2lrnn.deadline import NEVER
from fsa2lrnn.learning.likelihood import bits, draw, is_plausible, likelier, share_of


def acceptor(*factors):
    """Return the machine over a, b, c with the output 1 for words without these factors."""
    text = "|".join(f"(a|b|c)*{factor}(a|b|c)*" for factor in factors)
    found = MooreMachine.from_source(f"regex:{text}")
    order = [found.alphabet.index(a) for a in "abc"]
    return MooreMachine(found.delta[order], [int(not y) for y in found.outputs], found.start, range(3)).minimise()


def words_of(accepted, rejected, size, length):
    rng = np.random.default_rng(0)
    tokens = np.concatenate([draw(accepted, 1, length, size, rng), draw(rejected, 0, length, size, rng)])
    order = rng.permutation(2 * size)
    return tokens[order], np.full(2 * size, length), np.repeat([1, 0], size)[order]


def test_words_of_a_label_are_drawn_uniformly():
    machine = acceptor("cc", "ab")
    drawn = Counter(map(tuple, draw(machine, 1, 3, 20_000, np.random.default_rng(0)).tolist()))
    n = round(27 * share_of(machine, 1, 3))
    assert len(drawn) == n == sum(machine.transduce(word)[-1] == 1 for word in np.ndindex(3, 3, 3))
    assert max(drawn.values()) < 1.2 * 20_000 / n


@pytest.mark.parametrize("factors", [("ab",), ("aab", "bca")])
def test_what_no_word_of_a_label_has_is_excluded(factors):
    """The rejected words all have the factor cc, so that the labels alone do not show the others."""
    target, machine = acceptor("cc", *factors), acceptor("cc")
    words = words_of(target, machine, 2000, 20)
    assert is_plausible(machine, words)
    found = likelier(machine, words, NEVER)
    assert equivalent(found, target) is None
    assert bits(found, words) < bits(machine, words)


def test_words_that_are_not_drawn_uniformly_change_nothing():
    target = acceptor("cc")
    tokens = np.random.default_rng(0).choice(3, (4000, 20), p=[0.6, 0.3, 0.1])
    tokens[:, 1:][(tokens[:, 1:] == 1) & (tokens[:, :-1] == 0)] = 0  # no ab, whatever the label
    labels = np.array([target.transduce(word)[-1] for word in tokens.tolist()])
    assert not is_plausible(target, (tokens, np.full(4000, 20), labels))
    found = learn([("".join("abc"[a] for a in word), y) for word, y in zip(tokens.tolist(), labels, strict=True)])
    named = MooreMachine(found.machine.delta, found.machine.outputs, found.machine.start, range(3))
    assert equivalent(named, target) is None
