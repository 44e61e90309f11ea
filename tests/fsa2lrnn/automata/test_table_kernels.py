"""The compiled kernels against plain Python, and against machines run letter by letter."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import walks
from fsa2lrnn.automata import table_kernels as tables
from fsa2lrnn.automata.table_kernels import paths
from fsa2lrnn.testing.strategies import machines

few = settings(deadline=None)  # the first call compiles


@st.composite
def classified_tables(draw: st.DrawFn, max_states: int = 12, max_letters: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A table and a class a state; the class numbers are 0 … c−1 in order of appearance."""
    n, k = draw(st.integers(1, max_states)), draw(st.integers(1, max_letters))
    table = draw(st.lists(st.lists(st.integers(0, n - 1), min_size=n, max_size=n), min_size=k, max_size=k))
    return np.array(table, np.int64), in_order(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))


def in_order(colours: list[int]) -> np.ndarray:
    number: dict[int, int] = {}
    return np.array([number.setdefault(c, len(number)) for c in colours], np.int64)


def moore(table: np.ndarray, classes: np.ndarray) -> list[int]:
    """Moore's refinement: split by the classes of all successors until nothing splits."""
    block = classes.tolist()
    while True:
        signatures = [(block[q], *(block[r] for r in table[:, q])) for q in range(table.shape[1])]
        number: dict[tuple, int] = {}
        refined = [number.setdefault(s, len(number)) for s in signatures]
        if len(number) == len(set(block)):
            return refined
        block = refined


def same_partition(a: list[int], b: list[int]) -> bool:
    return len(set(a)) == len(set(b)) == len(set(zip(a, b, strict=True)))


@pytest.mark.long
@few
@given(classified_tables())
def test_hopcroft_equals_moore(case):
    table, classes = case
    blocks = tables.hopcroft(table, classes, int(classes.max()) + 1).tolist()
    assert same_partition(blocks, moore(table, classes))
    assert sorted(set(blocks)) == list(range(max(blocks) + 1))


@few
@given(classified_tables(), st.data())
def test_walk_is_a_loop(case, data):
    table, _ = case
    k, n = table.shape
    start = data.draw(st.integers(0, n - 1))
    tokens = data.draw(st.lists(st.integers(0, k - 1), max_size=20))
    expected = list(itertools.accumulate(tokens, lambda q, a: int(table[a, q]), initial=start))[1:]
    assert walks.walk(table, start, np.array(tokens, np.int64)).tolist() == expected


@few
@given(classified_tables(), st.integers(0, 19), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_words_walked_side_by_side_are_words_walked_alone(case, batch, length, seed):
    table, rng = case[0], np.random.default_rng(seed)
    starts, tokens = rng.integers(table.shape[1], size=batch), rng.integers(len(table), size=(batch, length))
    states = np.full((batch, length), -1)
    walks.walk_words(table, starts, tokens, states)
    for start, word, row in zip(starts, tokens, states, strict=True):
        assert row.tolist() == walks.walk(table, int(start), word).tolist()


def separating_length(table: np.ndarray, classes: np.ndarray, p: int, q: int) -> int | None:
    """Length of a shortest word that separates p from q, by search over all pairs."""
    pairs, seen, length = {(p, q)}, set(), 0
    while pairs:
        if any(classes[a] != classes[b] for a, b in pairs):
            return length
        seen |= pairs
        pairs = {(int(row[a]), int(row[b])) for a, b in pairs for row in table} - seen
        length += 1
    return None


@settings(few, max_examples=100)
@given(classified_tables(max_states=10), st.data())
def test_distinguish_finds_a_shortest_word(case, data):
    table, classes = case
    state = st.integers(0, table.shape[1] - 1)
    p, q = data.draw(state), data.draw(state)
    found, word = tables.distinguish(table, classes, p, q)
    length = separating_length(table, classes, p, q)
    assert found == (length is not None)
    if found:
        assert len(word) == length
        for a in word:
            p, q = table[a, p], table[a, q]
        assert classes[p] != classes[q]


@given(machines(max_states=6), st.integers(0, 2**32 - 1), st.integers(0, 9), st.integers(0, 7))
def test_paths_are_the_runs_of_the_machine(machine, seed, n, length):
    rng = np.random.default_rng(seed)
    tokens, starts = rng.integers(0, len(machine.alphabet), (n, length)), rng.integers(0, machine.n_states, n)
    for turned in (tokens, np.asfortranarray(tokens)):
        found = paths(machine.delta, starts, turned)
        assert found.shape == (n, length)
        for q, word, states in zip(starts, tokens, found, strict=True):
            for a, state in zip(word, states, strict=True):
                q = machine.delta[a, q]
                assert q == state
