import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.leaps import Leaps
from fsa2lrnn.tables import walk
from verify.strategies import machines


@given(machines(max_states=6), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_leaps_lead_where_single_steps_lead(machine, length, seed):
    tokens = np.random.default_rng(seed).integers(len(machine.alphabet), size=length)
    leaps = Leaps.of(machine.delta)
    ends = [int(walk(machine.delta, q, tokens)[-1]) if length else q for q in range(machine.n_states)]
    assert [leaps.final(q, tokens) for q in range(machine.n_states)] == ends
    assert leaps.map_of(tokens).tolist() == ends
    batch = np.tile(tokens, (machine.n_states, 1))
    assert leaps.finals(np.arange(machine.n_states), batch).tolist() == ends


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pieces_of_a_long_word_compose(dtype, threads):
    machine = zoo.sum_mod(5)
    tokens = np.random.default_rng(0).integers(5, size=(1 << 20) + 7).astype(dtype)
    assert Leaps.of(machine.delta).final(0, tokens, threads) == int(tokens.sum(dtype=np.int64)) % 5


@pytest.mark.parametrize(
    ("machine", "m"),
    [(zoo.parity(), 13), (zoo.sum_mod(5), 5), (zoo.random_dfa(300, 4, 0), 2), (zoo.random_dfa(9_000, 2, 0), 1)],
)
def test_a_leap_takes_as_many_letters_as_its_table_has_room_for(machine, m):
    leaps = Leaps.of(machine.delta)
    assert leaps.m == m
    assert len(leaps.table) == len(machine.alphabet) ** m * machine.n_states
    assert leaps.m == 1 or leaps.table.nbytes <= 1 << 14


def test_a_letter_alone_leaps_once():
    leaps = Leaps.of(np.array([[1, 2, 0]]))
    assert (leaps.m, leaps.final(0, np.zeros(100, np.int64))) == (1, 1)


def test_more_words_than_are_in_flight_at_once():
    machine = zoo.mod_arith(5).minimise()
    tokens = np.random.default_rng(1).integers(8, size=(19, 41))
    starts = np.random.default_rng(2).integers(machine.n_states, size=19)
    expected = [int(walk(machine.delta, int(q), word)[-1]) for q, word in zip(starts, tokens, strict=True)]
    assert Leaps.of(machine.delta).finals(starts, tokens).tolist() == expected
