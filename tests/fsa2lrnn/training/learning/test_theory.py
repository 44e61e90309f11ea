"""What is known before training."""

from fsa2lrnn.automata import zoo
from fsa2lrnn.training.learning.theory import foresee


def test_blocks_can_be_any_machine():
    assert foresee(zoo.ab_star(), "block") is None


def test_lanes_by_all_that_they_can_know_of_a_word():
    assert foresee(zoo.parity(), "hard_lanes").answer == "yes"
    assert foresee(zoo.sum_mod(3), "hard_lanes").answer == "no"


def test_reflections_by_the_points_and_factors_that_do():
    assert foresee(zoo.group("S3"), "hard_reflections")[2:] == (3, 2)
    assert foresee(zoo.group("S3", "transpositions"), "hard_reflections")[2:] == (3, 1)
    assert foresee(zoo.shift_register(3), "hard_reflections").answer == "unknown"
