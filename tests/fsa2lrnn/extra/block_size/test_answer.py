"""Answers carry their evidence and never say more than it shows."""

from dataclasses import replace

import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.extra.block_size import minimal_block
from fsa2lrnn.families import RejectedCertificate


def test_both_bounds_are_rechecked():
    answer = minimal_block(zoo.sum_mod(5), "R")
    assert answer.check() == (
        "representable: one layer of real blocks of size 2 represents this machine, by blocks of sizes 2; "
        "impossible: no layer of real blocks of size 1 represents this machine, states 0 and 1 would share one vector"
    )


def test_an_answer_with_the_evidence_of_another_machine_is_refused():
    answer, other = minimal_block(zoo.group("S3"), "R"), minimal_block(zoo.tomita(3), "R")
    with pytest.raises(RejectedCertificate):
        replace(answer, machine=zoo.elevator(6)).check()
    with pytest.raises(RejectedCertificate):
        replace(answer, found=other.found).check()


@pytest.mark.parametrize(("machine", "size"), [(MooreMachine([[0]], ["only"]), 0), (zoo.parity(), 1)])
def test_one_and_two_states_need_no_search(machine, size):
    answer = minimal_block(machine, "Q")
    assert (answer.lower, answer.upper, answer.value, answer.impossible) == (size, size, size, None)
    assert sum(block.size for block in answer.blocks) == size
    answer.check()


def test_an_interval_says_both_bounds_and_why_they_do_not_meet():
    answer = minimal_block(zoo.random_dfa(300, 2, seed=0, minimal=True))
    assert answer.value is None
    assert answer.explain() == (
        f"real blocks of size {answer.upper} do, of less than 1 don't; between: {answer.machine.n_states} states are "
        "more than the 200 for which submodules are looked for"
    )
