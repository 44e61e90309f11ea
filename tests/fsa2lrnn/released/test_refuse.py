"""Refusals: found, in words, and none where there is a construction."""

import pytest

from fsa2lrnn import zoo
from fsa2lrnn.released.refuse import refuse


@pytest.mark.parametrize("task", ["parity", "sum_mod(5)", "group(S3)", "group(S3, transpositions)", "tomita(3)"])
def test_qwen_next_refuses_groups(task):
    found = refuse(zoo.from_task(task), "qwen3-next")
    assert found.check().startswith("impossible: one layer or a stack of them without attention of qwen3-next")


@pytest.mark.parametrize(("task", "is_refused"), [("sum_mod(3)", True), ("group(S3)", True), ("parity", False)])
def test_olmo_hybrid_refuses_letters_of_period_three(task, is_refused):
    found = refuse(zoo.from_task(task), "olmo-hybrid")
    assert (found is not None) == is_refused
    assert found is None or found.check().startswith("impossible: one layer of olmo-hybrid")


@pytest.mark.parametrize("layer", ["olmo-hybrid", "qwen3-next"])
@pytest.mark.parametrize("task", ["flip_flop", "ab_star", "shift_register(3)", "dyck(2, 3)", "contains(abaab)"])
def test_what_has_no_group_is_not_refused(task, layer):
    assert refuse(zoo.from_task(task), layer) is None


def test_in_words():
    assert (
        refuse(zoo.mod_arith(2), "qwen3-next").explain().startswith('After "1+" again and again, and then "0", states')
    )
    told = refuse(zoo.sum_mod(3), "olmo-hybrid").explain()
    assert told.startswith('After "1" again and again, states of one layer have period 1 or 2 in the end')
