"""One-hot blocks of a bounded size as a family."""

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import BlockWitness, Rejected, Unknown, represent
from fsa2lrnn.judge import Proved, prove_equivalent
from fsa2lrnn.lower import lower_witness


def test_small_machines_and_visible_products_fit():
    for machine, sizes in [(zoo.even_pair(3), (7,)), (zoo.group("Z5xZ4xZ3"), (5, 4, 3))]:
        witness = represent(machine, "block(8)")
        assert isinstance(witness, BlockWitness)
        assert witness.recurrence.tables.block_sizes == sizes
        assert witness.dimension == sum(sizes)
        assert "represent this machine" in witness.check()
        assert isinstance(prove_equivalent(lower_witness(witness), machine), Proved)


def test_larger_ones_are_unknown_since_layers_of_blocks_may_do_it():
    verdict = represent(zoo.mod_arith(5), "block(8)")
    assert isinstance(verdict, Unknown)
    assert "blocks of sizes [51], more than max_block = 8" in verdict.explain()
    assert isinstance(represent(zoo.mod_arith(5), "block(51)"), BlockWitness)


def test_a_witness_for_another_machine_is_refused():
    small, other = represent(zoo.elevator(3), "block(3)"), represent(zoo.cerny(3), "block(3)")
    wrong = BlockWitness(small.machine, "block(3)", other.recurrence)
    with pytest.raises(Rejected):
        wrong.check()


@pytest.mark.parametrize("family", ["block(0)", "block", "blocks(3)", "diagonal", "mamba"])
def test_unknown_families_are_named(family):
    with pytest.raises(UnsupportedFormat, match="is not known: choose one of lti, lti-diagonalisable"):
        represent(zoo.parity(), family)
