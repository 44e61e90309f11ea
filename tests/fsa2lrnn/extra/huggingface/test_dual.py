"""The dual: every machine as copies and sums, in whole numbers."""

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extra.huggingface.pd_ssm import ONE, ZERO, dual

SOURCES = (
    "parity", "sum_mod(5)", "flip_flop", "ab_star", "mod_arith(5)", "group(S4, transpositions)", "even_pair(5)",
    "tomita(7)", "dyck(2, 3)", "cerny(4)", "all_maps(3)", "contains(abaab)",
)  # fmt: skip


def follows(plan):
    """How many states and h any word reaches, 0 where the dual does not show the machine's output at one."""
    start = (plan.machine.start, tuple(plan.start()))
    seen, queue = {start}, [start]
    for q, h in queue:  # grows
        if plan.output(np.array(h)) != plan.machine.outputs[q]:
            return 0
        for a, row in enumerate(plan.machine.delta):
            after = int(row[q]), tuple(plan.step(np.array(h), a))
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return len(seen)


@pytest.mark.parametrize("source", SOURCES)
def test_it_follows_the_machine_for_words_of_every_length(source):
    plan = dual(zoo.from_task(source))
    assert follows(plan) == plan.machine.n_states  # h is a function of the state


@pytest.mark.parametrize("seed", range(20))
def test_drawn_machines(seed):
    machine = zoo.random_dfa(5, 2, seed, minimal=True)
    wide = MooreMachine(machine.delta, [q % 3 for q in range(machine.n_states)], machine.start)
    assert follows(dual(machine))
    assert follows(dual(wide))


def test_a_copied_coordinate_or_a_number_that_is_wrong_shows():
    plan = dual(zoo.sum_mod(5))
    for part in (plan.sources, plan.added):
        part[1, 3] += 1
        assert not follows(plan)
        part[1, 3] -= 1


def test_what_is_constant_takes_no_coordinate():
    plan = dual(zoo.flip_flop())
    assert plan.n_coordinates == 3
    assert (plan.sources[:2, 2] == ZERO).all()
    assert (plan.sources[:, ONE] == ONE).all()


def test_too_large():
    with pytest.raises(BudgetExceeded, match="the dual of these 51 states has more than 40 coordinates"):
        dual(zoo.mod_arith(5), limit=40)
