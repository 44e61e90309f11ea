"""Many letters per step lead where single steps lead; rows are numbered as numpy numbers them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import multi_step as module
from fsa2lrnn.automata import zoo
from fsa2lrnn.multi_step import MultiStepTable, walk
from fsa2lrnn.rows import distinct_rows, number_rows
from fsa2lrnn.testing.strategies import machines

SHAPES = [(0, 5), (1, 0), (1, 1), (7, 9), (8, 8), (9, 17), (16, 1), (19, 41), (3, 20_011), (17, 2_100)]  # (B, T)


def walked(next_state, starts, tokens):
    """The reference: each word by itself, step by step."""
    words = [walk(next_state, int(q), word) for q, word in zip(starts, tokens, strict=True)]
    return np.array(words, np.int64).reshape(tokens.shape)


def ends(next_state, starts, tokens):
    return np.concatenate([np.asarray(starts)[:, None], walked(next_state, starts, tokens)], axis=1)[:, -1].tolist()


@given(machines(max_states=6), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_leaps_lead_where_single_steps_lead(machine, length, seed):
    tokens = np.random.default_rng(seed).integers(len(machine.alphabet), size=length)
    leaps, states = MultiStepTable.of(machine.delta), np.arange(machine.n_states)
    batch = np.tile(tokens, (machine.n_states, 1))
    expected = ends(machine.delta, states, batch)
    assert [leaps.final(q, tokens) for q in range(machine.n_states)] == expected
    assert leaps.map_of(tokens).tolist() == expected
    assert leaps.finals(states, batch).tolist() == expected
    for q in range(machine.n_states):
        leaps.walk(q, tokens, found := np.full(length, -1))
        assert found.tolist() == walk(machine.delta, q, tokens).tolist()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@pytest.mark.parametrize(("n_states", "n_letters"), [(1, 1), (1, 2), (3, 1), (2, 2), (5, 5), (51, 8), (300, 4)])
def test_a_batch_ends_where_each_word_ends(shape, dtype, n_states, n_letters):
    rng = np.random.default_rng(n_states)
    delta = rng.integers(n_states, size=(n_letters, n_states))
    tokens, starts = rng.integers(n_letters, size=shape).astype(dtype), rng.integers(n_states, size=shape[0])
    before = starts.copy()
    assert MultiStepTable.of(delta).finals(starts, tokens).tolist() == ends(delta, starts, tokens)
    assert starts.tolist() == before.tolist()


@pytest.mark.parametrize(("n_states", "n_letters"), [(3, 1_000), (70_000, 2)])
def test_letters_and_states_that_do_not_fit_into_a_byte_or_two(n_states, n_letters):
    rng = np.random.default_rng(0)
    delta, tokens = rng.integers(n_states, size=(n_letters, n_states)), rng.integers(n_letters, size=(9, 50))
    assert MultiStepTable.of(delta).finals(np.zeros(9, int), tokens).tolist() == ends(delta, np.zeros(9, int), tokens)


def test_a_batch_that_is_not_contiguous():
    machine = zoo.sum_mod(5)
    tokens = np.random.default_rng(0).integers(5, size=(50, 22)).T[::2]
    starts = np.arange(11) % 5
    assert MultiStepTable.of(machine.delta).finals(starts, tokens).tolist() == ends(machine.delta, starts, tokens)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("machine", [zoo.sum_mod(5), zoo.mod_arith(5).minimise()], ids=["few states", "many"])
def test_pieces_of_a_long_word_compose(dtype, threads, machine, monkeypatch):
    monkeypatch.setattr(module, "LONG", 1 << 12)
    tokens = np.random.default_rng(0).integers(len(machine.alphabet), size=(1 << 16) + 7).astype(dtype)
    states = walk(machine.delta, machine.start, tokens)
    leaps, found = MultiStepTable.of(machine.delta), np.empty_like(states)
    leaps.walk(machine.start, tokens, found, threads)
    assert np.array_equal(found, states)
    assert leaps.final(machine.start, tokens, threads) == states[-1]


def test_threads_are_asked_for_long_words_alone(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "LONG", 100)
    monkeypatch.setattr(module, "_at_once", lambda act, parts, threads: seen.append(threads) or map(act, parts))
    leaps = MultiStepTable.of(zoo.parity().delta)
    for length in (99, 100):
        leaps.walk(0, np.ones(length, int), np.empty(length, np.int64), threads=2)
    assert seen == [1, 2, 2]  # the short word's pieces; the long one's maps, then its pieces


@pytest.mark.parametrize(
    ("machine", "m"),
    [(zoo.parity(), 8), (zoo.sum_mod(5), 4), (zoo.random_dfa(300, 4, 0), 2), (zoo.random_dfa(9_000, 2, 0), 1)],
)
def test_a_leap_takes_as_many_letters_as_its_table_has_room_for(machine, m):
    leaps = MultiStepTable.of(machine.delta)
    assert leaps.m == m
    assert len(leaps.table) == len(machine.alphabet) ** m * machine.n_states
    assert leaps.m == 1 or leaps.table.nbytes <= 1 << 14


@st.composite
def tables(draw):
    width = draw(st.integers(0, 4))
    row = st.lists(st.integers(-3, 5), min_size=width, max_size=width)
    drawn = draw(st.lists(row, min_size=1, max_size=12))
    return np.array(drawn, np.int64).reshape(len(drawn), width)


@given(tables())
def test_distinct_rows_are_those_of_numpy(rows):
    found, number = distinct_rows(rows)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert number.tolist() == inverse.reshape(-1).tolist()


@pytest.mark.parametrize("width", [8, 13, 40])
def test_rows_of_more_codes_than_fit_an_integer(width):
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**10), 2**10, (50, width))
    rows = rows[rng.integers(50, size=200)]
    assert (np.sort(rows[np.argsort(number_rows(rows))], axis=0) == np.sort(rows, axis=0)).all()
    found, number = distinct_rows(rows)
    assert found.tolist() == np.unique(rows, axis=0).tolist()
    assert (found[number] == rows).all()


def test_rows_are_numbered_alike_just_when_equal():
    rows = np.array([[2**40, 3, 2**40], [2**40, 3, 2**40], [2**40, 3, 5], [0, 3, 5]])
    a, b, c, d = number_rows(rows).tolist()
    assert a == b
    assert len({a, c, d}) == 3
