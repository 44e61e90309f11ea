"""The exact form as a whole: it runs the machine, its parts fit together, and stacks of gated layers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import Proved, Refuted, compile_recurrence, prove_equivalent
from fsa2lrnn.compile.integer_tables import DenseTables, IndexTables, ReluGate
from fsa2lrnn.compile.recurrence import DenseReadout, Recurrence, StateReadout
from fsa2lrnn.compile.stack import GatedLayer, GatedStack
from fsa2lrnn.errors import InvalidMachine, NotExact
from fsa2lrnn.testing.strategies import machines, words


@given(machines(), st.sampled_from(["dense", "index"]), st.data())
def test_tables_run_the_machine(machine, layout, data):
    word = data.draw(words(machine))
    assert compile_recurrence(machine, layout=layout).transduce(word) == machine.transduce(word)


def test_parts_and_readouts_fit_together():
    one = np.array([[[[0, 1], [1, 0]]]])
    tables = DenseTables(one, np.zeros((1, 1, 2), int), np.array([[1, 0]]), np.array([0]), (2,))
    readout = DenseReadout(np.eye(2, dtype=int), np.zeros(2, int), np.eye(2, dtype=int), np.zeros(2, int))
    assert Recurrence(("a",), (0, 1), tables, readout).layers == (tables,)
    with pytest.raises(InvalidMachine, match="the tables know 1 letters, the alphabet 2"):
        Recurrence(("a", "b"), (0, 1), tables, readout)
    with pytest.raises(InvalidMachine, match="of different layouts"):
        Recurrence(("a",), (0, 1), tables, StateReadout(np.array([0, 1])))
    with pytest.raises(InvalidMachine, match="gives 2, but states have 2 entries and there are 1 outputs"):
        Recurrence(("a",), (0,), tables, readout)
    eye = np.eye(2, dtype=int)
    with pytest.raises(InvalidMachine, match=r"shapes of a gate do not fit: W1 \(2, 2\), b1 \(3,\)"):
        DenseReadout(eye, np.zeros(3, int), eye, np.zeros(2, int))
    assert StateReadout(np.array([4, 7]))(np.array([[1], [0]])).tolist() == [7, 4]
    with pytest.raises(InvalidMachine, match="output holds -1: outputs are numbered from 0"):
        StateReadout(np.array([0, -1]))
    readout = DenseReadout(
        np.eye(2, dtype=int), np.array([0, -1]), np.array([[1, 0], [0, 3], [1, 0]]), np.zeros(3, int)
    )
    assert readout(np.array([[1, 0], [0, 2], [0, 0]])).tolist() == [0, 1, 0]


def tables(**change):
    parts = {
        "A": np.array([[[[0, 1], [1, 0]]]]), "v": np.zeros((1, 1, 2), int), "x0": np.array([[1, 0]]),
        "cell": np.array([0]), "block_sizes": (2,),
    }  # fmt: skip
    return DenseTables(**{**parts, **change})


def test_a_reset_is_allowed_beside_maps():
    layer = tables(A=np.zeros((1, 1, 2, 2), int), v=np.array([[[0, 1]]]))
    assert layer.step(np.array([[1, 0]])).tolist() == [[[0, 1]]]
    with pytest.raises(ValueError, match="read-only"):
        layer.A[0] = 1


@pytest.mark.parametrize(("change", "message"), [
    ({"A": np.zeros((1, 1, 2, 3), int)}, r"A has shape \(1, 1, 2, 3\), but 1 cells and blocks of sizes \(2,\)"),
    ({"block_sizes": ()}, "A has shape"),
    ({"A": np.zeros((1, 1, 2, 2), int)}, r"head 0 of cell 0 is neither a map .* sum to \[0, 0\] and v to 0"),
    (
        {
            "A": np.eye(2)[None, None].repeat(2, 1), "v": np.zeros((1, 2, 2), int),
            "x0": np.array([[1, 0], [1, 0]]), "block_sizes": (2, 1),
        },
        "head 1 has entries outside its block of size 1: padding is zero",
    ),
    ({"A": np.array([[[[1, 1], [1, 0]]]])}, r"its columns sum to \[2, 1\]"),
    ({"A": np.array([[[[2, 1], [-1, 0]]]])}, "neither a map"),
    ({"v": np.array([[[1, 0]]])}, r"its columns sum to \[1, 1\] and v to 1"),
    ({"x0": np.array([[1, 1]])}, r"x0 of head 0 is \[1, 1\]: it must be one-hot"),
    ({"cell": np.array([1])}, r"cell = \[1\].*: give each letter one of the cells 0\.\.0"),
    ({"cell": np.array([], int)}, "give each letter one of the cells"),
])  # fmt: skip
def test_a_broken_invariant_is_named(change, message):
    with pytest.raises(InvalidMachine, match=message):
        tables(**change)


@pytest.mark.parametrize(("table", "start", "message"), [
    ([[0, 2]], 0, r"entries outside 0\.\.1"),
    ([[0, -1]], 0, "entries outside"),
    ([[0, 1]], 2, "start = 2, but the block"),
])  # fmt: skip
def test_index_tables_check_themselves(table, start, message):
    with pytest.raises(InvalidMachine, match=message):
        IndexTables(np.array(table), start, np.array([0]))


def random_gate(rng, width_in, width_out, unseen=()):
    units = int(rng.integers(0, 3))
    W1, W2 = rng.integers(-2, 3, (units, width_in)), rng.integers(-2, 3, (width_out, units))
    W1[:, list(unseen)] = 0
    return ReluGate(W1, rng.integers(-2, 3, units), W2, rng.integers(-2, 3, width_out))


def random_stack(rng, token_shift):
    n_cells, below, layers = int(rng.integers(1, 4)), 0, []
    for _ in range(rng.integers(1, 4)):
        n_heads, b = (int(k) for k in rng.integers(1, 3, 2))
        seen = n_cells + below
        width, before = (2 * seen, range(seen, seen + n_cells)) if token_shift else (seen, ())
        gates = (random_gate(rng, width, n_heads * size, before) for size in (b * b, b))
        layers.append(GatedLayer(*gates, rng.integers(-2, 3, (n_heads, b)), (b,) * n_heads))
        below += n_heads * b
    return GatedStack(rng.integers(0, n_cells, 4), tuple(layers), token_shift)


def by_the_formula(stack, word):
    """x_1, x_2, … layer by layer along a word, with u_k written out."""
    before = np.concatenate([np.zeros(stack.n_cells, int), stack.initial()])
    for a in word:
        u, previous = np.eye(stack.n_cells, dtype=int)[stack.cell[a]], before[stack.n_cells :]
        for layer in stack.layers:
            seen, heads = np.concatenate([u, before[: len(u)]]) if stack.token_shift else u, layer.x0.shape
            A = layer.transition(seen).reshape(*heads, heads[1])
            own, previous = previous[: layer.width].reshape(heads), previous[layer.width :]
            x = np.einsum("hij,hj->hi", A, own) + layer.value(seen).reshape(heads)
            u = np.concatenate([u, x.ravel()])
        before = u
        yield u[stack.n_cells :]


@given(st.integers(0, 2**32 - 1), st.booleans(), st.lists(st.integers(0, 3), max_size=3))
def test_a_step_is_the_formula(seed, token_shift, word):
    stack = random_stack(np.random.default_rng(seed), token_shift)
    x = stack.initial()
    for a, wanted in zip(word, by_the_formula(stack, word), strict=True):
        x = stack.step(x[None])[0, a]
        assert (x.tolist(), x.dtype) == (wanted.tolist(), np.int64)


def test_stacks_made_by_hand_are_proved(stack):
    recurrence, machine = stack
    verdict = prove_equivalent(recurrence, machine)
    assert isinstance(verdict, Proved)
    assert verdict.pairs == machine.n_states
    assert recurrence.layers == recurrence.tables.layers


def test_a_stack_with_another_start_is_refuted(stacks):
    recurrence, machine = stacks["counter"]
    tables = recurrence.tables
    high = tables.layers[1]
    flipped = GatedLayer(high.transition, high.value, 1 - high.x0, high.block_sizes)
    wrong = GatedStack(tables.cell, (tables.layers[0], flipped), tables.token_shift)
    recurrence = type(recurrence)(recurrence.alphabet, recurrence.outputs, wrong, recurrence.readout)
    assert isinstance(prove_equivalent(recurrence, machine), Refuted)


def constant(width_in, values):
    return ReluGate(np.zeros((0, width_in), int), np.zeros(0, int), np.zeros((len(values), 0), int), np.array(values))


def channel(width_in, a=1, v=0):
    return GatedLayer(constant(width_in, [a]), constant(width_in, [v]), np.array([[1]]), (1,))


def test_sizes_of_a_stack_and_states_that_grow_beyond_float64():
    layers = (channel(2), GatedLayer(constant(3, [1] * 8), constant(3, [1] * 4), np.zeros((2, 2), int), (2, 2)))
    stack = GatedStack(np.array([1, 0, 1]), layers, False)
    assert (stack.n_cells, stack.n_heads, stack.block_sizes, stack.width) == (2, 3, (1, 2, 2), 5)
    assert [layer.n_units for layer in layers] == [0, 0]
    stack = GatedStack(np.array([0]), (channel(1, a=2**20),), False)
    x = stack.step(stack.step(stack.initial()[None])[0])[0]
    assert x.tolist() == [[2**40]]
    with pytest.raises(NotExact, match="states grow without bound"):
        stack.step(x)


@pytest.mark.parametrize(("change", "message"), [
    ({"value": constant(3, [0, 0])}, "widths of A and v"),
    ({"transition": constant(2, [0] * 7)}, "widths of A and v"),
    ({"x0": np.zeros((2, 1), int)}, "widths of A and v"),
    ({"block_sizes": (2, 0)}, "widths of A and v"),
    ({"transition": constant(2, [1, 0, 0, 1, 0, 1, 0, 0])}, "a gate writes outside blocks of sizes"),
    ({"value": constant(2, [1, 0, 0, 1])}, "a gate writes outside blocks of sizes"),
    ({"x0": np.array([[1, 0], [0, 1]])}, "x0 has entries outside blocks of sizes"),
])  # fmt: skip
def test_a_layer_checks_itself(change, message):
    parts = {
        "transition": constant(2, [1, 0, 0, 1, 1, 0, 0, 0]), "value": constant(2, [0, 0, 1, 0]),
        "x0": np.array([[1, 0], [1, 0]]), "block_sizes": (2, 1),
    }  # fmt: skip
    GatedLayer(**parts)
    with pytest.raises(InvalidMachine, match=message):
        GatedLayer(**{**parts, **change})


LOOKING = ReluGate(np.array([[0, 0, 1, 0]]), np.array([0]), np.array([[1]]), np.array([0]))


@pytest.mark.parametrize(("cell", "layers", "token_shift", "message"), [
    ([0], (), False, "at least one layer"),
    ([2], (channel(2),), False, r"give each letter one of the cells 0\.\.1"),
    ([0], (channel(2), channel(4)), False, "layer 1 sees 4 entries, but 2 cells and 1 entries of lower states are"),
    ([0], (channel(4), channel(3)), True, "twice for the token shift, are there"),
    ([0, 1], (GatedLayer(LOOKING, constant(4, [0]), np.array([[1]]), (1,)),), True, "looks at the letter before"),
])  # fmt: skip
def test_a_stack_checks_itself(cell, layers, token_shift, message):
    with pytest.raises(InvalidMachine, match=message):
        GatedStack(np.array(cell), layers, token_shift)
