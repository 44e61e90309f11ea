"""Witnesses as running modules: exact ones proved, rotating ones within their bound; blocks of 1-norm at most 1."""

from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import lcm

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments import signed_blocks as columns
from experiments.signed_blocks import signed_blocks
from experiments.witness_networks import _block_length, lower_witness, safe_length
from fsa2lrnn import MooreMachine, Proved, prove_equivalent, zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.families import Witness, represent
from fsa2lrnn.families.block_sizes import minimal_block
from fsa2lrnn.families.block_sizes.answers import FactorHeadsWitness, RealBlockWitness
from fsa2lrnn.families.channels import Affine
from fsa2lrnn.families.liquid import LiquidWitness
from fsa2lrnn.testing.strategies import machines

DECIDED = ["lti", "lti-diagonalisable", "diagonal[0,1]", "diagonal[-1,1]", "diagonal-complex"]


@given(machines(max_states=5, max_letters=2), st.sampled_from(DECIDED))
def test_every_witness_runs_as_the_machine(machine, family):
    verdict = represent(machine, family, short_words=False)
    if not isinstance(verdict, Witness):
        return
    model = lower_witness(verdict)
    if verdict.is_exact:
        assert safe_length(verdict) is None
        assert isinstance(prove_equivalent(model, machine), Proved)
    else:
        word = [machine.alphabet[a] for a in np.random.default_rng(0).integers(len(machine.alphabet), size=300)]
        assert model.transduce(word) == machine.transduce(word)


def test_one_matrix_whatever_the_weights_and_no_integers_beyond_float64():
    model = lower_witness(represent(zoo.shift_register(3), "lti"))
    layer = model.layers[0]
    assert not layer.transition[0].weight.any()
    with torch.no_grad():
        A, _ = layer.tables(torch.randn(6, 2, dtype=torch.float64))
    assert torch.equal(A, A[:1].expand_as(A))
    huge = Affine(((1,),), ((2**60,),), ((0,), (2**60,)))
    machine = MooreMachine([[1, 0]], "xy")
    with pytest.raises(NotExact, match=r"more than float64 holds exactly \(2\^53\)"):
        lower_witness(Witness(machine, "lti", huge, (0, 1)))


@pytest.mark.parametrize(("numerator", "is_exact"), [(1, True), (2**60, False)])
def test_dyadic_weights_are_exact_only_if_sums_fit_53_bits(numerator, is_exact):
    x = Fraction(numerator, 2**10)
    witness = LiquidWitness(
        MooreMachine([[1, 0]], "xy"), "liquid-s4", ((Fraction(-1),),), ((x,),), ((Fraction(0),), (x,))
    )
    assert witness.is_exact == is_exact


def test_the_bound_on_rotations_covers_the_error_that_is_seen():
    """States of the running module stay within the bound's own estimate of their true places."""
    machine = zoo.sum_mod(5)
    witness = represent(machine, "diagonal-complex")
    (channel,) = witness.form
    model = lower_witness(witness)
    word = np.random.default_rng(2).integers(5, size=20_000)
    with torch.no_grad():
        u = model.embedding(torch.from_numpy(word)[None])
        x, _ = model.layers[0](u, model.layers[0].initial_state(1))
    places = np.array([[z.real, z.imag] for z in map(channel.number, channel.values)])
    errors = np.linalg.norm(x[0].numpy() - places[np.cumsum(word) % 5], axis=1)
    reach = max(sum(map(abs, value)) for value in channel.values) + max(
        sum(map(abs, shift)) for shift in channel.shifts
    )
    assert 0 < errors.max() < 3 * len(word) * (4 + 12) * 2.0**-53 * reach


@pytest.mark.long_cases("group(A5)-block(4)-sizes1")
@pytest.mark.parametrize(("task", "family", "sizes"), [
    ("group(S4)", "block(3)", {3}), ("group(A5)", "block(4)", {4}), ("even_pair(5)", "block(3)", {3}),
    ("shift_register(5)", "block(5)", None), ("sum_mod(7)", "block(6)", {6}),
])  # fmt: skip
def test_blocks_of_integers_are_proved(task, family, sizes):
    machine = zoo.from_task(task)
    witness = represent(machine, family)
    assert isinstance(witness, RealBlockWitness)
    assert witness.is_exact
    assert safe_length(witness) is None
    model = lower_witness(witness)
    assert max(model.layers[0].block_sizes) == int(family[6:-1])
    assert sizes is None or set(model.layers[0].block_sizes) == sizes
    assert isinstance(prove_equivalent(model, machine), Proved)


