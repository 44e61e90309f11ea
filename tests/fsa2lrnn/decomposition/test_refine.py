import numpy as np
import pytest
from hypothesis import assume, given

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.decomposition import refine as module
from fsa2lrnn.decomposition.cascade import Cascade, Component
from fsa2lrnn.decomposition.coordinates import Cover, assemble
from fsa2lrnn.decomposition.holonomy import holonomy
from fsa2lrnn.decomposition.refine import component_maps, fibre_code, refine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.testing.strategies import machines


def single(machine):
    """The machine as a cascade of one component."""
    keys = np.arange(len(machine.delta))[:, None]
    return Cascade(machine, (Component(machine.n_states, machine.start, (), 0, keys, machine.delta.copy()),))


def register():
    """ModArith(5) in two registers: the term, and the sum that reads it."""
    machine = zoo.mod_arith(5, "register").minimise()
    values = np.array([[label.term, label.sum] for label in machine.labels])
    return assemble(machine, Cover(machine.delta, np.arange(25), values, (0, 1), ("term", "sum")))


@given(machines(max_states=5))
def test_a_component_split_by_holonomy_still_runs_the_machine(machine):
    whole = single(machine)
    maps, _ = component_maps(whole, 0)
    cascade = assemble(machine, refine(whole, 0, holonomy(maps, machine.start)))
    word = [machine.alphabet[k % len(machine.alphabet)] for k in (0, 1, 2, 0, 0, 1)]
    assert cascade.transduce(word) == machine.transduce(word)


def test_the_upper_component_of_two_is_split():
    cascade = register()
    maps, _ = component_maps(cascade, 0)
    start = cascade.components[0].start
    cover = refine(cascade, 0, holonomy(maps, start))
    assert cover.names[0] == "sum"
    again = assemble(cascade.machine, cover)
    assert sorted(c.n_states for c in again.components) == [5, 5]


def test_the_fibre_code_of_mod4_and_where_letters_forget():
    machine = MooreMachine([[0, 1, 2, 3], [1, 2, 3, 0]], range(4))
    q = np.arange(4)
    cascade = assemble(machine, Cover(machine.delta, q, np.stack([q % 2, q // 2], axis=1), (0, 1), ("low", "high")))
    now = assemble(machine, fibre_code(cascade), reads_now=True)
    assert now.reads_now
    assert [c.n_states for c in now.components] == [2, 2]
    now = assemble(register().machine, fibre_code(register()), reads_now=True)
    assert [c.n_states for c in now.components] == [13, 5]
    assert now.transduce("1+2-3*4") == register().transduce("1+2-3*4")


@given(machines(max_states=5, max_letters=2))
def test_fibre_codes_run_the_machine(machine):
    cascade = assemble(machine, holonomy(machine.delta, machine.start))
    assume(len(cascade.states) < 50)
    now = assemble(machine, fibre_code(cascade), reads_now=True)
    assert now.reads_now
    word = [machine.alphabet[k % len(machine.alphabet)] for k in (0, 1, 1, 0, 1, 0, 0)]
    assert now.transduce(word) == machine.transduce(word)


def test_a_cover_that_grows_without_end_is_named(monkeypatch):
    monkeypatch.setattr(module, "MAX_JOINT_STATES", 2)
    with pytest.raises(BudgetExceeded, match="more than 2 states"):
        fibre_code(register())
