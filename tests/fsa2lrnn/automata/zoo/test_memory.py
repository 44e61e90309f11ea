"""Memories against their definitions; Černý's shortest reset words by search over subsets."""

import random
from itertools import product

import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat


def test_flip_flop_keeps_what_was_written_last():
    m = zoo.flip_flop()
    for w in map("".join, product("sr.", repeat=7)):
        writes = w.replace(".", "")
        assert m.outputs[m.run(w)] == int(writes.endswith("s"))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_shift_register_delays(n):
    bits = "".join(random.Random(n).choices("01", k=300))
    padded = "0" * n + bits
    windows = [padded[k + 1 : k + 1 + n] for k in range(300)]
    assert zoo.shift_register(n, output="content").transduce(bits) == windows
    assert zoo.shift_register(n).transduce(bits) == [int(window[0]) for window in windows]


@pytest.mark.parametrize("output", ["oldest", "content"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_shift_register_has_a_state_a_content(n, output):
    m = zoo.shift_register(n, output)
    assert m.n_states == m.minimise().n_states == 2**n
    assert m.labels[0] == (0,) * n


def shortest_reset_word(m: MooreMachine) -> int:
    subsets, seen, length = [frozenset(range(m.n_states))], set(), 0
    while True:
        if any(len(s) == 1 for s in subsets):
            return length
        seen |= set(subsets)
        reached = {frozenset(row[q] for q in s) for s in subsets for row in m.delta.tolist()}
        subsets, length = list(reached - seen), length + 1


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_cerny_resets_no_sooner_than_conjectured(n):
    assert shortest_reset_word(zoo.cerny(n)) == (n - 1) ** 2


@pytest.mark.parametrize("n", [2, 3, 4])
def test_all_maps_generates_every_map(n):
    rows = [tuple(row) for row in zoo.all_maps(n).delta.tolist()]
    maps = [tuple(range(n))]
    found = set(maps)
    for f in maps:
        for row in rows:
            g = tuple(row[q] for q in f)
            if g not in found:
                found.add(g)
                maps.append(g)
    assert len(found) == n**n


@pytest.mark.parametrize("task", ["cerny", "all_maps"])
def test_the_output_is_the_state(task):
    m = getattr(zoo, task)(6)
    assert m.outputs == m.labels
    assert m.minimise().n_states == 6


def test_bad_parameters_are_named():
    with pytest.raises(
        UnsupportedFormat, match=r"shift_register\(output='all'\): output must be one of oldest, content"
    ):
        zoo.shift_register(3, output="all")
    with pytest.raises(BudgetExceeded, match=r"shift_register\(1000000\) has about 1.84e\+19 states"):
        zoo.shift_register(1_000_000)
    with pytest.raises(InvalidMachine, match=r"cerny\(n=1\)"):
        zoo.cerny(1)
