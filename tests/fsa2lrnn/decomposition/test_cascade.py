import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, equivalent
from fsa2lrnn.decomposition import cascade as module
from fsa2lrnn.decomposition.cascade import Cascade, Component, kind_of
from fsa2lrnn.decomposition.coordinates import assemble
from fsa2lrnn.decomposition.holonomy import holonomy
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, InvalidWord
from fsa2lrnn.testing.strategies import machines


def mod4():
    """Z₄ as a low bit and a high one that reads it."""
    machine = MooreMachine([[0, 1, 2, 3], [1, 2, 3, 0]], range(4))
    low = Component(2, 0, (), 0, np.array([[0], [1]]), np.array([[0, 1], [1, 0]]), "low")
    keys = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    high = Component(2, 0, (0,), 1, keys, np.array([[0, 1], [0, 1], [0, 1], [1, 0]]), "high")
    return Cascade(machine, (low, high))


def slow_run(cascade, word):
    """The joint states by looking every key up, one by one."""
    state, states = [component.start for component in cascade.components], []
    for letter in word:
        a = cascade.machine.alphabet.index(letter)
        after = list(state)
        for i, component in enumerate(cascade.components):
            seen = after if cascade.reads_now else state
            key = [a, *(seen[j] for j in component.reads)]
            (row,) = [r for r, candidate in enumerate(component.keys.tolist()) if candidate == key]
            after[i] = int(component.maps[row, state[i]])
        state = after
        states.append(state)
    return states


def test_what_a_cascade_says_of_itself():
    cascade = mod4()
    assert cascade.transduce([1, 1, 0, 1, 1, 1]) == [1, 2, 2, 3, 0, 1]
    assert cascade.simulate([1, 1]).tolist() == [[1, 0], [0, 1]]
    assert (cascade.n_layers, cascade.block_sizes, cascade.max_block) == (2, ((1,), (1,)), 1)
    assert [component.kind for component in cascade.components] == ["permutation", "permutation"]
    assert sorted(cascade.image.tolist()) == [0, 1, 2, 3]
    assert cascade.transduce([]) == []
    for word in itertools.product((0, 1), repeat=6):
        assert cascade.simulate(word).tolist() == slow_run(cascade, word)


@given(machines(max_states=5), st.data())
def test_the_morphism_leads_the_joint_states_to_the_machine(machine, data):
    cascade = assemble(machine, holonomy(machine.delta, machine.start))
    joint = cascade.to_machine()
    assert equivalent(joint, machine) is None
    word = data.draw(st.lists(st.sampled_from(machine.alphabet), max_size=8))
    assert cascade.simulate(word).tolist() == slow_run(cascade, word)
    assert cascade.transduce(word) == machine.transduce(word)
    for a in range(len(machine.alphabet)):
        assert (cascade.image[cascade.delta[a]] == machine.delta[a][cascade.image]).all()


def test_every_single_change_of_a_used_entry_is_refused():
    """A cascade in which every entry matters: each one changed must be found out."""
    good = mod4()
    for i, component in enumerate(good.components):
        assert good.used(i).all()
        for r, q in np.ndindex(component.maps.shape):
            maps = component.maps.copy()
            maps[r, q] = 1 - maps[r, q]
            components = list(good.components)
            components[i] = replace(component, maps=maps)
            with pytest.raises(InvalidMachine, match=r"from joint state .* the letter .* leads to a joint state which"):
                Cascade(good.machine, tuple(components))


LOW, HIGH = mod4().components


@pytest.mark.parametrize(
    ("components", "says"),
    [
        ((LOW, replace(HIGH, keys=HIGH.keys[:3], maps=HIGH.maps[:3])), r"where component 1 has no map"),
        (
            (replace(LOW, keys=np.array([[0], [1], [1]]), maps=np.array([[0, 1], [1, 0], [0, 1]])), HIGH),
            "two maps for one key",
        ),
        ((LOW, replace(HIGH, layer=0)), "component 1 reads component 0: it may read earlier ones in lower layers"),
        ((), "at least one component"),
    ],
)
def test_components_that_make_no_cascade_are_refused(components, says):
    with pytest.raises(InvalidMachine, match=says):
        Cascade(mod4().machine, components)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"maps": np.array([[0, 2], [1, 0]])}, r"states run 0\.\.1"),
        ({"start": 2}, r"states run 0\.\.1"),
        ({"keys": np.array([[0, 0], [1, 0]])}, r"keys \(2, 2\) .* give \(R, 1\)"),
        ({"maps": np.array([[0, 1, 2], [1, 0, 2]])}, r"maps \(2, 3\): give .* \(R, 2\)"),
    ],
)
def test_a_component_of_wrong_shape_is_refused(changes, says):
    with pytest.raises(InvalidMachine, match=says):
        replace(mod4().components[0], **changes)


def test_an_unknown_letter_and_too_many_joint_states_are_named(monkeypatch):
    with pytest.raises(InvalidWord, match="letter 7"):
        mod4().simulate([7])
    monkeypatch.setattr(module, "MAX_JOINT_STATES", 3)
    with pytest.raises(BudgetExceeded, match="more than 3 joint states"):
        mod4()


@pytest.mark.parametrize(
    ("maps", "kind", "blocks"),
    [
        ([[0]], "trivial", (1,)),
        ([[0, 1], [1, 1]], "reset", (1,)),
        ([[1, 0]], "permutation", (1,)),
        ([[0, 1, 2], [2, 2, 2]], "reset", (1, 1)),
        ([[1, 2, 0], [0, 0, 0]], "permutation-reset", (3,)),
        ([[1, 2, 0]], "permutation", (3,)),
        ([[0, 0, 1]], "general", (3,)),
    ],
)
def test_kinds_and_their_blocks(maps, kind, blocks):
    maps = np.array(maps)
    component = Component(maps.shape[1], 0, (), 0, np.arange(len(maps))[:, None], maps)
    assert (kind_of(maps), component.kind, component.block_sizes) == (kind, kind, blocks)
