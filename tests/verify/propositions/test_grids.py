"""The grid answers for the machines it says, and names the one that contradicts it."""

from dataclasses import replace

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import Witness, represent
from fsa2lrnn.families.identities import FORCED
from verify.brute_force import by_T3
from verify.propositions import Effort, Proved, Refuted
from verify.propositions.grids import no_layer_of_a_grid_contradicts

TWO = Effort("two", examples=1, exhaustive=2)


def test_every_table_of_two_states_is_tried_in_every_family():
    answer = no_layer_of_a_grid_contradicts(TWO)
    assert isinstance(answer, Proved)
    assert answer.cases == len(FORCED) * (1 + 12)
    assert "all tables of at most 2 states" in answer.how
    assert "for 42 of the pairs" in answer.how


def test_a_machine_that_is_wrongly_called_impossible_is_named():
    def decide(machine, family):
        impossible = represent(zoo.subtraction(3), family)
        return impossible if machine.delta.tolist() == [[1, 0], [1, 0]] else by_T3(machine, family)

    answer = no_layer_of_a_grid_contradicts(TWO, decide)
    assert isinstance(answer, Refuted)
    assert answer.data == {"delta": [[1, 0], [1, 0]], "family": "lti"}


def test_a_witness_that_is_none_is_named():
    def decide(machine, family):
        verdict = by_T3(machine, family)
        if not isinstance(verdict, Witness) or family != "diagonal[0,1]" or not verdict.form:
            return verdict
        return replace(verdict, form=tuple(replace(lane, shifts=lane.shifts[::-1]) for lane in verdict.form))

    answer = no_layer_of_a_grid_contradicts(TWO, decide)
    assert isinstance(answer, Refuted)
    assert answer.witness.startswith("the witness of diagonal[0,1] for ")
