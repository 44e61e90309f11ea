"""The strategies generate what they say and shrink to the simplest counterexample."""

import random

import pytest
import torch
from hypothesis import find, given, settings
from hypothesis import strategies as st

from fsa2lrnn import compile_recurrence, equivalent, extract
from fsa2lrnn.automata import MooreMachine, trim, zoo
from fsa2lrnn.compile.integer_tables import DenseTables
from fsa2lrnn.compile.lower import compile_machine, lower
from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.nn.scans.cpu import pscan, schedule, spt
from fsa2lrnn.testing.strategies import (
    aperiodic_machines,
    block_transitions,
    dfas,
    machines,
    permutation_machines,
    recurrences,
    words,
    wreath_products,
)
from verify import mutants

quiet = settings(max_examples=2_000, database=None, deadline=None, derandomize=True)
ordered = settings(max_examples=500, database=None, deadline=None)


def permutes(machine: MooreMachine) -> bool:
    return all(sorted(row) == list(range(machine.n_states)) for row in machine.delta.tolist())


def turns(row: list[int]) -> bool:
    """Whether a letter moves some state round a cycle."""
    periodic = set(range(len(row)))
    for _ in row:
        periodic = {row[q] for q in periodic}
    return any(row[q] != q for q in periodic)


def do_not_commute(m):
    return any((a[b] != b[a]).any() for a in m.delta for b in m.delta)


@pytest.mark.long
def test_the_simplest_of_each_kind():
    assert find(machines(), lambda _: True, settings=quiet) == MooreMachine([[0]], [0], 0, "a")
    assert find(aperiodic_machines(), lambda _: True, settings=quiet) == MooreMachine([[0]], [0], 0, "a")
    assert find(dfas(), lambda _: True, settings=quiet) == MooreMachine([[0]], [False], 0, "a")
    m = MooreMachine([[0], [0]], [0], alphabet="ab")
    assert find(words(m), lambda _: True, settings=quiet) == []
    assert find(words(m), lambda w: len(w) == 2, settings=quiet) == ["a", "a"]
    found = find(recurrences(), lambda _: True, settings=quiet)
    assert (found.tables.block_sizes, found.alphabet, found.tables.A.tolist()) == ((1,), ("a",), [[[[1]]]])
    assert find(block_transitions(), lambda _: True, settings=quiet).shape == (0, 1, 1, 1)
    assert not find(block_transitions(), lambda A: A.numel() > 3, settings=quiet).any()


@pytest.mark.long_cases("strategy7-<lambda>-5-1-None")
@pytest.mark.parametrize(("strategy", "claim", "states", "letters", "delta"), [
    (dfas(), lambda m: any(turns(row) for row in m.delta.tolist()), 2, 1, [[1, 0]]),  # not all are aperiodic
    (machines(), lambda m: trim(m).n_states < m.n_states, 2, 1, [[0, 0]]),
    (machines(), lambda m: m.start != 0 and trim(m).n_states < m.n_states, 2, 1, [[1, 1]]),
    (dfas(), lambda m: m.minimise().n_states >= 3, 3, 1, None),
    (dfas(), do_not_commute, 2, 2, None),
    *((machines(max_states=5), lambda m, n=n: m.n_states == n, n, 1, None) for n in (1, 2, 5)),
])  # fmt: skip
def test_counterexamples_are_as_small_as_can_be(strategy, claim, states, letters, delta):
    found = find(strategy, claim, settings=ordered, random=random.Random(0))
    assert (found.n_states, len(found.alphabet)) == (states, letters)
    assert delta is None or found.delta.tolist() == delta


@given(machines(max_states=4, max_letters=2, outputs="xy", alphabet=None), machines(alphabet=(0, "+")), dfas())
def test_machines_keep_to_the_bounds(m, listed, acceptor):
    assert m.n_states <= 4
    assert m.alphabet in [("a",), ("a", "b")]
    assert set(m.outputs) <= {"x", "y"}
    assert listed.alphabet == (0, "+")
    assert acceptor.is_acceptor


@given(st.data())
def test_words_are_words_of_the_machine(data):
    m = data.draw(machines())
    word = data.draw(words(m, max_size=5))
    assert len(word) <= 5
    assert len(m.transduce(word)) == len(word)


def is_aperiodic(machine):
    """By the definition: no word of the transition monoid turns states round a cycle."""
    letters = {tuple(row) for row in machine.delta.tolist()}
    monoid, waiting = set(letters), list(letters)
    while waiting:
        word = waiting.pop()
        if turns(list(word)):
            return False
        for row in letters:
            longer = tuple(row[q] for q in word)
            if longer not in monoid:
                monoid.add(longer)
                waiting.append(longer)
    return True