@pytest.mark.long_cases("sum_mod(5)-diagonal-complex")
@pytest.mark.parametrize(("task", "family"), [
    *((task, "diagonal-complex") for task in ("sum_mod(5)", "sum_mod(12)", "cycle_navigation(8)")),
    ("resettable_counter(5)", "diagonal-complex"),
    *((task, None) for task in ("group(A5)", "sum_mod(7)", "group(D5)")),
    pytest.param("mod_arith(5, completion=register)", None, marks=pytest.mark.slow),
])  # fmt: skip
def test_rotations_and_real_blocks_are_right_within_the_length_that_is_stated(task, family):
    machine = zoo.from_task(task)
    witness = represent(machine, family or f"block({minimal_block(machine, 'R').upper})")
    assert not witness.is_exact
    assert safe_length(witness) > 10 ** (11 if family else 8)
    word = [machine.alphabet[a] for a in np.random.default_rng(0).integers(len(machine.alphabet), size=5_000)]
    model = lower_witness(witness)
    assert model.transduce(word) == machine.transduce(word)
    assert family is None or set(model.layers[0].block_sizes) <= {1, 2}


@pytest.mark.long_cases("group(A5)")
@pytest.mark.parametrize("task", ["group(A5)", "sum_mod(7)", "group(D5)"])
def test_the_bound_on_real_blocks_covers_the_error_that_is_seen(task):
    """After 2,000 letters the state is as near to its vector as the bound allows for so many."""
    machine = zoo.from_task(task)
    tables = represent(machine, f"block({minimal_block(machine, 'R').upper})").tables()
    x, q = tables.x[machine.start].copy(), machine.start
    for a in np.random.default_rng(2).integers(len(machine.alphabet), size=2_000):
        x = (tables.A[a] @ x[..., None])[..., 0] + tables.v[a]
        q = int(machine.delta[a, q])
    error = np.abs(x - tables.x[q]).max()
    allowed = 1e-3 * np.abs(tables.x).max() * 2_000 / _block_length(tables)
    assert 0 < error < allowed


@pytest.mark.parametrize(
    ("task", "family"),
    [("group(S4)", "householder(2)"), ("sum_mod(7)", "householder(2)"),
     ("resettable_counter(5)", "householder(2)")],
)  # fmt: skip
def test_heads_of_few_factors_run(task, family):
    machine = zoo.from_task(task)
    witness = represent(machine, family)
    assert isinstance(witness, FactorHeadsWitness)
    witness.check()
    model = lower_witness(witness)
    assert model.config.layers[0].n_factors == int(family[12:-1])
    word = [machine.alphabet[a] for a in np.random.default_rng(0).integers(len(machine.alphabet), size=3_000)]
    assert model.transduce(word) == machine.transduce(word)


def test_named_groups():
    sizes = {"Z5": 5, "Z10": 5, "S3": 3, "S4": 3, "A4": 3, "A5": 5, "Q8": 4, "D4": 2, "Z2xZ3xS3": 3}
    assert {name: signed_blocks(zoo.group(name)).upper for name in sizes} == sizes
    for name in ("S3", "S4", "Z12"):
        assert signed_blocks(zoo.group(name)).lower >= minimal_block(zoo.group(name), "Q").lower
    assert signed_blocks(zoo.flip_flop()) is None
    assert signed_blocks(MooreMachine([[0]], ["only"])).upper == 0


@cache
def periods(b):
    """How long the orbits of vectors are under the signed permutations of b axes: by all of them."""
    found = set()
    for order, signs in product(permutations(range(b)), product((1, -1), repeat=b)):
        matrix = np.zeros((b, b), int)
        matrix[range(b), order] = signs
        for start in product((0, 1), repeat=b):
            x, period = np.array(start), 1
            y = matrix @ x
            while not np.array_equal(x, y):
                y, period = matrix @ y, period + 1
            found.add(period)
    return found


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8, 12])
def test_cyclic_groups_need_what_signed_permutations_show(n):
    """One generator turns each block by a signed permutation; n states take orbits whose lengths have n as multiple."""
    least = next(b for b in range(1, 5) if lcm(*(p for p in periods(b) if n % p == 0)) == n)
    assert signed_blocks(zoo.sum_mod(n)).upper == least


def test_groups_beyond_the_limits_leave_an_interval(monkeypatch):
    large = signed_blocks(zoo.sum_mod(211))
    assert (large.lower, large.upper) == (1, 211)
    assert large.note == "the group has more than 200 elements"
    monkeypatch.setattr(columns, "MAX_SUBGROUPS", 10)
    many = signed_blocks(zoo.group("A5"))
    assert (many.lower, many.upper) == (5, 60)
    assert many.note == "the group has more than 10 subgroups"
