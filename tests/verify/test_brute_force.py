"""The grid agrees with T3, and would show it if T3 were wrong."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import represent
from fsa2lrnn.families.identities import FORCED
from verify.brute_force import (
    GRIDS,
    Grid,
    Layers,
    all_tables,
    by_T3,
    compare,
    is_confirmed,
    on_grid,
    vectors,
)

# Representable tables with 1, 2, 3 and 4 states over two letters, of 1, 12, 216 and 5,248; on how many the grid finds a
# layer. It holds no third of a turn, which three states on a cycle need, nor enough dense layers for four.
REPRESENTABLE = {
    "lti": ((1, 4, 4, 12), (1, 4, 4, 11)),
    "lti-diagonalisable": ((1, 4, 3, 4), (1, 4, 2, 3)),
    "diagonal[0,1]": ((1, 5, 5, 3), (1, 5, 5, 3)),
    "diagonal[-1,1]": ((1, 12, 29, 62), (1, 12, 29, 62)),
    "diagonal-complex": ((1, 12, 39, 110), (1, 12, 29, 76)),
}


@pytest.mark.parametrize("n_states", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FORCED)
def test_no_layer_of_the_grid_does_what_T3_calls_impossible(family, n_states):
    comparison = compare(family, n_states)
    assert comparison.contradicted == comparison.unconfirmed == ()
    assert comparison.machines == (1, 12, 216, 5248)[n_states - 1]
    representable, found = (counts[n_states - 1] for counts in REPRESENTABLE[family])
    assert (comparison.representable, sum(comparison.found.values())) == (representable, found)
    assert max(comparison.found) < n_states


@pytest.mark.parametrize("family", ["lti", "lti-diagonalisable", "diagonal[0,1]", "diagonal[-1,1]"])
def test_three_letters_on_two_states(family):
    comparison = compare(family, 2, 3)
    assert comparison.contradicted == comparison.unconfirmed == ()
    assert comparison.found == {1: comparison.representable}


def test_verdicts_and_witnesses_that_are_wrong_are_contradicted():
    comparison = compare("diagonal[-1,1]", 2, decide=lambda machine, _: by_T3(machine, "diagonal[0,1]"))
    assert len(comparison.contradicted) == 12 - 5
    assert comparison.representable == 5

    def decide(machine, family):
        witness = by_T3(machine, family)
        first = witness.form[0]
        return replace(witness, form=(replace(first, shifts=((first.shifts[0][0] + 1,), *first.shifts[1:])),))

    comparison = compare("diagonal[-1,1]", 2, decide=decide)
    assert len(comparison.unconfirmed) == comparison.representable == 12
    witness = represent(zoo.group("Z2xZ2"), "diagonal[-1,1]")
    assert is_confirmed(witness)
    assert not is_confirmed(replace(witness, form=witness.form[:1]))
    with pytest.raises(UnsupportedFormat, match="'householder' is not decided by T3: choose one of lti, "):
        compare("householder", 2)


@pytest.mark.parametrize("source", ["length_mod(3)", "shift_register(3)", "flip_flop", "sum_mod(5)", "sum_mod(8)"])
@pytest.mark.parametrize("family", FORCED)
def test_witnesses_of_the_zoo_are_confirmed(source, family):
    verdict = represent(zoo.from_task(source), family)
    assert "representable" not in verdict.check() or is_confirmed(verdict)


def test_grids_are_whole_and_dyadic():
    kinds = {delta.tobytes() for delta in all_tables(3, 2)}
    assert len(kinds) == 216
    for entries in itertools.product(range(3), repeat=6):
        machine = MooreMachine(np.reshape(entries, (2, 3)), range(3))
        if machine.minimise().n_states == 3:
            kinds.discard(machine.minimise().delta.tobytes())
    assert not kinds
    assert [len(on_grid(family, 2, GRIDS[family]).x0) for family in FORCED] == [6561, 1782, 675, 1875, 7938]
    for family, form in FORCED.items():
        A = on_grid(family, 2, GRIDS[family]).A
        assert bool((A[:, 0] == A[:, 1]).all()) == (form.letters == "input-independent")
    one = on_grid("diagonal[0,1]", 2, Grid((0.5,), (1,), (0,)))
    assert [part.ravel().tolist() for part in one] == [[0.5, 0.5], [1, 1], [0]]
    for grid in GRIDS.values():
        for value in (*grid.A, *grid.v, *grid.x0):
            assert (2 * complex(value).real).is_integer()
            assert (2 * complex(value).imag).is_integer()
    assert set(GRIDS) == set(FORCED)


@given(st.data())
def test_a_layer_that_is_kept_is_a_function_of_the_state(data):
    family = data.draw(st.sampled_from(["diagonal[0,1]", "diagonal[-1,1]"]))
    delta = data.draw(st.sampled_from(list(all_tables(2, 2)) + list(all_tables(3, 2))))
    layers = on_grid(family, 2, GRIDS[family])
    i = data.draw(st.integers(0, len(layers.x0) - 1))
    layer = Layers(*(part[i : i + 1] for part in layers))
    kept = vectors(delta, layer)
    reached = {}
    for word in itertools.chain.from_iterable(itertools.product((0, 1), repeat=length) for length in range(6)):
        q, x = 0, layer.x0[0, 0]
        for a in word:
            q, x = int(delta[a, q]), layer.A[0, a, 0, 0] * x + layer.v[0, a, 0]
        reached.setdefault(q, set()).add(x)
    assert len(kept) == all(len(values) == 1 for values in reached.values())
    if len(kept):
        assert {q: {kept[0, q, 0]} for q in range(delta.shape[1])} == reached