@given(aperiodic_machines(max_states=6), permutation_machines())
def test_aperiodic_machines_are_aperiodic_and_permutation_machines_permute(m, permuting):
    assert m.n_states <= 6
    assert is_aperiodic(m)
    assert permutes(permuting)


@pytest.mark.long_cases("flip_flop")
@pytest.mark.parametrize("name", ["flip_flop", "tomita(1)"])
def test_small_aperiodic_machines_of_the_zoo_come_up(name):
    wanted = zoo.from_task(name)
    strategy = aperiodic_machines(2, len(wanted.alphabet), tuple(dict.fromkeys(wanted.outputs)))

    def same(m):
        if len(m.alphabet) < len(wanted.alphabet):
            return False
        return equivalent(MooreMachine(m.delta, m.outputs, m.start, wanted.alphabet), wanted) is None

    assert find(strategy, same, settings=quiet).n_states == 2


@given(wreath_products(max_states=8))
def test_wreath_products_stay_within_their_bounds(m):
    assert m.n_states <= 8
    assert len(m.alphabet) <= 3
    assert set(m.outputs) <= {0, 1, 2}


@pytest.mark.slow
def test_wreath_products_reach_groups_and_aperiodic_machines():
    assert find(wreath_products(), lambda m: permutes(m) and m.minimise().n_states == 4, settings=quiet).n_states == 4
    assert find(wreath_products(), lambda m: is_aperiodic(m) and m.minimise().n_states == 3, settings=quiet)


@given(st.data())
def test_block_transitions_keep_to_the_unit_ball_and_the_shape(data):
    p = data.draw(st.sampled_from([1.0, 1.2, 2.0]))
    A = data.draw(block_transitions(p, b=3, heads=2, length=2))
    assert (A.shape, A.dtype) == ((2, 2, 3, 3), torch.float64)
    assert (torch.linalg.vector_norm(A, ord=p, dim=-2) <= 1).all()


@given(block_transitions(1.0, length=2))
def test_eq_7_holds_for_p_1(A):
    assert ((A[0] @ A[1]).abs().sum(-2) <= 1 + 1e-12).all()


@given(recurrences(max_heads=2, max_block=3, max_letters=2))
def test_recurrences_keep_to_the_bounds(r):
    assert isinstance(r.tables, DenseTables)
    assert 1 <= len(r.tables.block_sizes) <= 2
    assert max(r.tables.block_sizes) <= 3
    assert r.alphabet in [("a",), ("a", "b")]
    assert len(r.transduce("aa")) == 2


@pytest.mark.parametrize("kind", ["a reset", "two heads", "a shared cell"])
def test_every_kind_of_recurrence_comes_up(kind):
    has = {
        "a reset": lambda r: bool(r.tables.v.any()),
        "two heads": lambda r: len(r.tables.block_sizes) == 2,
        "a shared cell": lambda r: len(r.tables.A) < len(r.alphabet),
    }[kind]
    assert len(find(recurrences(), has, settings=quiet).alphabet) == 1 + (kind == "a shared cell")


SHIFT = MooreMachine([[1, 2, 2], [0, 0, 1]], "xyz", alphabet="ab")


@pytest.mark.parametrize("layout", ["dense", "index"])
def test_each_mutant_computes_the_machine_with_that_fault(layout):
    model = compile_machine(SHIFT, layout=layout)
    expected = {
        mutants.flip_transition(model, "b", 2, 0): MooreMachine([[1, 2, 2], [0, 0, 0]], "xyz", alphabet="ab"),
        mutants.drop_letter(model, "a"): MooreMachine([[0, 1, 2], [0, 0, 1]], "xyz", alphabet="ab"),
        mutants.swap_outputs(model, 0, 2): MooreMachine([[1, 2, 2], [0, 0, 1]], "zyx", alphabet="ab"),
    }
    for broken, machine in expected.items():
        assert extract(broken) == machine.minimise()
    assert extract(model) == SHIFT


