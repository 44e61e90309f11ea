"""What is known before training."""

import pytest

from fsa2lrnn import MooreMachine, learn
from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.learning.theory import foresee


def test_blocks_can_be_any_machine():
    assert foresee(zoo.ab_star(), "block") is None


def test_lanes_by_all_that_they_can_know_of_a_word():
    assert foresee(zoo.parity(), "hard_lanes").answer == "yes"
    assert foresee(zoo.sum_mod(3), "hard_lanes").answer == "no"


def test_reflections_by_the_points_and_factors_that_do():
    assert foresee(zoo.group("S3"), "hard_reflections")[2:] == (3, 2)
    assert foresee(zoo.group("S3", "transpositions"), "hard_reflections")[2:] == (3, 1)
    assert foresee(zoo.shift_register(3), "hard_reflections").answer == "unknown"


def test_words_that_do_not_count_speak_against_nothing():
    """Of words that can still be in (ab)*, the last letter says whether they are."""
    marked = MooreMachine([[1, 2, 2], [2, 0, 2]], [True, False, "dead"], 0, "ab")
    assert foresee(marked, "hard_lanes").answer == "no"
    assert foresee(marked, "hard_lanes", ("dead",)).answer == "yes"


@pytest.mark.extra("block_size")
def test_a_no_of_reflections_is_of_machines_whose_every_output_counts():
    machine = MooreMachine([[1, 2, 0], [2, 2, 0]], ["x", "y", "dead"], 0, "ab")
    assert foresee(machine, "hard_reflections").answer == "no"
    assert foresee(machine, "hard_reflections", ("dead",)).answer == "unknown"


def test_words_of_a_sampler_are_what_is_learned():
    """All words of (ab)* are more than lanes can do; those that can still be in it are learned."""
    with pytest.raises(NotExpressible, match="no hard_lanes layer can be this machine, so it is not trained"):
        learn("regex:(ab)*", layer="hard_lanes")
    assert learn("regex:(ab)*", sampler="live", layer="hard_lanes").is_proved
