"""Verdicts carry their evidence, say it in words, and notice when it is wrong; a witness that gives tables runs."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from experiments.witness_networks import lower_witness
from fsa2lrnn import MooreMachine, Proved, Refuted, prove_equivalent, zoo
from fsa2lrnn.families import BlockWitness, RejectedCertificate, Unknown, represent
from fsa2lrnn.families.block_sizes.answers import BoundImpossibility, RealBlockWitness
from fsa2lrnn.families.family_answers import AffineTables, AffineWitness
from fsa2lrnn.families.four_words import FourWords


def test_impossibilities_in_words_and_which_weights_are_exact():
    verdict = represent(zoo.subtraction(5), "diagonal[0,1]")
    assert verdict.four_words == (("-",), ("-", "0"), ("0", "-"))
    assert "x(--0) − x(-0-) = x(-0) − x(0-): a contradiction in four words" in verdict.explain()
    assert '"s" and "." have equal length' in represent(zoo.flip_flop(), "lti").explain()
    assert "2 equations that the family forces" in represent(zoo.sum_mod(3), "diagonal[0,1]").explain()
    machine = MooreMachine([[1, 1, 2], [2, 1, 2]], "xyz", alphabet=["left", "right"])
    verdict = replace(represent(machine, "lti"), words=FourWords((0,), (0, 1), (1, 0), True))
    assert "left right" in verdict.explain()
    assert "multiples of 1/3 turn" in represent(zoo.sum_mod(6), "diagonal-complex").explain()
    cases = {("shift_register(3)", "lti"): True, ("parity", "diagonal-complex"): True}
    cases |= {("sum_mod(4)", "diagonal-complex"): True, ("sum_mod(3)", "diagonal-complex"): False}
    assert {case: represent(zoo.from_task(case[0]), case[1]).is_exact for case in cases} == cases


@pytest.mark.parametrize("words", [
    FourWords((0,), (2, 2), (0, 2), True), FourWords((), (2, 0), (0, 2), True),
    FourWords((2,), (2, 0), (2, 0), True), FourWords((2,), (2, 0), (0, 2), False),
])  # fmt: skip
def test_four_words_that_show_nothing_fail_the_check(words):
    verdict = represent(zoo.subtraction(2), "diagonal[0,1]")
    assert verdict.check()
    with pytest.raises(RejectedCertificate):
        replace(verdict, words=words).check()


def test_a_separator_and_a_family_are_part_of_what_is_checked():
    verdict = represent(zoo.subtraction(5), "diagonal[0,1]")
    with pytest.raises(RejectedCertificate, match="does not tell"):
        replace(verdict, states=(1, 1)).check()
    with pytest.raises(RejectedCertificate, match="may differ in the family lti"):
        replace(represent(zoo.parity(), "diagonal[0,1]"), family="lti").check()
    with pytest.raises(RejectedCertificate, match="outside the family"):
        replace(represent(zoo.parity(), "diagonal[-1,1]"), family="diagonal[0,1]").check()


@dataclass(frozen=True)
class OneHot(AffineWitness):
    """States at the unit vectors, each letter its own matrix."""

    machine: MooreMachine

    def tables(self):
        delta, n = self.machine.delta, self.machine.n_states
        A = np.zeros((len(delta), 1, n, n))
        for a, step in enumerate(delta):
            A[a, 0, step, np.arange(n)] = 1
        return AffineTables(A, np.zeros((len(delta), 1, n)), np.eye(n)[:, None], (n,))


class Swapped(OneHot):
    """With the vectors of two letters in each other's place."""

    def tables(self):
        tables = super().tables()
        return AffineTables(tables.A[::-1].copy(), tables.v, tables.x, tables.block_sizes)


def test_tables_become_a_network_that_is_proved_equal_and_without_there_is_none():
    machine = zoo.group("S3")
    model = lower_witness(OneHot(machine))
    assert model.layers[0].block_sizes == (6,)
    assert isinstance(prove_equivalent(model, machine), Proved)
    assert isinstance(prove_equivalent(lower_witness(Swapped(machine)), machine), Refuted)
    with pytest.raises(NotImplementedError):
        lower_witness(AffineWitness())


def test_small_machines_and_visible_products_fit():
    for machine, sizes in [(zoo.even_pair(3), (7,)), (zoo.group("Z5xZ4xZ3"), (5, 4, 3))]:
        witness = represent(machine, "block(8)")
        assert isinstance(witness, BlockWitness)
        assert witness.recurrence.tables.block_sizes == sizes
        assert witness.dimension == sum(sizes)
        assert witness.check() == f"representable: one layer of blocks {sizes} represents this machine"
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
