import pytest
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.compile import compile_recurrence, compile_with_reason
from fsa2lrnn.compile.choice import best_cascade, choose, gate_units
from fsa2lrnn.decomposition import search
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.recurrence import DenseTables, GatedStack, IndexTables
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification import Proved, prove_equivalent


@pytest.mark.parametrize("seed", [0, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, *range(3, 10)))])
def test_random_machines_of_twelve_states_keep_one_block(seed):
    """Their cascades have 10 to 30 layers, unless they have congruences: seeds 2 and 6 have, and gain by them."""
    machine = zoo.random_dfa(12, 2 + seed % 2, seed, minimal=True)
    choice = choose(machine)
    if seed in (2, 6):
        assert choice.decomposition is not None
        assert choice.decomposition.cascade.n_layers <= 3
        return
    assert choice.form == "onehot"
    assert "costs at least" in choice.why or "more than" in choice.why
    assert isinstance(compile_recurrence(machine, form="auto").tables, DenseTables)


@pytest.mark.parametrize("name", ["even_pair(5)", "mod_arith(5)", "dyck(2, 3)", "group(S5)", "length_mod(60)"])
def test_machines_with_structure_become_cascades(name):
    choice = choose(zoo.from_task(name))
    assert choice.form == "cascade"
    assert choice.decomposition is not None
    assert choice.decomposition.cost.total < choice.onehot.total
    assert choice.why.startswith(f"a cascade, at a cost of {choice.decomposition.cost.total:,} = ")
    assert f"one layer costs {choice.onehot.total:,} = " in choice.why


def test_small_machines_keep_one_layer_and_a_bound_on_blocks_leaves_only_the_cascade():
    assert choose(zoo.sum_mod(8)).why == "one layer: its blocks, of sizes 8, are no larger than 8"
    assert choose(zoo.group("Z5xZ4xZ3")).why.startswith("one layer: its blocks, of sizes 5, 4, 3,")
    machine = zoo.random_dfa(12, 2, 1, minimal=True)
    choice = choose(machine, max_block=4)
    assert choice.form == "cascade"
    assert "one layer needs a block of 12" in choice.why
    tables = compile_recurrence(machine, form="auto", max_block=4).tables
    assert isinstance(tables, GatedStack)
    assert max(tables.block_sizes) <= 4


def test_what_decomposition_can_not_do_keeps_one_layer_unless_that_is_too_large():
    large = zoo.random_dfa(35, 4, 0)
    assert "no cheaper cascade (holonomy: " in choose(large).why
    assert "more than 10,000 sets" in choose(large).why
    assert choose(zoo.length_mod(501)).why.startswith("one layer: cascades of more than 500 states")
    with pytest.raises(NotExpressible, match="no cascade with blocks of at most 16 states"):
        choose(large, max_block=16)


@given(machines(max_states=6))
def test_every_form_is_proved_in_integers(machine):
    for form in ("onehot", "cascade", "auto"):
        assert isinstance(prove_equivalent(compile_recurrence(machine, form=form), machine), Proved)


def test_units_are_those_of_the_network():
    from fsa2lrnn.lower import compile_machine

    found = best_cascade(zoo.mod_arith(5))
    model = compile_machine(zoo.mod_arith(5), form="cascade")
    hidden = [gate[0].out_features for layer in model.layers for gate in (layer.transition, layer.value)]
    idle = sum(not gate[0].weight.any() for layer in model.layers for gate in (layer.transition, layer.value))
    assert gate_units(found.cascade) == found.cost.units == sum(hidden) + model.readout[0].out_features - idle


def test_an_index_layout_is_one_block_and_unknown_options_are_named():
    assert isinstance(compile_recurrence(zoo.even_pair(5), form="auto", layout="index").tables, IndexTables)
    with pytest.raises(UnsupportedFormat, match="layout 'index' holds one large block: a cascade has small ones"):
        compile_recurrence(zoo.even_pair(5), form="cascade", layout="index")
    for option, known in (("form", "onehot, cascade, auto"), ("layout", "auto, dense, index")):
        with pytest.raises(UnsupportedFormat, match=f"{option} 'round' is not known: choose one of {known}"):
            compile_recurrence(zoo.parity(), **{option: "round"})


@pytest.mark.parametrize("form", ["auto", "cascade"])
def test_a_cascade_is_searched_once(form, monkeypatch):
    searches, covers = [], search._covers
    monkeypatch.setattr(search, "_covers", lambda *given: searches.append(given) or covers(*given))
    recurrence, why = compile_with_reason(zoo.even_pair(5), form)
    assert isinstance(recurrence.tables, GatedStack)
    assert len(searches) == 1
    assert (why is None) == (form == "cascade")


def test_the_reason_is_that_of_the_choice():
    machine = zoo.even_pair(5)
    assert compile_with_reason(machine)[1] == choose(machine).why
    assert compile_with_reason(machine, "onehot")[1] is None
    assert compile_with_reason(machine, "auto", layout="index")[1] == "one layer: layout index holds one large block"
