"""The choice of a form; one layer of one-hot blocks, and the factors that labels show."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import Proved, compile_recurrence, prove_equivalent
from fsa2lrnn.automata import MooreMachine, product, zoo
from fsa2lrnn.automata.language import explore, share_cells
from fsa2lrnn.cascade.cascade import Cascade, Component
from fsa2lrnn.compile.choice import best_cascade, choose, gate_units
from fsa2lrnn.compile.gated_cascade import cells_of_cascade, stack_recurrence
from fsa2lrnn.compile.integer_tables import DenseTables, IndexTables
from fsa2lrnn.compile.recurrence import dense_bytes, visible_factors
from fsa2lrnn.compile.stack import GatedStack
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, UnsupportedFormat
from fsa2lrnn.testing.strategies import machines, permutation_machines


def component(n_states, start, layer, letters, reads, step):
    """A component from a function step(state, letter number, *states read); `reads` are {number: size}."""
    keys = np.array(list(itertools.product(range(letters), *(range(size) for size in reads.values()))))
    maps = np.array([[step(s, *key) for s in range(n_states)] for key in keys.tolist()])
    return Component(n_states, start, tuple(reads), layer, keys, maps)


def cascade_of(letters, components, output, reads_now=False):
    """The cascade of components for the machine that they run, its outputs a function of the joint state."""

    def step(state, a):
        after = []
        for own, part in zip(state, components, strict=True):
            seen = [a, *((after if reads_now else state)[j] for j in part.reads)]
            after.append(int(part.maps[(part.keys == seen).all(1).argmax(), own]))
        return tuple(after)

    start = tuple(part.start for part in components)
    return Cascade(explore(range(letters), start, step, output), components, reads_now)


def proved(cascade):
    recurrence = stack_recurrence(cascade)
    verdict = prove_equivalent(recurrence, cascade.machine)
    assert isinstance(verdict, Proved)
    assert verdict.pairs == len(cascade.states)
    check_transitions(recurrence.tables)
    return recurrence


def check_transitions(tables):
    """In every state that is reached the channels have a ∈ {−1, 0, 1}, and all columns of larger blocks are one-hot."""
    states = {tables.initial().tobytes(): tables.initial()}
    pending = list(states.values())
    for x in pending:
        for after, cell in zip(tables.step(x[None])[0], tables.cell, strict=True):
            check_at(tables, x, after, cell)
            if after.tobytes() not in states:
                states[after.tobytes()] = after
                pending.append(after)


def check_at(tables, before, after, cell):
    below = 0
    for layer in tables.layers:
        token = np.eye(tables.n_cells, dtype=int)[cell]
        u = np.concatenate([token, after[:below]])
        if tables.token_shift:
            u = np.concatenate([u, 0 * token, before[:below]])
        b = layer.x0.shape[1]
        for size, A in zip(layer.block_sizes, layer.transition(u).reshape(-1, b, b), strict=True):
            assert set(np.unique(A)) <= {-1, 0, 1}
            assert size == 1 or (A[:, :size].sum(0) == 1).all()
            assert size == 1 or (A >= 0).all()
        below += layer.width


def test_letters_that_act_alike_share_a_cell():
    low = component(2, 0, 0, 4, {}, lambda s, a: s ^ (a % 2))
    high = component(2, 0, 1, 4, {0: 2}, lambda s, a, low: s ^ low if a == 3 else s)
    cascade = cascade_of(4, (low, high), lambda state: state)
    assert (cells_of_cascade(cascade).tolist(), stack_recurrence(cascade).tables.n_cells) == ([0, 1, 0, 2], 3)


@st.composite
def cascades(draw):
    """Cascades of 1 … 3 components in one to three layers, any maps, reading before or now."""
    reads_now, letters = draw(st.booleans()), draw(st.integers(1, 2))
    components: list[Component] = []
    for i in range(draw(st.integers(1, 3))):
        layer = draw(st.integers(0, components[-1].layer + 1)) if components else 0
        layer = max(layer, components[-1].layer) if components else 0
        lower = [j for j in range(i) if components[j].layer < layer]
        reads = draw(st.lists(st.sampled_from(lower), unique=True).map(sorted)) if lower else []
        m = draw(st.integers(1, 4))
        some = draw(st.lists(st.lists(st.integers(0, m - 1), min_size=m, max_size=m), min_size=1, max_size=3))
        sizes = {j: components[j].n_states for j in reads}
        count = letters * int(np.prod(list(sizes.values()), initial=1))
        chosen = draw(st.lists(st.sampled_from(some), min_size=count, max_size=count))
        keys = np.array(list(itertools.product(range(letters), *(range(size) for size in sizes.values()))))
        components.append(Component(m, draw(st.integers(0, m - 1)), tuple(reads), layer, keys, np.array(chosen)))
    return cascade_of(letters, tuple(components), lambda state: sum(state) % 3, reads_now)


@given(cascades())
def test_every_cascade_is_proved(cascade):
    recurrence = proved(cascade)
    assert recurrence.tables.block_sizes == tuple(size for layer in cascade.block_sizes for size in layer)
    assert recurrence.tables.token_shift == (cascade.has_reads and not cascade.reads_now)


@pytest.mark.long_cases("0")
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


@pytest.mark.long
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


def test_units_and_bytes_are_those_of_the_network():
    from fsa2lrnn.compile.lower import compile_machine

    found = best_cascade(zoo.mod_arith(5))
    model = compile_machine(zoo.mod_arith(5), form="cascade")
    hidden = [gate[0].out_features for layer in model.layers for gate in (layer.transition, layer.value)]
    idle = sum(not gate[0].weight.any() for layer in model.layers for gate in (layer.transition, layer.value))
    assert gate_units(found.cascade) == found.cost.units == sum(hidden) + model.readout[0].out_features - idle
    from fsa2lrnn.compile.lower import compile_machine

    machine = zoo.mod_arith(5).minimise()
    model = compile_machine(machine)
    biases = (
        sum(p.numel() for name, p in model.named_parameters() if name.endswith("bias")) + model.layers[0].x0.numel()
    )
    estimate = dense_bytes([51], len(share_cells(machine.delta)[1]), machine)
    assert estimate == 4 * (sum(p.numel() for p in model.parameters()) - biases)


def test_an_index_layout_is_one_block_and_unknown_options_are_named():
    assert isinstance(compile_recurrence(zoo.even_pair(5), form="auto", layout="index").tables, IndexTables)
    with pytest.raises(UnsupportedFormat, match="layout 'index' holds one large block: a cascade has small ones"):
        compile_recurrence(zoo.even_pair(5), form="cascade", layout="index")
    for option, known in (("form", "onehot, cascade, auto"), ("layout", "auto, dense, index")):
        with pytest.raises(UnsupportedFormat, match=f"{option} 'round' is not known: choose one of {known}"):
            compile_recurrence(zoo.parity(), **{option: "round"})


@given(machines(), st.sampled_from(["dense", "index"]))
def test_tables_are_proved_in_integers(machine, layout):
    verdict = prove_equivalent(compile_recurrence(machine, layout=layout), machine)
    assert isinstance(verdict, Proved)
    assert (verdict.arithmetic, verdict.pairs) == ("int", machine.minimise().n_states)


@given(permutation_machines(4, 2), permutation_machines(4, 2))
def test_a_product_gets_a_block_for_each_factor_it_needs(a, b):
    b = MooreMachine(np.resize(b.delta, (len(a.alphabet), b.n_states)), b.outputs, b.start, a.alphabet)
    both = product(a, b)
    recurrence = compile_recurrence(both)
    assert isinstance(prove_equivalent(recurrence, both), Proved)
    sizes = recurrence.tables.block_sizes
    assert sum(size**3 for size in sizes) <= both.minimise().n_states ** 3


@pytest.mark.long
def test_layouts_by_size_and_what_is_too_large():
    def counter(n):
        return MooreMachine([np.roll(np.arange(n), -1)], range(n))

    assert isinstance(compile_recurrence(counter(64)).tables, DenseTables)
    assert isinstance(compile_recurrence(counter(65)).tables, IndexTables)
    assert isinstance(compile_recurrence(counter(65), layout="dense").tables, DenseTables)
    assert isinstance(compile_recurrence(counter(64), dense_memory=1000).tables, IndexTables)
    with pytest.raises(NotExpressible, match=r"blocks of sizes \[51\], more than max_block=8: allow max_block=51"):
        compile_recurrence(zoo.mod_arith(5), max_block=8)
    assert compile_recurrence(zoo.group("Z5xZ4xZ3"), max_block=5).tables.n_heads == 3
    n = 10_000
    machine = MooreMachine(np.stack([np.roll(np.arange(n), k) for k in range(256)]), np.arange(n) == 0)
    with pytest.raises(BudgetExceeded, match=r"95\.8 GiB, more than the 4\.0 GiB allowed \(256 maps × 1 blocks ×"):
        compile_recurrence(machine, layout="dense")


def test_coordinates_that_the_others_tell_are_dropped():
    labels = [(q % 2, q % 3, q, "same") for q in range(6)]
    machine = MooreMachine([[1, 2, 3, 4, 5, 0]], range(6), labels=labels)
    assert [factor.size for factor in visible_factors(machine)] == [3, 2]


@pytest.mark.parametrize("labels", [
    None,
    range(6),
    [(q // 2, q % 2) for q in range(6)],  # the first coordinate needs to know the second
    [(0, q % 3) for q in range(6)],  # states with one label
    [(q,) for q in range(6)],
    [(q % 2, q % 3) if q else (0,) for q in range(6)],
])  # fmt: skip
def test_labels_that_show_no_product_leave_one_block(labels):
    machine = MooreMachine([[1, 2, 3, 4, 5, 0]], range(6), labels=labels)
    assert [factor.size for factor in visible_factors(machine)] == [6]