def test_what_cannot_be_broken_is_said_even_of_an_index_table():
    model = compile_machine(SHIFT, layout="index")
    with pytest.raises(UnsupportedFormat, match="nothing to transpose: use a dense model"):
        mutants.transpose_block(model, "a")
    with pytest.raises(InvalidWord, match="letter 'c'"):
        mutants.drop_letter(model, "c")
    trained = LRNN(LRNNConfig("ab", (0, 1), (BlockLayerConfig((2,), 2, 2),), 2, 2))
    with pytest.raises(UnsupportedFormat, match="not a compiled one-layer model"):
        mutants.drop_letter(trained, "a")
    for break_it in (lambda: mutants.wrong_gate_weight(model, 0, 0, 0), lambda: mutants.swap_heads(model, 0, 0, 0)):
        with pytest.raises(UnsupportedFormat, match="has neither gates nor heads to break: use a dense model"):
            break_it()


def test_single_faults_of_gates_maps_and_starts(stacks):
    machine = zoo.sum_mod(3)
    broken = mutants.reset_for_map(compile_recurrence(machine))
    assert (broken.transduce("1021"), machine.transduce("1021")) == ([1, 0, 2, 0], [1, 1, 0, 1])
    with pytest.raises(UnsupportedFormat, match="no place for a reset: use a dense layout"):
        mutants.reset_for_map(compile_recurrence(machine, layout="index"))
    model = lower(stacks["registers"][0])
    broken = mutants.wrong_gate_weight(model, 1, 2, 35, "transition")
    changed = {name: (broken.state_dict()[name] - part).nonzero() for name, part in model.state_dict().items()}
    assert {name: where.tolist() for name, where in changed.items() if len(where)} == {
        "layers.1.transition.0.weight": [[2, 35]]
    }
    broken = mutants.shift_by_zeros(model)
    assert isinstance(broken, LRNN)
    for before, after in zip(model.initial_state(2), broken.initial_state(2), strict=True):
        assert torch.equal(before.x, after.x)
        assert not after.u.any()
    assert model.initial_state(2)[1].u.any()
    with pytest.raises(UnsupportedFormat, match="has no token shift"):
        mutants.shift_by_zeros(lower(stacks["counter"][0]))


def test_swapped_heads_swap_their_states(stacks):
    recurrence, _ = stacks["repeats"]
    model = lower(recurrence)
    tokens = torch.tensor([[0, 1, 2, 2, 1, 0]])
    states = []
    for m in (model, mutants.swap_heads(model, 0, 0, 1)):
        u = m.embedding(tokens)
        u = torch.cat([u, torch.zeros_like(u)], dim=-1)
        states.append(m.layers[0](u, m.layers[0].initial_state(1))[0].unflatten(-1, (3, 3)))
    assert torch.equal(states[1], states[0][:, :, [1, 0, 2]])
    assert not torch.equal(*states)
    with pytest.raises(UnsupportedFormat, match=r"heads 1 and 2 have blocks of sizes \(1, 1, 3\)"):
        mutants.swap_heads(model, 0, 1, 2)


def scan_inputs(length):
    generator = torch.Generator().manual_seed(length)
    shapes = [(2, length, 1, 3, 3), (2, length, 1, 3), (2, 1, 3)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def test_broken_scans_schedules_and_rules_break_one_thing_each():
    for length in (2, 7, 8):
        A, v, x0 = scan_inputs(length)
        right = pscan(A, v, x0)
        assert torch.equal(mutants.twice(pscan)(A, v, x0), right)
        assert torch.equal(mutants.wrong_at(pscan, 7)(A, v, x0), right) == (length != 7)
        for broken in (mutants.early_transitions(pscan), mutants.forgetful(pscan), mutants.idle(pscan)):
            assert broken(A, v, x0).shape == right.shape
            assert not torch.allclose(broken(A, v, x0), right)
    assert mutants.swapped_names(schedule)(7)[1] == [["A2", "A2A3"], ["A6", "A6A7"]]
    A = scan_inputs(7)[0].unsqueeze(2)
    (_, right), (_, wrong) = spt(A), mutants.swapped_products(A)
    assert torch.equal(right[:, :, 0], wrong[:, :, 0])
    torch.testing.assert_close(right[:, 0, 1], A[:, 2, 0] @ A[:, 1, 0])
    torch.testing.assert_close(wrong[:, 0, 1], A[:, 1, 0] @ A[:, 2, 0])
    A = 2 * torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for rule in ("clip", "paper", "none"):
        right = normalise(A, rule, 1.2)
        assert not torch.equal(mutants.shrinking_rule(A, rule, 1.2), right)
        assert torch.equal(mutants.unclipped_rule(A, rule, 1.2), right) == (rule != "clip")
        assert torch.equal(mutants.uncentred_rule(A, rule, 1.2), right) == (rule != "paper")
