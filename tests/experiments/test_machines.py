"""Rows of results speak of the minimal machine."""

from experiments.machines import of_zoo
from fsa2lrnn.automata import equivalent, zoo


def test_a_row_counts_the_states_of_the_minimal_machine():
    source = "random_dfa(12, 3, seed=2)"
    machine, facts = of_zoo(source)
    assert facts == {"machine": source, "states": machine.n_states, "letters": 3}
    assert machine.n_states < zoo.from_task(source).n_states
    assert equivalent(machine, zoo.from_task(source)) is None
