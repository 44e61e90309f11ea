"""One layer of one-hot blocks, and the factors that labels show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, product, zoo
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.compile.onehot import dense_bytes, share_cells, visible_factors
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.recurrence import DenseTables, IndexTables
from fsa2lrnn.testing.strategies import machines, permutation_machines
from fsa2lrnn.verification import Proved, prove_equivalent


@given(machines())
def test_every_column_has_norm_exactly_one_for_every_p(machine):
    A = compile_recurrence(machine).tables.A
    for p in (1, 1.2, 2, np.inf):
        assert (np.linalg.norm(A, ord=p, axis=-2) == 1).all()


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


def test_letters_that_act_alike_share_a_cell():
    cell, representatives = share_cells(np.array([[1, 0], [0, 0], [1, 0], [0, 0]]))
    assert cell.tolist() == [0, 1, 0, 1]
    assert representatives.tolist() == [0, 1]


def test_auto_is_dense_up_to_64_states_and_an_index_table_beyond():
    def counter(n):
        return MooreMachine([np.roll(np.arange(n), -1)], range(n))

    assert isinstance(compile_recurrence(counter(64)).tables, DenseTables)
    assert isinstance(compile_recurrence(counter(65)).tables, IndexTables)
    assert isinstance(compile_recurrence(counter(65), layout="dense").tables, DenseTables)
    assert isinstance(compile_recurrence(counter(64), dense_memory=1000).tables, IndexTables)


def test_blocks_or_tables_that_are_too_large_are_refused_with_the_remedy():
    with pytest.raises(NotExpressible, match=r"blocks of sizes \[51\], more than max_block = 8: allow max_block = 51"):
        compile_recurrence(zoo.mod_arith(5), max_block=8)
    assert compile_recurrence(zoo.group("Z5xZ4xZ3"), max_block=5).tables.n_heads == 3
    n = 10_000
    machine = MooreMachine(np.stack([np.roll(np.arange(n), k) for k in range(256)]), np.arange(n) == 0)
    with pytest.raises(
        BudgetExceeded, match=r"95\.8 GiB, more than the 4\.0 GiB allowed \(256 maps × 1 blocks × 10,000²"
    ):
        compile_recurrence(machine, layout="dense")


def test_dense_bytes_are_those_of_the_network():
    from fsa2lrnn.lower import compile_machine

    machine = zoo.mod_arith(5).minimise()
    model = compile_machine(machine)
    biases = (
        sum(p.numel() for name, p in model.named_parameters() if name.endswith("bias")) + model.layers[0].x0.numel()
    )
    estimate = dense_bytes([51], len(share_cells(machine.delta)[1]), machine)
    assert estimate == 4 * (sum(p.numel() for p in model.parameters()) - biases)


def test_coordinates_that_the_others_tell_are_dropped():
    labels = [(q % 2, q % 3, q, "same") for q in range(6)]
    machine = MooreMachine([[1, 2, 3, 4, 5, 0]], range(6), labels=labels)
    assert [factor.size for factor in visible_factors(machine)] == [3, 2]


@pytest.mark.parametrize(
    "labels",
    [
        None,
        range(6),
        [(q // 2, q % 2) for q in range(6)],  # the first coordinate needs to know the second
        [(0, q % 3) for q in range(6)],  # states with one label
        [(q,) for q in range(6)],
        [(q % 2, q % 3) if q else (0,) for q in range(6)],
    ],
)
def test_labels_that_show_no_product_leave_one_block(labels):
    machine = MooreMachine([[1, 2, 3, 4, 5, 0]], range(6), labels=labels)
    assert [factor.size for factor in visible_factors(machine)] == [6]
