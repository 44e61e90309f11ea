"""Words come back letter by letter."""

import numpy as np

from fsa2lrnn.judge.falsify.tree import Tree


def test_every_path_is_its_word():
    rng = np.random.default_rng(0)
    tree, words = Tree(), [()]
    for _ in range(6):
        parents, letters = rng.integers(0, len(words), 5), rng.integers(0, 3, 5)
        longer = [words[p] + (a,) for p, a in zip(parents.tolist(), letters.tolist(), strict=True)]
        assert [tuple(word) for word in tree.longer(parents, letters, np.arange(5))] == longer
        tree.grow(parents, letters)
        words = longer
        assert [tuple(tree.word(i).tolist()) for i in range(5)] == words
