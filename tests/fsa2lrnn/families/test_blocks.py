"""Blocks of a bounded size as a family: one-hot, of integers, of real numbers, or none."""

import pytest

from experiments.witness_networks import lower_witness
from fsa2lrnn import Proved, prove_equivalent, zoo
from fsa2lrnn.families import BlockWitness, RejectedCertificate, Unknown, represent
from fsa2lrnn.families.block_sizes.answers import BoundImpossibility, RealBlockWitness


def test_small_machines_and_visible_products_fit():
    for machine, sizes in [(zoo.even_pair(3), (7,)), (zoo.group("Z5xZ4xZ3"), (5, 4, 3))]:
        witness = represent(machine, "block(8)")
        assert isinstance(witness, BlockWitness)
        assert witness.recurrence.tables.block_sizes == sizes
        assert witness.dimension == sum(sizes)
        assert "represent this machine" in witness.check()
        assert isinstance(prove_equivalent(lower_witness(witness), machine), Proved)


def test_real_blocks_or_none_by_size():
    witness = represent(zoo.sum_mod(5), "block(4)")
    assert isinstance(witness, RealBlockWitness)
    assert (witness.dimension, witness.is_exact) == (4, True)
    assert witness.explain() == "One layer of blocks of sizes 4, of integers."
    witness.check()
    rounded = represent(zoo.sum_mod(5), "block(2)")
    assert (rounded.dimension, rounded.is_exact) == (2, False)
    assert rounded.explain() == "One layer of blocks of sizes 2, of real numbers, which floats round."
    rounded.check()
    verdict = represent(zoo.mod_arith(3), "block(8)")
    assert isinstance(verdict, BoundImpossibility)
    assert verdict.check().startswith("impossible: no layer of real blocks of size 11 represents this machine")
    assert verdict.explain() == "Real blocks must have size 12: smaller ones leave two states with one vector."
    assert isinstance(represent(zoo.mod_arith(3), "block(12)"), RealBlockWitness)
    assert isinstance(represent(zoo.mod_arith(5), "block(51)"), BlockWitness)
    machine = zoo.random_dfa(300, 2, seed=0, minimal=True)
    verdict = represent(machine, "block(8)")
    assert isinstance(verdict, Unknown)
    assert verdict.explain().endswith("several layers of smaller blocks may do it")
    assert "300 states are more than the 200 for which submodules are looked for" in verdict.explain()


def test_a_witness_for_another_machine_is_refused():
    small, other = represent(zoo.elevator(3), "block(3)"), represent(zoo.cerny(3), "block(3)")
    wrong = BlockWitness(small.machine, "block(3)", other.recurrence)
    with pytest.raises(RejectedCertificate):
        wrong.check()
