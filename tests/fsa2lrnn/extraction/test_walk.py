"""Words come back letter by letter; every state is met once."""

import numpy as np

from fsa2lrnn.extraction.walk import Interner, Tree, WordFrontier, tagged


def test_every_path_is_its_word():
    rng = np.random.default_rng(0)
    tree, words = Tree(), [()]
    for _ in range(6):
        parents, letters = rng.integers(0, len(words), 5), rng.integers(0, 3, 5)
        words += [words[p] + (a,) for p, a in zip(parents.tolist(), letters.tolist(), strict=True)]
        assert tree.grow(parents, letters).tolist() == list(range(len(words) - 5, len(words)))
        assert len(tree) == len(words)
        assert [tuple(tree.word(i).tolist()) for i in range(len(words))] == words


def test_an_interner_numbers_rows_as_they_come():
    seen = Interner()
    rows = np.array([[5, 5], [1, 2], [5, 5], [0, 0]], np.uint8)
    assert seen.number(rows).tolist() == [0, 1, 0, 2]
    assert seen.number(rows[::-1]).tolist() == [2, 0, 1, 0]
    assert len(seen) == 3
    numbers, new = seen.new(np.array([[7, 7], [1, 2], [7, 7], [8, 8]], np.uint8))
    assert (numbers.tolist(), new.tolist()) == ([3, 1, 3, 4], [0, 3])


class Counter:
    """Two letters on the numbers modulo 4: one more, or two more; what is read off is the number reached."""

    def start(self):
        return np.array([1])

    def fan(self, states, live):
        before, letters = np.nonzero(live)
        after = (states[before] + letters + 1) % 4
        return after, after

    def pick(self, states, places):
        return states[places]

    def rows(self, states):
        return states.astype(np.uint8)[:, None]


def test_a_walk_meets_every_state_once_by_a_shortest_word():
    walk, met = WordFrontier(Counter(), 0), {1: ()}
    while len(walk):
        ahead = walk.fan(np.ones((len(walk), 2), bool))
        words = [tuple(walk.word(ahead, i).tolist()) for i in range(len(ahead.letters))]
        numbers = walk.keep_new(ahead, np.zeros(len(words), int))
        assert [list(met).index(state) if state in met else None for state in ahead.read.tolist()] == [
            number if number < len(met) else None for number in numbers.tolist()
        ]
        for state, word in zip(ahead.read.tolist(), words, strict=True):
            met.setdefault(state, word)
        assert walk.seen == len(met)
    assert met == {1: (), 2: (0,), 3: (1,), 0: (0, 1)}
    assert (walk.letters, walk.length) == (8, 3)


def test_tags_tell_states_apart():
    """The parity of the length makes two of each number."""
    walk = WordFrontier(Counter(), 0)
    while len(walk):
        ahead = walk.fan(np.ones((len(walk), 2), bool))
        walk.keep_new(ahead, 1 - walk.tags[ahead.parents])
    assert walk.seen == 8


def test_only_live_letters_are_read():
    walk = WordFrontier(Counter(), 0)
    ahead = walk.fan(np.array([[False, True]]))
    assert (ahead.letters.tolist(), ahead.read.tolist(), walk.letters) == ([1], [3], 1)


def test_pairs_of_states_are_told_apart_by_either():
    rows = np.array([[1, 2], [1, 2], [1, 3]], np.uint8)
    found = tagged(rows, np.array([0, 256, 0]))
    assert found.shape == (3, 10)
    assert len(np.unique(found, axis=0)) == 3
