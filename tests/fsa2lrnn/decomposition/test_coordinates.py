from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.decomposition import coordinates as module
from fsa2lrnn.decomposition.cascade import kind_of
from fsa2lrnn.decomposition.coordinates import FREE, Cover, assemble, constant_coordinates
from fsa2lrnn.decomposition.holonomy import holonomy
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.testing.strategies import machines


def multiplication(M=5):
    """t ← d·t modulo M: whether t is 0, and which unit it is where it is not."""
    machine = MooreMachine([[d * t % M for t in range(M)] for d in range(M)], range(M), start=1)
    values = np.array([[int(t != 0), t - 1 if t else FREE] for t in range(M)])
    order = [1, 0, *range(2, M)]  # a cover starts in state 0
    place = np.argsort(order)
    return machine, Cover(place[machine.delta[:, order]], np.array(order), values[order], (0, 1), ("zero", "unit"))


def test_what_is_free_needs_not_be_read(monkeypatch):
    """The unit may go on turning while t is 0, so that it need not know: both stand in one layer."""
    machine, cover = multiplication()
    cascade = assemble(machine, cover)
    assert [(c.name, c.reads, c.layer) for c in cascade.components] == [("zero", (), 0), ("unit", (), 0)]
    assert [c.kind for c in cascade.components] == ["reset", "permutation"]
    assert len(cascade.states) == 8  # 4 units, with or without the zero
    assert len(assemble(machine, cover.pinned()).components[1].reads) == 1
    monkeypatch.setattr(module, "_MAX_ROWS", 5)  # what would blow the tables up is pinned
    assert assemble(machine, cover).components[1].reads == (0,)


def test_the_order_of_levels_is_kept_and_idle_components_go():
    mod6 = MooreMachine([[1, 2, 3, 4, 5, 0]], range(6))
    q = np.arange(6)
    cover = Cover(mod6.delta, q, np.stack([q % 2, q % 3, q], axis=1), (0, 0, 1), ("two", "three", "all"))
    assert [c.name for c in assemble(mod6, cover).components] == ["two", "three"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image": np.arange(3)}, r"ask for image \(5,\)"),
        ({"delta": np.zeros((2, 4), int)}, r"delta \(k, 5\), not \(5,\) and \(2, 4\)"),
        ({"levels": (0,)}, "2 coordinates have 1 levels, 2 names"),
    ],
)
def test_a_cover_of_wrong_shape_is_refused(changes, says):
    with pytest.raises(InvalidMachine, match=says):
        replace(multiplication()[1], **changes)


def test_covers_that_do_not_follow_or_do_not_tell_the_state_are_refused():
    mod4, q = MooreMachine([[1, 2, 3, 0]], range(4)), np.arange(4)
    with pytest.raises(InvalidMachine, match="coordinate 1 of level 0 does not follow from the letter"):
        assemble(mod4, Cover(mod4.delta, q, np.stack([q % 2, q // 2], axis=1), (0, 0), ("low", "high")))
    with pytest.raises(InvalidMachine, match="does not run the machine"):
        assemble(mod4, Cover(mod4.delta, q, (q % 2)[:, None], (0,), ("low",)))


@given(machines(max_states=6))
def test_reads_are_needed(machine):
    """Without one of its reads, a component has two moves for one state, or is of a worse kind."""
    cascade = assemble(machine, holonomy(machine.delta, machine.start).pinned())
    for i, component in enumerate(cascade.components):
        asked = np.where(cascade.used(i), component.maps, FREE)
        for column in range(1, 1 + len(component.reads)):
            merged = merge(np.delete(component.keys, column, axis=1), asked)
            assert merged is None or not module._virtues(asked) <= module._virtues(merged)


def merge(keys, maps):
    """Partial maps with equal keys as one, or None if they contradict each other."""
    rows = {}
    for key, f in zip(map(tuple, keys.tolist()), maps.tolist(), strict=True):
        row = rows.setdefault(key, [FREE] * len(f))
        for x, y in enumerate(f):
            if FREE not in (y, row[x]) and y != row[x]:
                return None
            row[x] = max(y, row[x])
    return np.array(list(rows.values()))


def test_partial_maps_are_completed_to_few_of_a_good_kind():
    complete = module._complete
    assert complete(np.array([[FREE, 1, FREE], [2, FREE, 2]])).tolist() == [[0, 1, 2], [2, 2, 2]]  # lanes
    assert complete(np.array([[1, 2, 0], [1, FREE, FREE]])).tolist() == [[1, 2, 0], [1, 2, 0]]  # from the pool
    assert complete(np.array([[1, 0, FREE], [FREE, 2, 1]])).tolist() == [[1, 0, 2], [0, 2, 1]]  # permutations
    assert complete(np.array([[FREE] * 3])).tolist() == [[0, 1, 2]]
    assert complete(np.array([[1, 1, FREE], [1, FREE, 2]])).tolist() == [[1, 1, 1], [1, 0, 2]]  # resets among them
    assert complete(np.array([[1, 1, 2], [1, FREE, 2]])).tolist() == [[1, 1, 2], [1, 1, 2]]  # neither: the pool's


def test_completing_keeps_what_is_asked_and_the_kind():
    rng = np.random.default_rng(0)
    for _ in range(200):
        m = int(rng.integers(2, 6))
        total = np.stack([rng.permutation(m) if rng.random() < 0.7 else np.full(m, rng.integers(m)) for _ in range(4)])
        partial = np.where(rng.random(total.shape) < 0.4, FREE, total)
        done = module._complete(partial)
        assert (done[partial != FREE] == partial[partial != FREE]).all()
        if kind_of(total) == "permutation":
            assert kind_of(done) in ("permutation", "reset")
    assert module._completed(np.array([FREE, 2, FREE]), Counter(), False, True) == (0, 2, 1)


def test_constant_coordinates_go_but_one_stays():
    machine, cover = multiplication()
    values = np.column_stack([np.zeros(5, int), cover.values])
    wider = Cover(cover.delta, cover.image, values, (0, 0, 1), ("none", "zero", "unit"))
    assert constant_coordinates(wider).names == ("zero", "unit")
    one = Cover(np.zeros((1, 1), int), np.zeros(1, int), np.zeros((1, 2), int), (0, 1), ("a", "b"))
    assert constant_coordinates(one).names == ("a",)
    assert machine.n_states == 5
